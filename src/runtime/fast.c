// SPDX-License-Identifier: Apache-2.0
// The table of fast ways, and those that need no state: between floats and codes, and on codes.
#include "runtime/fast.h"

#include <string.h>

#include "ops/engine_rules.h"
#include "ops/op.h"
#include "ops/quantized_layer.h"

static bool is_op(const op_call *call, const char *id) {
    return call->op != NULL && strcmp(call->op->id, id) == 0;
}

static const tare_tensor *input(const op_call *call, size_t i) {
    const value *v = call->param[i];
    return v != NULL && v->kind == VALUE_TENSOR ? v->as.tensor : NULL;
}

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
    return is_op(call, "quantize_per_tensor");
}

static tare_status quantize(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)state;
    const tare_tensor *x = input(call, 0);
    tare_tensor *y = tare__call_out(call);
    if (x == NULL || x->dtype != TARE_FLOAT32 || !tare__is_byte_quantized(y)) return TARE_OK;
    const code_scheme scheme = scheme_of(y);
    context->elementwise->quantize(&scheme, tare__f32(x), (size_t)x->count, y->data);
    *handled = true;
    return TARE_OK;
}

static bool is_dequantize(const op_call *call) {
    return is_op(call, "dequantize");
}

static tare_status dequantize(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)state;
    const tare_tensor *x = input(call, 0);
    tare_tensor *y = tare__call_out(call);
    if (x == NULL || !tare__is_byte_quantized(x) || y->dtype != TARE_FLOAT32) return TARE_OK;
    const code_scheme scheme = scheme_of(x);
    context->elementwise->dequantize(&scheme, x->data, (size_t)x->count, tare__f32(y));
    *handled = true;
    return TARE_OK;
}

// --- add, add_relu ---

static bool is_add(const op_call *call) {
    return (is_op(call, "quantized.add") || is_op(call, "quantized.add_relu")) &&
           !tare__rule_adds_in_fixed_point(call->linear_rule);
}

static bool same_shape(const tare_tensor *a, const tare_tensor *b) {
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static tare_status add(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)state;
    const tare_tensor *a = input(call, 0), *b = input(call, 1);
    tare_tensor *y = tare__call_out(call);
    if (a == NULL || b == NULL || !same_shape(a, y) || !same_shape(b, y)) return TARE_OK;
    const code_scheme sa = scheme_of(a), sb = scheme_of(b), sy = scheme_of(y);
    const native_add op = tare__native_add((code_range){sa.scale, sa.zero_point},
                                           (code_range){sb.scale, sb.zero_point},
                                           (code_range){sy.scale, sy.zero_point}, sy.least, sy.most,
                                           is_op(call, "quantized.add_relu"));
    context->elementwise->add(&op, sa.is_signed, a->data, b->data, (size_t)y->count, y->data);
    *handled = true;
    return TARE_OK;
}

// --- relu, max_pool2d: codes are ordered as the values they stand for ---

static bool is_code_relu(const op_call *call) {
    const tare_tensor *x = input(call, 0);
    return is_op(call, "relu") && x != NULL && tare__is_byte_quantized(x);
}

static tare_status relu(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)state;
    const tare_tensor *x = input(call, 0);
    tare_tensor *y = tare__call_out(call);
    if (!tare__is_byte_quantized(x) || y->count != x->count) return TARE_OK;
    memset(y->data, (int)x->q->zero_point[0], (size_t)y->count);
    context->elementwise->raise(x->dtype == TARE_QINT8, x->data, (size_t)x->count, y->data);
    *handled = true;
    return TARE_OK;
}

enum { KERNEL_SIZE = 1, STRIDE, PADDING, DILATION }; // max_pool2d's parameters

static bool is_code_max_pool(const op_call *call) {
    const tare_tensor *x = input(call, 0);
    return is_op(call, "max_pool2d") && x != NULL && tare__is_byte_quantized(x);
}

typedef struct max_pool {
    int64_t kernel[2], stride[2], pad[2], dilation[2], in[2], out[2];
    uint8_t flip; // signed codes become unsigned ones of the same order
} max_pool;

static tare_status read_max_pool(op_call *call, max_pool *p) {
    const tare_tensor *x = input(call, 0), *y = tare__call_out(call);
    TARE_TRY(tare__call_ints(call, KERNEL_SIZE, 2, 1, p->kernel));
    TARE_TRY(tare__call_ints(call, STRIDE, 2, 0, p->stride));
    TARE_TRY(tare__call_ints(call, PADDING, 2, 0, p->pad));
    TARE_TRY(tare__call_ints(call, DILATION, 2, 1, p->dilation));
    p->flip = x->dtype == TARE_QINT8 ? 0x80 : 0;
    for (int d = 0; d < 2; d++) {
        if (p->stride[d] == 0) p->stride[d] = p->kernel[d]; // torch: the default
        p->in[d] = x->shape[x->ndim - 2 + d];
        p->out[d] = y->shape[y->ndim - 2 + d];
    }
    return TARE_OK;
}

static uint8_t greatest_code(const max_pool *p, const uint8_t *plane, int64_t row, int64_t column) {
    uint8_t greatest = 0;
    for (int64_t a = 0; a < p->kernel[0]; a++) {
        const int64_t h = row * p->stride[0] - p->pad[0] + a * p->dilation[0];
        if (h < 0 || h >= p->in[0]) continue;
        for (int64_t b = 0; b < p->kernel[1]; b++) {
            const int64_t w = column * p->stride[1] - p->pad[1] + b * p->dilation[1];
            if (w < 0 || w >= p->in[1]) continue;
            const uint8_t code = plane[h * p->in[1] + w] ^ p->flip;
            greatest = code > greatest ? code : greatest;
        }
    }
    return greatest ^ p->flip;
}

