// SPDX-License-Identifier: Apache-2.0
// Dynamically quantized linear and recurrent layers: the definition, in plain loops.
#include "ops/quantized/dynamic.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "dnnl/float_kernels.h"
#include "ops/classes/recurrent.h"
#include "ops/op.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/packed.h"
#include "ops/quantized/quantized.h"
#include "ops/rules.h"

// --- weights ---

static bool is_quantized_weight(const tare_tensor *w) {
    return w->dtype == TARE_QINT8 && w->q != NULL &&
           (w->q->count == 1 || (w->q->axis == 0 && w->q->count == w->shape[0])) &&
           tare__has_byte_zero_points(w->q);
}

static tare_status read_rule(const module *m, dynamic_weights *out, tare_error *err) {
    const value *rule = tare__module_config(m, "rule");
    if (rule != NULL && rule->kind == VALUE_STRING)
        out->rule = tare__requant_rule_from_name(rule->as.text);
    if (out->rule != REQUANT_UNSET) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected a config value 'rule'",
                      m->class->name);
}

tare_status tare__dynamic_weights_read(const module *m, const char *weight, const char *bias,
                                       dynamic_weights *out, tare_error *err) {
    const tare_tensor *w = tare__module_tensor(m, weight), *b = tare__module_tensor(m, bias);
    *out = (dynamic_weights){.weight = w, .bias = b, .reduce_range = true};
    if (w == NULL || w->data == NULL || w->ndim != 2 ||
        !(w->dtype == TARE_FLOAT16 || is_quantized_weight(w)))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "%s: expected a qint8 or float16 tensor '%s' [O, I]", m->class->name,
                          weight);
    if (b != NULL && (b->dtype != TARE_FLOAT32 || b->count != w->shape[0] || b->data == NULL))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "%s: expected a float32 tensor '%s' of %" PRId64 " elements",
                          m->class->name, bias, w->shape[0]);
    return w->dtype == TARE_FLOAT16 ? TARE_OK : read_rule(m, out, err);
}

tare_status tare__dynamic_operand_create(const dynamic_weights *w, dynamic_operand *out,
                                         tare_error *err) {
    *out = (dynamic_operand){.w = *w};
    if (w->weight->dtype == TARE_FLOAT16) return tare_tensor_to_float(w->weight, &out->real, err);
    return tare__centered_quantized(w->weight, &out->quantized, err);
}

void tare__dynamic_operand_release(dynamic_operand *o) {
    tare__free(o->quantized);
    tare_tensor_release(o->real);
    *o = (dynamic_operand){0};
}

// --- the product ---

void tare__dynamic_bounds(const dynamic_weights *w, int32_t *least, int32_t *most) {
    *least = w->is_decomposed ? w->quant_min : 0;
    *most = w->is_decomposed ? w->quant_max : 255;
}

// QNNPACK ignores reduce_range.
dynamic_qparams tare__dynamic_choose(const dynamic_weights *w, float min, float max) {
    dynamic_range range = {.min = min,
                           .max = max,
                           .reduce_range = w->reduce_range && w->rule != REQUANT_Q,
                           .symmetric = w->is_symmetric};
    tare__dynamic_bounds(w, &range.quant_min, &range.quant_max);
    return w->is_decomposed
               ? tare__choose_decomposed_qparams(&range, w->eps, w->symmetric_zero_point)
               : tare__choose_dynamic_qparams(&range);
}

static dynamic_qparams choose_qparams(const dynamic_weights *w, const float *x, int64_t count) {
    float min = 0, max = 0;
    for (int64_t i = 0; i < count; i++) {
        min = i == 0 || x[i] < min ? x[i] : min;
        max = i == 0 || x[i] > max ? x[i] : max;
    }
    return tare__dynamic_choose(w, min, max);
}

static void multiply_integers(const dynamic_operand *o, dynamic_qparams q, const int16_t *x,
                              int64_t rows, float *y) {
    const int64_t depth = o->w.weight->shape[1], features = o->w.weight->shape[0];
    const qparams *wq = o->w.weight->q;
    const float *biases = o->w.bias != NULL ? tare__f32(o->w.bias) : NULL;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t f = 0; f < features; f++) {
            const float aw = (float)q.scale * (float)wq->scale[wq->count == 1 ? 0 : f];
            const int32_t acc =
                tare__dot_quantized(x + row * depth, o->quantized + f * depth, depth);
            y[row * features + f] =
                tare__dynamic_output(o->w.rule, acc, aw, biases != NULL ? biases[f] : 0.0F);
        }
}

