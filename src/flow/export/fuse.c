// SPDX-License-Identifier: Apache-2.0
// Fusion of exported programs: folds each batch norm into the weights of the layer before it.
#include <string.h>

#include "flow/export/steps.h"
#include "flow/fold.h"
#include "flow/function_call.h"
#include "flow/layer_bias.h"
#include "model/coverage.h"

// A layer and the batch norm that reads it.
typedef struct fusion {
    pass *p;
    node *layer, *norm;
    node *weight, *bias; // get_attr nodes; bias NULL: none
    const op_info *row;  // row of the layer
    double eps;
} fusion;

static tare_status put_tensor(const fusion *f, module *m, const char *name, const node *read) {
    tare_tensor *t = read != NULL && read->op == NODE_GET_ATTR
                         ? tare__module_find_tensor(f->p->model->root, read->target)
                         : NULL;
    return t != NULL ? tare__module_set_tensor(m, name, t, true, f->p->err) : TARE_OK;
}

static tare_status fill_norm(const fusion *f, module *m) {
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    for (size_t i = 0; i < 4; i++)
        TARE_TRY(put_tensor(f, m, names[i], tare__node_arg(f->norm, i + 1)));
    const value eps = tare__float(f->eps);
    return tare__module_set_config(m, "eps", &eps, f->p->err);
}

// The weight of a transposed convolution holds the channels of one group.
static tare_status put_groups(const fusion *f, module *layer) {
    function_call call;
    if (!tare__function_bind(&f->p->scratch, f->layer, &call)) return TARE_OK;
    const value *groups = tare__function_argument(&call, "groups");
    return groups != NULL ? tare__module_set_config(layer, "groups", groups, f->p->err) : TARE_OK;
}

static tare_status fold_modules(const fusion *f, module *layer, module *norm, module **out) {
    TARE_TRY(put_groups(f, layer));
    TARE_TRY(put_tensor(f, layer, "weight", f->weight));
    TARE_TRY(put_tensor(f, layer, "bias", f->bias));
    TARE_TRY(fill_norm(f, norm));
    return tare__fold_batch_norm(layer, norm, out, f->p->err);
}

// Folds the layer and the batch norm as modules, with the same code as FX mode.
static tare_status fold(const fusion *f, module **out) {
    module *layer = NULL, *norm = NULL;
    const registry *classes = &f->p->model->context->classes;
    const module_class *norm_class = tare__class_find(classes, "torch.nn.BatchNorm2d");
    tare_status status = tare__module_create(tare__layer_class(f->p, f->row), &layer, f->p->err);
    if (status == TARE_OK) status = tare__module_create(norm_class, &norm, f->p->err);
    if (status == TARE_OK) status = fold_modules(f, layer, norm, out);
    tare__module_release(layer);
    tare__module_release(norm);
    return status == TARE_OK
               ? status
               : tare__at(f->p->err, status, "'%s' and '%s'", f->layer->name, f->norm->name);
}

static tare_status set_parameter(const fusion *f, const char *path, tare_tensor *t) {
    return tare__module_set_tensor_path(f->p->model->root, path, t, true, &tare__class_container,
                                        f->p->err);
}

// Adds a bias `WEIGHT_bias` to the layer, read right before it. bias NULL: it exists already, from
// another layer with this weight.
static tare_status add_bias(const fusion *f, tare_tensor *bias) {
    char *path = tare__arena_printf(&f->p->scratch, "%s_bias", f->weight->target);
    if (path == NULL) return tare__out_of_memory(f->p->err);
    if (bias != NULL) TARE_TRY(set_parameter(f, path, bias));
    return tare__layer_read_bias(f->p->model->root->graph, f->layer, path, &f->p->scratch,
                                 f->p->err);
}

static tare_status install(const fusion *f, const module *folded) {
    TARE_TRY(set_parameter(f, f->weight->target, tare__module_tensor(folded, "weight")));
    tare_tensor *bias = tare__module_tensor(folded, "bias");
    return f->bias != NULL ? set_parameter(f, f->bias->target, bias) : add_bias(f, bias);
}

