// SPDX-License-Identifier: Apache-2.0
// Decides whether a call was a module. If the file states the scope's class, that decides.
// Otherwise a call with parameters was a module, and so was a call that is alone in a scope with a
// path.
#include <string.h>

#include "core/text/text.h"
#include "io/onnx/lift/lift.h"

const op_info *tare__lift_row(const node *n) {
    if (n->op == NODE_CALL_FUNCTION) return tare__op_function(n->target);
    return n->op == NODE_CALL_METHOD ? tare__op_method(n->target) : NULL;
}

const value *tare__lift_param(const node *n, const op_info *op, size_t i) {
    if (i < n->arg_count) return &n->args[i];
    for (size_t k = 0; k < n->kwarg_count; k++)
        if (tare__op_param_is(op, i, n->kwargs[k].name)) return &n->kwargs[k].value;
    return NULL;
}

tare_tensor *tare__lift_constant(const lift *l, const value *v) {
    const bool is_read = v != NULL && v->kind == VALUE_NODE && v->as.node->op == NODE_GET_ATTR;
    return is_read ? tare__onnx_info(l->in, v->as.node)->constant : NULL;
}

// --- scopes ---

static tare_status count_call(lift *l, const char *path) {
    const size_t before = (size_t)tare__map_get(&l->calls, path);
    return tare__map_set(&l->calls, path, tare__map_int(before + 1)) ? TARE_OK
                                                                     : tare__out_of_memory(l->err);
}

tare_status tare__lift_count_calls(lift *l) {
    for (const node *n = l->in->draft->first; n != NULL; n = n->next) {
        const onnx_scope *scope = tare__onnx_info(l->in, n)->scope;
        if (!tare__node_is_call(n) || scope == NULL || scope->raw[0] == '\0') continue;
        TARE_TRY(count_call(l, scope->raw));
        for (size_t i = strlen(scope->raw); i > 0; i--) {
            if (scope->raw[i] != '.') continue;
            const char *above = tare__arena_strndup(&l->scratch, scope->raw, i);
            if (above == NULL) return tare__out_of_memory(l->err);
            TARE_TRY(count_call(l, above));
        }
    }
    return TARE_OK;
}

bool tare__lift_is_alone(const lift *l, const onnx_scope *scope) {
    return (size_t)tare__map_get(&l->calls, scope->raw) == 1;
}

// --- parameters ---

// Parameters keep their path as the file's name, unless an exporter computed new ones, which it
// names "onnx::Conv_12" or "val_3".
static bool is_made_name(const char *name) {
    if (name == NULL || strstr(name, "::") != NULL) return true;
    if (!tare__starts_with(name, "val_")) return false;
    return name[4 + strspn(name + 4, "0123456789")] == '\0';
}

// "layer1.0.conv1" for "layer1.0.conv1.weight"; NULL if the name has no such suffix.
static const char *owner_of(lift *l, const char *name, const char *suffix) {
    if (is_made_name(name) || !tare__ends_with(name, suffix)) return NULL;
    return tare__arena_strndup(&l->scratch, name, strlen(name) - strlen(suffix));
}
static const char *path_of_weight(lift *l, const char *name) {
    return owner_of(l, name, ".weight");
}

// Which of a call's inputs after the first are constants.
typedef struct call_form {
    bool has_tensors; // has constants that a module would hold
    bool is_liftable;
    const char *weight_name;        // file's name of the parameter `weight`; NULL: computed or none
    bool has_weight, has_quantized; // has_quantized: the file stores the weight as integers
    const char *bias_owner;         // "fc" for "fc.bias"; NULL: not known
} call_form;

static call_form form_of(lift *l, const node *n, const op_info *op) {
    call_form form = {.is_liftable = true};
    const size_t count = tare__op_param_count(op);
    if (n->arg_count == 0 || n->args[0].kind != VALUE_NODE) form.is_liftable = false;
    for (size_t i = 1; i < count; i++) {
        const value *v = tare__lift_param(n, op, i);
        if (v == NULL || v->kind != VALUE_NODE) continue;
        const tare_tensor *t = tare__lift_constant(l, v);
        if (t == NULL) {
            form.is_liftable = false;
            continue;
        }
        form.has_tensors = true;
        const char *name = tare__onnx_constant_of(l->in, t)->name;
        if (tare__op_param_is(op, i, "bias")) form.bias_owner = owner_of(l, name, ".bias");
        if (!tare__op_param_is(op, i, "weight")) continue;
        form.has_weight = true;
        form.weight_name = name;
        form.has_quantized = tare__onnx_constant_of(l->in, t)->quantized != NULL;
    }
    return form;
}

// --- classes ---

static bool computes(const module_class *class, const op_info *op) {
    return class->role == ROLE_FLOAT && class->op != NULL && class->fused == FUSED_NONE &&
           tare__op_by_id(class->op, class->dims) == op;
}

// The number of spatial dimensions by the input's rank, if the operator does not determine it.
static int dims_of(const lift *l, const node *n) {
    const value *meta = &tare__onnx_info(l->in, n->args[0].as.node)->meta;
    const int ndim = meta->kind == VALUE_TENSOR ? meta->as.tensor->ndim : 0;
    return ndim > 3 ? ndim - 2 : 1;
}

