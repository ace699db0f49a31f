// SPDX-License-Identifier: Apache-2.0
// Converts a pattern's code to aten operators, node by node: sizes become constants, and calls and
// subscripts become aten operators.
#include "quantizers/patterns/capture.h"

#include <string.h>

#include "core/text/text.h"
#include "ops/export_rows.h"
#include "quantizers/patterns/capture_state.h"

// --- constants ---

// Converts the result of a node without tensors to a constant for the graph.
static tare_status as_constant(capture *c, const value *fact, value *out) {
    *out = *fact;
    if (fact->kind == VALUE_INT && tare__capture_is_symbolic(fact->as.integer))
        return tare__capture_parameter(c, out);
    if (!tare__value_has_items(fact)) return TARE_OK;
    *out = tare__value_sequence(&c->scratch, fact->kind, fact->count);
    if (out->as.items == NULL) return tare__out_of_memory(c->err);
    for (uint32_t i = 0; i < fact->count; i++)
        TARE_TRY(as_constant(c, &fact->as.items[i], &out->as.items[i]));
    return TARE_OK;
}

static bool holds_tensor(const value *v) {
    if (v->kind == VALUE_TENSOR || v->kind == VALUE_MODULE) return true;
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        if (holds_tensor(&v->as.items[i])) return true;
    return false;
}

static void fold(capture *c, const node *n, value v) {
    c->is_folded[n->id] = true;
    c->folded[n->id] = v;
}

static tare_status resolve(capture *c, const value *v, value *out) {
    *out = *v;
    if (v->kind == VALUE_NODE) {
        const size_t id = v->as.node->id;
        if (id < c->count && c->is_folded[id]) *out = c->folded[id];
        return TARE_OK;
    }
    if (!tare__value_has_items(v)) return TARE_OK;
    *out = tare__value_sequence(&c->scratch, v->kind, v->count);
    if (out->as.items == NULL) return tare__out_of_memory(c->err);
    for (uint32_t i = 0; i < v->count; i++)
        TARE_TRY(resolve(c, &v->as.items[i], &out->as.items[i]));
    return TARE_OK;
}

static tare_status resolve_arguments(capture *c, node *n) {
    value *args = tare__arena_array(&c->scratch, n->arg_count + 1, sizeof *args);
    keyword *kwargs = tare__arena_array(&c->scratch, n->kwarg_count + 1, sizeof *kwargs);
    if (args == NULL || kwargs == NULL) return tare__out_of_memory(c->err);
    for (size_t i = 0; i < n->arg_count; i++) TARE_TRY(resolve(c, &n->args[i], &args[i]));
    for (size_t i = 0; i < n->kwarg_count; i++) {
        kwargs[i].name = n->kwargs[i].name;
        TARE_TRY(resolve(c, &n->kwargs[i].value, &kwargs[i].value));
    }
    return tare__node_set_args(n, args, n->arg_count, kwargs, n->kwarg_count, c->err);
}

// --- sizes ---

static bool is_shape(const node *n) {
    return tare__function_op(n) == TARE_OP_GETATTR && n->arg_count == 2 &&
           n->args[1].kind == VALUE_STRING && strcmp(n->args[1].as.text, "shape") == 0;
}

// True, without an example, for a size or a value computed from sizes.
static bool is_unknown_size(const capture *c, const node *n) {
    if (n->op == NODE_CALL_METHOD) return tare__node_op(n) == TARE_OP_SIZE && n->arg_count == 2;
    if (n->op != NODE_CALL_FUNCTION || !tare__starts_with(n->target, "operator.")) return false;
    if (is_shape(tare__node_arg(n, 0))) return true;
    bool has_size = false;
    for (size_t i = 0; i < n->arg_count; i++) {
        const node *arg = tare__node_arg(n, i);
        if (arg != NULL && !(arg->id < c->count && c->is_folded[arg->id])) return false;
        has_size = has_size || arg != NULL;
    }
    return has_size;
}

