// SPDX-License-Identifier: Apache-2.0
// Vectors of sixteen floats, with AVX-512 F and DQ. core/math/vector_scalar.h defines the
// operations.
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_F32_AVX512_H
#define RUNTIME_KERNELS_F32_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum { WIDTH = 16 };
typedef __m512 vec;
typedef __mmask16 vmask;

static inline vmask v_first(size_t count) {
    return (vmask)((1U << count) - 1);
}

static inline vec v_set(float a) {
    return _mm512_set1_ps(a);
}
static inline vec v_load(const float *x) {
    return _mm512_loadu_ps(x);
}
static inline void v_store(float *y, vec a) {
    _mm512_storeu_ps(y, a);
}
static inline vec v_load_first(const float *x, size_t count) {
    return _mm512_maskz_loadu_ps(v_first(count), x);
}
static inline void v_store_first(float *y, vec a, size_t count) {
    _mm512_mask_storeu_ps(y, v_first(count), a);
}
static inline vec v_keep(vec a, size_t count) {
    return _mm512_maskz_mov_ps(v_first(count), a);
}

static inline vec v_add(vec a, vec b) {
    return _mm512_add_ps(a, b);
}
static inline vec v_sub(vec a, vec b) {
    return _mm512_sub_ps(a, b);
}
static inline vec v_mul(vec a, vec b) {
    return _mm512_mul_ps(a, b);
}
static inline vec v_div(vec a, vec b) {
    return _mm512_div_ps(a, b);
}
static inline vec v_fma(vec a, vec b, vec c) {
    return _mm512_fmadd_ps(a, b, c);
}
static inline vec v_sqrt(vec a) {
    return _mm512_sqrt_ps(a);
}
static inline vec v_max(vec a, vec b) {
    return _mm512_max_ps(a, b);
}
static inline vec v_min(vec a, vec b) {
    return _mm512_min_ps(a, b);
}
static inline vec v_abs(vec a) {
    return _mm512_andnot_ps(_mm512_set1_ps(-0.0F), a);
}
static inline vec v_with_sign(vec size, vec sign) {
    return _mm512_or_ps(size, _mm512_and_ps(_mm512_set1_ps(-0.0F), sign));
}

static inline vmask v_less(vec a, vec b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
static inline vmask v_is_nan(vec a) {
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}
static inline vec v_blend(vmask mask, vec yes, vec no) {
    return _mm512_mask_blend_ps(mask, no, yes);
}

static inline vec v_power(vec shifted) {
    const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(0x3f800000)));
}

static inline float v_fold(vec a) {
    const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    const __m128 e = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(e, _mm_movehdup_ps(e)));
}
static inline float v_fold_max(vec a) {
    return _mm512_reduce_max_ps(a);
}

#endif
