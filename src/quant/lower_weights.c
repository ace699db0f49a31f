// SPDX-License-Identifier: Apache-2.0
// Lowering of functions with a weight: the quantized weight becomes a packed module that a get_attr
// node reads, and the function a quantized one.
#include <stdio.h>
#include <string.h>

#include "ops/engine_rules.h"
#include "ops/op.h"
#include "ops/quantized_layer.h"
#include "quant/coverage.h"
#include "quant/lower.h"

#define Q "torch.ops.quantized."

// A function by its operator row's id; the quantized ones are called Q id, and _relu and _dynamic
// forms of it.
typedef struct weighted_row {
    const char *id, *family;
    int dims;
    bool has_relu, has_dynamic;
} weighted_row;

static const weighted_row rows[] = {
    {"linear", "linear", 0, true, true},
    {"conv1d", "conv", 1, true, false},
    {"conv2d", "conv", 2, true, false},
    {"conv3d", "conv", 3, true, false},
    {"conv_transpose1d", "conv_transpose", 1, false, false},
    {"conv_transpose2d", "conv_transpose", 2, false, false},
    {"conv_transpose3d", "conv_transpose", 3, false, false},
};

// A call of such a function, its arguments bound by position or keyword.
typedef struct weighted_call {
    node *function;
    const weighted_row *row;
    const op_info *op;
    const value *param[OP_MAX_PARAMS];
} weighted_call;

static const value *argument(const weighted_call *w, const char *name) {
    for (size_t i = 0; i < tare__op_param_count(w->op); i++)
        if (tare__op_param_is(w->op, i, name)) return w->param[i];
    return NULL;
}

static node *node_argument(const weighted_call *w, const char *name) {
    const value *v = argument(w, name);
    return v != NULL && v->kind == VALUE_NODE ? v->as.node : NULL;
}

static bool bind_keywords(const node *n, weighted_call *w) {
    const size_t count = tare__op_param_count(w->op);
    for (size_t k = 0; k < n->kwarg_count; k++) {
        size_t i = 0;
        while (i < count && !tare__op_param_is(w->op, i, n->kwargs[k].name)) i++;
        if (i == count || w->param[i] != NULL) return false;
        w->param[i] = &n->kwargs[k].value;
    }
    return true;
}

static bool bind(node *n, weighted_call *w) {
    const op_info *op = n->op == NODE_CALL_FUNCTION ? tare__op_function(n->target) : NULL;
    *w = (weighted_call){.function = n, .op = op};
    for (size_t i = 0; op != NULL && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].id, op->id) == 0) w->row = &rows[i];
    if (w->row == NULL || n->arg_count > tare__op_param_count(op)) return false;
    for (size_t i = 0; i < n->arg_count; i++) w->param[i] = &n->args[i];
    return bind_keywords(n, w);
}

// What a weight is dequantized from; NULL: it is not.
static node *weight_source(const weighted_call *w) {
    const node *dequantize = node_argument(w, "weight");
    return tare__is_dequantize_node(dequantize) ? tare__node_arg(dequantize, 0) : NULL;
}

// The weight before it is dequantized; NULL if it is not quantized by a scheme of its own.
static node *quantized_weight(const weighted_call *w) {
    node *source = weight_source(w);
    if (source == NULL || source->op != NODE_CALL_FUNCTION) return NULL;
    const bool fits = strcmp(source->target, "torch.quantize_per_tensor") == 0 ||
                      strcmp(source->target, "torch.quantize_per_channel") == 0;
    return fits ? source : NULL;
}

static node *half_weight(const weighted_call *w) {
    node *source = weight_source(w);
    return source != NULL && tare__is_half_node(source) ? source : NULL;
}

// --- packing ---

static void find_node(void *user, node *n) {
    (void)n;
    *(bool *)user = true;
}

// Of a convolution: constants only, as torch packs them with the weight.
static tare_status set_geometry(const weighted_call *w, module *m, bool *is_constant,
                                tare_error *err) {
    static const char *const keys[] = {"stride", "padding", "output_padding", "dilation", "groups"};
    bool has_node = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const value *v = argument(w, keys[i]);
        if (v == NULL || v->kind == VALUE_NONE) continue;
        tare__value_each_node(v, find_node, &has_node);
        if (!has_node) TARE_TRY(tare__module_set_config(m, keys[i], v, err));
    }
    *is_constant = !has_node;
    return TARE_OK;
}

