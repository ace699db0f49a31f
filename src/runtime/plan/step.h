// SPDX-License-Identifier: Apache-2.0
// Kinds of steps. A file of runtime/steps says all of a kind: which calls it takes, how it is
// planned, run and described. steps.def lists them in order of priority.
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

/// What a step says of itself, for profiles.
typedef struct step_note {
    const char *kernel;      // what computes, if it has another name than the class
    char why[TARE_STEP_WHY]; // why it was chosen
    size_t weight_bytes;
    int64_t macs;          // as the operators' rows count them, unless it knows better
    bool multiplies_quantized; // if the first tensor is one of quantized values, unless it knows
                               // better
    bool bits_may_differ;  // between machines: a library's arithmetic
} step_note;

/// A kind of step; `state` is its own. NULL functions: see each.
typedef struct step_class {
    const char *name;

    // While a plan is made (plan/dispatch.h). Steps that only others ask for head no call: NULL.
    /// May a step of this kind compute the call, perhaps with others behind it?
    bool (*heads)(const struct plan_builder *b, const struct plan_record *r);
    /// Joins calls behind `head` that the same step computes to its chain. false: none. NULL: there
    /// never are any.
    bool (*extend)(struct plan_builder *b, size_t head);
    /// Before any step is planned, from the last call to the first: values may be told where they
    /// will lie. NULL: they need not.
    void (*reserve)(struct plan_builder *b, size_t record);
    /// Can it wait until somebody wants the result, who may as well read what the result is made
    /// of: the call's first input? An enum plan_source_kind; 0: no. NULL: never.
    int (*defer)(const struct plan_builder *b, const struct plan_record *r);
    /// Adds what computes the chain. *done false: it cannot, and has added nothing.
    tare_status (*plan)(struct plan_builder *b, size_t head, bool *done);
    bool reads_quantized; // in place of the floats that a deferred call would make of them

    // When it runs.
    tare_status (*run)(const plan_run_state *run, void *state);
    void (*destroy)(void *state); // NULL: state is in the plan's arena and owns nothing
    void (*describe)(const struct plan *p, const void *state,
                     step_note *out); // NULL: nothing to say
    /// The state of the same step of a replica, which runs at the same time (plan/replicas.h). What
    /// is made of `state` does not outlive it, and `destroy` is for it, too. *out NULL: there is
    /// none, as everywhere where the function is NULL.
    tare_status (*replicate)(const struct plan *replica, const void *state, void **out,
                             tare_error *err);
    bool only_joins; // tensors to one, of which it writes what does not lie there
} step_class;

/// The state itself, which runs only read.
tare_status tare__step_share(const struct plan *replica, const void *state, void **out,
                             tare_error *err);
void tare__step_say(step_note *note, const char *format, ...) TARE_PRINTF(2, 3);

/// What is noted of a step while it is planned (plan/note.c). Of tensors, the first of those
/// that it reads and writes.
typedef struct step_facts {
    const char *op;
    const char *const *nodes; // that it computes
    size_t node_count;
    const tare_tensor *x, *y;
    size_t x_buffer; // of x
    size_t bytes_in, bytes_out;
    int64_t macs;
    const char *declined; // of a call: why it has no step of its own
} step_facts;

#endif
