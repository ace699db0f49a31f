// SPDX-License-Identifier: Apache-2.0
// The end of the AVX2 kernels: rules F, O and Q of core/requant.h on 8 sums at once. Bounds are
// applied to the float, where they give what clamping the code gives, NaN included.
#ifndef RUNTIME_KERNELS_QU8_AVX2_H
#define RUNTIME_KERNELS_QU8_AVX2_H

#include <immintrin.h>
#include <string.h>

#include "core/requant.h"
#include "runtime/kernels/tile.h"

typedef struct epilogue_constants {
    bool is_o;
    __m256 inverse, zero_point_float; // rule O
    __m256 low, high;                 // of the float before rounding
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

// Eight whole codes in the low half of the result: rint(bounded) + zero_point.
static inline __m128i round_to_codes(__m256 bounded, __m256i zero_point) {
    const __m256 whole = _mm256_round_ps(bounded, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256i codes = _mm256_add_epi32(_mm256_cvtps_epi32(whole), zero_point);
    // The low byte of each lane, gathered; codes fit, signed or not.
    const __m256i low_bytes =
        _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i bytes = _mm256_shuffle_epi8(codes, low_bytes);
    return _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
}

// Eight codes in the low half of the result.
static inline __m128i requantize_lanes(const epilogue_constants *k, __m256i acc, __m256 multiplier,
                                       __m256 bias) {
    const __m256 sum = _mm256_cvtepi32_ps(acc);
    __m256 scaled;
    if (k->is_o) {
        const __m256 value = _mm256_add_ps(_mm256_mul_ps(sum, multiplier), bias);
        scaled = _mm256_add_ps(_mm256_mul_ps(value, k->inverse), k->zero_point_float);
    } else {
        scaled = _mm256_mul_ps(_mm256_add_ps(sum, bias), multiplier);
    }
    const __m256 bounded = _mm256_min_ps(_mm256_max_ps(scaled, k->low), k->high);
    return round_to_codes(bounded, k->zero_point);
}

// The value of rule O, as a float.
static inline __m256 real_lanes(__m256i acc, __m256 multiplier, __m256 bias) {
    return _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(acc), multiplier), bias);
}

// The floats that the first `count` of eight codes of an addend stand for.
static inline __m256 addend_lanes(const tile_addend *a, size_t at, size_t count) {
    uint8_t bytes[8] = {0};
    memcpy(bytes, a->codes + at, count < 8 ? count : 8);
    const __m128i packed = _mm_loadl_epi64((const __m128i *)bytes);
    const __m256i codes =
        a->is_signed ? _mm256_cvtepi8_epi32(packed) : _mm256_cvtepu8_epi32(packed);
    const __m256i centered = _mm256_sub_epi32(codes, _mm256_set1_epi32(a->zero_point));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(centered), _mm256_set1_ps(a->scale));
}

// The end of rule O on a value.
static inline __m128i finish_lanes(const epilogue_constants *k, __m256 real) {
    const __m256 scaled = _mm256_add_ps(_mm256_mul_ps(real, k->inverse), k->zero_point_float);
    return round_to_codes(_mm256_min_ps(_mm256_max_ps(scaled, k->low), k->high), k->zero_point);
}

// The first `count` of eight floats.
static inline void store_floats(float *y, size_t count, __m256 real) {
    if (count >= 8) {
        _mm256_storeu_ps(y, real);
        return;
    }
    float floats[8];
    _mm256_storeu_ps(floats, real);
    memcpy(y, floats, count * sizeof *y);
}

// The first `count` of eight codes.
static inline void store_codes(uint8_t *y, size_t count, __m128i codes) {
    if (count >= 8) {
        _mm_storel_epi64((__m128i *)y, codes);
        return;
    }
    uint8_t bytes[16];
    _mm_storeu_si128((__m128i *)bytes, codes);
    for (size_t i = 0; i < count; i++) y[i] = bytes[i];
}

// Words of four bytes that lie `dilation` apart, for 8 pixels `stride` apart. Each half of the
// register holds the 16 bytes of four pixels; stride + dilation may be 5 at most.
enum { MOST_SLIDE = 4 };

typedef struct slide_constants {
    size_t half;   // bytes from the first pixel to the fifth
    __m256i bytes; // of a half
} slide_constants;

static inline slide_constants slide_constants_of(size_t stride, size_t dilation) {
    int8_t bytes[32];
    for (size_t i = 0; i < 32; i++) bytes[i] = (int8_t)(i % 16 / 4 * stride + i % 4 * dilation);
    return (slide_constants){4 * stride, _mm256_loadu_si256((const __m256i *)bytes)};
}

static inline __m256i slide_lanes(const slide_constants *k, const uint8_t *x) {
    const __m128i low = _mm_loadu_si128((const __m128i *)x);
    const __m128i high = _mm_loadu_si128((const __m128i *)(x + k->half));
    return _mm256_shuffle_epi8(_mm256_set_m128i(high, low), k->bytes);
}

#endif
