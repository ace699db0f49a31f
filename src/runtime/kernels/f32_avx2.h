// SPDX-License-Identifier: Apache-2.0
// Vectors of eight floats, with AVX2. core/math/vector_scalar.h defines the operations.
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_F32_AVX2_H
#define RUNTIME_KERNELS_F32_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum { WIDTH = 8 };
typedef __m256 vec;
typedef __m256 vmask;

static inline __m256i v_first(size_t count) {
    const __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)count), at);
}

static inline vec v_set(float a) {
    return _mm256_set1_ps(a);
}
static inline vec v_load(const float *x) {
    return _mm256_loadu_ps(x);
}
static inline void v_store(float *y, vec a) {
    _mm256_storeu_ps(y, a);
}
static inline vec v_load_first(const float *x, size_t count) {
    return _mm256_maskload_ps(x, v_first(count));
}
static inline void v_store_first(float *y, vec a, size_t count) {
    _mm256_maskstore_ps(y, v_first(count), a);
}
static inline vec v_keep(vec a, size_t count) {
    return _mm256_and_ps(a, _mm256_castsi256_ps(v_first(count)));
}

static inline vec v_add(vec a, vec b) {
    return _mm256_add_ps(a, b);
}
static inline vec v_sub(vec a, vec b) {
    return _mm256_sub_ps(a, b);
}
static inline vec v_mul(vec a, vec b) {
    return _mm256_mul_ps(a, b);
}
static inline vec v_div(vec a, vec b) {
    return _mm256_div_ps(a, b);
}
static inline vec v_fma(vec a, vec b, vec c) {
    return _mm256_fmadd_ps(a, b, c);
}
static inline vec v_sqrt(vec a) {
    return _mm256_sqrt_ps(a);
}
static inline vec v_max(vec a, vec b) {
    return _mm256_max_ps(a, b);
}
static inline vec v_min(vec a, vec b) {
    return _mm256_min_ps(a, b);
}
static inline vec v_abs(vec a) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), a);
}
static inline vec v_with_sign(vec size, vec sign) {
    return _mm256_or_ps(size, _mm256_and_ps(_mm256_set1_ps(-0.0F), sign));
}

static inline vmask v_less(vec a, vec b) {
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
static inline vmask v_is_nan(vec a) {
    return _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
}
static inline vec v_blend(vmask mask, vec yes, vec no) {
    return _mm256_blendv_ps(no, yes, mask);
}

static inline vec v_power(vec shifted) {
    const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(0x3f800000)));
}

static inline float v_fold(vec a) {
    const __m128 q = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 e = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(e, _mm_movehdup_ps(e)));
}
static inline float v_fold_max(vec a) {
    const __m128 q = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 e = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(e, _mm_movehdup_ps(e)));
}

#endif
