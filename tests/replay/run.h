// SPDX-License-Identifier: Apache-2.0
// Runs a model on a case's inputs and compares what comes out.
#ifndef REPLAY_RUN_H
#define REPLAY_RUN_H

#include "ir/value.h"
#include "model/model.h"
#include "replay/case.h"
#include "replay/findings.h"

/// The case's inputs as values in `memory`; tensors are lent from its data.
tare_status replay_inputs(const recorded_case *c, arena *memory, value **out, size_t *count,
                          tare_error *err);

/// A finished run.
typedef struct run_result {
    value output;  // tensors owned
    double *steps; // per output tensor, in order: the scale that it was quantized with; 0: float
    size_t step_count;
    arena memory;
} run_result;
tare_status replay_run(const tare_model *model, const value *inputs, size_t count, run_result *out,
                       tare_error *err);
/// The inputs as the public API takes them; NULL if one is no tensor (nested inputs).
tare_status replay_tensors(const value *inputs, size_t count, arena *memory,
                           const tare_tensor ***out, tare_error *err);
/// The same model in a session, as users run it: its outputs replace the interpreter's.
tare_status replay_in_session(const tare_model *model, const tare_tensor *const *inputs,
                              size_t count, run_result *r, tare_error *err);
void replay_run_release(run_result *r);

/// Compares with the tensors PREFIX, PREFIX.0, PREFIX.KEY, .. of the case's data. Outputs with a
/// step: within one, nearly all of them equal. Others: within 1e-4.
void replay_compare(const recorded_case *c, const char *prefix, const run_result *r,
                    finding_kind kind, findings *out);

#endif
