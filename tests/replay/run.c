// SPDX-License-Identifier: Apache-2.0
// Inputs, runs, and the steps that outputs were rounded to.
#include "replay/run.h"

#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "ops/interpret.h"
#include "ops/op.h"
#include "ops/quantized/engine_rules.h"
#include "tare/session.h"

static value tensor_value(tare_tensor *t) {
    return (value){.kind = VALUE_TENSOR, .as.tensor = t};
}

/// A list of recorded tensors "input.I.0", "input.I.1", .. or a dict of "input.I.KEY".
static tare_status nested_input(const recorded_case *c, const char *prefix, arena *memory,
                                value *out, tare_error *err) {
    const map *tensors = &c->data.tensors;
    const size_t length = strlen(prefix);
    size_t count = 0;
    value *items = tare__arena_array(memory, 2 * tensors->count + 1, sizeof *items);
    if (items == NULL) return tare__out_of_memory(err);
    bool is_list = true;
    for (size_t i = 0; i < tensors->count; i++) {
        const char *key = tensors->entries[i].key;
        if (strncmp(key, prefix, length) != 0 || key[length] != '.') continue;
        is_list = is_list && key[length + 1] >= '0' && key[length + 1] <= '9';
        items[2 * count] = tare__string(key + length + 1);
        items[2 * count + 1] = tensor_value(tensors->entries[i].value);
        count++;
    }
    if (count == 0)
        return tare__fail(err, TARE_UNSUPPORTED, "the case records no tensor '%s'", prefix);
    for (size_t i = 0; is_list && i < count; i++) {
        char key[128];
        (void)snprintf(key, sizeof key, "%s.%zu", prefix, i);
        tare_tensor *t = tare__safetensors_get(&c->data, key);
        if (t == NULL) return tare__fail(err, TARE_MALFORMED_FILE, "no tensor '%s'", key);
        items[i] = tensor_value(t);
    }
    *out = (value){.kind = is_list ? VALUE_LIST : VALUE_DICT,
                   .count = (uint32_t)(is_list ? count : 2 * count),
                   .as.items = items};
    return TARE_OK;
}

/// Exported programs take tensors only, which are numbered.
static size_t tensor_count(const recorded_case *c) {
    char name[32] = "input.0";
    size_t count = 0;
    while (tare__safetensors_get(&c->data, name) != NULL)
        (void)snprintf(name, sizeof name, "input.%zu", ++count);
    return count;
}

tare_status replay_inputs(const recorded_case *c, arena *memory, value **out, size_t *count,
                          tare_error *err) {
    const json_t *list = json_object_get(c->json, "inputs");
    *count = list != NULL ? json_array_size(list) : tensor_count(c);
    value *values = tare__arena_array(memory, *count + 1, sizeof *values);
    if (values == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < *count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "input.%zu", i);
        if (list != NULL && !json_is_null(json_array_get(list, i)))
            return tare__fail(err, TARE_UNSUPPORTED, "not supported: input %zu is no tensor", i);
        tare_tensor *t = tare__safetensors_get(&c->data, name);
        if (t != NULL)
            values[i] = tensor_value(t);
        else
            TARE_TRY(nested_input(c, name, memory, &values[i], err));
    }
    *out = values;
    return TARE_OK;
}

/// The scale of every node's result, by node id; 0 where it is not quantized.
typedef struct watch {
    double *scales;
    size_t count;
} watch;

static tare_status note_scale(void *user, const node *n, const value *result, tare_error *err) {
    (void)err;
    watch *w = user;
    if (n->id >= w->count || result->kind != VALUE_TENSOR) return TARE_OK;
    const tare_tensor *t = result->as.tensor;
    if (t->q != NULL && !tare__qscheme_is_per_channel(t->q->scheme))
        w->scales[n->id] = t->q->scale[0];
    return TARE_OK;
}