// *is_done: the node is a number, which replaced all its uses.
static tare_status fold_size(capture *c, node *n, bool *is_done) {
    value v;
    *is_done = false;
    if (c->has_facts) {
        const bool is_known = n->id < c->facts.count && c->facts.is_known[n->id];
        if (!is_known || !tare__node_is_call(n) || holds_tensor(&c->facts.by_id[n->id]))
            return TARE_OK;
        TARE_TRY(as_constant(c, &c->facts.by_id[n->id], &v));
    } else {
        if (is_shape(n)) { // only its items are used
            *is_done = true;
            c->is_folded[n->id] = n->user_count == 0;
            return TARE_OK;
        }
        if (!is_unknown_size(c, n)) return TARE_OK;
        TARE_TRY(tare__capture_parameter(c, &v));
    }
    fold(c, n, v);
    *is_done = true;
    return TARE_OK;
}

// --- x[1:, None, 0] ---

static bool gives_tuple(const capture *c, const node *n) {
    signature s;
    if (c->has_facts && n->id < c->facts.count && c->facts.is_known[n->id])
        return c->facts.by_id[n->id].kind != VALUE_TENSOR;
    return n->op == NODE_CALL_FUNCTION && tare__signature_of(n->target, &s) &&
           tare__signature_gives_several(&s);
}

static bool is_full(const value *v) {
    return v->kind == VALUE_SLICE && v->as.items[0].kind == VALUE_NONE &&
           v->as.items[1].kind == VALUE_NONE && v->as.items[2].kind == VALUE_NONE;
}

// Converts one index of a subscript to a call; *dimension: the next dimension of the result.
static tare_status index_call(const value *index, int64_t *dimension, op_overload *aten,
                              value *args, size_t *count) {
    args[1] = tare__int(*dimension);
    *count = 2;
    *dimension += 1;
    if (index->kind == VALUE_NONE) {
        *aten = (op_overload)OVERLOAD(UNSQUEEZE, "default");
        return TARE_OK;
    }
    if (index->kind != VALUE_SLICE) {
        *aten = (op_overload)OVERLOAD(SELECT, "int");
        args[(*count)++] = *index;
        *dimension -= 1;
        return TARE_OK;
    }
    const value *bounds = index->as.items;
    *aten = (op_overload)OVERLOAD(SLICE, "Tensor");
    args[(*count)++] = bounds[0].kind != VALUE_NONE ? bounds[0] : tare__int(0);
    args[(*count)++] = bounds[1].kind != VALUE_NONE ? bounds[1] : tare__int(INT64_MAX);
    if (bounds[2].kind != VALUE_NONE) args[(*count)++] = bounds[2];
    return TARE_OK;
}

static tare_status capture_subscript(capture *c, node *n) {
    const node *base = tare__node_arg(n, 0);
    if (base == NULL || n->arg_count != 2 || gives_tuple(c, base)) return TARE_OK;
    const bool is_tuple = n->args[1].kind == VALUE_TUPLE;
    const value *indices = is_tuple ? n->args[1].as.items : &n->args[1];
    const uint32_t index_count = is_tuple ? n->args[1].count : 1;
    int64_t dimension = 0;
    uint32_t last = index_count;
    for (uint32_t i = 0; i < index_count; i++) {
        const bool is_known = indices[i].kind == VALUE_NONE || indices[i].kind == VALUE_SLICE ||
                              indices[i].kind == VALUE_INT;
        if (!is_known)
            return tare__fail(c->err, TARE_INVALID_ARGUMENT,
                              "node '%s': a pattern takes numbers, slices and None in brackets",
                              n->name);
        if (!is_full(&indices[i])) last = i;
    }
    aten_call call = {.args = {tare__node_value((node *)base)}};
    for (uint32_t i = 0; i < index_count; i++) {
        op_overload aten;
        if (is_full(&indices[i])) {
            dimension++;
            continue;
        }
        TARE_TRY(index_call(&indices[i], &dimension, &aten, call.args, &call.arg_count));
        const op_name name = tare__overload_name(aten);
        if (i == last) return tare__capture_become(c, n, name.text, &call);
        TARE_TRY(tare__capture_insert(c, n, name.text, call.args, call.arg_count, &call.args[0]));
    }
    return tare__fail(c->err, TARE_INVALID_ARGUMENT, "node '%s': [:] has no effect in a pattern",
                      n->name);
}

