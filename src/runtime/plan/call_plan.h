// SPDX-License-Identifier: Apache-2.0
// Plans of single calls, by which the interpreter runs a graph that has no plan.
#ifndef RUNTIME_PLAN_CALL_PLAN_H
#define RUNTIME_PLAN_CALL_PLAN_H

#include "runtime/plan/plan.h"

/// Those of one node, for the arguments that it was called with last. Zero-initialized: none yet.
typedef struct call_plans {
    struct call_plan *newest;
    bool has_none; // no step is for such calls: the reference runs them
} call_plans;

/// Fills the allocated result of a shaped call by the plan for such arguments, which is made when
/// they first come; its intermediate results lie in `block`. *handled false: the reference is to
/// run.
tare_status tare__call_plans_run(call_plans *plans, const plan_setting *setting, scratch *block,
                                 const node *n, op_call *call, bool *handled);
void tare__call_plans_destroy(call_plans *plans);

#endif
