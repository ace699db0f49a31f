// SPDX-License-Identifier: Apache-2.0
// The table of fast ways, and those that need no state: between floats and codes, and on codes.
#include "runtime/fast.h"

#include <string.h>

#include "ops/engine_rules.h"
#include "ops/op.h"
#include "ops/quantized_layer.h"

static code_scheme scheme_of(const tare_tensor *t) {
    return (code_scheme){
        .scale = (float)t->q->scale[0],
        .inverse = tare__inverse_scale(t->q->scale[0]),
        .zero_point = (int32_t)t->q->zero_point[0],
        .least = (int32_t)t->q->quant_min,
        .most = (int32_t)t->q->quant_max,
        .is_signed = t->dtype == TARE_QINT8,
    };
}

// --- quantize_per_tensor, dequantize ---

static bool is_quantize(const op_call *call) {
    return tare__fast_is_op(call, "quantize_per_tensor");
}

static tare_status quantize(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)state;
    const tare_tensor *x = tare__fast_input(call, 0);
    tare_tensor *y = tare__call_out(call);
    if (x == NULL || x->dtype != TARE_FLOAT32 || !tare__is_byte_quantized(y)) return TARE_OK;
    const code_scheme scheme = scheme_of(y);
    context->elementwise->quantize(&scheme, tare__f32(x), (size_t)x->count, y->data);
    *handled = true;
    return TARE_OK;
}

static bool is_dequantize(const op_call *call) {
    return tare__fast_is_op(call, "dequantize");
}

static tare_status dequantize(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)state;
    const tare_tensor *x = tare__fast_input(call, 0);
    tare_tensor *y = tare__call_out(call);
    if (x == NULL || !tare__is_byte_quantized(x) || y->dtype != TARE_FLOAT32) return TARE_OK;
    const code_scheme scheme = scheme_of(x);
    context->elementwise->dequantize(&scheme, x->data, (size_t)x->count, tare__f32(y));
    *handled = true;
    return TARE_OK;
}

// --- add, add_relu ---

static bool is_add(const op_call *call) {
    return (tare__fast_is_op(call, "quantized.add") ||
            tare__fast_is_op(call, "quantized.add_relu")) &&
           !tare__rule_adds_in_fixed_point(call->linear_rule);
}

static bool same_shape(const tare_tensor *a, const tare_tensor *b) {
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static tare_status add(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)state;
    const tare_tensor *a = tare__fast_input(call, 0), *b = tare__fast_input(call, 1);
    tare_tensor *y = tare__call_out(call);
    if (a == NULL || b == NULL || !same_shape(a, y) || !same_shape(b, y)) return TARE_OK;
    const code_scheme sa = scheme_of(a), sb = scheme_of(b), sy = scheme_of(y);
    const native_add op = tare__native_add((code_range){sa.scale, sa.zero_point},
                                           (code_range){sb.scale, sb.zero_point},
                                           (code_range){sy.scale, sy.zero_point}, sy.least, sy.most,
                                           tare__fast_is_op(call, "quantized.add_relu"));
    context->elementwise->add(&op, sa.is_signed, a->data, b->data, (size_t)y->count, y->data);
    *handled = true;
    return TARE_OK;
}

// --- relu: codes are ordered as the values they stand for ---

static bool is_code_relu(const op_call *call) {
    const tare_tensor *x = tare__fast_input(call, 0);
    return tare__fast_is_op(call, "relu") && x != NULL && tare__is_byte_quantized(x);
}

static tare_status relu(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)state;
    const tare_tensor *x = tare__fast_input(call, 0);
    tare_tensor *y = tare__call_out(call);
    if (!tare__is_byte_quantized(x) || y->count != x->count) return TARE_OK;
    memset(y->data, (int)x->q->zero_point[0], (size_t)y->count);
    context->elementwise->raise(x->dtype == TARE_QINT8, x->data, (size_t)x->count, y->data);
    *handled = true;
    return TARE_OK;
}

// --- table ---

static const fast_path code_paths[] = {
    {"quantize", is_quantize, quantize, NULL},
    {"dequantize", is_dequantize, dequantize, NULL},
    {"add", is_add, add, NULL},
    {"relu", is_code_relu, relu, NULL},
};

const fast_path *tare__fast_path_find(const op_call *call) {
    static const fast_path *const larger[] = {&tare__fast_layer, &tare__fast_max_pool,
                                              &tare__fast_average_pool};
    for (size_t i = 0; i < sizeof larger / sizeof *larger; i++)
        if (larger[i]->suits(call)) return larger[i];
    for (size_t i = 0; i < sizeof code_paths / sizeof *code_paths; i++)
        if (code_paths[i].suits(call)) return &code_paths[i];
    return NULL;
}
