// SPDX-License-Identifier: Apache-2.0
// The epilogue of the Arm kernels: rules F, O and Q of core/math/requant.h on 16 sums at once.
// Bounds are applied to the float, which equals clamping the quantized value, also for NaN.
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_QU8_NEON_H
#define RUNTIME_KERNELS_QU8_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <string.h>

#include "core/math/requant.h"

enum { NEON_QUADS = 4, NEON_LANES = 16 };

/// Sums modulo 2^32 of 16 channels.
typedef struct neon_sums {
    uint32x4_t v[NEON_QUADS];
} neon_sums;
typedef struct neon_floats {
    float32x4_t v[NEON_QUADS];
} neon_floats;

typedef struct epilogue_constants {
    bool is_o;
    float32x4_t inverse, zero_point_float; // rule O
    float32x4_t low, high;                 // for the float before rounding
    int32x4_t zero_point;                  // added after rounding
} epilogue_constants;

static inline epilogue_constants epilogue_constants_of(const requant *r) {
    const bool is_o = r->rule == REQUANT_O;
    const int32_t shift = is_o ? 0 : r->zero_point;
    return (epilogue_constants){
        .is_o = is_o,
        .inverse = vdupq_n_f32(r->inverse),
        .zero_point_float = vdupq_n_f32((float)r->zero_point),
        .low = vdupq_n_f32((float)(r->lo - shift)),
        .high = vdupq_n_f32((float)(r->hi - shift)),
        .zero_point = vdupq_n_s32(shift),
    };
}

// min(max(x, low), high); if x is NaN, the bound.
static inline float32x4_t bounded_quad(float32x4_t x, float32x4_t low, float32x4_t high) {
    return vminnmq_f32(vmaxnmq_f32(x, low), high);
}

// rint(bounded) + zero_point, in 16 bits.
static inline int16x4_t round_quad(float32x4_t bounded, int32x4_t zero_point) {
    return vmovn_s32(vaddq_s32(vcvtnq_s32_f32(bounded), zero_point));
}

// The same for 16 lanes as bytes; quantized values fit, signed or not.
static inline uint8x16_t round_to_quantized(neon_floats bounded, int32x4_t zero_point) {
    const int16x8_t low =
        vcombine_s16(round_quad(bounded.v[0], zero_point), round_quad(bounded.v[1], zero_point));
    const int16x8_t high =
        vcombine_s16(round_quad(bounded.v[2], zero_point), round_quad(bounded.v[3], zero_point));
    return vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}

static inline float32x4_t float_of_quad(uint32x4_t sums) {
    return vcvtq_f32_s32(vreinterpretq_s32_u32(sums));
}

// The values of rule O.
static inline neon_floats real_lanes(neon_sums acc, neon_floats multiplier, neon_floats bias) {
    neon_floats out;
    for (size_t i = 0; i < NEON_QUADS; i++)
        out.v[i] = vaddq_f32(vmulq_f32(float_of_quad(acc.v[i]), multiplier.v[i]), bias.v[i]);
    return out;
}

// The same, rounded once.
static inline neon_floats fused_lanes(neon_sums acc, neon_floats multiplier, neon_floats bias) {
    neon_floats out;
    for (size_t i = 0; i < NEON_QUADS; i++)
        out.v[i] = vfmaq_f32(bias.v[i], float_of_quad(acc.v[i]), multiplier.v[i]);
    return out;
}

// The float that rules F and Q round.
static inline neon_floats scaled_lanes(neon_sums acc, neon_floats multiplier, neon_floats bias) {
    neon_floats out;
    for (size_t i = 0; i < NEON_QUADS; i++)
        out.v[i] = vmulq_f32(vaddq_f32(float_of_quad(acc.v[i]), bias.v[i]), multiplier.v[i]);
    return out;
}

// The last step of rule O before rounding.
static inline neon_floats scale_values(const epilogue_constants *k, neon_floats real) {
    for (size_t i = 0; i < NEON_QUADS; i++)
        real.v[i] = vaddq_f32(vmulq_f32(real.v[i], k->inverse), k->zero_point_float);
    return real;
}

static inline uint8x16_t bound_and_round(const epilogue_constants *k, neon_floats scaled) {
    for (size_t i = 0; i < NEON_QUADS; i++)
        scaled.v[i] = bounded_quad(scaled.v[i], k->low, k->high);
    return round_to_quantized(scaled, k->zero_point);
}

static inline uint8x16_t requantize_lanes(const epilogue_constants *k, neon_sums acc,
                                          neon_floats multiplier, neon_floats bias) {
    return bound_and_round(k, k->is_o ? scale_values(k, real_lanes(acc, multiplier, bias))
                                      : scaled_lanes(acc, multiplier, bias));
}