static tare_status multiply_quantized(const op_call *call, const dynamic_operand *o, const float *x,
                                      int64_t rows, float *y) {
    const int64_t count = rows * o->w.weight->shape[1];
    const dynamic_qparams q = choose_qparams(&o->w, x, count);
    const float inverse = tare__inverse_scale(q.scale);
    int32_t least, most;
    tare__dynamic_bounds(&o->w, &least, &most);
    int16_t *quantized = tare__realloc_array(NULL, (size_t)count + 1, sizeof *quantized);
    if (quantized == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < count; i++)
        quantized[i] =
            (int16_t)(tare__quantize(x[i], inverse, q.zero_point, least, most) - q.zero_point);
    multiply_integers(o, q, quantized, rows, y);
    tare__free(quantized);
    return TARE_OK;
}

tare_status tare__dynamic_multiply(const op_call *call, const dynamic_operand *o, const float *x,
                                   int64_t rows, float *y) {
    if (o->real == NULL) return multiply_quantized(call, o, x, rows, y);
    const float_product product = {
        .rows = rows, .inner = o->real->shape[1], .columns = o->real->shape[0], .transposed = true};
    return tare__float_multiply(call->kernels, &product, x, tare__f32(o->real),
                                o->w.bias != NULL ? tare__f32(o->w.bias) : NULL, y, call->err);
}

// --- linear ---

static tare_status read_decomposed(op_call *call, dynamic_weights *out) {
    int64_t least, most;
    double eps;
    tare_dtype dtype;
    TARE_TRY(tare__call_int(call, PACKED_QUANT_MIN, 0, &least));
    TARE_TRY(tare__call_int(call, PACKED_QUANT_MAX, 0, &most));
    TARE_TRY(tare__call_double(call, PACKED_EPS, 0, &eps));
    TARE_TRY(tare__call_dtype(call, PACKED_DTYPE, TARE_DTYPE_UNSET, &dtype));
    TARE_TRY(tare__call_bool(call, PACKED_SYMMETRIC, false, &out->is_symmetric));
    const dtype_info *info = tare__dtype(dtype);
    if ((dtype != TARE_INT8 && dtype != TARE_UINT8) || least < info->min || most > info->max ||
        least > 0 || most < 0 || least >= most || !((float)eps > 0))
        return tare__call_fail(call, "expected a range of int8 or uint8 that holds 0, and eps > 0");
    out->is_decomposed = true;
    out->quant_min = (int32_t)least;
    out->quant_max = (int32_t)most;
    out->symmetric_zero_point = dtype == TARE_UINT8 ? 128 : 0;
    out->eps = (float)eps;
    return TARE_OK;
}

tare_status tare__dynamic_linear_read(op_call *call, dynamic_weights *out, bool *relu) {
    const module *m = call->module;
    if (m != NULL) {
        *relu = m->class->fused == FUSED_RELU;
        return tare__dynamic_weights_read(m, "weight", "bias", out, call->err);
    }
    TARE_TRY(tare__packed_weights(call, &m));
    TARE_TRY(tare__dynamic_weights_read(m, "weight", "bias", out, call->err));
    *relu = tare__packed_has_relu(call);
    if (tare__packed_is_decomposed(call)) TARE_TRY(read_decomposed(call, out));
    const bool wants_half = tare__packed_is_half(call);
    if (wants_half != (out->weight->dtype == TARE_FLOAT16))
        return tare__call_fail(call, "cannot use weights of %s",
                               tare_dtype_name(out->weight->dtype));
    return wants_half || out->is_decomposed
               ? TARE_OK
               : tare__call_bool(call, PACKED_REDUCE_RANGE, false, &out->reduce_range);
}

tare_status tare__dynamic_linear_check(const module *m, tare_error *err) {
    dynamic_weights w;
    return tare__dynamic_weights_read(m, "weight", "bias", &w, err);
}

