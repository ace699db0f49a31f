// SPDX-License-Identifier: Apache-2.0
// Lowering of layers: dequantize - convolution or linear with a constant weight - quantize.
#include <math.h>
#include <string.h>

#include "core/math/float_to_int.h"
#include "flow/export/convert.h"
#include "flow/lower/export/lower.h"
#include "flow/pack.h"
#include "ops/quantized/quantize.h"

// --- the weight ---

// Converts uint8 to int8 by subtracting 128.
static tare_status as_signed(const tare_tensor *quantized, const qparams *q, tare_tensor **out,
                             tare_error *err) {
    TARE_TRY(tare__tensor_quantized(quantized->ndim, quantized->shape, q, out, err));
    const bool is_signed = quantized->dtype != TARE_UINT8 && quantized->dtype != TARE_QUINT8;
    const int64_t shift = is_signed ? 0 : 128;
    if (quantized->dtype == TARE_INT8 && (*out)->dtype == TARE_QINT8) {
        memcpy((*out)->data, quantized->data, (size_t)quantized->count);
        return TARE_OK;
    }
    for (int64_t i = 0; i < quantized->count; i++)
        tare__tensor_set_int(*out, i, tare__tensor_get_int(quantized, i) - shift);
    return TARE_OK;
}

static bool is_tensor(const value *v) {
    return v->kind == VALUE_TENSOR && v->as.tensor->data != NULL;
}

// The arguments of a dequantize of constants: quantized values, scale(s), zero point(s).
typedef struct constant_quantized {
    const tare_tensor *quantized;
    const value *scale, *zero_point;
    int axis; // -1: per tensor
} constant_quantized;

static double item(const value *v, int64_t i) {
    double number = 0;
    if (is_tensor(v)) return tare__tensor_get(v->as.tensor, v->as.tensor->count == 1 ? 0 : i);
    return tare__value_number(v, &number) ? number : 0;
}

// NULL if a qint8 tensor cannot have these parameters.
static tare_status make_qparams(lowering *l, const constant_quantized *c, qparams **out) {
    const bool per_channel = c->axis >= 0;
    const int64_t count = per_channel ? c->quantized->shape[c->axis] : 1;
    const double shift = c->quantized->dtype == TARE_UINT8 ? 128 : 0;
    double *numbers = tare__arena_array(&l->p->scratch, 2 * (size_t)count + 1, sizeof *numbers);
    if (numbers == NULL) return tare__out_of_memory(l->p->err);
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = item(c->scale, i);
        numbers[count + i] = item(c->zero_point, i) - shift;
    }
    qparams *q = tare__qparams_create(
        per_channel ? TARE_PER_CHANNEL_AFFINE : TARE_PER_TENSOR_AFFINE, TARE_QINT8,
        per_channel ? c->axis : 0, count, numbers, numbers + count);
    if (q == NULL) return tare__out_of_memory(l->p->err);
    if (tare__qparams_check(q, NULL) == TARE_OK)
        *out = q;
    else
        tare__qparams_release(q);
    return TARE_OK;
}

static bool fits_channels(const value *v, const constant_quantized *c) {
    const int64_t count = is_tensor(v) ? v->as.tensor->count : 1;
    return count == 1 || (c->axis >= 0 && count == c->quantized->shape[c->axis]);
}

static tare_status quantized_constant(lowering *l, const constant_quantized *c, tare_tensor **out) {
    const tare_dtype dtype = c->quantized->dtype;
    qparams *q = NULL;
    if ((dtype != TARE_INT8 && dtype != TARE_UINT8) || !fits_channels(c->scale, c) ||
        !fits_channels(c->zero_point, c))
        return TARE_OK;
    TARE_TRY(make_qparams(l, c, &q));
    if (q == NULL) return TARE_OK;
    const tare_status status = as_signed(c->quantized, q, out, l->p->err);
    tare__qparams_release(q);
    return status;
}

