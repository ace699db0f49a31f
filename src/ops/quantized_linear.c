// SPDX-License-Identifier: Apache-2.0
// Quantized linear modules, static and dynamic: the meaning, in plain loops.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/math_f32.h"
#include "ops/packed.h"
#include "ops/quantized.h"
#include "ops/quantized_layer.h"

// The tensor that the layer is applied to; `wanted` says what it must be.
static tare_status need_input(op_call *call, bool (*fits)(const tare_tensor *t), const char *wanted,
                              const tare_tensor **out) {
    *out = tare__call_layer_input(call);
    if (*out != NULL && fits(*out)) return TARE_OK;
    return tare__call_fail(call, "expected %s as its input", wanted);
}

static bool is_float(const tare_tensor *t) {
    return t->dtype == TARE_FLOAT32;
}

static tare_status check_features(op_call *call, const tare_tensor *x, const tare_tensor *w) {
    if (x->ndim >= 1 && x->shape[x->ndim - 1] == w->shape[1]) return TARE_OK;
    char shape[128];
    tare__shape_text(x->ndim, x->shape, shape, sizeof shape);
    return tare__call_fail(call, "expected [.., %" PRId64 "] as its input, found %s", w->shape[1],
                           shape);
}

static tare_status linear_result(op_call *call, const tare_tensor *x, int64_t features,
                                 const qparams *q) {
    int64_t shape[TARE_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 1] = features;
    return tare__call_result(call, q != NULL ? q->dtype : TARE_FLOAT32, x->ndim, shape, q);
}

// acc = sum of (x - x zero point) * (w - w zero point), modulo 2^32 as machines add.
static int32_t dot(const int16_t *x, const int16_t *w, int64_t count) {
    int64_t acc = 0;
    for (int64_t k = 0; k < count; k++) {
        const int32_t product = x[k] * w[k];
        acc += product;
    }
    return tare__wrap_int32(acc);
}

// --- static ---

tare_status tare__quantized_linear_shape(op_call *call) {
    quantized_layer layer;
    const tare_tensor *x = NULL;
    TARE_TRY(tare__call_layer_read(call, &layer));
    TARE_TRY(need_input(call, tare__is_byte_quantized, "a quint8 or qint8 tensor", &x));
    TARE_TRY(check_features(call, x, layer.weight));
    const qparams *q = tare__qparams_per_tensor(x->dtype, layer.scale, layer.zero_point);
    if (q == NULL) return tare__out_of_memory(call->err);
    const tare_status status = linear_result(call, x, layer.out_channels, q);
    tare__qparams_release(q);
    return status;
}

// What onednn fuses besides ReLU, on the float between accumulator and code.
static float apply_fused(const module *m, float v) {
    if (m->class->fused == FUSED_TANH) return tare__tanhf(v);
    return v >= 0 ? v : v * (float)tare__module_double(m, "negative_slope", 0.01);
}

static int32_t linear_code(const quantized_layer *layer, const requant *r, int64_t o, int32_t acc) {
    if (layer->is_plain) return tare__requantize(r, o, acc);
    return tare__requant_o_finish(r, apply_fused(layer->module, tare__requant_o_value(r, o, acc)));
}

static void linear_rows(const quantized_layer *layer, const requant *r, const int16_t *x,
                        const int16_t *w, tare_tensor *y) {
    const int64_t depth = layer->weight->shape[1], features = layer->out_channels;
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t row = i / features, o = i % features;
        const int32_t acc = dot(x + row * depth, w + o * depth, depth);
        tare__store_code(y, i, linear_code(layer, r, o, acc));
    }
}

tare_status tare__quantized_linear_forward(op_call *call) {
    quantized_layer layer;
    TARE_TRY(tare__call_layer_read(call, &layer));
    const tare_tensor *x = tare__call_layer_input(call);
    tare_tensor *y = tare__call_out(call);
    int16_t *xs = NULL, *ws = NULL;
    requant *r = NULL;
    tare_status status = tare__quantized_layer_requant(&layer, x->q, y->q, &r, call->err);
    if (status == TARE_OK) status = tare__centered_codes(x, &xs, call->err);
    if (status == TARE_OK) status = tare__centered_codes(layer.weight, &ws, call->err);
    if (status == TARE_OK) linear_rows(&layer, r, xs, ws, y);
    tare__requant_destroy(r);
    tare__free(xs);
    tare__free(ws);
    return status;
}

// --- dynamic ---

typedef struct dynamic_layer {
    const tare_tensor *weight, *bias;
    requant_rule rule;
    bool relu, reduce_range;
} dynamic_layer;

