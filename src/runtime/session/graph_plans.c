// SPDX-License-Identifier: Apache-2.0
// Plans of the graphs that operators of control flow run.
#include "runtime/session/graph_plans.h"

#include <string.h>

#include "runtime/plan/profile.h"

void tare__graph_plans_destroy(graph_plans *g) {
    for (size_t i = 0; i < MOST_GRAPH_PLANS; i++) tare__plan_destroy(g->plans[i]);
}

tare_status tare__graph_plans_profile(graph_plans *g, bool on, tare_error *err) {
    g->is_profiled = on;
    return tare__plans_profile(g->plans, MOST_GRAPH_PLANS, on, err);
}

// The number of results if each is a tensor, as plans return them; 0: some may be something else.
static size_t count_results(const graph *g) {
    const node *last = tare__graph_output(g);
    const value *v = last != NULL && last->arg_count == 1 ? &last->args[0] : NULL;
    if (v == NULL || !tare__value_has_items(v)) return v != NULL && v->kind == VALUE_NODE;
    for (uint32_t i = 0; i < v->count; i++)
        if (v->as.items[i].kind != VALUE_NODE) return 0;
    return v->count;
}

static const tare_tensor **tensors_of(const value *inputs, size_t count, arena *memory) {
    const tare_tensor **out = tare__arena_array(memory, count + 1, sizeof *out);
    for (size_t i = 0; out != NULL && i < count; i++) out[i] = inputs[i].as.tensor;
    return out;
}

static bool can_plan(const value *inputs, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (inputs[i].kind != VALUE_TENSOR || inputs[i].as.tensor->data == NULL ||
            inputs[i].as.tensor->q != NULL)
            return false;
    return true;
}

static void keep(graph_plans *g, size_t from, plan *p) {
    for (size_t i = from; i > 0; i--) g->plans[i] = g->plans[i - 1];
    g->plans[0] = p;
}

static plan *kept(graph_plans *g, const tare_tensor *const *inputs, size_t count) {
    for (size_t i = 0; i < MOST_GRAPH_PLANS && g->plans[i] != NULL; i++) {
        plan *p = g->plans[i];
        if (!tare__plan_fits(p, inputs, count)) continue;
        keep(g, i, p);
        return p;
    }
    return NULL;
}

// *out NULL: there is no plan for such inputs.
static tare_status find(graph_plans *g, const plan_setting *shared, const interpreter *it,
                        const tare_tensor *const *inputs, size_t count, plan **out,
                        tare_error *err) {
    plan_setting setting = *shared;
    *out = kept(g, inputs, count);
    if (*out != NULL || g->refusal_count == MOST_GRAPH_REFUSALS) return TARE_OK;
    if (!g->has_interpreter) g->it = *it; // plans refer to it
    g->has_interpreter = true;
    g->it.memory_limit = it->memory_limit; // what is left now
    setting.it = &g->it;
    tare_status status = tare__plan_create(&setting, inputs, count, out, NULL);
    if (status == TARE_OK && g->is_profiled) {
        status = tare__plan_start_profile(*out, NULL);
        if (status != TARE_OK) tare__plan_destroy(*out);
    }
    if (status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(err);
    if (status != TARE_OK) {
        g->refusal_count++;
        *out = NULL;
        return TARE_OK;
    }
    tare__plan_destroy(g->plans[MOST_GRAPH_PLANS - 1]);
    keep(g, MOST_GRAPH_PLANS - 1, *out);
    return TARE_OK;
}

static tare_status run(plan *p, const tare_tensor *const *inputs, size_t results, arena *memory,
                       value *out, tare_error *err) {
    tare_tensor **made = tare__arena_array(memory, results, sizeof(tare_tensor *));
    *out = tare__value_sequence(memory, VALUE_TUPLE, (uint32_t)results);
    if (made == NULL || out->as.items == NULL) return tare__out_of_memory(err);
    TARE_TRY(tare__plan_run(p, inputs, made, results, &results, err));
    for (size_t i = 0; i < results; i++)
        out->as.items[i] = (value){.kind = VALUE_TENSOR, .as.tensor = made[i]};
    return TARE_OK;
}

tare_status tare__graph_plans_run(graph_plans *g, const plan_setting *setting,
                                  const interpreter *it, const value *inputs, size_t count,
                                  arena *memory, value *out, bool *handled, tare_error *err) {
    const size_t results = count_results(it->root->graph);
    plan *p = NULL;
    *handled = false;
    if (results == 0 || !can_plan(inputs, count)) return TARE_OK;
    const tare_tensor **tensors = tensors_of(inputs, count, memory);
    if (tensors == NULL) return tare__out_of_memory(err);
    TARE_TRY(find(g, setting, it, tensors, count, &p, err));
    if (p == NULL || tare__plan_output_count(p) != results) return TARE_OK;
    *handled = true;
    return run(p, tensors, results, memory, out, err);
}