// Windows of 2 by 2 that tile the plane, as in most networks.
static bool is_halving(const max_pool *p) {
    for (int d = 0; d < 2; d++)
        if (p->kernel[d] != 2 || p->stride[d] != 2 || p->pad[d] != 0 || p->dilation[d] != 1 ||
            p->out[d] * 2 > p->in[d])
            return false;
    return true;
}

static void halve_plane(const max_pool *p, const uint8_t *plane, uint8_t *y) {
    const uint8_t flip = p->flip;
    for (int64_t h = 0; h < p->out[0]; h++) {
        const uint8_t *above = plane + 2 * h * p->in[1], *below = above + p->in[1];
        for (int64_t w = 0; w < p->out[1]; w++) {
            const uint8_t a = above[2 * w] ^ flip, b = above[2 * w + 1] ^ flip;
            const uint8_t c = below[2 * w] ^ flip, d = below[2 * w + 1] ^ flip;
            const uint8_t upper = a > b ? a : b, lower = c > d ? c : d;
            *y++ = (upper > lower ? upper : lower) ^ flip;
        }
    }
}

static tare_status pool_greatest(fast_context *context, void **state, op_call *call,
                                 bool *handled) {
    (void)context;
    (void)state;
    const tare_tensor *x = input(call, 0);
    tare_tensor *y = tare__call_out(call);
    max_pool p;
    if (!tare__is_byte_quantized(x) || y->count == 0 || y->q == NULL) return TARE_OK;
    TARE_TRY(read_max_pool(call, &p));
    const int64_t in_plane = p.in[0] * p.in[1], out_plane = p.out[0] * p.out[1];
    const bool halves = is_halving(&p);
    const uint8_t *from = x->data;
    uint8_t *to = y->data;
    for (int64_t i = 0; i < y->count / out_plane; i++, from += in_plane, to += out_plane) {
        if (halves) {
            halve_plane(&p, from, to);
            continue;
        }
        for (int64_t k = 0; k < out_plane; k++)
            to[k] = greatest_code(&p, from, k / p.out[1], k % p.out[1]);
    }
    *handled = true;
    return TARE_OK;
}

// --- adaptive_avg_pool2d: sums of codes are exact ---

static bool is_code_average(const op_call *call) {
    const tare_tensor *x = input(call, 0);
    return is_op(call, "adaptive_avg_pool2d") && x != NULL && tare__is_byte_quantized(x) &&
           x->ndim >= 2;
}

typedef struct average_pool {
    const tare_tensor *x;
    int64_t in[2], out[2];
    int64_t zero_point;
} average_pool;

// The code of one output element of a plane that begins at element `first`.
static uint8_t average_code(const average_pool *p, int64_t first, int64_t row, int64_t column) {
    const int64_t top = row * p->in[0] / p->out[0], left = column * p->in[1] / p->out[1];
    const int64_t bottom = ((row + 1) * p->in[0] + p->out[0] - 1) / p->out[0];
    const int64_t right = ((column + 1) * p->in[1] + p->out[1] - 1) / p->out[1];
    const int64_t count = (bottom - top) * (right - left);
    int64_t sum = 0;
    for (int64_t h = top; h < bottom; h++)
        for (int64_t w = left; w < right; w++)
            sum += tare__load_code(p->x, first + h * p->in[1] + w);
    const float mean = (float)(sum - count * p->zero_point) / (float)count;
    return (uint8_t)tare__quantize(mean, 1.0F, p->zero_point, p->x->q->quant_min,
                                   p->x->q->quant_max);
}

static tare_status pool_average(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)context;
    (void)state;
    const tare_tensor *x = input(call, 0), *y = tare__call_out(call);
    const int64_t *in = x->shape + x->ndim - 2, *out = y->shape + y->ndim - 2;
    // The reference adds floats: whole numbers below 2^24 are exact there too.
    const bool is_exact = in[0] <= 256 && in[1] <= 256;
    if (!tare__is_byte_quantized(x) || y->count == 0 || !is_exact) return TARE_OK;
    const average_pool p = {.x = x,
                            .in = {in[0], in[1]},
                            .out = {out[0], out[1]},
                            .zero_point = (int64_t)x->q->zero_point[0]};
    const int64_t plane = out[0] * out[1];
    for (int64_t i = 0; i < y->count; i++)
        ((uint8_t *)y->data)[i] =
            average_code(&p, i / plane * in[0] * in[1], i % plane / out[1], i % out[1]);
    *handled = true;
    return TARE_OK;
}

// --- table ---

static const fast_path code_paths[] = {
    {"quantize", is_quantize, quantize, NULL},
    {"dequantize", is_dequantize, dequantize, NULL},
    {"add", is_add, add, NULL},
    {"relu", is_code_relu, relu, NULL},
    {"max_pool2d", is_code_max_pool, pool_greatest, NULL},
    {"adaptive_avg_pool2d", is_code_average, pool_average, NULL},
};

const fast_path *tare__fast_path_find(const op_call *call) {
    if (tare__fast_layer.suits(call)) return &tare__fast_layer;
    for (size_t i = 0; i < sizeof code_paths / sizeof *code_paths; i++)
        if (code_paths[i].suits(call)) return &code_paths[i];
    return NULL;
}
