// SPDX-License-Identifier: Apache-2.0
// build: -O3
// The peak of AVX2 and FMA: pairs of bytes are added in 16 bits, and those in 32.
#include <immintrin.h>

#include "runtime/kernels/peak.h"

enum { QUANTIZED_SUMS = 10, FLOAT_SUMS = 10, VECTOR = 4, VECTORS = 4, STEP = VECTOR * VECTORS };

uint32_t peak_quantized__avx2(size_t rounds) {
    const __m256i w = _mm256_set1_epi8(-2), one = _mm256_set1_epi16(1);
    __m256i sums[QUANTIZED_SUMS]; // different values, or compilers would merge them
    for (int i = 0; i < QUANTIZED_SUMS; i++) sums[i] = _mm256_set1_epi32(i);
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < QUANTIZED_SUMS; i++) {
            // The quantized values are the sums so far, so every product is new.
            const __m256i pairs = _mm256_maddubs_epi16(sums[i], w);
            sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(pairs, one));
        }
    __m256i sum = sums[0];
    for (size_t i = 1; i < QUANTIZED_SUMS; i++) sum = _mm256_add_epi32(sum, sums[i]);
    return (uint32_t)_mm256_extract_epi32(sum, 0);
}

float peak_floats__avx2(size_t rounds) {
    const __m256 x = _mm256_set1_ps(0.75F), w = _mm256_set1_ps(1.0F);
    __m256 sums[FLOAT_SUMS];
    for (int i = 0; i < FLOAT_SUMS; i++) sums[i] = _mm256_set1_ps((float)i);
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < FLOAT_SUMS; i++) sums[i] = _mm256_fmadd_ps(sums[i], x, w);
    __m256 sum = sums[0];
    for (size_t i = 1; i < FLOAT_SUMS; i++) sum = _mm256_add_ps(sum, sums[i]);
    return _mm256_cvtss_f32(sum);
}

uint64_t peak_read__avx2(const uint64_t *data, size_t count) {
    __m256i sums[VECTORS] = {_mm256_setzero_si256()};
    for (size_t i = 1; i < VECTORS; i++) sums[i] = sums[0];
    for (size_t k = 0; k < count; k += STEP)
        for (size_t i = 0; i < VECTORS; i++)
            sums[i] = _mm256_add_epi64(
                sums[i],
                _mm256_loadu_si256((const __m256i *)(const void *)(data + k + i * VECTOR)));
    const __m256i sum =
        _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
    uint64_t lanes[VECTOR];
    _mm256_storeu_si256((__m256i *)(void *)lanes, sum);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}
