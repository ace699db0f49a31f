// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Elementwise kernels in plain C. Bounds are applied to the float, which equals clamping the
// quantized value, also for NaN.
#include "runtime/kernels/elementwise.h"

#include <string.h>

#include "runtime/kernels/qu8_scalar.h"

static int32_t quantized_at(bool is_signed, const uint8_t *x, size_t i) {
    return is_signed ? (int8_t)x[i] : x[i];
}

void qu8_quantize__scalar(const quantized_scheme *s, const float *x, size_t count, uint8_t *y) {
    const float low = (float)(s->least - s->zero_point), high = (float)(s->most - s->zero_point);
    for (size_t i = 0; i < count; i++) {
        // The upper bound first, because NaN becomes the highest quantized value.
        const float bounded = at_least(at_most(x[i] * s->inverse, high), low);
        y[i] = (uint8_t)((int32_t)round_small(bounded) + s->zero_point);
    }
}

void qu8_dequantize__scalar(const quantized_scheme *s, const uint8_t *x, size_t count, float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = tare__dequantize(quantized_at(s->is_signed, x, i), s->zero_point, s->scale);
}

void qu8_add__scalar(const native_add *op, bool is_signed, const uint8_t *a, const uint8_t *b,
                     size_t count, uint8_t *y) {
    const float low = (float)(op->lo - op->zero_point), high = (float)(op->hi - op->zero_point);
    for (size_t i = 0; i < count; i++) {
        const float da = (float)(quantized_at(is_signed, a, i) - op->zero_a) * op->scale_a;
        const float db = (float)(quantized_at(is_signed, b, i) - op->zero_b) * op->scale_b;
        const float bounded = at_most(at_least((da + db) * op->inverse, low), high);
        y[i] = (uint8_t)((int32_t)round_small(bounded) + op->zero_point);
    }
}

void qu8_mul__scalar(const quantized_mul *op, bool is_signed, const uint8_t *a, const uint8_t *b,
                     size_t count, uint8_t *y) {
    const float low = (float)(op->lo - op->zero_point), high = (float)(op->hi - op->zero_point);
    for (size_t i = 0; i < count; i++) {
        const int32_t product = (quantized_at(is_signed, a, i) - op->zero_a) *
                                (quantized_at(is_signed, b, i) - op->zero_b);
        const float bounded = at_most(at_least((float)product * op->multiplier, low), high);
        y[i] = (uint8_t)((int32_t)round_small(bounded) + op->zero_point);
    }
}

void qu8_sum__scalar(bool is_signed, const uint8_t *x, size_t count, int32_t *sums) {
    for (size_t i = 0; i < count; i++) sums[i] += quantized_at(is_signed, x, i);
}

void qu8_look_up__scalar(const uint8_t table[256], const uint8_t *x, size_t count, uint8_t *y) {
    for (size_t i = 0; i < count; i++) y[i] = table[x[i]];
}

static void qu8_max(bool is_signed, const uint8_t *x, size_t count, uint8_t *y) {
    for (size_t i = 0; i < count; i++)
        if (quantized_at(is_signed, x, i) > quantized_at(is_signed, y, i)) y[i] = x[i];
}

void qu8_greatest__scalar(const quantized_windows *w, const uint8_t *x, uint8_t *y) {
    for (size_t n = 0; n < w->windows; n++, x += w->x_step, y += w->y_step) {
        memcpy(y, x, w->count);
        for (size_t a = 0; a < w->taps[0]; a++)
            for (size_t b = a == 0; b < w->taps[1]; b++)
                qu8_max(w->is_signed, x + a * w->tap_stride[0] + b * w->tap_stride[1], w->count, y);
    }
}

// Pixel by pixel; `planes` is a constant in common cases: compilers vectorize two and four.
static inline __attribute__((always_inline)) void
interleave_pixels(const uint8_t *x, size_t stride, size_t planes, size_t count, uint8_t *y) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < planes; k++) y[i * planes + k] = x[k * stride + i];
}

