// SPDX-License-Identifier: Apache-2.0
// What the passes know of functions: which are layers, which normalize, which write.
#include "flow/layer_calls.h"

#include <string.h>

#include "ops/op.h"

#define ATEN "torch.ops.aten."
#define NN   "torch.nn."

static const layer_call layers[] = {
    {ATEN "conv1d.default", NN "Conv1d", 1, false},
    {ATEN "conv1d.padding", NN "Conv1d", 1, false},
    {ATEN "conv2d.default", NN "Conv2d", 2, false},
    {ATEN "conv2d.padding", NN "Conv2d", 2, false},
    {ATEN "conv3d.default", NN "Conv3d", 3, false},
    {ATEN "conv3d.padding", NN "Conv3d", 3, false},
    {ATEN "conv_transpose1d.default", NN "ConvTranspose1d", 1, true},
    {ATEN "conv_transpose2d.input", NN "ConvTranspose2d", 2, true},
    {ATEN "conv_transpose3d.input", NN "ConvTranspose3d", 3, true},
    {ATEN "linear.default", NN "Linear", 0, false},
};

const layer_call *tare__layer_call(const node *n) {
    if (n == NULL || n->op != NODE_CALL_FUNCTION) return NULL;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strcmp(layers[i].target, n->target) == 0) return &layers[i];
    return NULL;
}

bool tare__is_batch_norm_call(const node *n, size_t *eps_index, bool *is_plain) {
    if (n->op != NODE_CALL_FUNCTION) return false;
    *is_plain = strcmp(n->target, ATEN "batch_norm.default") == 0;
    *eps_index = *is_plain ? 7 : 6;
    return *is_plain || strcmp(n->target, ATEN "_native_batch_norm_legit_no_training.default") == 0;
}

bool tare__has_batch_norm(const pass *p) {
    size_t eps_index = 0;
    bool is_plain = false;
    for (const node *n = p->model->root->graph->first; n != NULL; n = n->next)
        if (tare__is_batch_norm_call(n, &eps_index, &is_plain)) return true;
    return false;
}

node *tare__first_user(const node *n) {
    for (node *m = n->next; m != NULL; m = m->next)
        for (size_t i = 0; i < n->user_count; i++)
            if (n->users[i] == m) return m;
    return NULL;
}

// torch.ops.NAMESPACE.NAME.OVERLOAD: a name that ends with one underscore writes in place.
bool tare__writes_first_argument(const node *n) {
    if (n->op != NODE_CALL_FUNCTION || !tare__starts_with(n->target, "torch.ops.")) return false;
    const char *overload = strrchr(n->target, '.');
    return overload != NULL && overload - n->target > 2 && overload[-1] == '_' &&
           overload[-2] != '_';
}

bool tare__has_effect(const node *n) {
    const op_info *op = n->op == NODE_CALL_FUNCTION ? tare__op_function(n->target) : NULL;
    return (op != NULL && (op->traits & OP_IMPURE) != 0) || tare__writes_first_argument(n);
}

static bool keeps_node(const void *user, const node *n) {
    const module *called = tare__called_module(user, n);
    // Guards look at the inputs and return nothing.
    if (called != NULL && called->class->op != NULL && strcmp(called->class->op, "guards") == 0)
        return true;
    return tare__has_effect(n);
}

tare_status tare__pt2e_eliminate_dead(pass *p) {
    return tare__graph_eliminate_dead(p->model->root->graph, keeps_node, p->model, p->err);
}

tare_status tare__has_many_values(const node *n, bool *out, tare_error *err) {
    tare_node_meta *meta = NULL;
    TARE_TRY(tare_node_meta_read((const tare_node *)n, &meta, err));
    *out = meta->value_is_tuple;
    tare_node_meta_destroy(meta);
    return TARE_OK;
}
