// SPDX-License-Identifier: Apache-2.0
// The end of the AVX-512 kernels: rules F, O and Q of core/requant.h on 16 sums at once. Bounds are
// applied to the float, where they give what clamping the code gives, NaN included.
#ifndef RUNTIME_KERNELS_QU8_AVX512_H
#define RUNTIME_KERNELS_QU8_AVX512_H

#include <immintrin.h>

#include "core/requant.h"
#include "runtime/kernels/tile.h"

typedef struct epilogue_constants {
    bool is_o;
    __m512 inverse, zero_point_float; // rule O
    __m512 low, high;                 // of the float before rounding
    __m512i zero_point;               // added after rounding
} epilogue_constants;

static inline epilogue_constants epilogue_constants_of(const requant *r) {
    const bool is_o = r->rule == REQUANT_O;
    const int32_t shift = is_o ? 0 : r->zero_point;
    return (epilogue_constants){
        .is_o = is_o,
        .inverse = _mm512_set1_ps(r->inverse),
        .zero_point_float = _mm512_set1_ps((float)r->zero_point),
        .low = _mm512_set1_ps((float)(r->lo - shift)),
        .high = _mm512_set1_ps((float)(r->hi - shift)),
        .zero_point = _mm512_set1_epi32(shift),
    };
}

static inline __m128i requantize_lanes(const epilogue_constants *k, __m512i acc, __m512 multiplier,
                                       __m512 bias) {
    const __m512 sum = _mm512_cvtepi32_ps(acc);
    __m512 scaled;
    if (k->is_o) {
        const __m512 value = _mm512_add_ps(_mm512_mul_ps(sum, multiplier), bias);
        scaled = _mm512_add_ps(_mm512_mul_ps(value, k->inverse), k->zero_point_float);
    } else {
        scaled = _mm512_mul_ps(_mm512_add_ps(sum, bias), multiplier);
    }
    const __m512 bounded = _mm512_min_ps(_mm512_max_ps(scaled, k->low), k->high);
    const __m512i rounded =
        _mm512_cvt_roundps_epi32(bounded, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm512_cvtepi32_epi8(_mm512_add_epi32(rounded, k->zero_point));
}

// The value of rule O, as a float.
static inline __m512 real_lanes(__m512i acc, __m512 multiplier, __m512 bias) {
    return _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(acc), multiplier), bias);
}

// The floats that 16 codes of an addend stand for.
static inline __m512 addend_lanes(const tile_addend *a, size_t at, __mmask16 mask) {
    const __m128i bytes = _mm_maskz_loadu_epi8(mask, a->codes + at);
    const __m512i codes = a->is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
    const __m512i centered = _mm512_sub_epi32(codes, _mm512_set1_epi32(a->zero_point));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(centered), _mm512_set1_ps(a->scale));
}

// The end of rule O on a value.
static inline __m128i finish_lanes(const epilogue_constants *k, __m512 real) {
    const __m512 scaled = _mm512_add_ps(_mm512_mul_ps(real, k->inverse), k->zero_point_float);
    const __m512 bounded = _mm512_min_ps(_mm512_max_ps(scaled, k->low), k->high);
    return _mm512_cvtepi32_epi8(
        _mm512_cvt_roundps_epi32(bounded, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

// Words of four bytes that lie `dilation` apart, for 16 pixels `stride` apart. Each quarter of the
// register holds the 16 bytes of four pixels; stride + dilation may be 5 at most.
enum { MOST_SLIDE = 4 };

typedef struct slide_constants {
    __m512i quarters; // dwords of 64 bytes
    __m512i bytes;    // of a quarter
} slide_constants;

static inline slide_constants slide_constants_of(size_t stride, size_t dilation) {
    int32_t quarters[16];
    int8_t bytes[64];
    for (size_t i = 0; i < 16; i++) quarters[i] = (int32_t)(i / 4 * stride + i % 4);
    for (size_t i = 0; i < 64; i++) bytes[i] = (int8_t)(i % 16 / 4 * stride + i % 4 * dilation);
    return (slide_constants){_mm512_loadu_si512(quarters), _mm512_loadu_si512(bytes)};
}

// Reads 64 bytes.
static inline __m512i slide_lanes(const slide_constants *k, const uint8_t *x) {
    const __m512i quarters = _mm512_permutexvar_epi32(k->quarters, _mm512_loadu_si512(x));
    return _mm512_shuffle_epi8(quarters, k->bytes);
}

#endif
