// SPDX-License-Identifier: Apache-2.0
// Vectors of four floats, with NEON. core/math/vector_scalar.h defines the operations.
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_F32_NEON_H
#define RUNTIME_KERNELS_F32_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WIDTH = 4 };
typedef float32x4_t vec;
typedef uint32x4_t vmask;

static inline vmask v_first(size_t count) {
    static const uint32_t at[WIDTH] = {0, 1, 2, 3};
    return vcgtq_u32(vdupq_n_u32((uint32_t)count), vld1q_u32(at));
}

static inline vec v_set(float a) {
    return vdupq_n_f32(a);
}
static inline vec v_load(const float *x) {
    return vld1q_f32(x);
}
static inline void v_store(float *y, vec a) {
    vst1q_f32(y, a);
}
static inline vec v_load_first(const float *x, size_t count) {
    float buffer[WIDTH] = {0};
    memcpy(buffer, x, count * sizeof *x);
    return vld1q_f32(buffer);
}
static inline void v_store_first(float *y, vec a, size_t count) {
    float buffer[WIDTH];
    vst1q_f32(buffer, a);
    memcpy(y, buffer, count * sizeof *y);
}
static inline vec v_keep(vec a, size_t count) {
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a), v_first(count)));
}

static inline vec v_add(vec a, vec b) {
    return vaddq_f32(a, b);
}
static inline vec v_sub(vec a, vec b) {
    return vsubq_f32(a, b);
}
static inline vec v_mul(vec a, vec b) {
    return vmulq_f32(a, b);
}
static inline vec v_div(vec a, vec b) {
    return vdivq_f32(a, b);
}
static inline vec v_fma(vec a, vec b, vec c) {
    return vfmaq_f32(c, a, b);
}
static inline vec v_sqrt(vec a) {
    return vsqrtq_f32(a);
}
// NEON's own maximum treats signed zeros and NaN differently.
static inline vec v_max(vec a, vec b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
static inline vec v_min(vec a, vec b) {
    return vbslq_f32(vcltq_f32(a, b), a, b);
}
static inline vec v_abs(vec a) {
    return vabsq_f32(a);
}
static inline vec v_with_sign(vec size, vec sign) {
    return vbslq_f32(vdupq_n_u32(0x80000000U), sign, size);
}

static inline vmask v_less(vec a, vec b) {
    return vcltq_f32(a, b);
}
static inline vmask v_is_nan(vec a) {
    return vmvnq_u32(vceqq_f32(a, a));
}
static inline vec v_blend(vmask mask, vec yes, vec no) {
    return vbslq_f32(mask, yes, no);
}

static inline vec v_power(vec shifted) {
    const uint32x4_t bits = vshlq_n_u32(vreinterpretq_u32_f32(shifted), 23);
    return vreinterpretq_f32_u32(vaddq_u32(bits, vdupq_n_u32(0x3f800000U)));
}

static inline float v_fold(vec a) {
    const float32x2_t half = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(half, 0) + vget_lane_f32(half, 1);
}
static inline float v_fold_max(vec a) {
    const float32x2_t low = vget_low_f32(a), high = vget_high_f32(a);
    const float32x2_t half = vbsl_f32(vcgt_f32(low, high), low, high);
    const float first = vget_lane_f32(half, 0), second = vget_lane_f32(half, 1);
    return first > second ? first : second;
}

#endif
