// SPDX-License-Identifier: Apache-2.0
// Steps that hand a call its tensors and take back what it made.
// Private to runtime/steps.
#ifndef RUNTIME_STEPS_CALL_H
#define RUNTIME_STEPS_CALL_H

#include "runtime/plan/values.h"

typedef struct call_step {
    const node *node;
    op_call call; // results are the plan's tensors
    size_t result_count;
    tare_tensor **results; // left to right, lent
} call_step;

/// Adds a step whose state begins with `s`, which this fills.
tare_status tare__plan_call_step(plan_builder *b, size_t record, const step_class *class,
                                 call_step *s);
/// Runs it: `compute` fills the result of a call of its own.
tare_status tare__call_step_run(const plan_run_state *run, call_step *s,
                                tare_status (*compute)(const plan_run_state *run, call_step *s,
                                                       op_call *call));
/// Has the module a tensor of halves?
bool tare__module_has_halves(const module *m);

#endif
