// SPDX-License-Identifier: Apache-2.0
// Functions of torch that are one operator in ONNX: the scope tells which one was called.
#include <string.h>

#include "io/onnx/lift/lift.h"
#include "io/onnx/raise/raise.h"

// `Clip` is clamp or hardtanh. dynamo names it. In TorchScript a clamp alone in its scope was a
// module, and Hardtanh is the only module that clamps. ReLU6 has its own class, derived from
// Hardtanh.
static bool was_hardtanh(const lift *l, const node *n, const onnx_scope *scope) {
    const bool is_six = tare__raise_is(n, "relu6");
    if (scope == NULL || !scope->is_known || (!is_six && !tare__raise_is(n, "clamp"))) return false;
    if (is_six) return scope->type != NULL && strcmp(scope->type, "torch.nn.Hardtanh") == 0;
    if (scope->target != NULL) return strstr(scope->target, "hardtanh") != NULL;
    return *scope->path != '\0' && tare__lift_is_alone(l, scope);
}

// Reads the bounds of a clamp as floats; false if one is missing or no number.
static bool read_bounds(const node *n, value *least, value *most) {
    const op_info *op = tare__lift_row(n);
    if (tare__raise_is(n, "relu6")) return *least = tare__float(0), *most = tare__float(6), true;
    const value *low = tare__lift_param(n, op, 1), *high = tare__lift_param(n, op, 2);
    if (low == NULL || high == NULL || low->kind != VALUE_FLOAT || high->kind != VALUE_FLOAT)
        return false;
    *least = *low;
    *most = *high;
    return true;
}

static tare_status respell(lift *l, node *n) {
    value args[3];
    if (n->arg_count == 0 || !was_hardtanh(l, n, tare__onnx_info(l->in, n)->scope) ||
        !read_bounds(n, &args[1], &args[2]))
        return TARE_OK;
    args[0] = n->args[0];
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = "torch.nn.functional.hardtanh",
                            .args = args,
                            .arg_count = 3};
    return tare__raise_replace(l->in, n, &spec, NULL);
}

tare_status tare__lift_respell(lift *l) {
    for (node *n = l->in->draft->first, *next; n != NULL; n = next) {
        next = n->next;
        TARE_TRY(respell(l, n));
    }
    return tare__graph_eliminate_dead(l->in->draft, NULL, NULL, l->err);
}
