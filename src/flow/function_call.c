// SPDX-License-Identifier: Apache-2.0
// Calls of functions, as passes look at them.
#include "flow/function_call.h"

bool tare__function_bind(arena *memory, node *n, function_call *out) {
    const op_info *op = tare__function_row(n);
    *out = (function_call){.function = n};
    if (op == NULL) return false;
    out->bound = (op_call){.function = n->target,
                           .node_name = n->name,
                           .args = n->args,
                           .arg_count = n->arg_count,
                           .kwargs = n->kwargs,
                           .kwarg_count = n->kwarg_count,
                           .memory = memory};
    return tare__call_bind(&out->bound, op) == TARE_OK;
}

const value *tare__function_argument(const function_call *call, const char *name) {
    const size_t i = tare__op_param_index(call->bound.op, name);
    return i < call->bound.param_count ? call->bound.param[i] : NULL;
}

node *tare__function_argument_node(const function_call *call, const char *name) {
    const value *v = tare__function_argument(call, name);
    return v != NULL && v->kind == VALUE_NODE ? v->as.node : NULL;
}

bool tare__function_operands(const function_call *call, value out[2]) {
    const value *left = tare__function_argument(call, "input");
    const value *right = tare__function_argument(call, "other");
    const value *alpha = tare__function_argument(call, "alpha");
    double factor = 1;
    if (left == NULL || right == NULL) return false;
    out[0] = *left;
    out[1] = *right;
    return alpha == NULL || (tare__value_number(alpha, &factor) && factor == 1);
}

node *tare__only_reader(const node *n) {
    return n->user_count == 1 ? n->users[0] : NULL;
}
