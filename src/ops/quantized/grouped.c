// SPDX-License-Identifier: Apache-2.0
// Linear layers with group-wise weights: their tensors, and the definition in plain loops.
#include "ops/quantized/grouped.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/math/requant.h"
#include "core/memory/alloc.h"
#include "ops/quantized/layer.h"
#include "ops/rules.h"

// Sums of a group's products, at most 255 * 128 each, are exact in 32 bits.
enum { MOST_GROUP = 1 << 15 };

// --- tensors ---

static tare_status bad(const module *m, tare_error *err, const char *name, const char *wanted) {
    return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected %s as '%s'", m->class->name, wanted,
                      name);
}

static bool is_matrix(const tare_tensor *t, tare_dtype dtype, int64_t rows, int64_t columns) {
    return t != NULL && t->data != NULL && t->dtype == dtype && t->ndim == 2 &&
           t->shape[0] == rows && t->shape[1] == columns;
}

static tare_status read_sizes(const module *m, grouped_weights *w, tare_error *err) {
    const int64_t bits = tare__module_int(m, "bits", 0);
    if (bits != 4 && bits != 8) return bad(m, err, "bits", "4 or 8");
    if (w->quantized == NULL || w->quantized->data == NULL || w->quantized->ndim != 2 ||
        w->quantized->dtype != TARE_UINT8)
        return bad(m, err, "weight", "a uint8 matrix");
    w->bits = (int)bits;
    w->outs = w->quantized->shape[0];
    if (w->quantized->shape[1] > INT64_MAX / 2) return bad(m, err, "weight", "a smaller matrix");
    w->ins = w->quantized->shape[1] * (bits == 4 ? 2 : 1);
    w->group = tare__module_int(m, "group_size", 0);
    if (w->group < 1 || w->group > MOST_GROUP || w->ins % w->group != 0)
        return bad(m, err, "group_size", "a divisor of the inputs up to 32768");
    w->groups = w->ins / w->group;
    return TARE_OK;
}

static tare_status read_activation(const module *m, grouped_weights *w, tare_error *err) {
    const value *v = tare__module_config(m, "activation_dtype");
    const tare_dtype dtype = v == NULL ? TARE_FLOAT32 : v->kind == VALUE_DTYPE ? v->as.dtype : 0;
    if (dtype != TARE_FLOAT32 && dtype != TARE_INT8)
        return bad(m, err, "activation_dtype", "torch.float32 or torch.int8");
    w->quantizes_input = dtype == TARE_INT8;
    return TARE_OK;
}

tare_status tare__grouped_read(const module *m, grouped_weights *out, tare_error *err) {
    grouped_weights w = {.quantized = tare__module_tensor(m, "weight"),
                         .scale = tare__module_tensor(m, "weight_scale"),
                         .zero_point = tare__module_tensor(m, "weight_zero_point"),
                         .bias = tare__module_tensor(m, "bias")};
    TARE_TRY(read_sizes(m, &w, err));
    TARE_TRY(read_activation(m, &w, err));
    if (!is_matrix(w.scale, TARE_FLOAT32, w.outs, w.groups))
        return bad(m, err, "weight_scale", "a float32 for each output and group");
    if (w.zero_point != NULL && !is_matrix(w.zero_point, TARE_UINT8, w.outs, w.groups))
        return bad(m, err, "weight_zero_point", "a uint8 for each output and group");
    if (w.bias != NULL && (w.bias->data == NULL || w.bias->dtype != TARE_FLOAT32 ||
                           w.bias->ndim != 1 || w.bias->count != w.outs))
        return bad(m, err, "bias", "a float32 for each output");
    *out = w;
    return TARE_OK;
}

uint8_t tare__grouped_value(const grouped_weights *w, int64_t o, int64_t k) {
    const uint8_t *quantized = w->quantized->data;
    if (w->bits == 8) return quantized[o * w->ins + k];
    const uint8_t pair = quantized[(o * w->ins + k) / 2];
    return k % 2 == 0 ? pair & 15 : pair >> 4;
}

int32_t tare__grouped_zero(const grouped_weights *w, int64_t o, int64_t g) {
    if (w->zero_point == NULL) return 1 << (w->bits - 1);
    return ((const uint8_t *)w->zero_point->data)[o * w->groups + g];
}