// tare__requantize_sum for 16 sums; `other`: the addend's quantized values minus their zero point.
static inline uint8x16_t requantize_with(const epilogue_constants *k, neon_sums acc,
                                         neon_floats multiplier, neon_floats bias,
                                         neon_floats other, float factor) {
    neon_floats scaled =
        k->is_o ? real_lanes(acc, multiplier, bias) : scaled_lanes(acc, multiplier, bias);
    for (size_t i = 0; i < NEON_QUADS; i++)
        scaled.v[i] = k->is_o ? vaddq_f32(scaled.v[i], vmulq_n_f32(other.v[i], factor))
                              : vfmaq_n_f32(scaled.v[i], other.v[i], factor);
    return bound_and_round(k, k->is_o ? scale_values(k, scaled) : scaled);
}

/// 16 quantized values as int32, minus the zero point.
typedef struct neon_quantized {
    int32x4_t v[NEON_QUADS];
} neon_quantized;

static inline neon_quantized widen_lanes(bool is_signed, uint8x16_t quantized, int32_t zero_point) {
    // Signed values are widened as unsigned ones that are 128 greater.
    const uint8x16_t as_unsigned = veorq_u8(quantized, vdupq_n_u8(is_signed ? 0x80 : 0));
    const int32x4_t less = vdupq_n_s32(zero_point + (is_signed ? 128 : 0));
    const uint16x8_t low = vmovl_u8(vget_low_u8(as_unsigned)),
                     high = vmovl_u8(vget_high_u8(as_unsigned));
    const uint32x4_t wide[NEON_QUADS] = {
        vmovl_u16(vget_low_u16(low)), vmovl_u16(vget_high_u16(low)), vmovl_u16(vget_low_u16(high)),
        vmovl_u16(vget_high_u16(high))};
    neon_quantized out;
    for (size_t i = 0; i < NEON_QUADS; i++)
        out.v[i] = vsubq_s32(vreinterpretq_s32_u32(wide[i]), less);
    return out;
}

// Quantized values minus the zero point.
static inline neon_floats centered_lanes(bool is_signed, int32_t zero_point, uint8x16_t quantized) {
    const neon_quantized wide = widen_lanes(is_signed, quantized, zero_point);
    neon_floats out;
    for (size_t i = 0; i < NEON_QUADS; i++) out.v[i] = vcvtq_f32_s32(wide.v[i]);
    return out;
}

// Dequantizes.
static inline neon_floats dequantize_lanes(bool is_signed, int32_t zero_point, float scale,
                                           uint8x16_t quantized) {
    neon_floats out = centered_lanes(is_signed, zero_point, quantized);
    for (size_t i = 0; i < NEON_QUADS; i++) out.v[i] = vmulq_n_f32(out.v[i], scale);
    return out;
}

// rint(x * factor) + zero_point between lo and hi.
static inline uint8x16_t scale_to_quantized(neon_floats x, float factor, int32_t lo, int32_t hi,
                                            int32_t zero_point) {
    const float32x4_t low = vdupq_n_f32((float)(lo - zero_point));
    const float32x4_t high = vdupq_n_f32((float)(hi - zero_point));
    for (size_t i = 0; i < NEON_QUADS; i++)
        x.v[i] = bounded_quad(vmulq_n_f32(x.v[i], factor), low, high);
    return round_to_quantized(x, vdupq_n_s32(zero_point));
}

// tare__native_add_quantized for 16 quantized values.
static inline uint8x16_t add_lanes(const native_add *op, bool is_signed, uint8x16_t a,
                                   uint8x16_t b) {
    const neon_floats da = dequantize_lanes(is_signed, op->zero_a, op->scale_a, a);
    neon_floats sum = dequantize_lanes(is_signed, op->zero_b, op->scale_b, b);
    for (size_t i = 0; i < NEON_QUADS; i++) sum.v[i] = vaddq_f32(da.v[i], sum.v[i]);
    return scale_to_quantized(sum, op->inverse, op->lo, op->hi, op->zero_point);
}

// Loads the first `count` of 16; the others are zero.
static inline neon_floats load_floats(const float *x, size_t count) {
    float floats[NEON_LANES] = {0};
    neon_floats out;
    if (count < NEON_LANES) memcpy(floats, x, count * sizeof *x);
    const float *from = count < NEON_LANES ? floats : x;
    for (size_t i = 0; i < NEON_QUADS; i++) out.v[i] = vld1q_f32(from + 4 * i);
    return out;
}

static inline void store_floats(float *y, size_t count, neon_floats real) {
    float floats[NEON_LANES];
    float *to = count < NEON_LANES ? floats : y;
    for (size_t i = 0; i < NEON_QUADS; i++) vst1q_f32(to + 4 * i, real.v[i]);
    if (count < NEON_LANES) memcpy(y, floats, count * sizeof *y);
}

static inline uint8x16_t load_quantized(const uint8_t *x, size_t count) {
    uint8_t bytes[NEON_LANES] = {0};
    if (count >= NEON_LANES) return vld1q_u8(x);
    memcpy(bytes, x, count);
    return vld1q_u8(bytes);
}

static inline void store_quantized(uint8_t *y, size_t count, uint8x16_t quantized) {
    uint8_t bytes[NEON_LANES];
    if (count >= NEON_LANES) {
        vst1q_u8(y, quantized);
        return;
    }
    vst1q_u8(bytes, quantized);
    memcpy(y, bytes, count);
}

#endif
