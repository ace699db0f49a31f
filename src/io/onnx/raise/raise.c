// SPDX-License-Identifier: Apache-2.0
// Replaces idioms, operators that exporters write as several calls, by one call.
#include <string.h>

#include "io/onnx/raise/match.h"

// --- replacing ---

tare_status tare__raise_replace(onnx_import *in, node *last, const node_spec *spec, node **out) {
    node *made = NULL;
    const draft_info kept = *tare__onnx_info(in, last);
    TARE_TRY(tare__graph_insert(in->draft, spec, last->next, &made, in->err));
    TARE_TRY(tare__onnx_add_info(in, made, kept.scope, kept.file_name));
    TARE_TRY(tare__onnx_infer(in, made));
    TARE_TRY(tare__node_replace_uses(last, made, NULL, in->err));
    if (out != NULL) *out = made;
    return TARE_OK;
}

tare_tensor *tare__raise_constant(onnx_import *in, const value *v) {
    const bool is_read = v != NULL && v->kind == VALUE_NODE && v->as.node->op == NODE_GET_ATTR;
    return is_read ? tare__onnx_info(in, v->as.node)->constant : NULL;
}

bool tare__raise_is(const node *n, const char *id) {
    const op_info *op = NULL;
    if (n->op == NODE_CALL_FUNCTION) op = tare__op_function(n->target);
    if (n->op == NODE_CALL_METHOD) op = tare__op_method(n->target);
    return op != NULL && strcmp(op->id, id) == 0;
}

// --- linear layers: a matrix product with a constant, and a sum with another ---

// Exporters transpose the weight of a linear layer and generate a name for the result. A product
// with a parameter of the user's name is left as a product.
static bool is_linear_weight(onnx_import *in, const node *product, const tare_tensor *w) {
    const onnx_scope *scope = tare__onnx_info(in, product)->scope;
    const char *name = tare__onnx_constant_of(in, w)->name;
    if (w->ndim != 2 || w->dtype != TARE_FLOAT32) return false;
    const onnx_constant *c = tare__onnx_constant_of(in, w);
    if (c->quantized != NULL || c->turned != NULL) return true; // a quantizer named it
    if (scope != NULL && scope->target != NULL) return strstr(scope->target, "linear") != NULL;
    if (scope == NULL || !scope->is_known) return true;
    return name == NULL || strstr(name, "::") != NULL;
}

static tare_status transpose(onnx_import *in, const tare_tensor *w, tare_tensor **out) {
    const int64_t shape[] = {w->shape[1], w->shape[0]};
    tare_tensor *t = NULL;
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, 2, shape, &t, in->err));
    const float *from = tare__f32(w);
    float *to = tare__f32(t);
    for (int64_t i = 0; i < w->shape[0]; i++)
        for (int64_t o = 0; o < w->shape[1]; o++)
            to[o * w->shape[0] + i] = from[i * w->shape[1] + o];
    TARE_TRY(tare__onnx_add_constant(in, t, NULL));
    *out = t;
    return tare__onnx_transpose_quantized(in, w, t);
}

// The addition of a bias of `count` elements to the product, which has no other user; NULL if there
// is none. *bias is the get_attr of the bias.
static node *find_bias(onnx_import *in, const node *product, int64_t count, node **bias) {
    node *sum = product->user_count == 1 ? product->users[0] : NULL;
    if (sum == NULL || !tare__raise_is(sum, "add") || sum->arg_count != 2 || sum->kwarg_count > 0)
        return NULL;
    const onnx_scope *a = tare__onnx_info(in, product)->scope, *b = tare__onnx_info(in, sum)->scope;
    if (a != NULL && b != NULL && a->is_known && strcmp(a->raw, b->raw) != 0) return NULL;
    if (a != NULL && b != NULL && a->call != NULL && b->call != NULL &&
        strcmp(a->call, b->call) != 0)
        return NULL;
    for (int i = 0; i < 2; i++) {
        const tare_tensor *t = tare__raise_constant(in, &sum->args[i]);
        if (t == NULL || sum->args[1 - i].as.node != product) continue;
        if (t->ndim != 1 || t->shape[0] != count || t->dtype != TARE_FLOAT32) return NULL;
        *bias = sum->args[i].as.node;
        return sum;
    }
    return NULL;
}

static tare_status raise_linear(onnx_import *in, node *n) {
    if (!tare__raise_is(n, "matmul") || n->arg_count != 2 || n->args[0].kind != VALUE_NODE)
        return TARE_OK;
    const tare_tensor *w = tare__raise_constant(in, &n->args[1]);
    if (w == NULL || tare__raise_constant(in, &n->args[0]) != NULL || !is_linear_weight(in, n, w))
        return TARE_OK;
    tare_tensor *transposed = NULL;
    node *weight = NULL, *bias = NULL;
    TARE_TRY(transpose(in, w, &transposed));
    TARE_TRY(tare__onnx_constant_node(in, transposed, tare__onnx_info(in, n)->scope, &weight));
    node *sum = find_bias(in, n, w->shape[1], &bias);
    tare__graph_move_before(weight, n);
    const value args[] = {n->args[0], tare__node_value(weight),
                          bias != NULL ? tare__node_value(bias) : tare__none()};
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = "torch._C._nn.linear",
                            .args = args,
                            .arg_count = bias != NULL ? 3 : 2};
    return tare__raise_replace(in, sum != NULL ? sum : n, &spec, NULL);
}

// --- idioms ---

static tare_status raise_idioms(onnx_import *in) {
    idiom_set set;
    tare_status status = tare__idioms_open(in, &set);
    for (node *n = in->draft->first, *next; n != NULL && status == TARE_OK; n = next) {
        bool applied = false;
        if (n->user_count > 0) status = tare__idioms_apply(&set, in, n, &applied);
        next = n->next; // continue with the replacement: it may be part of a larger idiom
    }
    tare__idioms_release(&set);
    return status;
}

// --- the whole ---

tare_status tare__onnx_raise(onnx_import *in) {
    for (node *n = in->draft->first, *next; n != NULL; n = next) {
        next = n->next;
        if (n->user_count > 0) TARE_TRY(raise_linear(in, n));
    }
    TARE_TRY(tare__graph_eliminate_dead(in->draft, NULL, NULL, in->err));
    TARE_TRY(tare__raise_views(in));
    TARE_TRY(raise_idioms(in));
    return tare__graph_eliminate_dead(in->draft, NULL, NULL, in->err);
}
