// SPDX-License-Identifier: Apache-2.0
// Sessions with plans beside those of references. What fails here fails the test, and says what the
// library said.
#ifndef SUPPORT_PLAN_CHECKS_H
#define SUPPORT_PLAN_CHECKS_H

#include "core/tensor/tensor.h"
#include "tare/tare.h"

extern const tare_session_options portable_reference; // of portable floats, too

tare_session *session_with(const tare_model *model, const tare_session_options *options);
tare_session *session_on(const tare_model *model, int threads);
/// On one thread.
tare_session *session_of(const tare_model *model, bool reference);

/// What a run gives.
enum { MOST_OUTPUTS = 4 };
typedef struct run_outputs {
    tare_tensor *at[MOST_OUTPUTS];
    size_t count;
} run_outputs;
run_outputs outputs_of(tare_session *s, const tare_tensor *const *inputs, size_t count);
void release_outputs(run_outputs *outputs);
/// The same of a model with one input and one output; of a session, or of one for this run alone.
tare_tensor *output_of(tare_session *s, const tare_tensor *x);
tare_tensor *output_with(const tare_model *model, const tare_session_options *options,
                         const tare_tensor *x);
/// A session with two runs, where every allocation fails in turn: each failure is told, and leaves
/// nothing.
void check_run_without_memory(const tare_model *model, const tare_session_options *options,
                              const tare_tensor *const *inputs, size_t count);
/// The same of a run on two threads whose steps are timed.
void check_profile_without_memory(const tare_model *model, const tare_tensor *x);

/// Steps of the last run of this kind, and with these words in their reasons; NULL: any.
size_t count_steps(const tare_session *s, const char *kind, const char *words);
/// There are steps, and none is a call of a reference but of the operators between bars in
/// `allowed`. what: for messages, here and below.
void check_calls(const tare_session *s, const char *allowed, const char *what);

/// A run gives the same bits.
void check_same_outputs(tare_session *s, const tare_tensor *x, const run_outputs *expected);
/// Plans on one thread and on two give the reference's bits. check_steps is told each session that
/// ran, and `which` for itself.
void check_plans(const tare_model *model, const tare_tensor *x,
                 void (*check_steps)(const tare_session *s, size_t which), size_t which);
/// Floats that are tolerance * (1 + |expected|) from each other at most.
void check_near_floats(const tare_tensor *found, const tare_tensor *expected, float tolerance,
                       const char *what);
/// Every output of both sessions, twice: the second run finds memory that was used before.
void check_equal_runs(tare_session *planned, tare_session *reference, const tare_tensor *x,
                      const char *what);
void check_model(tare_model *model, const tare_tensor *x, const char *what);

#endif