static tare_status read_constant(lowering *l, const node *dequantize, const value *items,
                                 tare_tensor **out) {
    const bool per_channel = strstr(dequantize->target, "per_channel") != NULL;
    constant_quantized c = {.scale = &items[1], .zero_point = &items[2], .axis = -1};
    if (!is_tensor(&items[0])) return TARE_OK;
    c.quantized = items[0].as.tensor;
    if (per_channel) {
        double axis;
        if (dequantize->arg_count < 4 || !tare__value_number(&dequantize->args[3], &axis))
            return TARE_OK;
        c.axis = tare__cut_int32(axis < 0 ? axis + c.quantized->ndim : axis);
        if (c.axis < 0 || c.axis >= c.quantized->ndim) return TARE_OK;
    }
    return quantized_constant(l, &c, out);
}

// Converts *t from quint8 to qint8.
static tare_status make_signed(lowering *l, tare_tensor **t) {
    const qparams *from = (*t)->q;
    tare_tensor *made = NULL;
    double *zeros = tare__arena_array(&l->p->scratch, (size_t)from->count, sizeof *zeros);
    if (zeros == NULL) return tare__out_of_memory(l->p->err);
    for (int64_t i = 0; i < from->count; i++) zeros[i] = from->zero_point[i] - 128;
    qparams *q =
        tare__qparams_create(from->scheme, TARE_QINT8, from->axis, from->count, from->scale, zeros);
    if (q == NULL) return tare__out_of_memory(l->p->err);
    const tare_status status = as_signed(*t, q, &made, l->p->err);
    tare__qparams_release(q);
    tare_tensor_release(*t);
    *t = made;
    return status;
}

static tare_status quantized_behind(lowering *l, const node *dequantize, tare_tensor **out) {
    TARE_TRY(tare__pass_fold_tensors(l->p, dequantize->args, 1, dequantize, out));
    if (*out == NULL || ((*out)->q != NULL && (*out)->dtype == TARE_QINT8)) return TARE_OK;
    if ((*out)->q != NULL && (*out)->dtype == TARE_QUINT8) return make_signed(l, out);
    tare_tensor_release(*out);
    *out = NULL;
    return TARE_OK;
}

// The constant that a dequantize reads, as a qint8 tensor; *out stays NULL if it is none.
static tare_status constant_behind(lowering *l, const node *dequantize, tare_tensor **out) {
    if (dequantize == NULL) return TARE_OK;
    if (tare__is_dequantize_node(dequantize)) return quantized_behind(l, dequantize, out);
    if (!tare__is_dequantize_call(dequantize) || dequantize->arg_count < 3) return TARE_OK;
    value found = tare__none();
    TARE_TRY(tare__pass_fold(l->p, dequantize->args, 3, dequantize, &found));
    tare_status status = TARE_OK;
    if (found.kind == VALUE_TUPLE) status = read_constant(l, dequantize, found.as.items, out);
    tare__value_release_tensors(&found);
    return status;
}

// --- the bias ---

typedef struct layer_bias {
    tare_tensor *tensor; // float32, owned; NULL: none
    bool is_constant;    // true if there is none
    bool is_integer;     // dequantized from int32
} layer_bias;

static tare_status read_bias(lowering *l, const function_call *w, layer_bias *out) {
    const value *v = tare__function_argument(w, "bias");
    *out = (layer_bias){.is_constant = v == NULL || v->kind == VALUE_NONE};
    if (out->is_constant) return TARE_OK;
    TARE_TRY(tare__pass_fold_tensors(l->p, v, 1, w->function, &out->tensor));
    if (out->tensor == NULL) return TARE_OK;
    out->is_constant = out->tensor->dtype == TARE_FLOAT32;
    // int32 biases of a file were dequantized when it was read.
    out->is_integer =
        l->has_tensors || (v->kind == VALUE_NODE && tare__is_dequantize_call(v->as.node));
    return TARE_OK;
}