// --- nodes ---

static bool is_transposed(const node *n) {
    return tare__function_op(n) == TARE_OP_GETATTR && n->arg_count == 2 &&
           n->args[1].kind == VALUE_STRING && strcmp(n->args[1].as.text, "T") == 0;
}

static tare_status capture_call(capture *c, node *n) {
    aten_call call = {.arg_count = 1};
    if (tare__function_op(n) == TARE_OP_GETITEM) return capture_subscript(c, n);
    if (!is_transposed(n)) return tare__capture_bind(c, n);
    call.args[0] = n->args[0];
    return tare__capture_become(c, n, tare__export_target("numpy_T.default", false).text, &call);
}

static tare_status capture_node(capture *c, node *n) {
    bool is_size = false;
    if (n->op == NODE_PLACEHOLDER || n->id >= c->count) return TARE_OK;
    TARE_TRY(resolve_arguments(c, n));
    TARE_TRY(fold_size(c, n, &is_size));
    if (is_size || (n->op != NODE_CALL_FUNCTION && n->op != NODE_CALL_METHOD)) return TARE_OK;
    return capture_call(c, n);
}

// Replaces parameters for which the example has constants.
static void fold_parameters(capture *c, const capture_example *example) {
    size_t i = 0;
    for (const node *n = c->g->first; n != NULL && i < example->count; n = n->next) {
        if (n->op != NODE_PLACEHOLDER) continue;
        if (example->inputs[i].is_constant) fold(c, n, example->inputs[i].constant);
        i++;
    }
}

// Redirects the names of folded nodes to the parameter that replaces them, or to nothing.
static tare_status drop_folded(capture *c) {
    for (size_t i = 0; i < c->p->name_count; i++) {
        subgraph_name *name = &c->p->names[i];
        const size_t id = name->node->id;
        if (id >= c->count || !c->is_folded[id]) continue;
        name->node = c->folded[id].kind == VALUE_NODE ? c->folded[id].as.node : NULL;
    }
    for (node *n = c->g->last, *before; n != NULL; n = before) {
        before = n->prev;
        if (n->id < c->count && (c->is_folded[n->id] || is_shape(n)) && n->user_count == 0)
            TARE_TRY(tare__graph_erase(c->g, n, c->err));
    }
    return TARE_OK;
}

static tare_status run(capture *c, const capture_example *example) {
    c->is_folded = tare__arena_array(&c->scratch, c->count + 1, sizeof *c->is_folded);
    c->folded = tare__arena_array(&c->scratch, c->count + 1, sizeof *c->folded);
    if (c->is_folded == NULL || c->folded == NULL) return tare__out_of_memory(c->err);
    if (example != NULL) {
        TARE_TRY(tare__capture_run(c->p, example, &c->scratch, &c->facts, c->err));
        fold_parameters(c, example);
    }
    for (node *n = c->g->first; n != NULL; n = n->next) TARE_TRY(capture_node(c, n));
    return drop_folded(c);
}

tare_status tare__capture(subgraph_pattern *p, const capture_example *example, tare_error *err) {
    capture c = {.p = p,
                 .g = p->graph,
                 .count = p->graph->next_id,
                 .has_facts = example != NULL,
                 .err = err};
    const tare_status status = run(&c, example);
    tare__arena_release(&c.scratch);
    return status;
}
