// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Elementwise kernels with NEON, sixteen elements at a time; the scalar ones compute the remainder.
#include "runtime/kernels/elementwise.h"

#include "runtime/kernels/qu8_neon.h"

enum { SLICE_ENTRIES = 64, TABLE_SLICES = 4 };

void qu8_quantize__neon(const quantized_scheme *s, const float *x, size_t count, uint8_t *y) {
    const float32x4_t low = vdupq_n_f32((float)(s->least - s->zero_point));
    const float32x4_t high = vdupq_n_f32((float)(s->most - s->zero_point));
    const int32x4_t zero_point = vdupq_n_s32(s->zero_point);
    size_t i = 0;
    for (; i + NEON_LANES <= count; i += NEON_LANES) {
        neon_floats v = load_floats(x + i, NEON_LANES);
        for (size_t k = 0; k < NEON_QUADS; k++) {
            const float32x4_t scaled = vmulq_n_f32(v.v[k], s->inverse);
            // The minimum first: for NaN it returns the bound, the highest quantized value.
            v.v[k] = vmaxnmq_f32(vminnmq_f32(scaled, high), low);
        }
        vst1q_u8(y + i, round_to_quantized(v, zero_point));
    }
    qu8_quantize__scalar(s, x + i, count - i, y + i);
}

void qu8_dequantize__neon(const quantized_scheme *s, const uint8_t *x, size_t count, float *y) {
    size_t i = 0;
    for (; i + NEON_LANES <= count; i += NEON_LANES)
        store_floats(y + i, NEON_LANES,
                     dequantize_lanes(s->is_signed, s->zero_point, s->scale, vld1q_u8(x + i)));
    qu8_dequantize__scalar(s, x + i, count - i, y + i);
}

void qu8_add__neon(const native_add *op, bool is_signed, const uint8_t *a, const uint8_t *b,
                   size_t count, uint8_t *y) {
    size_t i = 0;
    for (; i + NEON_LANES <= count; i += NEON_LANES)
        vst1q_u8(y + i, add_lanes(op, is_signed, vld1q_u8(a + i), vld1q_u8(b + i)));
    qu8_add__scalar(op, is_signed, a + i, b + i, count - i, y + i);
}

void qu8_mul__neon(const quantized_mul *op, bool is_signed, const uint8_t *a, const uint8_t *b,
                   size_t count, uint8_t *y) {
    size_t i = 0;
    for (; i + NEON_LANES <= count; i += NEON_LANES) {
        const neon_quantized ca = widen_lanes(is_signed, vld1q_u8(a + i), op->zero_a);
        const neon_quantized cb = widen_lanes(is_signed, vld1q_u8(b + i), op->zero_b);
        neon_floats products;
        for (size_t k = 0; k < NEON_QUADS; k++)
            products.v[k] = vcvtq_f32_s32(vmulq_s32(ca.v[k], cb.v[k]));
        vst1q_u8(y + i,
                 scale_to_quantized(products, op->multiplier, op->lo, op->hi, op->zero_point));
    }
    qu8_mul__scalar(op, is_signed, a + i, b + i, count - i, y + i);
}

void qu8_sum__neon(bool is_signed, const uint8_t *x, size_t count, int32_t *sums) {
    size_t i = 0;
    for (; i + NEON_LANES <= count; i += NEON_LANES) {
        const neon_quantized quantized = widen_lanes(is_signed, vld1q_u8(x + i), 0);
        for (size_t k = 0; k < NEON_QUADS; k++)
            vst1q_s32(sums + i + 4 * k, vaddq_s32(vld1q_s32(sums + i + 4 * k), quantized.v[k]));
    }
    qu8_sum__scalar(is_signed, x + i, count - i, sums + i);
}

// A quarter of the table at a time: indices outside of it leave the previous result.
void qu8_look_up__neon(const uint8_t table[256], const uint8_t *x, size_t count, uint8_t *y) {
    uint8x16x4_t slices[TABLE_SLICES];
    for (size_t k = 0; k < TABLE_SLICES; k++)
        for (size_t j = 0; j < 4; j++)
            slices[k].val[j] = vld1q_u8(table + SLICE_ENTRIES * k + 16 * j);
    size_t i = 0;
    for (; i + NEON_LANES <= count; i += NEON_LANES) {
        uint8x16_t q = vld1q_u8(x + i), found = vqtbl4q_u8(slices[0], q);
        for (size_t k = 1; k < TABLE_SLICES; k++) {
            q = vsubq_u8(q, vdupq_n_u8(SLICE_ENTRIES));
            found = vqtbx4q_u8(found, slices[k], q);
        }
        vst1q_u8(y + i, found);
    }
    qu8_look_up__scalar(table, x + i, count - i, y + i);
}

static inline void greatest_quantized(const quantized_windows *w, const uint8_t *x, uint8_t *y) {
    const uint8x16_t flip =
        vdupq_n_u8(w->is_signed ? 0x80 : 0); // converts to unsigned values in the same order
    uint8x16_t best = vdupq_n_u8(0);
    for (size_t a = 0; a < w->taps[0]; a++)
        for (size_t b = 0; b < w->taps[1]; b++) {
            const uint8x16_t quantized = vld1q_u8(x + a * w->tap_stride[0] + b * w->tap_stride[1]);
            best = vmaxq_u8(best, veorq_u8(quantized, flip));
        }
    vst1q_u8(y, veorq_u8(best, flip));
}

