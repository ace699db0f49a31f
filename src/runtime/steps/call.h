// SPDX-License-Identifier: Apache-2.0
// Steps that run a call and take back its results.
// Private to runtime/steps.
#ifndef RUNTIME_STEPS_CALL_H
#define RUNTIME_STEPS_CALL_H

#include "runtime/plan/values.h"

typedef struct call_step {
    const node *node;
    op_call call; // results are the plan's tensors
    size_t result_count;
    tare_tensor **results; // in order, lent
} call_step;

/// Adds a step whose state begins with `s`, which this function fills.
tare_status tare__plan_call_step(plan_builder *b, size_t record, const step_class *class,
                                 call_step *s);
/// Runs the call: `compute` fills the results of a copy of it.
tare_status tare__call_step_run(const plan_run_state *run, call_step *s,
                                tare_status (*compute)(const plan_run_state *run, call_step *s,
                                                       op_call *call));
/// True if the module has a float16 tensor.
bool tare__module_has_halves(const module *m);

#endif
