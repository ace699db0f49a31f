// SPDX-License-Identifier: Apache-2.0
// Kinds of steps. A file in runtime/steps holds everything about a kind: which calls it computes,
// how it is planned, run and described. steps.def lists the kinds in order of priority.
#ifndef RUNTIME_PLAN_STEP_H
#define RUNTIME_PLAN_STEP_H

#include "runtime/kernels/context.h"
#include "tare/session.h"

struct plan;
struct plan_builder;
struct plan_record;

typedef struct plan_run_state {
    struct plan *plan;
    kernel_context *kernels;
    tare_error *err;
} plan_run_state;

/// The description of a step, for profiles.
typedef struct step_note {
    const char *kernel;      // the kernel, if its name differs from the kind's
    char why[TARE_STEP_WHY]; // why it was chosen
    size_t weight_bytes;
    int64_t macs;              // from the operators' rows, unless the step counts itself
    bool multiplies_quantized; // whether the first tensor is quantized, unless the step
                               // sets it
    bool bits_may_differ;      // between machines: a library's arithmetic
    bool samples_are_alike;    // the same bits for a sample alone and in a batch, by a kernel of the
                               // same name
} step_note;

/// A kind of step. `state` belongs to the step. NULL functions: see each.
typedef struct step_class {
    const char *name;

    /// While a plan is made (plan/dispatch.h): true if a step of this kind may compute the call,
    /// perhaps together with following calls. NULL: the kind never starts a chain.
    bool (*heads)(const struct plan_builder *b, const struct plan_record *r);
    /// Adds calls after `head` that the same step computes to its chain. Returns false if there are
    /// none. NULL: there never are any.
    bool (*extend)(struct plan_builder *b, size_t head);
    /// Called before steps are planned, from the last call to the first: may assign the buffers of
    /// inputs. NULL: not needed.
    void (*reserve)(struct plan_builder *b, size_t record);
    /// The kind of deferral (enum plan_source_kind) if the call can wait until a reader needs its
    /// result, because readers may use the call's first input instead; 0: it cannot. NULL: never.
    int (*defer)(const struct plan_builder *b, const struct plan_record *r);
    /// Adds steps that compute the chain. *done false: it cannot, and nothing was added.
    tare_status (*plan)(struct plan_builder *b, size_t head, bool *done);
    bool reads_quantized; // reads quantized values directly where a deferred call would make floats
                          // of them

    // Runs the step.
    tare_status (*run)(const plan_run_state *run, void *state);
    void (*destroy)(void *state); // NULL: state is in the plan's arena and owns nothing
    void (*describe)(const struct plan *p, const void *state,
                     step_note *out); // NULL: no further description
    /// The state for a replica of the step, which runs at the same time (plan/replicas.h). It must
    /// not outlive `state`, and `destroy` is called for it, too. *out NULL: this step has no
    /// replica. NULL: no step of this kind has.
    tare_status (*replicate)(const struct plan *replica, const void *state, void **out,
                             tare_error *err);
    bool only_joins; // concatenates tensors, and writes those that are not in place yet
} step_class;

/// Uses the same state for the replica, if runs only read it.
tare_status tare__step_share(const struct plan *replica, const void *state, void **out,
                             tare_error *err);
void tare__step_say(step_note *note, const char *format, ...) TARE_PRINTF(2, 3);

/// What is recorded of a step while it is planned (plan/note.c). x and y: the first tensor that it
/// reads, and the first that it writes.
typedef struct step_facts {
    const char *op;
    const char *const *nodes; // nodes that it computes
    size_t node_count;
    const tare_tensor *x, *y;
    size_t x_buffer; // of x
    size_t bytes_in, bytes_out;
    int64_t macs;
    const char *declined; // of a call step: why no other step computes the call
} step_facts;

#endif