void qu8_greatest__neon(const quantized_windows *w, const uint8_t *x, uint8_t *y) {
    if (w->count < NEON_LANES) {
        qu8_greatest__scalar(w, x, y);
        return;
    }
    for (size_t n = 0; n < w->windows; n++, x += w->x_step, y += w->y_step)
        for (size_t i = 0; i < w->count; i += NEON_LANES) {
            // The last vector may overlap the one before.
            const size_t at = i + NEON_LANES <= w->count ? i : w->count - NEON_LANES;
            greatest_quantized(w, x + at, y + at);
        }
}

void qu8_interleave__neon(const uint8_t *x, size_t stride, size_t planes, size_t count,
                          uint8_t *y) {
    size_t i = 0;
    if (planes == 3)
        for (; i + NEON_LANES <= count; i += NEON_LANES) {
            const uint8x16x3_t v = {
                {vld1q_u8(x + i), vld1q_u8(x + stride + i), vld1q_u8(x + 2 * stride + i)}};
            vst3q_u8(y + 3 * i, v);
        }
    qu8_interleave__scalar(x + i, stride, planes, count - i, y + planes * i);
}

void qu8_affine__neon(const quantized_scheme *from, const quantized_scheme *to, const uint8_t *x,
                      const float *scale, const float *shift, size_t count, uint8_t *y) {
    const float32x4_t low = vdupq_n_f32((float)(to->least - to->zero_point));
    const float32x4_t high = vdupq_n_f32((float)(to->most - to->zero_point));
    size_t i = 0;
    for (; i + NEON_LANES <= count; i += NEON_LANES) {
        neon_floats v =
            dequantize_lanes(from->is_signed, from->zero_point, from->scale, vld1q_u8(x + i));
        for (size_t k = 0; k < NEON_QUADS; k++) {
            const float32x4_t product = vmulq_f32(v.v[k], vld1q_f32(scale + i + 4 * k));
            const float32x4_t moved = vaddq_f32(product, vld1q_f32(shift + i + 4 * k));
            // The minimum first: for NaN it returns the bound, the highest quantized value.
            v.v[k] = vmaxnmq_f32(vminnmq_f32(vmulq_n_f32(moved, to->inverse), high), low);
        }
        vst1q_u8(y + i, round_to_quantized(v, vdupq_n_s32(to->zero_point)));
    }
    qu8_affine__scalar(from, to, x + i, scale + i, shift + i, count - i, y + i);
}

void qu8_average__neon(const quantized_average *a, const int32_t *sums, size_t count, uint8_t *y) {
    const float32x4_t divisor = vdupq_n_f32(a->divisor), before = vdupq_n_f32(a->before);
    const float32x4_t low = vdupq_n_f32((float)(a->least - a->after));
    const float32x4_t high = vdupq_n_f32((float)(a->most - a->after));
    const int32x4_t less = vdupq_n_s32(a->less);
    size_t i = 0;
    for (; i + NEON_LANES <= count; i += NEON_LANES) {
        neon_floats v;
        for (size_t k = 0; k < NEON_QUADS; k++) {
            const int32x4_t sum = vsubq_s32(vld1q_s32(sums + i + 4 * k), less);
            const float32x4_t mean = vdivq_f32(vcvtq_f32_s32(sum), divisor);
            v.v[k] = bounded_quad(vaddq_f32(mean, before), low, high);
        }
        vst1q_u8(y + i, round_to_quantized(v, vdupq_n_s32(a->after)));
    }
    qu8_average__scalar(a, sums + i, count - i, y + i);
}

void qu8_blend__neon(const quantized_blend *b, size_t count, uint8_t *y) {
    size_t i = 0;
    for (; i + NEON_LANES <= count; i += NEON_LANES) {
        neon_floats sum;
        for (size_t q = 0; q < NEON_QUADS; q++) sum.v[q] = vdupq_n_f32(0);
        for (size_t k = 0; k < b->rows; k++) {
            const neon_floats real =
                dequantize_lanes(b->is_signed, b->zero_point, 1.0F, vld1q_u8(b->x[k] + i));
            for (size_t q = 0; q < NEON_QUADS; q++)
                sum.v[q] = vaddq_f32(sum.v[q], vmulq_n_f32(real.v[q], b->weight[k]));
        }
        vst1q_u8(y + i, scale_to_quantized(sum, 1.0F, b->least, b->most, b->zero_point));
    }
    quantized_blend rest = *b;
    for (size_t k = 0; k < b->rows; k++) rest.x[k] += i;
    qu8_blend__scalar(&rest, count - i, y + i);
}

void qu8_expand__neon(bool is_signed, float scale, float bias, const uint8_t *x, size_t count,
                      float *y) {
    const float32x4_t more = vdupq_n_f32(bias);
    size_t i = 0;
    for (; i + NEON_LANES <= count; i += NEON_LANES) {
        const neon_quantized quantized = widen_lanes(is_signed, vld1q_u8(x + i), 0);
        for (size_t k = 0; k < NEON_QUADS; k++)
            vst1q_f32(y + i + 4 * k, vfmaq_n_f32(more, vcvtq_f32_s32(quantized.v[k]), scale));
    }
    qu8_expand__scalar(is_signed, scale, bias, x + i, count - i, y + i);
}
