// SPDX-License-Identifier: Apache-2.0
// Fills a lifted module with the call's constants, under the names of the operator's parameters,
// and the constructor's arguments.
#include <string.h>

#include "core/text/text.h"
#include "io/onnx/lift/lift.h"
#include "ops/classes/reference.h"

// --- constructor values that show in the shape of a tensor ---

typedef struct derived {
    const char *op, *key, *tensor;
    int dim; // of the tensor; COUNT: number of elements; REST: dimensions from 2 on, as a tuple
    bool times_groups; // the tensor holds one group's channels
} derived;
enum { COUNT = -1, REST = -2 };

// clang-format off
static const derived derivations[] = {
    {"linear", "in_features", "weight", 1},
    {"linear", "out_features", "weight", 0},
    {"conv", "in_channels", "weight", 1, true},
    {"conv", "out_channels", "weight", 0},
    {"conv", "kernel_size", "weight", REST},
    {"conv_transpose", "in_channels", "weight", 0},
    {"conv_transpose", "out_channels", "weight", 1, true},
    {"conv_transpose", "kernel_size", "weight", REST},
    {"batch_norm", "num_features", "running_mean", 0},
    {"instance_norm", "num_features", "weight", 0},
    {"group_norm", "num_channels", "weight", 0},
    {"prelu", "num_parameters", "weight", COUNT},
    {"embedding", "num_embeddings", "weight", 0},
    {"embedding", "embedding_dim", "weight", 1},
};

// Constructor arguments without a parameter of the function, with the value that an exported call
// has.
static const struct {
    const char *op, *key;
    value v;
} defaults[] = {
#define CONSTRUCTOR(op, key, ...) {op, key, __VA_ARGS__},
#include "ops/rows/rows.def"
};

// Parameters of functions that are not constructor arguments.
static const char *const not_config[] = {"training", "_stacklevel", "cudnn_enable",
                                         "cudnn_enabled", "use_input_stats"};
// clang-format on

static bool is_config(const char *name) {
    for (size_t i = 0; i < sizeof not_config / sizeof *not_config; i++)
        if (strcmp(name, not_config[i]) == 0) return false;
    return true;
}

static tare_status derive(lift *l, module *m, const derived *d) {
    const tare_tensor *t = tare__module_tensor(m, d->tensor);
    if (t == NULL || d->dim >= t->ndim) return TARE_OK;
    if (d->dim == COUNT || d->dim >= 0) {
        const int64_t groups = d->times_groups ? tare__module_int(m, "groups", 1) : 1;
        const value v = tare__int((d->dim == COUNT ? t->count : t->shape[d->dim]) * groups);
        return tare__module_set_config(m, d->key, &v, l->err);
    }
    if (t->ndim < 3) return TARE_OK;
    value v = tare__value_sequence(&l->scratch, VALUE_TUPLE, (uint32_t)t->ndim - 2);
    if (v.as.items == NULL) return tare__out_of_memory(l->err);
    for (int k = 2; k < t->ndim; k++) v.as.items[k - 2] = tare__int(t->shape[k]);
    return tare__module_set_config(m, d->key, &v, l->err);
}

// --- filling ---

static tare_status set_param(lift *l, module *m, const node *n, const op_info *op, size_t i) {
    char name[64];
    const value *v = tare__lift_param(n, op, i);
    tare__op_param_name(op, i, name, sizeof name);
    tare_tensor *t = tare__lift_constant(l, v);
    if (t != NULL) {
        const bool is_parameter = !tare__starts_with(name, "running_");
        return tare__module_set_tensor(m, name, t, is_parameter, l->err);
    }
    const bool is_tensor = strcmp(name, "weight") == 0 || strcmp(name, "bias") == 0;
    if (is_tensor) return tare__module_set_tensor(m, name, NULL, true, l->err);
    if (v == NULL || !is_config(name)) return TARE_OK;
    return tare__module_set_config(m, name, v, l->err);
}