// True if the bias consists of multiples of activation scale x weight scale, as by a derived spec.
// It is then added to the sum as an integer.
static bool counts_steps(const layer_bias *b, const quantized_params *x,
                         const tare_tensor *weight) {
    if (!b->is_integer || x == NULL) return false;
    for (int64_t i = 0; i < b->tensor->count; i++) {
        const double scale = weight->q->scale[weight->q->count == 1 ? 0 : i];
        const double steps = (double)tare__f32(b->tensor)[i] / (x->scale * scale);
        if (fabs(steps - rint(steps)) > 0x1p-20 * (1 + fabs(steps))) return false;
    }
    return true;
}

// --- the layer ---

// torch's q/dq form rounds before it adds the zero point: rule F; with an integer bias rule Q,
// which is the same with the bias in the sum.
static requant_rule rule_of(const lowering *l, const layer_bias *b, const quantized_params *x,
                            const tare_tensor *weight) {
    if (l->engine != TARE_ENGINE_DEFAULT) return REQUANT_UNSET;
    return counts_steps(b, x, weight) ? REQUANT_Q : REQUANT_F;
}

static bool bias_fits(const layer_bias *b, const tare_tensor *weight) {
    return b->tensor == NULL || weight->q->count == 1 || b->tensor->count == weight->q->count;
}

tare_status tare__lower_pack(lowering *l, const function_call *w, const quantized_params *x,
                             module **out) {
    layer_bias bias = {0};
    tare_tensor *weight = NULL;
    TARE_TRY(constant_behind(l, tare__function_argument_node(w, "weight"), &weight));
    if (weight == NULL) return TARE_OK;
    tare_status status = read_bias(l, w, &bias);
    if (status == TARE_OK && bias.is_constant && bias_fits(&bias, weight))
        status =
            tare__pack_weights(l->p, w, weight, bias.tensor, rule_of(l, &bias, x, weight), out);
    tare_tensor_release(bias.tensor);
    tare_tensor_release(weight);
    return status;
}

static tare_status lower_layer(lowering *l, const function_call *w, module *packed,
                               const ending *e) {
    node *n = w->function;
    const node *x = tare__function_argument_node(w, "input");
    packed_call call = {.n = n, .before = n, .args = {tare__node_value(tare__node_arg(x, 0))}};
    call.arg_count = e->quantize != NULL ? 4 : 2;
    call.weights = 1;
    if (e->quantize == NULL) {
        call.form = tare__weighted_form(w, FORM_FLOAT_RESULT);
        return tare__call_packed(l->p, w, packed, &call);
    }
    const quantized_params *quantized = tare__quantized_given(l, e->quantize);
    bool has_relu = false;
    call.form = tare__quantized_form(w->bound.op, e->relu != NULL, &has_relu);
    call.args[2] = tare__float(quantized->scale);
    call.args[3] = tare__int(quantized->zero_point);
    TARE_TRY(tare__call_packed(l->p, w, packed, &call));
    return tare__end_in_quantized(l, n, e, has_relu);
}

// --- a layer and the residual that it is added to ---

typedef struct residual {
    node *add, *addend; // addend: the dequantized values
    ending end;         // end of the sum
} residual;

// Whether both have equal sizes according to the exporter; false if unknown.
static tare_status has_same_sizes(lowering *l, const node *a, const node *b, bool *out) {
    tare_node_meta *x = NULL, *y = NULL;
    *out = false;
    TARE_TRY(tare_node_meta_read((const tare_node *)a, &x, l->p->err));
    const tare_status status = tare_node_meta_read((const tare_node *)b, &y, l->p->err);
    if (status == TARE_OK && x->value_count == 1 && y->value_count == 1) {
        const tare_value_info *u = x->values, *v = y->values;
        *out = u->rank == v->rank && u->rank > 0 &&
               memcmp(u->shape, v->shape, u->rank * sizeof *u->shape) == 0;
    }
    tare_node_meta_destroy(x);
    tare_node_meta_destroy(y);
    return status;
}

