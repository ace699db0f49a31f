// SPDX-License-Identifier: Apache-2.0
// Classifies function calls: layers, normalizations, calls with effects.
#include "flow/layer_calls.h"

#include <string.h>

#include "ops/op.h"

const op_info *tare__layer_call(const node *n) {
    const op_info *op = tare__function_row(n);
    const bool is_layer =
        tare__op_has(op, OP_CONVOLUTION | OP_TRANSPOSED) || tare__op_id(op) == TARE_OP_LINEAR;
    return is_layer && tare__aten_name(n->target) != NULL ? op : NULL;
}

const module_class *tare__layer_class(const pass *p, const op_info *layer) {
    return tare__class_of_op(&p->model->context->classes, layer, ROLE_FLOAT, FUSED_NONE);
}

const op_id tare__trained_layers[TRAINED_LAYER_COUNT] = {
    TARE_OP_CONV1D, TARE_OP_CONV2D, TARE_OP_CONV_TRANSPOSE1D, TARE_OP_CONV_TRANSPOSE2D};

bool tare__is_trained_layer(const node *n, op_id layer) {
    return tare__op_id(tare__layer_call(n)) == layer && !tare__calls_overload(n, layer, "padding");
}

const char *tare__packet_name(arena *memory, const char *function) {
    const char *end = strrchr(function, '.'), *start = end;
    while (start > function && start[-1] != '.') start--;
    return tare__arena_strndup(memory, start, (size_t)(end - start));
}

tare_status tare__copy_layer(pass *p, const node *layer, node *weight, node *bias, node *before,
                             node **out) {
    const size_t count = layer->arg_count > 3 ? layer->arg_count : 3;
    value *args = tare__arena_array(&p->scratch, count, sizeof *args);
    const char *name = tare__packet_name(&p->scratch, layer->target);
    if (args == NULL || name == NULL) return tare__out_of_memory(p->err);
    for (size_t i = 0; i < layer->arg_count; i++) args[i] = layer->args[i];
    args[1] = tare__node_value(weight);
    args[2] = bias != NULL ? tare__node_value(bias) : tare__none();
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = layer->target,
                            .candidate = name,
                            .args = args,
                            .arg_count = count,
                            .like = layer};
    return tare__graph_insert(p->model->root->graph, &spec, before, out, p->err);
}

bool tare__is_batch_norm_call(const node *n, size_t *eps_index, bool *is_plain) {
    *is_plain = tare__calls_overload(n, TARE_OP_BATCH_NORM, "default");
    *eps_index = *is_plain ? 7 : 6;
    return *is_plain || tare__function_op(n) == TARE_OP_BATCH_NORM_NO_TRAINING;
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

bool tare__writes_first_argument(const node *n) {
    return n->op == NODE_CALL_FUNCTION && tare__is_in_place_overload(n->target);
}

bool tare__has_effect(const node *n) {
    return tare__op_has(tare__function_row(n), OP_IMPURE) || tare__writes_first_argument(n);
}

static bool keeps_node(const void *user, const node *n) {
    const module *called = tare__called_module(user, n);
    // Guards check the inputs and return nothing.
    return (called != NULL && tare__class_op(called->class) == TARE_OP_GUARDS) ||
           tare__has_effect(n);
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
