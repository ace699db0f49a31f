// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Table lookup of quantized values with AVX-512 VBMI, whose byte permutations have tables of 128.
#include <immintrin.h>

#include "runtime/kernels/elementwise.h"

enum { BYTES = 64 };

void qu8_look_up__avx512vbmi(const uint8_t table[256], const uint8_t *x, size_t count, uint8_t *y) {
    const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + BYTES);
    const __m512i t2 = _mm512_loadu_si512(table + 128);
    const __m512i t3 = _mm512_loadu_si512(table + 192);
    for (size_t i = 0; i < count; i += BYTES) {
        const size_t left = count - i;
        const __mmask64 mask = left < BYTES ? ((__mmask64)1 << left) - 1 : ~(__mmask64)0;
        const __m512i q = _mm512_maskz_loadu_epi8(mask, x + i);
        const __m512i low = _mm512_permutex2var_epi8(t0, q, t1);
        const __m512i high = _mm512_permutex2var_epi8(t2, q, t3);
        const __m512i found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(q), low, high);
        _mm512_mask_storeu_epi8(y + i, mask, found);
    }
}