// The output size of an adaptive pool is the constructor's argument, or gives the same result.
static tare_status set_output_size(lift *l, module *m, const node *n) {
    const value *meta = &tare__onnx_info(l->in, n)->meta;
    const int dims = m->class->dims;
    if (meta->kind != VALUE_TENSOR) return TARE_OK;
    const tare_tensor *t = meta->as.tensor;
    const tare_tensor *x = tare__onnx_info(l->in, n->args[0].as.node)->meta.as.tensor;
    value v = tare__value_sequence(&l->scratch, VALUE_TUPLE, (uint32_t)dims);
    if (v.as.items == NULL) return tare__out_of_memory(l->err);
    for (int d = 0; d < dims; d++)
        v.as.items[d] = tare__int(t->ndim == x->ndim ? t->shape[t->ndim - dims + d] : 1);
    return tare__module_set_config(m, "output_size", &v, l->err);
}

static tare_status fill(lift *l, module *m, const node *n) {
    const char *family = m->class->op;
    const op_info *op = tare__lift_row(n);
    if (strcmp(family, "adaptive_avg_pool") == 0) return set_output_size(l, m, n);
    for (size_t i = 1; i < tare__op_param_count(op); i++) TARE_TRY(set_param(l, m, n, op, i));
    for (size_t i = 0; i < sizeof derivations / sizeof *derivations; i++)
        if (strcmp(derivations[i].op, family) == 0) TARE_TRY(derive(l, m, &derivations[i]));
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (strcmp(defaults[i].op, family) == 0)
            TARE_TRY(tare__module_set_config(m, defaults[i].key, &defaults[i].v, l->err));
    return m->class->check != NULL ? m->class->check(m, l->err) : TARE_OK;
}

// --- the path ---

static bool same_tensor(const tare_tensor *a, const tare_tensor *b) {
    if (a == b) return true;
    return a != NULL && b != NULL && a->data != NULL && b->data != NULL &&
           tare__same_elements(a, b);
}

static bool same_module(const module *a, const module *b) {
    if (a->class != b->class || a->config_count != b->config_count ||
        a->tensor_count != b->tensor_count)
        return false;
    for (size_t i = 0; i < a->config_count; i++) {
        const value *v = tare__module_config(b, a->config[i].name);
        if (v == NULL || !tare__value_equal(v, &a->config[i].value)) return false;
    }
    for (size_t i = 0; i < a->tensor_count; i++)
        if (!same_tensor(a->tensors[i].tensor, tare__module_tensor(b, a->tensors[i].name)))
            return false;
    return true;
}

// Names of other exporters may hold any characters: '/' separates segments, and invalid characters
// become '_'.
static const char *as_path(lift *l, const char *name) {
    text out = {0};
    bool is_empty = true;
    size_t depth = 1;
    for (const char *c = name; *c != '\0'; c++) {
        const bool separates = *c == '.' || *c == '/';
        const bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                              (*c >= '0' && *c <= '9') || *c == '_';
        if (separates && (is_empty || c[1] == '\0' || depth == 16)) continue;
        tare__text_char(&out, separates ? '.' : is_plain ? *c : '_');
        depth += separates;
        is_empty = separates;
    }
    if (out.length > 0 && out.chars[out.length - 1] == '.') tare__text_append(&out, "_");
    const char *copy =
        tare__arena_strdup(&l->scratch, out.length > 0 ? tare__text_chars(&out) : "_unnamed");
    const bool failed = out.failed;
    tare__text_release(&out);
    return failed ? NULL : copy;
}

// Modules that compute have no children: false if one is an ancestor of the path.
static bool has_room_above(const lift *l, const char *path) {
    for (size_t i = 0; path[i] != '\0'; i++) {
        if (path[i] != '.') continue;
        const module *m = l->root;
        for (size_t from = 0; m != NULL && from < i;) {
            const size_t length = strcspn(path + from, ".");
            m = tare__module_child_n(m, path + from, length);
            from += length + 1;
        }
        if (m != NULL && m->class->role != ROLE_CONTAINER) return false;
    }
    return true;
}