static tare_status fill(const convert_pass *c, const weighted_call *w, const value *weight,
                        const value *bias, module *m, bool *fits) {
    tare_error *err = c->base->err;
    tare_tensor *b = bias->kind == VALUE_TENSOR ? bias->as.tensor : NULL;
    *fits = false;
    if (weight->kind != VALUE_TENSOR || (b == NULL && bias->kind != VALUE_NONE)) return TARE_OK;
    bool is_constant = false;
    TARE_TRY(set_geometry(w, m, &is_constant, err));
    TARE_TRY(tare__module_set_tensor(m, "weight", weight->as.tensor, true, err));
    TARE_TRY(tare__module_set_tensor(m, "bias", b, true, err));
    if (weight->as.tensor->q != NULL) TARE_TRY(tare__set_rule(c, m, m, weight->as.tensor));
    *fits = is_constant && m->class->check(m, NULL) == TARE_OK;
    return TARE_OK;
}

static tare_status pack_values(const convert_pass *c, const weighted_call *w, const value *weight,
                               const value *bias, module **out) {
    const module_class *class = tare__class_triple(
        &c->base->model->context->classes, w->row->family, w->row->dims, ROLE_PACKED, FUSED_NONE);
    module *m = NULL;
    bool fits = false;
    TARE_TRY(tare__module_create(class, &m, c->base->err));
    const tare_status status = fill(c, w, weight, bias, m, &fits);
    if (status == TARE_OK && fits)
        *out = m;
    else
        tare__module_release(m);
    return status;
}

// *out: the packed weights of a call; NULL if there is no integer form of it.
static tare_status pack(convert_pass *c, const weighted_call *w, module **out) {
    const value *bias = argument(w, "bias");
    node *quantized = quantized_weight(w);
    const value wanted[] = {tare__node_value(quantized != NULL ? quantized : half_weight(w)),
                            bias != NULL ? *bias : tare__none()};
    value found = tare__none();
    *out = NULL;
    TARE_TRY(tare__pass_fold(c->base, wanted, 2, w->function, &found));
    tare_status status = TARE_OK;
    if (found.kind == VALUE_TUPLE && found.count == 2)
        status = pack_values(c, w, &found.as.items[0], &found.as.items[1], out);
    tare__value_release_tensors(&found);
    if (status == TARE_OK && *out != NULL && c->options->keeps_original_weights)
        status = tare__keep_original_weights(c, *out, wanted, 2, w->function);
    if (status == TARE_OK) return status;
    tare__module_release(*out);
    *out = NULL;
    return status;
}

// {the function's scope}_packed_weight_{N}, as torch's fold_weight names them.
static tare_status packed_name(convert_pass *c, const node *function, const char **out) {
    const module *root = c->base->model->root;
    arena *memory = &c->base->scratch;
    char *scope =
        tare__arena_strdup(memory, function->scope_path != NULL ? function->scope_path : "");
    if (scope == NULL) return tare__out_of_memory(c->base->err);
    for (char *at = scope; *at != '\0'; at++)
        if (*at == '.') *at = '_';
    for (size_t i = 0;; i++) {
        *out = tare__arena_printf(memory, "%s_packed_weight_%zu", scope, i);
        if (*out == NULL) return tare__out_of_memory(c->base->err);
        if (!tare__module_has_tensor(root, *out) && tare__module_child(root, *out) == NULL)
            return TARE_OK;
    }
}

// Binds the packed weights and reads them before a node. Takes m over.
static tare_status insert_packed(convert_pass *c, module *m, const node *function, node *before,
                                 node **out) {
    module *root = c->base->model->root;
    const char *name = NULL;
    tare_status status = packed_name(c, function, &name);
    if (status == TARE_OK) status = tare__module_set_child(root, name, m, c->base->err);
    tare__module_release(m);
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name};
    return status == TARE_OK ? tare__graph_insert(root->graph, &spec, before, out, c->base->err)
                             : status;
}

// --- the two forms ---

// The function's node stays, and with it its name.
static tare_status retarget(convert_pass *c, const weighted_call *w, const char *form,
                            const value *args, size_t arg_count) {
    tare_error *err = c->base->err;
    node *n = w->function;
    const char *target = tare__arena_printf(&n->owner->memory, Q "%s%s", w->row->id, form);
    if (target == NULL) return tare__out_of_memory(err);
    TARE_TRY(TARE_DECIDE(c->base, n, "lowered", target, "computed in integers by %s", target));
    n->target = target;
    return tare__node_set_args(n, args, arg_count, NULL, 0, err);
}

// The relu, which nothing reads any more, is part of the function now.
static tare_status absorb_relu(convert_pass *c, node *relu, const node *function,
                               const char *target) {
    tare_error *err = c->base->err;
    TARE_TRY(TARE_DECIDE(c->base, relu, "lowered", target, "computed in integers by %s", target));
    TARE_TRY(tare__coverage_fused(c->base->model, relu->origin, function->origin, err));
    return tare__graph_erase(relu->owner, relu, err);
}