static tare_status dynamic_layer_read(const module *m, dynamic_layer *out, tare_error *err) {
    const value *rule = tare__module_config(m, "rule");
    *out = (dynamic_layer){
        .weight = tare__module_tensor(m, "weight"),
        .bias = tare__module_tensor(m, "bias"),
        .rule = rule != NULL && rule->kind == VALUE_STRING
                    ? tare__requant_rule_from_name(rule->as.text)
                    : REQUANT_UNSET,
        .relu = m->class->fused == FUSED_RELU,
        .reduce_range = true, // torch's modules always ask for 7 bits
    };
    const tare_tensor *w = out->weight, *b = out->bias;
    if (out->rule == REQUANT_UNSET)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected a config value 'rule'",
                          m->class->name);
    if (w == NULL || w->dtype != TARE_QINT8 || w->q == NULL || w->data == NULL || w->ndim != 2 ||
        (w->q->count != 1 && (w->q->axis != 0 || w->q->count != w->shape[0])) ||
        !tare__has_byte_zero_points(w->q))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected a qint8 tensor 'weight' [O, I]",
                          m->class->name);
    if (b != NULL && (b->dtype != TARE_FLOAT32 || b->count != w->shape[0] || b->data == NULL))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "%s: expected a float32 bias of %" PRId64 " elements", m->class->name,
                          w->shape[0]);
    return TARE_OK;
}

static tare_status dynamic_call_read(op_call *call, dynamic_layer *out) {
    if (call->module != NULL) return dynamic_layer_read(call->module, out, call->err);
    const module *m = NULL;
    TARE_TRY(tare__packed_weights(call, &m));
    TARE_TRY(dynamic_layer_read(m, out, call->err));
    out->relu = tare__packed_has_relu(call);
    return tare__call_bool(call, PACKED_REDUCE_RANGE, false, &out->reduce_range);
}

tare_status tare__dynamic_linear_check(const module *m, tare_error *err) {
    dynamic_layer layer;
    return dynamic_layer_read(m, &layer, err);
}

tare_status tare__dynamic_linear_shape(op_call *call) {
    dynamic_layer layer;
    const tare_tensor *x = NULL;
    TARE_TRY(dynamic_call_read(call, &layer));
    TARE_TRY(need_input(call, is_float, "a float32 tensor", &x));
    TARE_TRY(check_features(call, x, layer.weight));
    return linear_result(call, x, layer.weight->shape[0], NULL);
}

// QNNPACK does not hear a wish for 7 bits.
static dynamic_qparams choose_qparams(const tare_tensor *x, const dynamic_layer *layer) {
    dynamic_range range = {.quant_min = 0,
                           .quant_max = 255,
                           .reduce_range = layer->reduce_range && layer->rule != REQUANT_Q};
    const float *v = tare__f32(x);
    for (int64_t i = 0; i < x->count; i++) {
        range.min = i == 0 || v[i] < range.min ? v[i] : range.min;
        range.max = i == 0 || v[i] > range.max ? v[i] : range.max;
    }
    return tare__choose_dynamic_qparams(&range);
}

static void dynamic_rows(const dynamic_layer *layer, dynamic_qparams q, const int16_t *x,
                         const int16_t *w, tare_tensor *y) {
    const int64_t depth = layer->weight->shape[1], features = layer->weight->shape[0];
    const qparams *wq = layer->weight->q;
    float *out = tare__f32(y);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t row = i / features, o = i % features;
        const float aw = (float)q.scale * (float)wq->scale[wq->count == 1 ? 0 : o];
        const float bias = layer->bias != NULL ? tare__f32(layer->bias)[o] : 0.0F;
        const int32_t acc = dot(x + row * depth, w + o * depth, depth);
        const float v = tare__dynamic_output(layer->rule, acc, aw, bias);
        out[i] = layer->relu && v < 0 ? 0.0F : v;
    }
}

tare_status tare__dynamic_linear_forward(op_call *call) {
    dynamic_layer layer;
    TARE_TRY(dynamic_call_read(call, &layer));
    const tare_tensor *x = tare__call_layer_input(call);
    const dynamic_qparams q = choose_qparams(x, &layer);
    const float inverse = tare__inverse_scale(q.scale);
    int16_t *xs = tare__realloc_array(NULL, (size_t)x->count + 1, sizeof *xs), *ws = NULL;
    tare_status status = xs == NULL ? tare__out_of_memory(call->err) : TARE_OK;
    if (status == TARE_OK) status = tare__centered_codes(layer.weight, &ws, call->err);
    for (int64_t i = 0; status == TARE_OK && i < x->count; i++)
        xs[i] = (int16_t)(tare__quantize(tare__f32(x)[i], inverse, q.zero_point, 0, 255) -
                          q.zero_point);
    if (status == TARE_OK) dynamic_rows(&layer, q, xs, ws, tare__call_out(call));
    tare__free(xs);
    tare__free(ws);
    return status;
}