/// Values pass through these unchanged.
static bool only_moves(const node *n) {
    static const char *const names[] = {"dequantize", "view",      "reshape", "flatten",
                                        "permute",    "transpose", "squeeze", "unsqueeze",
                                        "getitem",    "contiguous"};
    const char *dot = strrchr(n->target, '.');
    const char *name = dot != NULL ? dot + 1 : n->target;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static double step_of(const watch *w, const node *n) {
    for (; n != NULL; n = tare__node_arg(n, 0)) {
        if (n->id < w->count && w->scales[n->id] > 0) return w->scales[n->id];
        // The decomposed form keeps plain integers between a pair of calls that hold the scale.
        if (strstr(n->target, "quantized_decomposed.dequantize_per_tensor") != NULL &&
            n->arg_count > 1 && n->args[1].kind == VALUE_FLOAT)
            return n->args[1].as.real;
        if (n->op == NODE_PLACEHOLDER || n->op == NODE_GET_ATTR || !only_moves(n)) return 0;
    }
    return 0;
}

static void collect_steps(const watch *w, const value *v, run_result *out) {
    if (v->kind == VALUE_NODE) {
        out->steps[out->step_count++] = step_of(w, v->as.node);
    } else if (tare__value_has_items(v)) {
        for (uint32_t i = 0; i < v->count; i++) collect_steps(w, &v->as.items[i], out);
    }
}

static void count_node(void *user, node *n) {
    (void)n;
    (*(size_t *)user)++;
}

static tare_status find_steps(const watch *w, const graph *g, run_result *out, tare_error *err) {
    const node *last = tare__graph_output(g);
    if (last == NULL || last->arg_count == 0) return TARE_OK;
    size_t count = 0;
    tare__value_each_node(&last->args[0], count_node, &count);
    out->steps = tare__arena_array(&out->memory, count + 1, sizeof *out->steps);
    if (out->steps == NULL) return tare__out_of_memory(err);
    collect_steps(w, &last->args[0], out);
    return TARE_OK;
}

tare_status replay_run(const tare_model *model, const value *inputs, size_t count, run_result *out,
                       tare_error *err) {
    const graph *g = model->root->graph;
    *out = (run_result){0};
    watch w = {.count = g->next_id,
               .scales = tare__arena_array(&out->memory, g->next_id + 1, sizeof(double))};
    if (w.scales == NULL) return tare__out_of_memory(err);
    const engine_query linear = {.groups = 1}, conv = {.is_conv = true, .groups = 1};
    const interpreter it = {.root = model->root,
                            .own = model->root,
                            .linear_rule = tare__engine_rule(model->engine, &linear),
                            .conv_rule = tare__engine_rule(model->engine, &conv),
                            .thread_count = 1,
                            .after = note_scale,
                            .user = &w};
    tare_status status = tare__interpret(&it, inputs, count, &out->memory, &out->output, err);
    if (status == TARE_OK) status = find_steps(&w, g, out, err);
    if (status != TARE_OK) replay_run_release(out);
    return status;
}

/// Tensors from left to right, each replaced by the next of the list.
static void replace_tensors(value *v, tare_tensor **list, size_t *next, size_t count) {
    if (v->kind == VALUE_TENSOR && *next < count) {
        tare_tensor_release(v->as.tensor);
        v->as.tensor = list[(*next)++];
    } else if (tare__value_has_items(v)) {
        for (uint32_t i = 0; i < v->count; i++) replace_tensors(&v->as.items[i], list, next, count);
    }
}

tare_status replay_in_session(const tare_model *model, const tare_tensor *const *inputs,
                              size_t count, run_result *r, tare_error *err) {
    enum { MOST_OUTPUTS = 64 };
    tare_session *session = NULL;
    tare_tensor *outputs[MOST_OUTPUTS];
    size_t output_count = 0, used = 0;
    TARE_TRY(tare_session_create(model, NULL, &session, err));
    const tare_status status =
        tare_session_run(session, inputs, count, outputs, MOST_OUTPUTS, &output_count, err);
    tare_session_destroy(session);
    TARE_TRY(status);
    replace_tensors(&r->output, outputs, &used, output_count);
    if (used == output_count) return TARE_OK;
    for (size_t i = used; i < output_count; i++) tare_tensor_release(outputs[i]);
    return tare__fail(err, TARE_INTERNAL, "a session gave %zu tensors, the interpreter %zu",
                      output_count, used);
}

tare_status replay_tensors(const value *inputs, size_t count, arena *memory,
                           const tare_tensor ***out, tare_error *err) {
    const tare_tensor **tensors = tare__arena_array(memory, count + 1, sizeof *tensors);
    *out = NULL;
    if (tensors == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < count; i++) {
        if (inputs[i].kind != VALUE_TENSOR) return TARE_OK;
        tensors[i] = inputs[i].as.tensor;
    }
    *out = tensors;
    return TARE_OK;
}

void replay_run_release(run_result *r) {
    tare__value_release_tensors(&r->output);
    tare__arena_release(&r->memory);
    *r = (run_result){0};
}
