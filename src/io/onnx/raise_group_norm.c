// SPDX-License-Identifier: Apache-2.0
// A group norm, which ONNX has from opset 21 on only. Before, exporters give each group to an
// instance norm as one channel: reshape, instance norm of weight 1 and bias 0, reshape back,
// product and sum with constants of one value per channel.
#include <string.h>

#include "io/onnx/raise.h"

typedef struct group_norm {
    node *x;
    int64_t groups;
    tare_tensor *weight, *bias; // [C] under more dimensions of size 1
    value eps;
} group_norm;

static const tare_tensor *meta_of(onnx_import *in, const node *n) {
    const value *v = &tare__onnx_info(in, n)->meta;
    return v->kind == VALUE_TENSOR ? v->as.tensor : NULL;
}

// The operands of a sum or product of a node and a constant.
static node *operands(onnx_import *in, const node *n, const char *id, tare_tensor **constant) {
    if (!tare__raise_is(n, id) || n->arg_count != 2 || n->kwarg_count > 0) return NULL;
    for (int i = 0; i < 2; i++) {
        *constant = tare__raise_constant(in, &n->args[i]);
        if (*constant != NULL && n->args[1 - i].kind == VALUE_NODE) return n->args[1 - i].as.node;
    }
    return NULL;
}

static bool is_filled(const tare_tensor *t, double number) {
    if (t == NULL || t->data == NULL) return false;
    for (int64_t i = 0; i < t->count; i++)
        if (tare__tensor_get(t, i) != number) return false;
    return true;
}

// One value per channel of an input of `ndim` dimensions.
static bool is_per_channel(const tare_tensor *t, const tare_tensor *x) {
    const int channel = t->ndim - (x->ndim - 1);
    return t->dtype == TARE_FLOAT32 && channel >= 0 && t->shape[channel] == x->shape[1] &&
           t->count == x->shape[1];
}

// The middle: the instance norm between two views.
static bool match_middle(onnx_import *in, const node *back, group_norm *g) {
    if (!tare__raise_is(back, "reshape") || back->user_count != 1) return false;
    const node *norm = back->args[0].kind == VALUE_NODE ? back->args[0].as.node : NULL;
    if (norm == NULL || !tare__raise_is(norm, "instance_norm") || norm->user_count != 1 ||
        norm->arg_count != 8 || norm->args[1].kind != VALUE_NONE)
        return false;
    const node *apart = norm->args[0].kind == VALUE_NODE ? norm->args[0].as.node : NULL;
    if (apart == NULL || !tare__raise_is(apart, "reshape") || apart->user_count != 1) return false;
    const tare_tensor *grouped = meta_of(in, apart);
    g->x = apart->args[0].kind == VALUE_NODE ? apart->args[0].as.node : NULL;
    if (g->x == NULL || grouped == NULL || grouped->ndim < 3) return false;
    g->groups = grouped->shape[1];
    g->eps = norm->args[7];
    return is_filled(tare__raise_constant(in, &norm->args[3]), 1) &&
           is_filled(tare__raise_constant(in, &norm->args[4]), 0);
}

static bool match_all(onnx_import *in, const node *n, group_norm *g) {
    const node *product = operands(in, n, "add", &g->bias);
    if (product == NULL || product->user_count != 1) return false;
    const node *back = operands(in, product, "mul", &g->weight);
    if (back == NULL || !match_middle(in, back, g)) return false;
    const tare_tensor *x = meta_of(in, g->x), *y = meta_of(in, back);
    if (x == NULL || y == NULL || x->ndim < 3 || x->ndim != y->ndim) return false;
    if (memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof *x->shape) != 0) return false;
    return x->shape[1] % g->groups == 0 && is_per_channel(g->weight, x) &&
           is_per_channel(g->bias, x);
}

// The constant as [C], as a node before `before`.
static tare_status flatten(onnx_import *in, const tare_tensor *t, node *before, node **out) {
    tare_tensor *flat = NULL;
    TARE_TRY(tare__tensor_reshape(t, 1, &t->count, &flat, in->err));
    const onnx_constant *was = tare__onnx_constant_of(in, t);
    TARE_TRY(tare__onnx_add_constant(in, flat, was->name));
    TARE_TRY(tare__onnx_constant_node(in, flat, tare__onnx_info(in, before)->scope, out));
    tare__graph_move_before(*out, before);
    return TARE_OK;
}

tare_status tare__raise_group_norm(onnx_import *in, node *n) {
    group_norm g = {0};
    node *weight = NULL, *bias = NULL;
    if (!match_all(in, n, &g)) return TARE_OK;
    TARE_TRY(flatten(in, g.weight, n, &weight));
    TARE_TRY(flatten(in, g.bias, n, &bias));
    const value args[] = {tare__node_value(g.x), tare__int(g.groups), tare__node_value(weight),
                          tare__node_value(bias), g.eps};
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = tare__function_canonical("torch.nn.functional.group_norm"),
                            .args = args,
                            .arg_count = 5};
    return tare__raise_replace(in, n, &spec, NULL);
}