// Four pixels of three planes at a time, as words.
static void interleave_three(const uint8_t *x, size_t stride, size_t count, uint8_t *y) {
    size_t i = 0;
#if defined __BYTE_ORDER__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; i + 4 <= count; i += 4) {
        uint32_t r, g, b;
        memcpy(&r, x + i, sizeof r);
        memcpy(&g, x + stride + i, sizeof g);
        memcpy(&b, x + 2 * stride + i, sizeof b);
        const uint32_t w0 = (r & 0xFF) | (g & 0xFF) << 8 | (b & 0xFF) << 16 | (r & 0xFF00) << 16;
        const uint32_t w1 = (g >> 8 & 0xFF) | (b & 0xFF00) | (r & 0xFF0000) | (g & 0xFF0000) << 8;
        const uint32_t w2 =
            (b >> 16 & 0xFF) | (r >> 16 & 0xFF00) | (g >> 8 & 0xFF0000) | (b & 0xFF000000);
        memcpy(y + 3 * i, &w0, sizeof w0);
        memcpy(y + 3 * i + 4, &w1, sizeof w1);
        memcpy(y + 3 * i + 8, &w2, sizeof w2);
    }
#endif
    interleave_pixels(x + i, stride, 3, count - i, y + 3 * i);
}

void qu8_interleave__scalar(const uint8_t *x, size_t stride, size_t planes, size_t count,
                            uint8_t *y) {
    switch (planes) {
    case 1:
        memcpy(y, x, count);
        break;
    case 2:
        interleave_pixels(x, stride, 2, count, y);
        break;
    case 3:
        interleave_three(x, stride, count, y);
        break;
    case 4:
        interleave_pixels(x, stride, 4, count, y);
        break;
    default:
        interleave_pixels(x, stride, planes, count, y);
    }
}

void qu8_affine__scalar(const quantized_scheme *from, const quantized_scheme *to, const uint8_t *x,
                        const float *scale, const float *shift, size_t count, uint8_t *y) {
    const float low = (float)(to->least - to->zero_point);
    const float high = (float)(to->most - to->zero_point);
    for (size_t i = 0; i < count; i++) {
        const float real =
            tare__dequantize(quantized_at(from->is_signed, x, i), from->zero_point, from->scale);
        const float product = real * scale[i];
        // The upper bound first, because NaN becomes the highest quantized value.
        const float bounded = at_least(at_most((product + shift[i]) * to->inverse, high), low);
        y[i] = (uint8_t)((int32_t)round_small(bounded) + to->zero_point);
    }
}

void qu8_average__scalar(const quantized_average *a, const int32_t *sums, size_t count,
                         uint8_t *y) {
    const float low = (float)(a->least - a->after), high = (float)(a->most - a->after);
    for (size_t i = 0; i < count; i++) {
        const float mean = (float)(sums[i] - a->less) / a->divisor;
        const float bounded = at_most(at_least(mean + a->before, low), high);
        y[i] = (uint8_t)((int32_t)round_small(bounded) + a->after);
    }
}

void qu8_blend__scalar(const quantized_blend *b, size_t count, uint8_t *y) {
    const float low = (float)(b->least - b->zero_point), high = (float)(b->most - b->zero_point);
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (size_t k = 0; k < b->rows; k++) {
            const float term =
                b->weight[k] * (float)(quantized_at(b->is_signed, b->x[k], i) - b->zero_point);
            sum += term;
        }
        const float bounded = at_most(at_least(sum, low), high);
        y[i] = (uint8_t)((int32_t)round_small(bounded) + b->zero_point);
    }
}

void qu8_expand__scalar(bool is_signed, float scale, float bias, const uint8_t *x, size_t count,
                        float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = tare__dequantize_embedding(quantized_at(is_signed, x, i), scale, bias);
}
