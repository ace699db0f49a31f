// SPDX-License-Identifier: Apache-2.0
// Plans of the graphs that operators of control flow run. The graph around them is interpreted.
// Private to runtime/session.
#ifndef RUNTIME_SESSION_GRAPH_PLANS_H
#define RUNTIME_SESSION_GRAPH_PLANS_H

#include "runtime/plan/plan.h"

enum { MOST_GRAPH_PLANS = 4, MOST_GRAPH_REFUSALS = 4 };

/// The plans of one graph, for the latest shapes. Zero-initialized: none.
typedef struct graph_plans {
    interpreter it; // runs the graph without a plan
    bool has_interpreter, is_profiled;
    plan *plans[MOST_GRAPH_PLANS]; // newest first
    int refusal_count;
} graph_plans;

/// Runs the graph of it->root by a plan for such inputs, which is made if there is none. setting:
/// what it shares with other plans, without an interpreter. *out: the results as a tuple; the
/// caller owns the references. *handled false: the interpreter has to run it.
tare_status tare__graph_plans_run(graph_plans *g, const plan_setting *setting,
                                  const interpreter *it, const value *inputs, size_t count,
                                  arena *memory, value *out, bool *handled, tare_error *err);
/// Times the steps of all its plans, and of those to come, or stops.
tare_status tare__graph_plans_profile(graph_plans *g, bool on, tare_error *err);
void tare__graph_plans_destroy(graph_plans *g);

#endif
