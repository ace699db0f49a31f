// SPDX-License-Identifier: Apache-2.0
// Quantized linear modules: the definition, in plain loops.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/math/f32.h"
#include "core/memory/alloc.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/packed.h"
#include "ops/quantized/quantized.h"

// The tensor that the layer is applied to; `wanted` describes it.
static tare_status need_input(op_call *call, bool (*fits)(const tare_tensor *t), const char *wanted,
                              const tare_tensor **out) {
    *out = tare__call_layer_input(call);
    if (*out != NULL && fits(*out)) return TARE_OK;
    return tare__call_fail(call, "expected %s as its input", wanted);
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

// --- static ---

tare_status tare__quantized_linear_shape(op_call *call) {
    quantized_layer layer;
    const tare_tensor *x = NULL;
    TARE_TRY(tare__call_layer_read(call, &layer));
    TARE_TRY(need_input(call, tare__is_byte_quantized, "a quint8 or qint8 tensor", &x));
    TARE_TRY(check_features(call, x, layer.weight));
    if (layer.gives_floats) return linear_result(call, x, layer.out_channels, NULL);
    const qparams *q = tare__qparams_per_tensor(x->dtype, layer.scale, layer.zero_point);
    if (q == NULL) return tare__out_of_memory(call->err);
    const tare_status status = linear_result(call, x, layer.out_channels, q);
    tare__qparams_release(q);
    return status;
}

// Activations that onednn fuses besides ReLU, applied to the float between accumulator and
// quantized value.
static float apply_fused(const module *m, float v) {
    if (m->class->fused == FUSED_TANH) return tare__tanhf(v);
    return v >= 0 ? v : v * (float)tare__module_double(m, "negative_slope", 0.01);
}

static int32_t linear_quantized(const quantized_layer *layer, const requant *r, int64_t o,
                                int32_t acc) {
    if (layer->is_plain) return tare__requantize(r, o, acc);
    return tare__requant_o_finish(r, apply_fused(layer->module, tare__requant_o_value(r, o, acc)));
}

static void linear_rows(const quantized_layer *layer, const requant *r, const int16_t *x,
                        const int16_t *w, tare_tensor *y) {
    const int64_t depth = layer->weight->shape[1], features = layer->out_channels;
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t row = i / features, o = i % features;
        const int32_t acc = tare__dot_quantized(x + row * depth, w + o * depth, depth);
        if (layer->gives_floats)
            tare__f32(y)[i] = tare__requant_o_value(r, o, acc);
        else
            tare__store_quantized(y, i, linear_quantized(layer, r, o, acc));
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
    if (status == TARE_OK) status = tare__centered_quantized(x, &xs, call->err);
    if (status == TARE_OK) status = tare__centered_quantized(layer.weight, &ws, call->err);
    if (status == TARE_OK) linear_rows(&layer, r, xs, ws, y);
    tare__requant_destroy(r);
    tare__free(xs);
    tare__free(ws);
    return status;
}
