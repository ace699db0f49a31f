// SPDX-License-Identifier: Apache-2.0
// Plans of single calls, which the interpreter uses for graphs without a plan.
#ifndef RUNTIME_PLAN_CALL_PLAN_H
#define RUNTIME_PLAN_CALL_PLAN_H

#include "runtime/plan/plan.h"

/// The plans of one node for its latest combinations of arguments. Zero-initialized: none.
typedef struct call_plans {
    struct call_plan *newest;
    bool has_none; // no step computes such calls; the reference does
} call_plans;

/// Fills the allocated result of a shaped call by a plan for such arguments. The plan is made at
/// the first such call; its intermediate results are in `block`. *handled false: the reference has
/// to run.
tare_status tare__call_plans_run(call_plans *plans, const plan_setting *setting, scratch *block,
                                 const node *n, op_call *call, bool *handled);
void tare__call_plans_destroy(call_plans *plans);

#endif
