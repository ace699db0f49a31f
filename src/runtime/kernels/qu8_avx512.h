// SPDX-License-Identifier: Apache-2.0
// Conversions between floats and quantized values with AVX-512, 16 at a time. Bounds are applied to
// the float, which equals clamping the quantized value, also for NaN.
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_QU8_AVX512_H
#define RUNTIME_KERNELS_QU8_AVX512_H

#include <immintrin.h>

#include "core/math/requant.h"

// Applies a statement to each of four registers v, interleaved: one after the other, the latency of
// each would leave the processor idle.
#define EACH_OF_FOUR(v) _Pragma("GCC unroll 4") for (size_t v = 0; v < 4; v++)

// rint(bounded) + zero_point.
static inline __m512i round_quantized(__m512 bounded, __m512i zero_point) {
    const __m512i rounded =
        _mm512_cvt_roundps_epi32(bounded, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm512_add_epi32(rounded, zero_point);
}

static inline __m128i round_to_quantized(__m512 bounded, __m512i zero_point) {
    return _mm512_cvtepi32_epi8(round_quantized(bounded, zero_point));
}

// Packing to bytes leaves four bytes from each of four registers in each quarter of the result.
static inline __m512i order_packed(__m512i bytes) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, bytes);
}

// Packs 64 quantized values to bytes.
static inline __m512i pack_quantized(bool is_signed, const __m512i quantized[4]) {
    const __m512i low = _mm512_packs_epi32(quantized[0], quantized[1]);
    const __m512i high = _mm512_packs_epi32(quantized[2], quantized[3]);
    const __m512i bytes =
        is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    return order_packed(bytes);
}

static inline __m512i widen_lanes(bool is_signed, __m128i quantized) {
    return is_signed ? _mm512_cvtepi8_epi32(quantized) : _mm512_cvtepu8_epi32(quantized);
}

// Dequantizes.
static inline __m512 dequantize_lanes(bool is_signed, int32_t zero_point, float scale,
                                      __m128i quantized) {
    const __m512i shifted =
        _mm512_sub_epi32(widen_lanes(is_signed, quantized), _mm512_set1_epi32(zero_point));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(shifted), _mm512_set1_ps(scale));
}

// tare__native_add_quantized.
static inline __m128i add_lanes(const native_add *op, bool is_signed, __m128i a, __m128i b) {
    const __m512 sum = _mm512_add_ps(dequantize_lanes(is_signed, op->zero_a, op->scale_a, a),
                                     dequantize_lanes(is_signed, op->zero_b, op->scale_b, b));
    const __m512 scaled = _mm512_mul_ps(sum, _mm512_set1_ps(op->inverse));
    const __m512 low = _mm512_set1_ps((float)(op->lo - op->zero_point));
    const __m512 high = _mm512_set1_ps((float)(op->hi - op->zero_point));
    return round_to_quantized(_mm512_min_ps(_mm512_max_ps(scaled, low), high),
                              _mm512_set1_epi32(op->zero_point));
}

#endif