// "a.b" as "a_b".
static const char *at_top(lift *l, const char *path) {
    char *copy = tare__arena_strdup(&l->scratch, path);
    for (char *c = copy; c != NULL && *c != '\0'; c++)
        if (*c == '.') *c = '_';
    return copy;
}

static tare_status bind(lift *l, module *made, const char *wanted, const char *raw,
                        const char **out) {
    const char *candidate = wanted;
    for (size_t i = 0;; i++) {
        const module *there = tare__module_find(l->root, candidate);
        if (there != NULL && same_module(there, made)) break;
        if (there == NULL && has_room_above(l, candidate)) {
            TARE_TRY(
                tare__module_set_path(l->root, candidate, made, &tare__class_container, l->err));
            break;
        }
        if (i == 0 && raw != NULL && strcmp(raw, wanted) != 0)
            candidate = raw;
        else
            candidate = tare__arena_printf(&l->scratch, "%s_%zu", wanted, i + 1);
        if (i == 0 && !has_room_above(l, wanted)) wanted = candidate = at_top(l, wanted);
        if (candidate == NULL) return tare__out_of_memory(l->err);
        if (i > 100000) return tare__fail(l->err, TARE_INTERNAL, "no place for '%s'", wanted);
    }
    *out = candidate;
    return TARE_OK;
}

// A weight that the file stores as integers makes the module its reference class, if there is one.
static tare_status refer(lift *l, const node *n, module **made) {
    const op_info *op = tare__lift_row(n);
    const value *v = NULL;
    for (size_t i = 1; i < tare__op_param_count(op); i++)
        if (tare__op_param_is(op, i, "weight")) v = tare__lift_param(n, op, i);
    const tare_tensor *t = tare__lift_constant(l, v);
    const tare_tensor *quantized = t != NULL ? tare__onnx_constant_of(l->in, t)->quantized : NULL;
    const module *m = *made;
    const module_class *class = tare__class_triple(l->in->classes, m->class->op, m->class->dims,
                                                   ROLE_REFERENCE, FUSED_NONE);
    if (quantized == NULL || class == NULL) return TARE_OK;
    const weight_qparams w = {.name = "weight", .dtype = quantized->dtype, .q = quantized->q};
    module *reference = NULL;
    TARE_TRY(tare__module_create(class, &reference, l->err));
    tare_status status = tare__module_copy_config(reference, m, l->err);
    if (status == TARE_OK) status = tare__module_copy_tensors(reference, m, l->err);
    if (status == TARE_OK) status = tare__reference_set_weight(reference, &w, l->err);
    if (status == TARE_OK && class->check != NULL) status = class->check(reference, l->err);
    tare__module_release(status == TARE_OK ? *made : reference);
    if (status == TARE_OK) *made = reference;
    return status;
}

tare_status tare__lift_bind(lift *l, const node *n, const lift_choice *choice, const char **path) {
    const onnx_scope *scope = tare__onnx_info(l->in, n)->scope;
    const bool is_module = n->op == NODE_CALL_MODULE;
    module *made = NULL;
    const char *wanted = as_path(l, choice->path);
    if (wanted == NULL) return tare__out_of_memory(l->err);
    if (is_module)
        made = tare__module_retain(tare__module_find(l->in->root, n->target));
    else
        TARE_TRY(tare__module_create(choice->class, &made, l->err));
    tare_status status = is_module ? TARE_OK : fill(l, made, n);
    if (status == TARE_OK && !is_module) status = refer(l, n, &made);
    if (status == TARE_OK)
        status = bind(l, made, wanted, scope != NULL && scope->is_known ? scope->raw : NULL, path);
    tare__module_release(made);
    if (status == TARE_OK) return TARE_OK;
    return tare__at(l->err, status, "module '%s'", wanted);
}
