// SPDX-License-Identifier: Apache-2.0
// Products of bytes by vpdpbusd in 256-bit registers, which has two encodings: DOT is one of them.
#include <immintrin.h>

#include "runtime/kernels/peak.h"

static uint32_t multiply_by_dot(size_t rounds) {
    enum { SUMS = 10 };
    const __m256i x = _mm256_set1_epi8(3), w = _mm256_set1_epi8(-2);
    __m256i sums[SUMS];
    for (int i = 0; i < SUMS; i++) sums[i] = _mm256_set1_epi32(i);
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < SUMS; i++) sums[i] = DOT(sums[i], x, w);
    __m256i sum = sums[0];
    for (size_t i = 1; i < SUMS; i++) sum = _mm256_add_epi32(sum, sums[i]);
    return (uint32_t)_mm256_extract_epi32(sum, 0);
}