tare_status tare__grouped_linear_check(const module *m, tare_error *err) {
    grouped_weights w;
    TARE_TRY(tare__grouped_read(m, &w, err));
    const float *scales = tare__f32(w.scale);
    for (int64_t i = 0; i < w.scale->count; i++)
        if (!isfinite(scales[i]))
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "%s: 'weight_scale' is %g at element %lld", m->class->name,
                              (double)scales[i], (long long)i);
    const uint8_t most = (uint8_t)((1 << w.bits) - 1);
    const uint8_t *zeros = w.zero_point != NULL ? w.zero_point->data : NULL;
    for (int64_t i = 0; zeros != NULL && i < w.zero_point->count; i++)
        if (zeros[i] > most)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "%s: 'weight_zero_point' is %d at element %lld, values end at %d",
                              m->class->name, zeros[i], (long long)i, most);
    return TARE_OK;
}

// --- from a quantized tensor ---

bool tare__grouped_takes(const tare_tensor *weight) {
    return weight->q != NULL && weight->data != NULL && weight->ndim == 2 && weight->count > 0 &&
           (weight->dtype == TARE_QINT8 || weight->dtype == TARE_QUINT8) &&
           tare__qscheme_is_per_group(weight->q->scheme) && tare__group_size(weight) <= MOST_GROUP;
}

// 4 bits if the range has at most 16 values and rows have an even length, else 8.
static int bits_of(const tare_tensor *weight) {
    const qparams *q = weight->q;
    return q->quant_max - q->quant_min < 16 && weight->shape[1] % 2 == 0 ? 4 : 8;
}

// The offset from the weight's quantized values and zero points to unsigned ones. A signed range is
// shifted by half of the unsigned range, so -7 to 7 is shifted by 8, as -8 to 7 is.
static int64_t shift_of(const tare_tensor *weight, int bits) {
    const qparams *q = weight->q;
    const int64_t half = bits == 4 ? 8 : 128;
    if (q->quant_min >= 0 && q->quant_max < 2 * half) return 0;
    return q->quant_min >= -half && q->quant_max < half ? half : -q->quant_min;
}

static void pack_values(const tare_tensor *weight, int bits, int64_t shift, uint8_t *out) {
    for (int64_t i = 0; i < weight->count; i++) {
        const uint8_t q = (uint8_t)((int64_t)tare__tensor_get(weight, i) + shift);
        if (bits == 8)
            out[i] = q;
        else if (i % 2 == 0)
            out[i / 2] = q & 15;
        else
            out[i / 2] = (uint8_t)(out[i / 2] | q << 4);
    }
}

static tare_status set_new(module *m, const char *name, tare_tensor *t, bool is_parameter,
                           tare_status status, tare_error *err) {
    if (status == TARE_OK) status = tare__module_set_tensor(m, name, t, is_parameter, err);
    tare_tensor_release(t);
    return status;
}

static tare_status set_values(module *m, const tare_tensor *weight, int bits, int64_t shift,
                              tare_error *err) {
    const int64_t shape[] = {weight->shape[0], bits == 4 ? weight->shape[1] / 2 : weight->shape[1]};
    tare_tensor *t = NULL;
    const tare_status status = tare_tensor_create(TARE_UINT8, 2, shape, &t, err);
    if (status == TARE_OK) pack_values(weight, bits, shift, t->data);
    return set_new(m, "weight", t, true, status, err);
}

static tare_status set_scales(module *m, const tare_tensor *weight, tare_error *err) {
    const int64_t shape[] = {weight->shape[0], weight->q->count / weight->shape[0]};
    tare_tensor *t = NULL;
    const tare_status status = tare_tensor_create(TARE_FLOAT32, 2, shape, &t, err);
    for (int64_t i = 0; status == TARE_OK && i < t->count; i++)
        tare__f32(t)[i] = (float)weight->q->scale[i];
    return set_new(m, "weight_scale", t, false, status, err);
}

static tare_status set_zero_points(module *m, const tare_tensor *weight, int bits, int64_t shift,
                                   tare_error *err) {
    const int64_t shape[] = {weight->shape[0], weight->q->count / weight->shape[0]};
    const int64_t middle = bits == 4 ? 8 : 128, most = 2 * middle - 1;
    bool is_usual = true;
    for (int64_t i = 0; i < weight->q->count; i++) {
        const int64_t zero = (int64_t)weight->q->zero_point[i] + shift;
        is_usual &= zero == middle;
        if (zero < 0 || zero > most)
            return tare__fail(err, TARE_UNSUPPORTED,
                              "the zero point %g lies outside of the %d-bit values of its group",
                              weight->q->zero_point[i], bits);
    }
    if (is_usual) return TARE_OK;
    tare_tensor *t = NULL;
    const tare_status status = tare_tensor_create(TARE_UINT8, 2, shape, &t, err);
    for (int64_t i = 0; status == TARE_OK && i < t->count; i++)
        ((uint8_t *)t->data)[i] = (uint8_t)((int64_t)weight->q->zero_point[i] + shift);
    return set_new(m, "weight_zero_point", t, false, status, err);
}

