// SPDX-License-Identifier: Apache-2.0
// AVX-VNNI-INT8: vpdpbssd adds four products of signed bytes to each int32 lane, modulo 2^32 and
// without saturation. Assembly, because compilers have had an intrinsic only since gcc 13 and
// clang 16.
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_X86_SIGNED_DOT_H
#define RUNTIME_KERNELS_X86_SIGNED_DOT_H

#include <immintrin.h>
#include <stdint.h>

#ifdef TARE_EMULATED_ISA
// The same in C, as Intel's manual writes it: for tests on machines that lack it.
static inline __m256i dot_signed(__m256i sums, __m256i x, __m256i w) {
    uint32_t lanes[8];
    int8_t a[32], b[32];
    _mm256_storeu_si256((__m256i *)(void *)lanes, sums);
    _mm256_storeu_si256((__m256i *)(void *)a, x);
    _mm256_storeu_si256((__m256i *)(void *)b, w);
    for (int i = 0; i < 32; i++) lanes[i / 4] += (uint32_t)((int32_t)a[i] * b[i]);
    return _mm256_loadu_si256((const __m256i *)(const void *)lanes);
}
#else
static inline __m256i dot_signed(__m256i sums, __m256i x, __m256i w) {
    __asm__("vpdpbssd %2, %1, %0" : "+x"(sums) : "x"(x), "x"(w));
    return sums;
}
#endif

#endif