static bool accepts_function(const convert_pass *c, const node *n) {
    (void)c;
    weighted_call w;
    return bind((node *)n, &w) && tare__is_dequantize_node(node_argument(&w, "input")) && // NOLINT
           tare__node_arg(node_argument(&w, "input"), 0) != NULL && quantized_weight(&w) != NULL;
}

static tare_status lower_static(convert_pass *c, const static_match *m, const weighted_call *w,
                                module *packed) {
    tare_error *err = c->base->err;
    node *function = w->function, *weights = NULL;
    node *x = tare__node_arg(node_argument(w, "input"), 0);
    TARE_TRY(insert_packed(c, packed, function, m->scale, &weights));
    const bool fuses = m->relu != NULL && w->row->has_relu;
    const value args[] = {tare__node_value(x), tare__node_value(weights),
                          tare__node_value(m->scale), tare__node_value(m->zero_point)};
    TARE_TRY(retarget(c, w, fuses ? "_relu" : "", args, 4));
    tare__graph_move_before(function, m->zero_point->next);
    // A relu that has no fused form follows on the codes.
    node *result = m->relu != NULL && !fuses ? m->relu : function;
    if (result != function) tare__graph_move_before(result, function->next);
    TARE_TRY(tare__node_replace_uses(m->quantize, result, NULL, err));
    TARE_TRY(tare__graph_erase(function->owner, m->quantize, err));
    return fuses ? absorb_relu(c, m->relu, function, function->target) : TARE_OK;
}

// The node that quantizes the function's input on the fly to this dtype; NULL: there is none.
static node *dynamic_quantize(const weighted_call *w, tare_dtype wanted) {
    node *quantize = tare__dynamic_quantize(node_argument(w, "input"));
    const value *dtype = quantize != NULL && quantize->arg_count == 3 ? &quantize->args[1] : NULL;
    const bool fits = dtype != NULL && dtype->kind == VALUE_DTYPE && dtype->as.dtype == wanted;
    return fits ? quantize : NULL;
}

// The same for a pair of input and weight dtypes that a dynamic function takes: quint8 with codes,
// float16 with float16.
static node *dynamic_pair(const weighted_call *w) {
    return half_weight(w) != NULL        ? dynamic_quantize(w, TARE_FLOAT16)
           : quantized_weight(w) != NULL ? dynamic_quantize(w, TARE_QUINT8)
                                         : NULL;
}

static node *only_relu(const convert_pass *c, const node *n) {
    node *user = n->user_count == 1 ? n->users[0] : NULL;
    return user != NULL && tare__is_relu_node(c, user) && tare__node_arg(user, 0) == n ? user
                                                                                       : NULL;
}

static tare_status lower_dynamic(convert_pass *c, const weighted_call *w, module *packed) {
    tare_error *err = c->base->err;
    node *function = w->function, *weights = NULL, *relu = only_relu(c, function);
    const node *quantize = dynamic_pair(w);
    const bool half = half_weight(w) != NULL;
    const char *form = half ? (relu != NULL ? "_relu_dynamic_fp16" : "_dynamic_fp16")
                            : (relu != NULL ? "_relu_dynamic" : "_dynamic");
    TARE_TRY(insert_packed(c, packed, function, function, &weights));
    const value args[] = {quantize->args[0], tare__node_value(weights), quantize->args[2]};
    TARE_TRY(retarget(c, w, form, args, half ? 2 : 3));
    if (relu == NULL) return TARE_OK;
    TARE_TRY(tare__node_replace_uses(relu, function, NULL, err));
    return absorb_relu(c, relu, function, function->target);
}

static bool is_dynamic(const convert_pass *c, node *n, weighted_call *w) {
    return bind(n, w) && w->row->has_dynamic && dynamic_pair(w) != NULL &&
           !tare__convert_has_no_qconfig(c, n);
}

static tare_status lower_at(convert_pass *c, node *n) {
    static_match m;
    weighted_call w;
    module *packed = NULL;
    const bool is_static = tare__match_static(c, n, accepts_function, 0, &m);
    if (is_static ? !bind(m.reference, &w) : !is_dynamic(c, n, &w)) return TARE_OK;
    TARE_TRY(tare__at(c->base->err, pack(c, &w, &packed), "node '%s'", w.function->name));
    if (packed == NULL) return TARE_OK;
    return is_static ? lower_static(c, &m, &w, packed) : lower_dynamic(c, &w, packed);
}

tare_status tare__lower_weights(convert_pass *c) {
    for (node *n = c->base->model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        const bool ends_pattern = tare__is_quantize_node(n); // and may go with it
        TARE_TRY(lower_at(c, n));
        if (!ends_pattern) next = n->next; // the relu that followed may be gone
    }
    return TARE_OK;
}