static const module_class *class_of(const lift *l, const node *n, const op_info *op) {
    const module_class *class = NULL;
    for (size_t i = 0; (class = tare__class_at(l->in->classes, i)) != NULL; i++) {
        if (!computes(class, op)) continue;
        const bool has_dims = class->dims > 0 && strcmp(class->op, op->id) == 0;
        if (!has_dims || class->dims == dims_of(l, n)) return class;
    }
    return NULL;
}

// Pooling to a given size is exported with the windows that give this size for the exported shape.
static bool is_pooling(const op_info *op) {
    return strcmp(op->id, "mean") == 0 || tare__starts_with(op->id, "avg_pool") ||
           tare__starts_with(op->id, "adaptive_avg_pool");
}

// Adaptive pooling with unequal windows is exported as a gather and a mean, over a tensor with more
// dimensions.
static bool has_rank_of_pool(const lift *l, const node *n, int dims) {
    const value *meta = &tare__onnx_info(l->in, n->args[0].as.node)->meta;
    const int ndim = meta->kind == VALUE_TENSOR ? meta->as.tensor->ndim : 0;
    return ndim == dims + 1 || ndim == dims + 2;
}

static const module_class *class_in_scope(const lift *l, const node *n, const onnx_scope *scope,
                                          const op_info *op) {
    const module_class *class = tare__class_find(l->in->classes, scope->type);
    if (class == NULL || class->role != ROLE_FLOAT || class->op == NULL) return NULL;
    if (computes(class, op)) return class;
    const bool pools = strcmp(class->op, "adaptive_avg_pool") == 0 && is_pooling(op);
    return pools && has_rank_of_pool(l, n, class->dims) ? class : NULL;
}

// --- the choice ---

// Without scopes the path comes from the parameters or from the node's own name.
static tare_status choose_by_name(lift *l, const node *n, const call_form *form, lift_choice *out) {
    const char *path = path_of_weight(l, form->weight_name);
    if (path == NULL) path = form->bias_owner;
    if (path == NULL) {
        const char *name = tare__onnx_info(l->in, n)->file_name;
        path = *name != '\0' ? name : n->name;
        if (tare__starts_with(path, "node_") && path[5] != '\0')
            path += 5; // a generated name of dynamo
    }
    out->path = path;
    return TARE_OK;
}

static bool stands_under(const char *path, const char *above) {
    const size_t length = strlen(above);
    return strncmp(path, above, length) == 0 && path[length] == '.';
}

// For a scope whose class is not known. Parameters of a module inside the scope were passed to a
// function there; equal parameters of several modules may have been merged under one of their
// names. A convolution may share its scope with its padding.
static bool is_a_module(lift *l, const onnx_scope *scope, const op_info *op,
                        const call_form *form) {
    const char *owner = path_of_weight(l, form->weight_name);
    if (owner == NULL) owner = form->bias_owner;
    const bool is_own =
        owner != NULL && (strcmp(owner, scope->path) == 0 || strcmp(owner, scope->raw) == 0);
    if (is_own && tare__starts_with(op->id, "conv")) return true;
    if (!tare__lift_is_alone(l, scope)) return false;
    if (is_own || !form->has_weight) return true;
    if (owner != NULL) return !stands_under(owner, scope->raw);
    return is_made_name(form->weight_name);
}

// A folded batch norm leaves its scope on the convolution, whose parameters keep their names.
static lift_choice choose_by_type(lift *l, const node *n, const onnx_scope *scope,
                                  const op_info *op, const module_class *by_op,
                                  const call_form *form) {
    const module_class *said = tare__class_find(l->in->classes, scope->type);
    const module_class *class = class_in_scope(l, n, scope, op);
    if (class != NULL && *scope->path != '\0') return (lift_choice){class, scope->path};
    const bool is_norm = said != NULL && said->op != NULL && strcmp(said->op, "batch_norm") == 0;
    if (!is_norm || !form->has_weight || by_op == NULL) return (lift_choice){0};
    const char *owner = path_of_weight(l, form->weight_name);
    return (lift_choice){by_op, owner != NULL ? owner : scope->path};
}

tare_status tare__lift_choose(lift *l, const node *n, lift_choice *out) {
    const onnx_scope *scope = tare__onnx_info(l->in, n)->scope;
    const op_info *op = tare__lift_row(n);
    *out = (lift_choice){0};
    if (op == NULL || scope == NULL) return TARE_OK;
    const call_form form = form_of(l, n, op);
    if (!form.is_liftable) return TARE_OK;
    const module_class *class = class_of(l, n, op);
    // Other quantizers write no scopes. tare writes scopes of quantized classes, which no float
    // function has.
    const char *owner = form.has_quantized ? path_of_weight(l, form.weight_name) : NULL;
    if (owner != NULL && class != NULL) {
        *out = (lift_choice){class, owner};
        return TARE_OK;
    }
    if (scope->type != NULL) {
        *out = choose_by_type(l, n, scope, op, class, &form);
        return TARE_OK;
    }
    if (class == NULL) return TARE_OK;
    if (!scope->is_known) {
        if (!form.has_weight) return TARE_OK;
        out->class = class;
        return choose_by_name(l, n, &form, out);
    }
    if (*scope->path != '\0' && is_a_module(l, scope, op, &form))
        *out = (lift_choice){class, scope->path};
    return TARE_OK;
}