tare_status tare__grouped_set_weight(module *m, const tare_tensor *weight, tare_error *err) {
    const int bits = bits_of(weight);
    const int64_t shift = shift_of(weight, bits);
    const value count = tare__int(bits), group = tare__int(tare__group_size(weight));
    TARE_TRY(tare__module_set_config(m, "bits", &count, err));
    TARE_TRY(tare__module_set_config(m, "group_size", &group, err));
    TARE_TRY(set_values(m, weight, bits, shift, err));
    TARE_TRY(set_scales(m, weight, err));
    return set_zero_points(m, weight, bits, shift, err);
}

// --- the definition ---

float tare__grouped_row_scale(const float *x, int64_t count) {
    float most = 1e-5F;
    for (int64_t k = 0; k < count; k++) {
        const float size = fabsf(x[k]);
        most = size > most ? size : most;
    }
    return most / 127.0F;
}

void tare__grouped_row_quantize(const float *x, int64_t count, float scale, int8_t *quantized) {
    const float inverse = tare__inverse_scale((double)scale);
    for (int64_t k = 0; k < count; k++)
        quantized[k] = (int8_t)tare__quantize(x[k], inverse, 0, -128, 127);
}

static float float_group_sum(const grouped_weights *w, int64_t o, int64_t g, const float *x) {
    const int32_t zero = tare__grouped_zero(w, o, g);
    float group_sum = 0;
    for (int64_t k = g * w->group; k < (g + 1) * w->group; k++)
        group_sum = fmaf(x[k], (float)(tare__grouped_value(w, o, k) - zero), group_sum);
    return group_sum;
}

static float integer_group_sum(const grouped_weights *w, int64_t o, int64_t g, const int8_t *x) {
    const int32_t zero = tare__grouped_zero(w, o, g);
    int32_t group_sum = 0;
    for (int64_t k = g * w->group; k < (g + 1) * w->group; k++)
        group_sum += (tare__grouped_value(w, o, k) - zero) * x[k];
    return (float)group_sum;
}

static float one_output(const grouped_weights *w, int64_t o, const float *x,
                        const int8_t *quantized, float row_scale) {
    const float *scales = tare__f32(w->scale) + o * w->groups;
    float sum = 0;
    for (int64_t g = 0; g < w->groups; g++)
        sum = fmaf(quantized != NULL ? integer_group_sum(w, o, g, quantized)
                                     : float_group_sum(w, o, g, x),
                   scales[g], sum);
    if (quantized != NULL) sum = sum * row_scale;
    return w->bias != NULL ? sum + tare__f32(w->bias)[o] : sum;
}

tare_status tare__grouped_linear_shape(op_call *call) {
    grouped_weights w;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(tare__grouped_read(call->module, &w, call->err));
    const tare_tensor *x = tare__call_layer_input(call);
    if (x == NULL || x->dtype != TARE_FLOAT32)
        return tare__call_fail(call, "expected a float32 tensor as its input");
    if (x->ndim < 1 || x->shape[x->ndim - 1] != w.ins)
        return tare__call_fail(call, "expected [.., %" PRId64 "] as its input, found %s", w.ins,
                               tare__call_shape_text(call, x));
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 1] = w.outs;
    return tare__call_result(call, TARE_FLOAT32, x->ndim, shape, NULL);
}

tare_status tare__grouped_linear_forward(op_call *call) {
    grouped_weights w;
    TARE_TRY(tare__grouped_read(call->module, &w, call->err));
    const bool relu = call->module->class->fused == FUSED_RELU;
    const tare_tensor *x = tare__call_layer_input(call);
    float *y = tare__f32(tare__call_out(call));
    const int64_t rows = w.ins > 0 ? x->count / w.ins : 0;
    int8_t *quantized = w.quantizes_input ? tare__alloc_zeroed((size_t)w.ins + 1, 1) : NULL;
    if (w.quantizes_input && quantized == NULL) return tare__out_of_memory(call->err);
    for (int64_t r = 0; r < rows; r++) {
        const float *row = tare__f32(x) + r * w.ins;
        const float scale = quantized != NULL ? tare__grouped_row_scale(row, w.ins) : 0;
        if (quantized != NULL) tare__grouped_row_quantize(row, w.ins, scale, quantized);
        for (int64_t o = 0; o < w.outs; o++) {
            const float v = one_output(&w, o, row, quantized, scale);
            y[r * w.outs + o] = relu && v < 0 ? 0.0F : v;
        }
    }
    tare__free(quantized);
    return TARE_OK;
}
