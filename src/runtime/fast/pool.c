// SPDX-License-Identifier: Apache-2.0
// Fast ways of pooling on codes, which are ordered as the values that they stand for.
#include <string.h>

#include "ops/memory_order.h"
#include "ops/op.h"
#include "ops/quantized/layer.h"
#include "runtime/fast/fast.h"

enum { KERNEL_SIZE = 1, STRIDE, PADDING, DILATION }; // max_pool2d's parameters

static bool is_code_max_pool(const op_call *call) {
    const tare_tensor *x = tare__fast_input(call, 0);
    return tare__fast_is_op(call, TARE_OP_MAX_POOL2D) && x != NULL && tare__is_byte_quantized(x);
}

typedef struct max_pool {
    int64_t kernel[2], stride[2], pad[2], dilation[2], in[2], out[2];
    uint8_t flip;     // signed codes become unsigned ones of the same order
    uint8_t least;    // code
    size_t line_size; // of a row of the input with its padding
    void (*raise)(bool is_signed, const uint8_t *x, size_t count, uint8_t *y);
} max_pool;

static tare_status read_max_pool(op_call *call, max_pool *p) {
    const tare_tensor *x = tare__fast_input(call, 0), *y = tare__call_out(call);
    TARE_TRY(tare__call_ints(call, KERNEL_SIZE, 2, 1, p->kernel));
    TARE_TRY(tare__call_ints(call, STRIDE, 2, 0, p->stride));
    TARE_TRY(tare__call_ints(call, PADDING, 2, 0, p->pad));
    TARE_TRY(tare__call_ints(call, DILATION, 2, 1, p->dilation));
    p->flip = x->dtype == TARE_QINT8 ? 0x80 : 0;
    p->least = (uint8_t)x->q->quant_min;
    for (int d = 0; d < 2; d++) {
        if (p->stride[d] == 0) p->stride[d] = p->kernel[d]; // torch: the default
        p->in[d] = x->shape[x->ndim - 2 + d];
        p->out[d] = y->shape[y->ndim - 2 + d];
    }
    const int64_t reached =
        (p->out[1] - 1) * p->stride[1] + (p->kernel[1] - 1) * p->dilation[1] + 1;
    p->line_size = (size_t)(reached > p->pad[1] + p->in[1] ? reached : p->pad[1] + p->in[1]);
    return TARE_OK;
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

// One row of outputs. `line` is the input's width with its padding: the greatest codes of each
// column of the window come first, then those of neighbouring columns; all of them for each place,
// which vectors do faster than only the places that are wanted.
static void pool_row(const max_pool *p, const uint8_t *plane, int64_t row, uint8_t *line,
                     uint8_t *y) {
    const bool is_signed = p->flip != 0;
    const size_t span = (size_t)((p->out[1] - 1) * p->stride[1] + 1);
    uint8_t *greatest = line + p->line_size;
    memset(line, p->least, p->line_size);
    for (int64_t a = 0; a < p->kernel[0]; a++) {
        const int64_t h = row * p->stride[0] - p->pad[0] + a * p->dilation[0];
        if (h >= 0 && h < p->in[0])
            p->raise(is_signed, plane + h * p->in[1], (size_t)p->in[1], line + p->pad[1]);
    }
    memcpy(greatest, line, span);
    for (int64_t b = 1; b < p->kernel[1]; b++)
        p->raise(is_signed, line + b * p->dilation[1], span, greatest);
    for (int64_t w = 0; w < p->out[1]; w++) y[w] = greatest[w * p->stride[1]];
}

static void pool_plane(const max_pool *p, const uint8_t *plane, uint8_t *line, uint8_t *y) {
    for (int64_t h = 0; h < p->out[0]; h++, y += p->out[1]) pool_row(p, plane, h, line, y);
}

static tare_status pool_greatest(fast_context *context, void **state, op_call *call,
                                 bool *handled) {
    (void)state;
    const tare_tensor *x = tare__fast_input(call, 0);
    tare_tensor *y = tare__call_out(call);
    max_pool p = {.raise = context->elementwise->raise};
    if (!tare__is_byte_quantized(x) || y->count == 0 || y->q == NULL) return TARE_OK;
    TARE_TRY(read_max_pool(call, &p));
    const int64_t in_plane = p.in[0] * p.in[1], out_plane = p.out[0] * p.out[1];
    const bool halves = is_halving(&p);
    uint8_t *line = tare__scratch_reserve(&context->space.memory, 2 * p.line_size);
    if (line == NULL) return tare__out_of_memory(call->err);
    const uint8_t *from = x->data;
    uint8_t *to = y->data;
    for (int64_t i = 0; i < y->count / out_plane; i++, from += in_plane, to += out_plane) {
        if (halves)
            halve_plane(&p, from, to);
        else
            pool_plane(&p, from, line, to);
    }
    *handled = true;
    return TARE_OK;
}

const fast_path tare__fast_max_pool = {"max_pool2d", is_code_max_pool, pool_greatest, NULL};

// --- adaptive_avg_pool2d: sums of codes are exact ---

static bool is_code_average(const op_call *call) {
    const tare_tensor *x = tare__fast_input(call, 0);
    return tare__fast_is_op(call, TARE_OP_ADAPTIVE_AVG_POOL2D) && x != NULL &&
           tare__is_byte_quantized(x) && x->ndim >= 2;
}

bool tare__average_is_exact(const tare_tensor *x) {
    // The reference adds floats: whole numbers below 2^24 are exact there too.
    return x->shape[x->ndim - 2] <= 256 && x->shape[x->ndim - 1] <= 256;
}

average_rule tare__average_rule_of(const op_call *call, const tare_tensor *x) {
    return (average_rule){.zero_point = (int64_t)x->q->zero_point[0],
                          .least = x->q->quant_min,
                          .most = x->q->quant_max,
                          .rounds_with_zero_point = tare__rounds_with_zero_point(call, x)};
}

uint8_t tare__average_code(const average_rule *r, int64_t sum, int64_t count) {
    const float mean = (float)(sum - count * r->zero_point) / (float)count;
    if (r->rounds_with_zero_point)
        return (uint8_t)tare__quantize(mean + (float)r->zero_point, 1.0F, 0, r->least, r->most);
    return (uint8_t)tare__quantize(mean, 1.0F, r->zero_point, r->least, r->most);
}

code_average tare__code_average_of(const average_rule *r, int64_t count, double divisor) {
    const bool before = r->rounds_with_zero_point;
    return (code_average){.divisor = (float)divisor,
                          .less = (int32_t)(count * r->zero_point),
                          .before = before ? (float)r->zero_point : 0.0F,
                          .after = before ? 0 : (int32_t)r->zero_point,
                          .least = (int32_t)r->least,
                          .most = (int32_t)r->most};
}

typedef struct average_pool {
    const tare_tensor *x;
    int64_t in[2], out[2];
    average_rule rule;
} average_pool;

static int64_t sum_of_codes(const tare_tensor *x, int64_t first, int64_t count) {
    const uint8_t *codes = (const uint8_t *)x->data + first;
    const uint8_t flip = x->dtype == TARE_QINT8 ? 0x80 : 0; // signed codes are 128 less
    uint32_t sum = 0;
    for (int64_t i = 0; i < count; i++) sum += codes[i] ^ flip;
    return (int64_t)sum - (flip != 0 ? 128 * count : 0);
}

// The code of one output element of a plane that begins at element `first`.
static uint8_t average_code(const average_pool *p, int64_t first, int64_t row, int64_t column) {
    const int64_t top = row * p->in[0] / p->out[0], left = column * p->in[1] / p->out[1];
    const int64_t bottom = ((row + 1) * p->in[0] + p->out[0] - 1) / p->out[0];
    const int64_t right = ((column + 1) * p->in[1] + p->out[1] - 1) / p->out[1];
    const int64_t count = (bottom - top) * (right - left);
    // A window of whole rows is one row.
    const bool is_whole = left == 0 && right == p->in[1];
    const int64_t rows = is_whole ? 1 : bottom - top, width = is_whole ? count : right - left;
    const int64_t start = first + top * p->in[1] + left;
    int64_t sum = 0;
    for (int64_t h = 0; h < rows; h++) sum += sum_of_codes(p->x, start + h * p->in[1], width);
    return tare__average_code(&p->rule, sum, count);
}

static tare_status pool_average(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)context;
    (void)state;
    const tare_tensor *x = tare__fast_input(call, 0), *y = tare__call_out(call);
    const int64_t *in = x->shape + x->ndim - 2, *out = y->shape + y->ndim - 2;
    if (!tare__is_byte_quantized(x) || y->count == 0 || !tare__average_is_exact(x)) return TARE_OK;
    const average_pool p = {.x = x,
                            .in = {in[0], in[1]},
                            .out = {out[0], out[1]},
                            .rule = tare__average_rule_of(call, x)};
    const int64_t plane = out[0] * out[1];
    for (int64_t i = 0; i < y->count; i++)
        ((uint8_t *)y->data)[i] =
            average_code(&p, i / plane * in[0] * in[1], i % plane / out[1], i % out[1]);
    *handled = true;
    return TARE_OK;
}

const fast_path tare__fast_average_pool = {"adaptive_avg_pool2d", is_code_average, pool_average,
                                           NULL};