static bool is_plain_sum(const node *n) {
    return tare__function_op(n) == TARE_OP_ADD && n->arg_count == 2 && n->kwarg_count == 0 &&
           tare__node_arg(n, 0) != NULL && tare__node_arg(n, 1) != NULL;
}

// *found: layer - add of quantized values - (relu -) quantize, all with one dtype and equal sizes.
static tare_status find_residual(lowering *l, const function_call *w, tare_dtype dtype,
                                 residual *out, bool *found) {
    const node *n = w->function;
    *found = false;
    node *add = n->user_count == 1 ? n->users[0] : NULL;
    if (tare__weighted_form(w, FORM_ADD) == NULL || add == NULL || !is_plain_sum(add) ||
        tare__pt2e_stays_float(l->p, add))
        return TARE_OK;
    node *addend = tare__node_arg(add, tare__node_arg(add, 0) == n ? 1 : 0);
    const quantized_params *quantized = tare__quantized_behind(l, addend);
    *out = (residual){add, addend, tare__ending_of(l, add)};
    const quantized_params *result = tare__quantized_given(l, out->end.quantize);
    if (quantized == NULL || result == NULL || quantized->dtype != dtype || result->dtype != dtype)
        return TARE_OK;
    // Nodes that convert inserted have no recorded sizes.
    const node *source = tare__node_arg(addend, 0);
    if (tare__is_quantize_node(source)) source = tare__node_arg(source, 0);
    return source != NULL ? has_same_sizes(l, n, source, found) : TARE_OK;
}

static tare_status lower_residual(lowering *l, const function_call *w, module *packed,
                                  const residual *r) {
    const node *x = tare__function_argument_node(w, "input");
    const quantized_params *quantized = tare__quantized_given(l, r->end.quantize);
    const op_form form = r->end.relu != NULL ? FORM_ADD_RELU : FORM_ADD;
    packed_call call = {.n = r->add,
                        .before = r->add,
                        .form = tare__weighted_form(w, form),
                        .args = {tare__node_value(tare__node_arg(x, 0)),
                                 tare__node_value(tare__node_arg(r->addend, 0)), tare__none(),
                                 tare__float(quantized->scale), tare__int(quantized->zero_point)},
                        .arg_count = 5,
                        .weights = 2};
    TARE_TRY(tare__call_packed(l->p, w, packed, &call));
    return tare__end_in_quantized(l, r->add, &r->end, true);
}

// Filters with one channel: their kernels have no fused sum, which is a separate step.
static bool is_depthwise(const module *packed) {
    const tare_tensor *weight = tare__module_tensor(packed, "weight");
    return weight != NULL && weight->ndim > 2 && weight->shape[1] == 1;
}

static tare_status visit(lowering *l, node *n) {
    function_call w;
    if (!tare__weighted_bind(&l->p->scratch, n, &w)) return TARE_OK;
    const quantized_params *x =
        tare__quantized_behind(l, tare__function_argument_node(&w, "input"));
    ending e = tare__ending_of(l, n);
    if (x == NULL) return TARE_OK;
    const quantized_params *quantized = tare__quantized_given(l, e.quantize);
    if (quantized == NULL || quantized->dtype != x->dtype) e = (ending){0};
    residual r;
    bool has_residual = false;
    module *packed = NULL;
    if (e.quantize == NULL) TARE_TRY(find_residual(l, &w, x->dtype, &r, &has_residual));
    TARE_TRY(tare__at(l->p->err, tare__lower_pack(l, &w, x, &packed), "node '%s'", n->name));
    if (packed == NULL) return TARE_OK;
    return has_residual && !is_depthwise(packed) ? lower_residual(l, &w, packed, &r)
                                                 : lower_layer(l, &w, packed, &e);
}

tare_status tare__pt2e_lower_layers(lowering *l) {
    for (node *n = l->p->model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        TARE_TRY(visit(l, n));
        if (n->op == NODE_CALL_FUNCTION) next = n->next; // the following relu may have been erased
    }
    return TARE_OK;
}
