// SPDX-License-Identifier: Apache-2.0
// Finds layers with their weights and biases, and replaces these.
#include "flow/layer_bias.h"

#include <string.h>

#include "core/text/text.h"
#include "ops/op.h"

enum { BIAS = 2 }; // index of the parameter in all these operators

// --- finding ---

static bool is_layer(const op_info *op) {
    char name[64];
    return op != NULL && (op->traits & OP_WEIGHTED) != 0 && op->reference != NULL &&
           tare__op_param_count(op) > BIAS &&
           tare__op_param_name(op, BIAS, name, sizeof name) > 0 && strcmp(name, "bias") == 0;
}

static tare_tensor *read_tensor(const tare_model *model, node *n) {
    const node *read = tare__behind_observers(model, n);
    return read != NULL && read->op == NODE_GET_ATTR
               ? tare__module_find_tensor(model->root, read->target)
               : NULL;
}

static node *argument(const node *n, size_t index, const char *name) {
    const value *v = tare__node_kwarg(n, name);
    if (v != NULL) return v->kind == VALUE_NODE ? v->as.node : NULL;
    return tare__node_arg(n, index);
}

static void find_module(const tare_model *model, node *n, biased_layer *out) {
    module *called = tare__called_module(model, n);
    if (called != NULL && called->class->role == ROLE_FUSED)
        called = called->child_count > 0 ? called->children[0].module : NULL;
    if (called == NULL ||
        (called->class->role != ROLE_FLOAT && called->class->role != ROLE_REFERENCE) ||
        !is_layer(tare__class_row(called->class)))
        return;
    *out = (biased_layer){
        .node = n, .module = called, .tensor = tare__module_tensor(called, "weight")};
}

void tare__layer_find(const tare_model *model, node *n, biased_layer *out) {
    *out = (biased_layer){0};
    if (n->op == NODE_CALL_MODULE) find_module(model, n, out);
    const op_info *op = tare__function_row(n);
    // An overload has the bias at another index.
    if (!is_layer(op) || tare__op_overload(op, n->target) != NULL) return;
    *out = (biased_layer){
        .node = n, .weight = argument(n, 1, "weight"), .bias = argument(n, BIAS, "bias")};
    out->tensor = read_tensor(model, out->weight);
}

bool tare__layer_is_quantized(const biased_layer *layer) {
    if (layer->module != NULL) return layer->module->class->role == ROLE_REFERENCE;
    return tare__op_has(tare__node_row(layer->weight), OP_DEQUANTIZES);
}

// --- what layers have for themselves ---

static size_t count_calls(const tare_model *model, const module *m) {
    size_t count = 0;
    for (node *n = model->root->graph->first; n != NULL; n = n->next) {
        biased_layer other;
        tare__layer_find(model, n, &other);
        count += other.module == m;
    }
    return count;
}

static size_t count_readers(const tare_model *model, const char *path) {
    size_t count = 0;
    for (const node *n = model->root->graph->first; n != NULL; n = n->next)
        if (n->op == NODE_GET_ATTR && strcmp(n->target, path) == 0) count += n->user_count;
    return count;
}

const char *tare__layer_weight_fault(const tare_model *model, const biased_layer *layer) {
    if (layer->tensor == NULL) return "its weight is computed, not stored";
    if (layer->tensor->dtype != TARE_FLOAT32) return "its weight is not float32";
    if (layer->module != NULL)
        return count_calls(model, layer->module) > 1 ? "its module is called more than once" : NULL;
    for (node *n = layer->weight;; n = tare__node_arg(n, 0)) {
        if (n->user_count > 1) return "its weight has other readers";
        if (n->op == NODE_GET_ATTR)
            return count_readers(model, n->target) > 1 ? "its weight has other readers" : NULL;
    }
}

