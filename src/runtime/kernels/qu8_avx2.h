// SPDX-License-Identifier: Apache-2.0
// The epilogue of the AVX2 kernels: rules F, O and Q of core/math/requant.h on 8 sums at once.
// Bounds are applied to the float, which equals clamping the quantized value, also for NaN.
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_QU8_AVX2_H
#define RUNTIME_KERNELS_QU8_AVX2_H

#include <immintrin.h>
#include <string.h>

#include "core/math/requant.h"

typedef struct epilogue_constants {
    bool is_o;
    __m256 inverse, zero_point_float; // rule O
    __m256 low, high;                 // for the float before rounding
    __m256i zero_point;               // added after rounding
} epilogue_constants;

static inline epilogue_constants epilogue_constants_of(const requant *r) {
    const bool is_o = r->rule == REQUANT_O;
    const int32_t shift = is_o ? 0 : r->zero_point;
    return (epilogue_constants){
        .is_o = is_o,
        .inverse = _mm256_set1_ps(r->inverse),
        .zero_point_float = _mm256_set1_ps((float)r->zero_point),
        .low = _mm256_set1_ps((float)(r->lo - shift)),
        .high = _mm256_set1_ps((float)(r->hi - shift)),
        .zero_point = _mm256_set1_epi32(shift),
    };
}

// rint(bounded) + zero_point.
static inline __m256i round_quantized(__m256 bounded, __m256i zero_point) {
    const __m256 whole = _mm256_round_ps(bounded, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm256_add_epi32(_mm256_cvtps_epi32(whole), zero_point);
}

// The same as bytes in the low half of the result.
static inline __m128i round_to_quantized(__m256 bounded, __m256i zero_point) {
    const __m256i quantized = round_quantized(bounded, zero_point);
    // Gathers the low byte of each lane; quantized values fit, signed or not.
    const __m256i low_bytes =
        _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i bytes = _mm256_shuffle_epi8(quantized, low_bytes);
    return _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
}

// The value of rule O, as a float.
static inline __m256 real_lanes(__m256i acc, __m256 multiplier, __m256 bias) {
    return _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(acc), multiplier), bias);
}

// The float that rules F and Q round.
static inline __m256 scaled_lanes(__m256i acc, __m256 multiplier, __m256 bias) {
    return _mm256_mul_ps(_mm256_add_ps(_mm256_cvtepi32_ps(acc), bias), multiplier);
}

static inline __m256 bound_lanes(const epilogue_constants *k, __m256 scaled) {
    return _mm256_min_ps(_mm256_max_ps(scaled, k->low), k->high);
}

// The last step of rule O before rounding.
static inline __m256 scale_value(const epilogue_constants *k, __m256 real) {
    return bound_lanes(k, _mm256_add_ps(_mm256_mul_ps(real, k->inverse), k->zero_point_float));
}

// The float that is rounded to the quantized value.
static inline __m256 scale_sums(const epilogue_constants *k, __m256i acc, __m256 multiplier,
                                __m256 bias) {
    return k->is_o ? scale_value(k, real_lanes(acc, multiplier, bias))
                   : bound_lanes(k, scaled_lanes(acc, multiplier, bias));
}

static inline __m256i requantize_quantized(const epilogue_constants *k, __m256i acc,
                                           __m256 multiplier, __m256 bias) {
    return round_quantized(scale_sums(k, acc, multiplier, bias), k->zero_point);
}

// Eight quantized values in the low half of the result.
static inline __m128i requantize_lanes(const epilogue_constants *k, __m256i acc, __m256 multiplier,
                                       __m256 bias) {
    return round_to_quantized(scale_sums(k, acc, multiplier, bias), k->zero_point);
}

// Eight quantized values from the low half of the argument.
static inline __m256i widen_lanes(bool is_signed, __m128i quantized) {
    return is_signed ? _mm256_cvtepi8_epi32(quantized) : _mm256_cvtepu8_epi32(quantized);
}

// Eight quantized values minus the zero point.
static inline __m256 centered_lanes(bool is_signed, int32_t zero_point, __m128i quantized) {
    return _mm256_cvtepi32_ps(
        _mm256_sub_epi32(widen_lanes(is_signed, quantized), _mm256_set1_epi32(zero_point)));
}

// Dequantizes eight values.
static inline __m256 dequantize_lanes(bool is_signed, int32_t zero_point, float scale,
                                      __m128i quantized) {
    return _mm256_mul_ps(centered_lanes(is_signed, zero_point, quantized), _mm256_set1_ps(scale));
}

// tare__native_add_quantized for eight quantized values.
static inline __m128i add_lanes(const native_add *op, bool is_signed, __m128i a, __m128i b) {
    const __m256 sum = _mm256_add_ps(dequantize_lanes(is_signed, op->zero_a, op->scale_a, a),
                                     dequantize_lanes(is_signed, op->zero_b, op->scale_b, b));
    const __m256 scaled = _mm256_mul_ps(sum, _mm256_set1_ps(op->inverse));
    const __m256 low = _mm256_set1_ps((float)(op->lo - op->zero_point));
    const __m256 high = _mm256_set1_ps((float)(op->hi - op->zero_point));
    return round_to_quantized(_mm256_min_ps(_mm256_max_ps(scaled, low), high),
                              _mm256_set1_epi32(op->zero_point));
}

// tare__requantize_sum for eight sums; `other`: the addend's quantized values minus their zero
// point.
static inline __m128i requantize_with(const epilogue_constants *k, __m256i acc, __m256 multiplier,
                                      __m256 bias, __m256 other, __m256 factor) {
    const __m256 scaled =
        k->is_o
            ? scale_value(
                  k, _mm256_add_ps(real_lanes(acc, multiplier, bias), _mm256_mul_ps(other, factor)))
            : bound_lanes(k, _mm256_fmadd_ps(other, factor, scaled_lanes(acc, multiplier, bias)));
    return round_to_quantized(scaled, k->zero_point);
}

// Stores the first `count` of eight floats.
static inline void store_floats(float *y, size_t count, __m256 real) {
    if (count >= 8) {
        _mm256_storeu_ps(y, real);
        return;
    }
    float floats[8];
    _mm256_storeu_ps(floats, real);
    memcpy(y, floats, count * sizeof *y);
}

// Stores the first `count` of eight quantized values.
static inline void store_quantized(uint8_t *y, size_t count, __m128i quantized) {
    if (count >= 8) {
        _mm_storel_epi64((__m128i *)y, quantized);
        return;
    }
    uint8_t bytes[16];
    _mm_storeu_si128((__m128i *)bytes, quantized);
    for (size_t i = 0; i < count; i++) y[i] = bytes[i];
}

#endif
