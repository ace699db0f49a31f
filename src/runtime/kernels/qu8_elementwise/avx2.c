// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels with AVX2, eight floats at a time; the scalar ones take the rest.
#include "runtime/kernels/qu8_avx2.h"

#include "runtime/kernels/elementwise.h"

enum { LANES = 8, BYTES = 32 };

static inline __m256i load_codes(bool is_signed, const uint8_t *x) {
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)x);
    return is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
}

void qu8_quantize__avx2(const code_scheme *s, const float *x, size_t count, uint8_t *y) {
    const __m256 inverse = _mm256_set1_ps(s->inverse);
    const __m256 low = _mm256_set1_ps((float)(s->least - s->zero_point));
    const __m256 high = _mm256_set1_ps((float)(s->most - s->zero_point));
    const __m256i zero_point = _mm256_set1_epi32(s->zero_point);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), inverse);
        // The minimum comes first: of NaN and a bound it takes the bound, the highest code.
        const __m256 bounded = _mm256_max_ps(_mm256_min_ps(scaled, high), low);
        _mm_storel_epi64((__m128i *)(y + i), round_to_codes(bounded, zero_point));
    }
    qu8_quantize__scalar(s, x + i, count - i, y + i);
}

void qu8_dequantize__avx2(const code_scheme *s, const uint8_t *x, size_t count, float *y) {
    const __m256 scale = _mm256_set1_ps(s->scale);
    const __m256i zero_point = _mm256_set1_epi32(s->zero_point);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m256i shifted = _mm256_sub_epi32(load_codes(s->is_signed, x + i), zero_point);
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_cvtepi32_ps(shifted), scale));
    }
    qu8_dequantize__scalar(s, x + i, count - i, y + i);
}

void qu8_add__avx2(const native_add *op, bool is_signed, const uint8_t *a, const uint8_t *b,
                   size_t count, uint8_t *y) {
    const __m256 scale_a = _mm256_set1_ps(op->scale_a), scale_b = _mm256_set1_ps(op->scale_b);
    const __m256i zero_a = _mm256_set1_epi32(op->zero_a), zero_b = _mm256_set1_epi32(op->zero_b);
    const __m256 inverse = _mm256_set1_ps(op->inverse);
    const __m256 low = _mm256_set1_ps((float)(op->lo - op->zero_point));
    const __m256 high = _mm256_set1_ps((float)(op->hi - op->zero_point));
    const __m256i zero_point = _mm256_set1_epi32(op->zero_point);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m256i ca = _mm256_sub_epi32(load_codes(is_signed, a + i), zero_a);
        const __m256i cb = _mm256_sub_epi32(load_codes(is_signed, b + i), zero_b);
        const __m256 sum = _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(ca), scale_a),
                                         _mm256_mul_ps(_mm256_cvtepi32_ps(cb), scale_b));
        const __m256 scaled = _mm256_mul_ps(sum, inverse);
        const __m256 bounded = _mm256_min_ps(_mm256_max_ps(scaled, low), high);
        _mm_storel_epi64((__m128i *)(y + i), round_to_codes(bounded, zero_point));
    }
    qu8_add__scalar(op, is_signed, a + i, b + i, count - i, y + i);
}

void qu8_mul__avx2(const quantized_mul *op, bool is_signed, const uint8_t *a, const uint8_t *b,
                   size_t count, uint8_t *y) {
    const __m256i zero_a = _mm256_set1_epi32(op->zero_a), zero_b = _mm256_set1_epi32(op->zero_b);
    const __m256 multiplier = _mm256_set1_ps(op->multiplier);
    const __m256 low = _mm256_set1_ps((float)(op->lo - op->zero_point));
    const __m256 high = _mm256_set1_ps((float)(op->hi - op->zero_point));
    const __m256i zero_point = _mm256_set1_epi32(op->zero_point);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m256i ca = _mm256_sub_epi32(load_codes(is_signed, a + i), zero_a);
        const __m256i cb = _mm256_sub_epi32(load_codes(is_signed, b + i), zero_b);
        const __m256 product = _mm256_cvtepi32_ps(_mm256_mullo_epi32(ca, cb));
        const __m256 scaled = _mm256_mul_ps(product, multiplier);
        const __m256 bounded = _mm256_min_ps(_mm256_max_ps(scaled, low), high);
        _mm_storel_epi64((__m128i *)(y + i), round_to_codes(bounded, zero_point));
    }
    qu8_mul__scalar(op, is_signed, a + i, b + i, count - i, y + i);
}

void qu8_raise__avx2(bool is_signed, const uint8_t *x, size_t count, uint8_t *y) {
    size_t i = 0;
    for (; i + BYTES <= count; i += BYTES) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(x + i));
        const __m256i b = _mm256_loadu_si256((const __m256i *)(y + i));
        const __m256i larger = is_signed ? _mm256_max_epi8(a, b) : _mm256_max_epu8(a, b);
        _mm256_storeu_si256((__m256i *)(y + i), larger);
    }
    for (; i + LANES <= count; i += LANES) {
        const __m128i a = _mm_loadl_epi64((const __m128i *)(x + i));
        const __m128i b = _mm_loadl_epi64((const __m128i *)(y + i));
        const __m128i larger = is_signed ? _mm_max_epi8(a, b) : _mm_max_epu8(a, b);
        _mm_storel_epi64((__m128i *)(y + i), larger);
    }
    qu8_raise__scalar(is_signed, x + i, count - i, y + i);
}