const char *tare__layer_bias_fault(const tare_model *model, const biased_layer *layer) {
    if (layer->tensor == NULL) return "its weight is computed, not stored";
    if (layer->module != NULL)
        return count_calls(model, layer->module) > 1 ? "its module is called more than once" : NULL;
    if (layer->bias == NULL) return NULL;
    if (tare__layer_bias(model, layer) == NULL) return "its bias is computed, not stored";
    for (node *n = layer->bias;; n = tare__node_arg(n, 0)) {
        if (n->user_count > 1) return "its bias has other readers";
        if (n->op == NODE_GET_ATTR)
            return count_readers(model, n->target) > 1 ? "its bias has other readers" : NULL;
    }
}

tare_tensor *tare__layer_bias(const tare_model *model, const biased_layer *layer) {
    if (layer->module != NULL) return tare__module_tensor(layer->module, "bias");
    return read_tensor(model, layer->bias);
}

// --- changing ---

static tare_status set_keyword(node *layer, node *read, arena *memory, tare_error *err) {
    keyword *kwargs = tare__arena_array(memory, layer->kwarg_count + 1, sizeof *kwargs);
    size_t count = 0;
    if (kwargs == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < layer->kwarg_count; i++)
        if (strcmp(layer->kwargs[i].name, "bias") != 0) kwargs[count++] = layer->kwargs[i];
    kwargs[count++] = (keyword){"bias", tare__node_value(read)};
    return tare__node_set_args(layer, layer->args, layer->arg_count, kwargs, count, err);
}

static tare_status set_argument(node *layer, node *read, arena *memory, tare_error *err) {
    if (layer->arg_count < BIAS || tare__node_kwarg(layer, "bias") != NULL)
        return set_keyword(layer, read, memory, err);
    const size_t count = layer->arg_count > BIAS + 1 ? layer->arg_count : BIAS + 1;
    value *args = tare__arena_array(memory, count, sizeof *args);
    if (args == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < layer->arg_count; i++) args[i] = layer->args[i];
    args[BIAS] = tare__node_value(read);
    return tare__node_set_args(layer, args, count, layer->kwargs, layer->kwarg_count, err);
}

tare_status tare__layer_read_bias(graph *g, node *layer, const char *path, arena *memory,
                                  tare_error *err) {
    const node_spec spec = {.op = NODE_GET_ATTR, .target = path};
    node *read = NULL;
    TARE_TRY(tare__graph_insert(g, &spec, layer, &read, err));
    return set_argument(layer, read, memory, err);
}

// A path of the root that is not used yet.
static const char *free_path(pass *p, const biased_layer *layer) {
    const module *root = p->model->root;
    const char *path = tare__arena_printf(&p->scratch, "%s_bias", layer->node->name);
    for (int i = 1; path != NULL &&
                    (tare__module_has_tensor(root, path) || tare__module_child(root, path) != NULL);
         i++)
        path = tare__arena_printf(&p->scratch, "%s_bias_%d", layer->node->name, i);
    return path;
}

tare_status tare__layer_set_bias(pass *p, const biased_layer *layer, tare_tensor *bias,
                                 bool is_apart) {
    module *root = p->model->root;
    if (layer->module != NULL)
        return tare__module_set_tensor(layer->module, "bias", bias, true, p->err);
    if (layer->bias != NULL && !is_apart)
        return tare__module_set_tensor_path(root,
                                            tare__behind_observers(p->model, layer->bias)->target,
                                            bias, true, &tare__class_container, p->err);
    const char *path = free_path(p, layer);
    if (path == NULL) return tare__out_of_memory(p->err);
    TARE_TRY(tare__module_set_tensor(root, path, bias, true, p->err));
    return tare__layer_read_bias(root->graph, layer->node, path, &p->scratch, p->err);
}

tare_status tare__layer_set_weight(pass *p, biased_layer *layer, tare_tensor *weight) {
    layer->tensor = weight;
    if (layer->module != NULL)
        return tare__module_set_tensor(layer->module, "weight", weight, true, p->err);
    return tare__module_set_tensor_path(p->model->root,
                                        tare__behind_observers(p->model, layer->weight)->target,
                                        weight, true, &tare__class_container, p->err);
}
