// SPDX-License-Identifier: Apache-2.0
// build: -O3 -mprefer-vector-width=512
// The peak of AVX-512 with VNNI: twelve independent sums hide the latency of the instruction.
#include <immintrin.h>

#include "runtime/kernels/peak.h"

enum { SUMS = 12, VECTOR = 8, VECTORS = 4, STEP = VECTOR * VECTORS };

uint32_t peak_quantized__avx512vnni(size_t rounds) {
    const __m512i x = _mm512_set1_epi8(3), w = _mm512_set1_epi8(-2);
    __m512i sums[SUMS]; // different values, or compilers would merge them
    for (int i = 0; i < SUMS; i++) sums[i] = _mm512_set1_epi32(i);
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < SUMS; i++) sums[i] = _mm512_dpbusd_epi32(sums[i], x, w);
    __m512i sum = sums[0];
    for (size_t i = 1; i < SUMS; i++) sum = _mm512_add_epi32(sum, sums[i]);
    return (uint32_t)_mm512_cvtsi512_si32(sum);
}

float peak_floats__avx512vnni(size_t rounds) {
    const __m512 x = _mm512_set1_ps(0.75F), w = _mm512_set1_ps(1.0F);
    __m512 sums[SUMS];
    for (int i = 0; i < SUMS; i++) sums[i] = _mm512_set1_ps((float)i);
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < SUMS; i++) sums[i] = _mm512_fmadd_ps(sums[i], x, w);
    __m512 sum = sums[0];
    for (size_t i = 1; i < SUMS; i++) sum = _mm512_add_ps(sum, sums[i]);
    return _mm512_cvtss_f32(sum);
}

uint64_t peak_read__avx512vnni(const uint64_t *data, size_t count) {
    __m512i sums[VECTORS];
    for (size_t i = 0; i < VECTORS; i++) sums[i] = _mm512_setzero_si512();
    for (size_t k = 0; k < count; k += STEP)
        for (size_t i = 0; i < VECTORS; i++)
            sums[i] = _mm512_add_epi64(sums[i], _mm512_loadu_si512(data + k + i * VECTOR));
    uint64_t lanes[VECTOR], sum = 0; // the intrinsic that adds lanes is signed
    _mm512_storeu_si512(lanes, _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]),
                                                _mm512_add_epi64(sums[2], sums[3])));
    for (size_t i = 0; i < VECTOR; i++) sum += lanes[i];
    return sum;
}
