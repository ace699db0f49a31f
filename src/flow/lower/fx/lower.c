// SPDX-License-Identifier: Apache-2.0
// Lowering in FX mode: the list of its steps, and helpers that they share.
#include "flow/lower/fx/lower.h"

#include <string.h>

bool tare__is_half_node(const node *n) {
    return n->op == NODE_CALL_METHOD && strcmp(n->target, "to") == 0 && n->arg_count == 2 &&
           n->args[1].kind == VALUE_DTYPE && n->args[1].as.dtype == TARE_FLOAT16;
}

node *tare__dynamic_quantize(const node *dequantize) {
    node *n = tare__is_dequantize_node(dequantize) ? tare__node_arg(dequantize, 0) : NULL;
    return tare__function_op(n) == TARE_OP_QUANTIZE_PER_TENSOR_DYNAMIC ? n : NULL;
}

tare_tensor *tare__attribute(const convert_pass *c, const node *get_attr) {
    return get_attr != NULL && get_attr->op == NODE_GET_ATTR
               ? tare__module_find_tensor(c->base->model->root, get_attr->target)
               : NULL;
}

bool tare__is_relu_node(const convert_pass *c, const node *n) {
    if (n->op == NODE_CALL_FUNCTION)
        return tare__function_op(n) == TARE_OP_RELU && tare__aten_name(n->target) == NULL &&
               !tare__ends_with(n->target, "_");
    const module *m = tare__called_module(c->base->model, n);
    return m != NULL && m->class->role == ROLE_FLOAT && tare__class_op(m->class) == TARE_OP_RELU;
}

// All arguments must be dequantized or constant, and at least one dequantized.
static bool arguments_match(const node *reference, size_t argument_count) {
    bool found = false;
    for (size_t i = 0; i < argument_count; i++) {
        if (i >= reference->arg_count) return false;
        const node *arg = tare__node_arg(reference, i);
        if (arg == NULL) continue;
        if (!tare__is_dequantize_node(arg)) return false;
        found = true;
    }
    return found;
}

// True between a dequantize and a quantize, looking through a relu.
static bool is_enclosed(const convert_pass *c, const node *call) {
    const node *input = tare__node_arg(call, 0);
    if (input == NULL || !tare__is_dequantize_node(input) || call->user_count != 1) return false;
    const node *user = call->users[0];
    if (tare__is_relu_node(c, user) && user->user_count == 1) user = user->users[0];
    return tare__is_quantize_node(user);
}

bool tare__calls_agree(const convert_pass *c, const node *call) {
    const module *called = tare__called_module(c->base->model, call);
    if (called == NULL || called->class->role == ROLE_QUANTIZED ||
        tare__map_get(&c->call_counts, call->target) == tare__map_int(1))
        return true;
    for (const node *n = c->base->model->root->graph->first; n != NULL; n = n->next)
        if (n->op == NODE_CALL_MODULE && strcmp(n->target, call->target) == 0 && !is_enclosed(c, n))
            return false;
    return true;
}

bool tare__match_static(const convert_pass *c, node *n,
                        bool (*accepts)(const convert_pass *c, const node *reference),
                        size_t argument_count, static_match *out) {
    if (!tare__is_quantize_node(n)) return false;
    static_match m = {.quantize = n,
                      .scale = tare__node_arg(n, 1),
                      .zero_point = tare__node_arg(n, 2),
                      .reference = tare__node_arg(n, 0)};
    if (m.reference == NULL || tare__attribute(c, m.scale) == NULL ||
        tare__attribute(c, m.zero_point) == NULL)
        return false;
    if (tare__is_relu_node(c, m.reference) && tare__node_arg(m.reference, 0) != NULL) {
        m.relu = m.reference;
        m.reference = tare__node_arg(m.relu, 0);
    }
    // If the float value has another reader, it is still needed. torch fails here; tare leaves the
    // operator float.
    if (m.reference->user_count != 1 || (m.relu != NULL && m.relu->user_count != 1)) return false;
    if (tare__convert_has_no_qconfig(c, m.reference) || !accepts(c, m.reference)) return false;
    if (argument_count > 0 && !arguments_match(m.reference, argument_count)) return false;
    if (!tare__calls_agree(c, m.reference)) return false;
    *out = m;
    return true;
}

static tare_status count_calls(convert_pass *c) {
    for (const node *n = c->base->model->root->graph->first; n != NULL; n = n->next) {
        if (n->op != NODE_CALL_MODULE) continue;
        const size_t count = (size_t)tare__map_get(&c->call_counts, n->target);
        if (!tare__map_set(&c->call_counts, n->target, tare__map_int(count + 1)))
            return tare__out_of_memory(c->base->err);
    }
    return TARE_OK;
}

tare_status tare__lower_steps(convert_pass *c) {
    TARE_TRY(count_calls(c));
    TARE_TRY(tare__lower_averages(c));
    TARE_TRY(tare__lower_modules(c));
    TARE_TRY(tare__lower_weights(c));
    TARE_TRY(tare__lower_binary(c));
    TARE_TRY(tare__lower_shapes(c));
    TARE_TRY(tare__lower_special(c));
    return tare__convert_eliminate_dead(c->base);
}
