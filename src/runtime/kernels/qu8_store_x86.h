// SPDX-License-Identifier: Apache-2.0
// Stores the first bytes of registers. A masked store takes as long as several plain ones.
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_QU8_STORE_X86_H
#define RUNTIME_KERNELS_QU8_STORE_X86_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline __attribute__((always_inline)) void store_few(uint8_t *y, size_t count,
                                                            uint64_t bytes) {
    if (count & 4) {
        memcpy(y, &bytes, 4);
        bytes >>= 32;
        y += 4;
    }
    if (count & 2) {
        memcpy(y, &bytes, 2);
        bytes >>= 16;
        y += 2;
    }
    if (count & 1) memcpy(y, &bytes, 1);
}

static inline __attribute__((always_inline)) void store_first_128(uint8_t *y, size_t count,
                                                                  __m128i bytes) {
    if (count >= 16) {
        _mm_storeu_si128((__m128i *)y, bytes);
        return;
    }
    if (count & 8) {
        _mm_storel_epi64((__m128i *)y, bytes);
        bytes = _mm_unpackhi_epi64(bytes, bytes);
        y += 8;
    }
    if (count & 7) store_few(y, count & 7, (uint64_t)_mm_cvtsi128_si64(bytes));
}

#ifdef __AVX2__
static inline __attribute__((always_inline)) void store_first_256(uint8_t *y, size_t count,
                                                                  __m256i bytes) {
    if (count >= 32) {
        _mm256_storeu_si256((__m256i *)y, bytes);
    } else if (count > 16) {
        _mm_storeu_si128((__m128i *)y, _mm256_castsi256_si128(bytes));
        store_first_128(y + 16, count - 16, _mm256_extracti128_si256(bytes, 1));
    } else {
        store_first_128(y, count, _mm256_castsi256_si128(bytes));
    }
}
#endif

#ifdef __AVX512F__
static inline __attribute__((always_inline)) void store_first_512(uint8_t *y, size_t count,
                                                                  __m512i bytes) {
    if (count >= 64) {
        _mm512_storeu_si512(y, bytes);
    } else if (count > 32) {
        _mm256_storeu_si256((__m256i *)y, _mm512_castsi512_si256(bytes));
        store_first_256(y + 32, count - 32, _mm512_extracti64x4_epi64(bytes, 1));
    } else {
        store_first_256(y, count, _mm512_castsi512_si256(bytes));
    }
}
#endif

#endif
