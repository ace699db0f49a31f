// SPDX-License-Identifier: Apache-2.0
// Prepare: linear functions of exported programs become modules if the mapping quantizes weights of
// torch.nn.Linear group-wise, because only modules hold such weights.
#include <string.h>

#include "flow/fx/prepare.h"
#include "flow/layer_calls.h"
#include "ops/op.h"

typedef struct linear_call_nodes {
    node *call, *input, *weight, *bias; // bias: NULL if there is none
    tare_tensor *weights, *biases;
} linear_call_nodes;

static tare_tensor *tensor_of(const prepare_pass *p, const node *n) {
    return n != NULL && n->op == NODE_GET_ATTR
               ? tare__module_find_tensor(p->base->model->root, n->target)
               : NULL;
}

static bool read_call(const prepare_pass *p, node *n, linear_call_nodes *out) {
    if (tare__op_id(tare__layer_call(n)) != TARE_OP_LINEAR || n->kwarg_count > 0 ||
        n->arg_count < 2)
        return false;
    *out = (linear_call_nodes){.call = n,
                               .input = tare__node_arg(n, 0),
                               .weight = tare__node_arg(n, 1),
                               .bias = tare__node_arg(n, 2)};
    out->weights = tensor_of(p, out->weight);
    out->biases = tensor_of(p, out->bias);
    if (out->bias == NULL && n->arg_count > 2 && n->args[2].kind != VALUE_NONE) return false;
    return out->input != NULL && out->weights != NULL && out->weights->ndim == 2 &&
           out->weights->dtype == TARE_FLOAT32 && (out->bias == NULL || out->biases != NULL);
}

// True if the call is the only user of the weight.
static bool is_alone(const prepare_pass *p, const linear_call_nodes *l) {
    for (const node *n = p->base->model->root->graph->first; n != NULL; n = n->next) {
        if (n->op != NODE_GET_ATTR || strcmp(n->target, l->weight->target) != 0) continue;
        for (size_t i = 0; i < n->user_count; i++)
            if (n->users[i] != l->call) return false;
    }
    return true;
}

// The path of the module that held the weight if the new module can be installed there; else a new
// path.
static const char *choose_path(prepare_pass *p, const linear_call_nodes *l, size_t *number) {
    arena *memory = &p->base->scratch;
    const char *target = l->weight->target, *dot = strrchr(target, '.');
    if (dot != NULL && strcmp(dot, ".weight") == 0 && is_alone(p, l)) {
        const char *path = tare__arena_strndup(memory, target, (size_t)(dot - target));
        if (path == NULL) return NULL;
        const module *parent = tare__module_find(p->base->model->root, path);
        if (parent != NULL && parent->class->role == ROLE_CONTAINER && parent->child_count == 0)
            return path;
    }
    const char *name = tare__packet_name(memory, l->call->target);
    return name != NULL ? tare__module_free_name(p->base->model->root, memory, name, number) : NULL;
}

static tare_status fill(module *m, const linear_call_nodes *l, tare_error *err) {
    const value ins = tare__int(l->weights->shape[1]), outs = tare__int(l->weights->shape[0]);
    const value has_bias = tare__bool(l->bias != NULL);
    TARE_TRY(tare__module_set_config(m, "in_features", &ins, err));
    TARE_TRY(tare__module_set_config(m, "out_features", &outs, err));
    TARE_TRY(tare__module_set_config(m, "bias", &has_bias, err));
    TARE_TRY(tare__module_set_tensor(m, "weight", l->weights, true, err));
    return tare__module_set_tensor(m, "bias", l->biases, true, err);
}

static tare_status replace_call(prepare_pass *p, const linear_call_nodes *l, const char *path) {
    graph *g = p->base->model->root->graph;
    const value input = tare__node_value(l->input);
    const node_spec spec = {
        .op = NODE_CALL_MODULE, .target = path, .args = &input, .arg_count = 1, .like = l->call};
    node *made = NULL;
    TARE_TRY(tare__graph_insert(g, &spec, l->call, &made, p->base->err));
    TARE_TRY(tare__node_replace_uses(l->call, made, NULL, p->base->err));
    made->debug_handle = l->call->debug_handle;
    TARE_TRY(tare__graph_erase(g, l->call, p->base->err));
    if (l->weight->user_count == 0) TARE_TRY(tare__graph_erase(g, l->weight, p->base->err));
    return l->bias != NULL && l->bias->user_count == 0 ? tare__graph_erase(g, l->bias, p->base->err)
                                                       : TARE_OK;
}

static tare_status lift(prepare_pass *p, const linear_call_nodes *l, size_t *number) {
    const char *path = choose_path(p, l, number);
    module *m = NULL;
    if (path == NULL) return tare__out_of_memory(p->base->err);
    const module_class *class = tare__layer_class(p->base, tare__layer_call(l->call));
    TARE_TRY(tare__module_create(class, &m, p->base->err));
    m->training = p->base->model->root->training;
    TARE_TRY(tare__pass_put_module(p->base, path, m, fill(m, l, p->base->err)));
    return replace_call(p, l, path);
}

static tare_status wants_groups(const prepare_pass *p, bool *out) {
    const qconfig_choice q =
        tare__qconfig_by_type(p->mapping, "torch.nn.Linear", tare__qconfig_global(p->mapping));
    tare_observer_info weight;
    *out = false;
    if (q.qconfig == NULL) return TARE_OK;
    TARE_TRY(tare__pass_spec_info(p->base, q.qconfig->weight, &weight));
    *out = tare__qscheme_is_per_group(weight.qscheme);
    return TARE_OK;
}

tare_status tare__prepare_lift_linear(prepare_pass *p) {
    bool wanted = false;
    size_t number = 0;
    if (p->base->model->root->graph->export_json == NULL) return TARE_OK;
    TARE_TRY(wants_groups(p, &wanted));
    if (!wanted) return TARE_OK;
    for (node *n = p->base->model->root->graph->first, *next; n != NULL; n = next) {
        linear_call_nodes l;
        next = n->next;
        if (read_call(p, n, &l)) TARE_TRY(lift(p, &l, &number));
    }
    return TARE_OK;
}