// Replaces the first result of the batch norm: its value, or item 0 if it has several results.
static tare_status redirect(const fusion *f) {
    tare_error *err = f->p->err;
    bool is_plain = false;
    size_t eps_index = 0;
    (void)tare__is_batch_norm_call(f->norm, &eps_index, &is_plain);
    f->layer->debug_handle = f->norm->debug_handle;
    if (is_plain) return tare__node_replace_uses(f->norm, f->layer, NULL, err);
    for (size_t i = 0; i < f->norm->user_count; i++) {
        node *item = f->norm->users[i];
        const bool is_first = item->arg_count == 2 && item->args[1].kind == VALUE_INT &&
                              item->args[1].as.integer == 0;
        if (!is_first) continue;
        f->layer->debug_handle = item->debug_handle;
        TARE_TRY(tare__node_replace_uses(item, f->layer, NULL, err));
    }
    return TARE_OK;
}

static tare_status check_reads(const fusion *f) {
    const node *const reads[] = {f->weight, f->bias};
    for (size_t i = 0; i < 2; i++)
        if (reads[i] != NULL && reads[i]->op != NODE_GET_ATTR)
            return tare__fail(f->p->err, TARE_INVALID_ARGUMENT,
                              "Expected get_attr node, got %s. If working with an "
                              "ExportedProgram, make sure you are using .module()",
                              tare__node_op_name(reads[i]->op));
    return f->weight != NULL
               ? TARE_OK
               : tare__fail(f->p->err, TARE_INVALID_ARGUMENT, "'%s' has no weight", f->layer->name);
}

tare_status tare__pt2e_fold_norm(pass *p, const norm_fold *wanted) {
    const fusion f = {.p = p,
                      .layer = wanted->layer,
                      .norm = wanted->norm,
                      .weight = wanted->weight,
                      .bias = wanted->bias,
                      .row = wanted->row,
                      .eps = wanted->eps};
    if (wanted->fold_weights) {
        module *folded = NULL;
        TARE_TRY(check_reads(&f));
        TARE_TRY(fold(&f, &folded));
        const tare_status status = install(&f, folded);
        tare__module_release(folded);
        TARE_TRY(status);
    } else if (f.bias == NULL) {
        TARE_TRY(add_bias(&f, NULL));
    }
    TARE_TRY(tare__coverage_fused(p->model, f.norm->origin, f.layer->origin, p->err));
    return redirect(&f);
}

// --- the walk ---

// True if channels are in the same dimension: a linear layer works on the last one, a batch norm on
// the second.
static tare_status is_flat(pass *p, const node *layer, bool *out) {
    tare_node_meta *meta = NULL;
    const node *input = tare__node_arg(layer, 0);
    *out = true;
    if (input == NULL) return TARE_OK;
    TARE_TRY(tare_node_meta_read((const tare_node *)input, &meta, p->err));
    const size_t rank = meta->value_count == 1 ? meta->values[0].rank : 0;
    *out = rank <= 2;
    tare_node_meta_destroy(meta);
    if (*out) return TARE_OK;
    return TARE_DECIDE(p, layer, "warning", "linear-bn fusion",
                       "Not fusing linear+bn for node '%s': the linear input is %zu-D so Linear "
                       "and BatchNorm operate on different dimensions",
                       layer->name, rank);
}

static double eps_of(const node *norm, size_t index) {
    double eps = 1e-5;
    if (index < norm->arg_count) (void)tare__value_number(&norm->args[index], &eps);
    return eps;
}

static bool is_among(node *const *items, size_t count, const node *n) {
    for (size_t i = 0; i < count; i++)
        if (items[i] == n) return true;
    return false;
}

static bool reads_same(const node *a, const node *b) {
    return a == b || (a != NULL && b != NULL && a->op == NODE_GET_ATTR && b->op == NODE_GET_ATTR &&
                      strcmp(a->target, b->target) == 0);
}

static bool is_same_norm(const node *a, const node *b) {
    size_t a_eps = 0, b_eps = 0;
    bool is_plain = false;
    if (!tare__is_batch_norm_call(a, &a_eps, &is_plain) ||
        !tare__is_batch_norm_call(b, &b_eps, &is_plain) || eps_of(a, a_eps) != eps_of(b, b_eps))
        return false;
    for (size_t i = 1; i <= 4; i++)
        if (!reads_same(tare__node_arg(a, i), tare__node_arg(b, i))) return false;
    return true;
}

