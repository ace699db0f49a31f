// SPDX-License-Identifier: Apache-2.0
// Lowering of functions with a weight: the quantized weight becomes a packed module that a get_attr
// node reads, and the function a quantized one.
#include "flow/lower/fx/lower.h"
#include "flow/pack.h"

// The input of a dequantized weight; NULL: it is not dequantized.
static node *weight_source(const function_call *w) {
    const node *dequantize = tare__function_argument_node(w, "weight");
    return tare__is_dequantize_node(dequantize) ? tare__node_arg(dequantize, 0) : NULL;
}

// The weight before it is dequantized; NULL if it is not quantized.
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

// *out: the packed weights of a call; NULL if there is no integer form.
static tare_status pack(convert_pass *c, const function_call *w, module **out) {
    const value *bias = tare__function_argument(w, "bias");
    node *quantized = quantized_weight(w);
    const value wanted[] = {tare__node_value(quantized != NULL ? quantized : half_weight(w)),
                            bias != NULL ? *bias : tare__none()};
    tare_tensor *found[2] = {NULL};
    *out = NULL;
    TARE_TRY(tare__pass_fold_tensors(c->base, wanted, 2, w->function, found));
    tare_status status = TARE_OK;
    if (found[0] != NULL && (found[1] != NULL || wanted[1].kind == VALUE_NONE))
        status = tare__pack_weights(c->base, w, found[0], found[1], REQUANT_UNSET, out);
    for (size_t i = 0; i < 2; i++) tare_tensor_release(found[i]);
    if (status == TARE_OK && *out != NULL && c->options->keeps_original_weights)
        status = tare__keep_original_weights(c, *out, wanted, 2, w->function);
    if (status == TARE_OK) return status;
    tare__module_release(*out);
    *out = NULL;
    return status;
}

// --- the two forms ---

static bool accepts_function(const convert_pass *c, const node *n) {
    function_call w;
    return tare__weighted_bind(&c->base->scratch, (node *)n, &w) &&
           tare__is_dequantize_node(tare__function_argument_node(&w, "input")) && // NOLINT
           tare__node_arg(tare__function_argument_node(&w, "input"), 0) != NULL &&
           quantized_weight(&w) != NULL;
}

static tare_status lower_static(convert_pass *c, const static_match *m, const function_call *w,
                                module *packed) {
    node *function = w->function;
    node *x = tare__node_arg(tare__function_argument_node(w, "input"), 0);
    bool fuses = false;
    const op_info *form = tare__quantized_form(w->bound.op, m->relu != NULL, &fuses);
    packed_call call = {.n = function,
                        .before = m->scale,
                        .form = form,
                        .args = {tare__node_value(x), tare__none(), tare__node_value(m->scale),
                                 tare__node_value(m->zero_point)},
                        .arg_count = 4,
                        .weights = 1};
    TARE_TRY(tare__call_packed(c->base, w, packed, &call));
    tare__graph_move_before(function, m->zero_point->next);
    // If the relu has no fused form, it is applied to the quantized values.
    node *result = m->relu != NULL && !fuses ? m->relu : function;
    if (result != function) tare__graph_move_before(result, function->next);
    TARE_TRY(tare__replace_quantize(c->base, m->quantize, result));
    return fuses ? tare__absorb_relu(c->base, m->relu, function) : TARE_OK;
}

// The node that dynamically quantizes the function's input to this dtype; NULL: there is none.
static node *dynamic_quantize(const function_call *w, tare_dtype wanted) {
    node *quantize = tare__dynamic_quantize(tare__function_argument_node(w, "input"));
    const value *dtype = quantize != NULL && quantize->arg_count == 3 ? &quantize->args[1] : NULL;
    const bool fits = dtype != NULL && dtype->kind == VALUE_DTYPE && dtype->as.dtype == wanted;
    return fits ? quantize : NULL;
}

// The same for the dtypes of input and weight that a dynamic function takes: quint8 and qint8, or
// float16 twice.
static node *dynamic_pair(const function_call *w) {
    return half_weight(w) != NULL        ? dynamic_quantize(w, TARE_FLOAT16)
           : quantized_weight(w) != NULL ? dynamic_quantize(w, TARE_QUINT8)
                                         : NULL;
}

static op_form dynamic_form(bool is_half, bool has_relu) {
    if (is_half) return has_relu ? FORM_DYNAMIC_HALF_RELU : FORM_DYNAMIC_HALF;
    return has_relu ? FORM_DYNAMIC_RELU : FORM_DYNAMIC;
}

static tare_status lower_dynamic(convert_pass *c, const function_call *w, module *packed) {
    node *function = w->function, *relu = tare__only_reader(function);
    const node *quantize = dynamic_pair(w);
    const bool is_half = half_weight(w) != NULL;
    const bool has_relu =
        relu != NULL && tare__is_relu_node(c, relu) && tare__node_arg(relu, 0) == function;
    packed_call call = {.n = function,
                        .before = function,
                        .form = tare__weighted_form(w, dynamic_form(is_half, has_relu)),
                        .args = {quantize->args[0], tare__none(), quantize->args[2]},
                        .arg_count = is_half ? 2 : 3,
                        .weights = 1};
    TARE_TRY(tare__call_packed(c->base, w, packed, &call));
    return has_relu ? tare__absorb_relu(c->base, relu, function) : TARE_OK;
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
        const bool ends_pattern = tare__is_quantize_node(n); // and may be erased
        TARE_TRY(lower_at(c, n));
        if (!ends_pattern) next = n->next; // the following relu may have been erased
    }
    return TARE_OK;
}
