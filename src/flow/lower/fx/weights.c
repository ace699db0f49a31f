// SPDX-License-Identifier: Apache-2.0
// Lowering of functions with a weight: the quantized weight becomes a packed module that a get_attr
// node reads, and the function a quantized one.
#include <string.h>

#include "flow/lower/fx/lower.h"
#include "flow/pack.h"
#include "model/coverage.h"

// What a weight is dequantized from; NULL: it is not.
static node *weight_source(const function_call *w) {
    const node *dequantize = tare__function_argument_node(w, "weight");
    return tare__is_dequantize_node(dequantize) ? tare__node_arg(dequantize, 0) : NULL;
}

// The weight before it is dequantized; NULL if it is not quantized by a scheme of its own.
static node *quantized_weight(const function_call *w) {
    node *source = weight_source(w);
    return OP_IS_ANY(tare__function_op(source), TARE_OP_QUANTIZE_PER_TENSOR,
                     TARE_OP_QUANTIZE_PER_CHANNEL)
               ? source
               : NULL;
}

static node *half_weight(const function_call *w) {
    node *source = weight_source(w);
    return source != NULL && tare__is_half_node(source) ? source : NULL;
}

// --- packing ---

static tare_status pack_values(convert_pass *c, const function_call *w, const value *weight,
                               const value *bias, module **out) {
    tare_tensor *b = bias->kind == VALUE_TENSOR ? bias->as.tensor : NULL;
    if (weight->kind != VALUE_TENSOR || (b == NULL && bias->kind != VALUE_NONE)) return TARE_OK;
    return tare__pack_weights(c->base, w, weight->as.tensor, b, REQUANT_UNSET, out);
}

// *out: the packed weights of a call; NULL if there is no integer form of it.
static tare_status pack(convert_pass *c, const function_call *w, module **out) {
    const value *bias = tare__function_argument(w, "bias");
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

// --- the two forms ---

// The function's node stays, and with it its name.
static tare_status retarget(convert_pass *c, const function_call *w, op_form form,
                            const value *args, size_t arg_count) {
    tare_error *err = c->base->err;
    node *n = w->function;
    const char *target = tare__arena_strdup(
        &n->owner->memory, tare__op_function_name(tare__weighted_form(w, form)).text);
    if (target == NULL) return tare__out_of_memory(err);
    TARE_TRY(TARE_DECIDE(c->base, n, "lowered", target, "computed in integers by %s", target));
    n->target = target;
    return tare__node_set_args(n, args, arg_count, NULL, 0, err);
}

// The relu, which nothing reads any more, is part of the function now.
static tare_status absorb_relu(convert_pass *c, node *relu, node *function, const char *target) {
    tare_error *err = c->base->err;
    TARE_TRY(TARE_DECIDE(c->base, relu, "lowered", target, "computed in integers by %s", target));
    TARE_TRY(tare__coverage_fused(c->base->model, relu->origin, function->origin, err));
    function->debug_handle = relu->debug_handle;
    return tare__graph_erase(relu->owner, relu, err);
}

static bool accepts_function(const convert_pass *c, const node *n) {
    function_call w;
    return tare__weighted_bind(&c->base->scratch, (node *)n, &w) &&
           tare__is_dequantize_node(tare__function_argument_node(&w, "input")) && // NOLINT
           tare__node_arg(tare__function_argument_node(&w, "input"), 0) != NULL &&
           quantized_weight(&w) != NULL;
}

static tare_status lower_static(convert_pass *c, const static_match *m, const function_call *w,
                                module *packed) {
    tare_error *err = c->base->err;
    node *function = w->function, *weights = NULL;
    node *x = tare__node_arg(tare__function_argument_node(w, "input"), 0);
    TARE_TRY(tare__insert_packed(c->base, packed, function, m->scale, &weights));
    const bool fuses = m->relu != NULL && tare__weighted_form(w, FORM_QUANTIZED_RELU) != NULL;
    const value args[] = {tare__node_value(x), tare__node_value(weights),
                          tare__node_value(m->scale), tare__node_value(m->zero_point)};
    TARE_TRY(retarget(c, w, fuses ? FORM_QUANTIZED_RELU : FORM_QUANTIZED, args, 4));
    tare__graph_move_before(function, m->zero_point->next);
    // A relu that has no fused form follows on the codes.
    node *result = m->relu != NULL && !fuses ? m->relu : function;
    if (result != function) tare__graph_move_before(result, function->next);
    TARE_TRY(tare__node_replace_uses(m->quantize, result, NULL, err));
    TARE_TRY(tare__graph_erase(function->owner, m->quantize, err));
    return fuses ? absorb_relu(c, m->relu, function, function->target) : TARE_OK;
}

// The node that quantizes the function's input on the fly to this dtype; NULL: there is none.
static node *dynamic_quantize(const function_call *w, tare_dtype wanted) {
    node *quantize = tare__dynamic_quantize(tare__function_argument_node(w, "input"));
    const value *dtype = quantize != NULL && quantize->arg_count == 3 ? &quantize->args[1] : NULL;
    const bool fits = dtype != NULL && dtype->kind == VALUE_DTYPE && dtype->as.dtype == wanted;
    return fits ? quantize : NULL;
}

// The same for a pair of input and weight dtypes that a dynamic function takes: quint8 with codes,
// float16 with float16.
static node *dynamic_pair(const function_call *w) {
    return half_weight(w) != NULL        ? dynamic_quantize(w, TARE_FLOAT16)
           : quantized_weight(w) != NULL ? dynamic_quantize(w, TARE_QUINT8)
                                         : NULL;
}

static node *only_relu(const convert_pass *c, const node *n) {
    node *user = n->user_count == 1 ? n->users[0] : NULL;
    return user != NULL && tare__is_relu_node(c, user) && tare__node_arg(user, 0) == n ? user
                                                                                       : NULL;
}

static tare_status lower_dynamic(convert_pass *c, const function_call *w, module *packed) {
    tare_error *err = c->base->err;
    node *function = w->function, *weights = NULL, *relu = only_relu(c, function);
    const node *quantize = dynamic_pair(w);
    const bool half = half_weight(w) != NULL;
    const op_form form = half ? (relu != NULL ? FORM_DYNAMIC_HALF_RELU : FORM_DYNAMIC_HALF)
                              : (relu != NULL ? FORM_DYNAMIC_RELU : FORM_DYNAMIC);
    TARE_TRY(tare__insert_packed(c->base, packed, function, function, &weights));
    const value args[] = {quantize->args[0], tare__node_value(weights), quantize->args[2]};
    TARE_TRY(retarget(c, w, form, args, half ? 2 : 3));
    if (relu == NULL) return TARE_OK;
    TARE_TRY(tare__node_replace_uses(relu, function, NULL, err));
    return absorb_relu(c, relu, function, function->target);
}

static bool is_dynamic(const convert_pass *c, node *n, function_call *w) {
    return tare__weighted_bind(&c->base->scratch, n, w) &&
           tare__weighted_form(w, FORM_DYNAMIC) != NULL && dynamic_pair(w) != NULL &&
           !tare__convert_has_no_qconfig(c, n);
}

static tare_status lower_at(convert_pass *c, node *n) {
    static_match m;
    function_call w;
    module *packed = NULL;
    const bool is_static = tare__match_static(c, n, accepts_function, 0, &m);
    if (is_static ? !tare__weighted_bind(&c->base->scratch, m.reference, &w)
                  : !is_dynamic(c, n, &w))
        return TARE_OK;
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