// A node for which the folded weight would be wrong, or NULL: one that reads the layer's result
// without the batch norm, or a layer with the same weight or bias but not the same batch norm.
static const node *other_reader(const node *layer, const node *norm) {
    for (size_t i = 0; i < layer->user_count; i++)
        if (layer->users[i] != norm) return layer->users[i];
    for (size_t i = 1; i <= 2; i++) {
        const node *parameter = tare__node_arg(layer, i);
        for (size_t k = 0; parameter != NULL && k < parameter->user_count; k++) {
            const node *other = parameter->users[k];
            if (other == layer) continue;
            if (other->user_count != 1 || !is_same_norm(other->users[0], norm)) return other;
        }
    }
    return NULL;
}

// Batch norms that are folded already. If a layer is called again, its batch norm is only removed,
// because the weight is folded; another batch norm behind a folded layer stays.
typedef struct folded {
    node **weights, **layers;
    size_t weight_count, layer_count;
} folded;

// Keeps a batch norm and records why. other: the node that needs the layer unfolded; the layer
// itself: it is folded already.
static tare_status keep(pass *p, const node *norm, const node *layer, const node *other,
                        const char *rule) {
    return other == layer
               ? TARE_DECIDE(p, norm, "warning", rule,
                             "'%s' is not folded into '%s', which has taken a batch norm already",
                             norm->name, layer->name)
               : TARE_DECIDE(p, norm, "warning", rule,
                             "'%s' is not folded into '%s', which '%s' needs as it is", norm->name,
                             layer->name, other->name);
}

static tare_status fuse_norm(pass *p, node *norm, bool wants_linear, folded *done) {
    size_t eps_index = 0;
    bool is_plain = false, fits = true;
    if (!tare__is_batch_norm_call(norm, &eps_index, &is_plain)) return TARE_OK;
    node *layer = tare__node_arg(norm, 0);
    const op_info *row = tare__layer_call(layer);
    if (row == NULL || (tare__op_id(row) == TARE_OP_LINEAR) != wants_linear) return TARE_OK;
    if (wants_linear) TARE_TRY(is_flat(p, layer, &fits));
    if (!fits) return TARE_OK;
    node *weight = tare__node_arg(layer, 1);
    const bool is_new = !is_among(done->weights, done->weight_count, weight);
    const node *other = is_among(done->layers, done->layer_count, layer) ? layer
                        : is_new                                         ? other_reader(layer, norm)
                                                                         : NULL;
    const char *rule = wants_linear ? "linear-bn fusion" : "conv-bn fusion";
    if (other != NULL) return keep(p, norm, layer, other, rule);
    if (is_new) done->weights[done->weight_count++] = weight;
    done->layers[done->layer_count++] = layer;
    const norm_fold fold_it = {.layer = layer,
                               .norm = norm,
                               .weight = weight,
                               .bias = tare__node_arg(layer, 2),
                               .row = row,
                               .eps = eps_of(norm, eps_index),
                               .fold_weights = is_new};
    TARE_TRY(tare__pt2e_fold_norm(p, &fold_it));
    TARE_TRY(
        TARE_DECIDE(p, norm, "fused", "batch norm", "folded into the weight of '%s'", layer->name));
    return TARE_DECIDE(p, layer, "folded", rule,
                       is_new ? "'%s' is folded into its weight"
                              : "'%s' is removed: its weight is folded already",
                       norm->name);
}

static tare_status fuse_kind(pass *p, bool wants_linear) {
    graph *g = p->model->root->graph;
    folded done = {
        .weights = tare__arena_array(&p->scratch, g->node_count + 1, sizeof *done.weights),
        .layers = tare__arena_array(&p->scratch, g->node_count + 1, sizeof *done.layers)};
    if (done.weights == NULL || done.layers == NULL) return tare__out_of_memory(p->err);
    for (node *n = g->first; n != NULL; n = n->next) TARE_TRY(fuse_norm(p, n, wants_linear, &done));
    return TARE_OK;
}

// As in torch, a graph with a batch norm loses nodes without users even if nothing was fused.
tare_status tare__pt2e_fuse(pass *p) {
    for (int is_linear = 0; is_linear < 2; is_linear++) {
        if (!tare__has_batch_norm(p)) return TARE_OK;
        TARE_TRY(fuse_kind(p, is_linear == 1));
        TARE_TRY(tare__pt2e_eliminate_dead(p));
    }
    return TARE_OK;
}