tare_status tare__dynamic_linear_shape(op_call *call) {
    dynamic_weights w;
    bool relu;
    TARE_TRY(tare__dynamic_linear_read(call, &w, &relu));
    const tare_tensor *x = tare__call_layer_input(call);
    if (x == NULL || x->dtype != TARE_FLOAT32)
        return tare__call_fail(call, "expected a float32 tensor as its input");
    if (x->ndim < 1 || x->shape[x->ndim - 1] != w.weight->shape[1])
        return tare__call_fail(call, "expected [.., %" PRId64 "] as its input, found %s",
                               w.weight->shape[1], tare__call_shape_text(call, x));
    int64_t shape[TARE_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 1] = w.weight->shape[0];
    return tare__call_result(call, TARE_FLOAT32, x->ndim, shape, NULL);
}

tare_status tare__dynamic_linear_forward(op_call *call) {
    dynamic_weights w;
    dynamic_operand o = {0};
    bool relu;
    TARE_TRY(tare__dynamic_linear_read(call, &w, &relu));
    const tare_tensor *x = tare__call_layer_input(call);
    float *y = tare__f32(tare__call_out(call));
    const int64_t depth = w.weight->shape[1], rows = depth > 0 ? x->count / depth : 0;
    tare_status status = tare__dynamic_operand_create(&w, &o, call->err);
    if (status == TARE_OK) status = tare__dynamic_multiply(call, &o, tare__f32(x), rows, y);
    for (int64_t i = 0; relu && status == TARE_OK && i < rows * w.weight->shape[0]; i++)
        y[i] = y[i] < 0 ? 0.0F : y[i];
    tare__dynamic_operand_release(&o);
    return status;
}

// --- recurrent ---

enum { NAME_SIZE = 80 };

// The weights of one layer and direction, kept across time steps.
typedef struct dynamic_gates {
    op_call *call;
    char suffix[NAME_SIZE / 2];
    bool is_loaded;
    dynamic_operand operands[2]; // of the input, of the hidden state
} dynamic_gates;

tare_status tare__dynamic_gate_read(const module *m, const char *suffix, bool of_hidden,
                                    dynamic_weights *out, tare_error *err) {
    char weight[NAME_SIZE], bias[NAME_SIZE];
    snprintf(weight, sizeof weight, "weight_%s%s", of_hidden ? "hh" : "ih", suffix);
    snprintf(bias, sizeof bias, "bias_%s%s", of_hidden ? "hh" : "ih", suffix);
    return tare__dynamic_weights_read(m, weight, bias, out, err);
}

static void drop_gates(dynamic_gates *g) {
    for (int i = 0; i < 2; i++) tare__dynamic_operand_release(&g->operands[i]);
    g->is_loaded = false;
}

static tare_status load_gates(dynamic_gates *g, const char *suffix) {
    drop_gates(g);
    for (int i = 0; i < 2; i++) {
        dynamic_weights w;
        TARE_TRY(tare__dynamic_gate_read(g->call->module, suffix, i != 0, &w, g->call->err));
        TARE_TRY(tare__dynamic_operand_create(&w, &g->operands[i], g->call->err));
    }
    snprintf(g->suffix, sizeof g->suffix, "%s", suffix);
    g->is_loaded = true;
    return TARE_OK;
}

static tare_status gate_product(void *user, const gate_request *r) {
    dynamic_gates *g = user;
    if (!g->is_loaded || strcmp(g->suffix, r->suffix) != 0) TARE_TRY(load_gates(g, r->suffix));
    const dynamic_operand *o = &g->operands[r->of_hidden ? 1 : 0];
    if (o->w.weight->shape[0] != r->width || o->w.weight->shape[1] != r->inner)
        return tare__call_fail(g->call, "the weights '%s' do not fit the module", r->suffix);
    return tare__dynamic_multiply(g->call, o, r->x, r->rows, r->y);
}

tare_status tare__dynamic_recurrent_forward(op_call *call) {
    dynamic_gates g = {.call = call};
    const gate_source source = {.user = &g, .product = gate_product};
    const tare_status status = tare__recurrent_run(call, &source);
    drop_gates(&g);
    return status;
}

static tare_status check_suffix(void *user, const char *suffix, tare_error *err) {
    for (int i = 0; i < 2; i++) {
        dynamic_weights w;
        TARE_TRY(tare__dynamic_gate_read(user, suffix, i != 0, &w, err));
    }
    return TARE_OK;
}

tare_status tare__dynamic_recurrent_check(const module *m, tare_error *err) {
    return tare__recurrent_each_suffix(m, check_suffix, (void *)m, err); // NOLINT: only read
}
