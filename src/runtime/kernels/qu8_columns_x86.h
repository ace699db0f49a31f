// SPDX-License-Identifier: Apache-2.0
// Packs columns of quantized values on x86: four rows of sixteen columns become words.
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_QU8_COLUMNS_X86_H
#define RUNTIME_KERNELS_QU8_COLUMNS_X86_H

#include <immintrin.h>
#include <string.h>

#include "runtime/kernels/attention.h"

// Sixteen columns of row r from column c on; zeros outside the matrix.
static inline __m128i columns_of(const quantized_matrix *m, size_t r, size_t c) {
    const __m128i flip = _mm_set1_epi8((char)m->flip);
    const size_t left = m->columns - c;
    const uint8_t *x = m->x + r * m->step + c;
    unsigned char buffer[16] = {0};
    if (r >= m->rows) return _mm_setzero_si128();
    if (left >= 16) return _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)x), flip);
    for (size_t i = 0; i < left; i++) buffer[i] = x[i] ^ m->flip;
    return _mm_loadu_si128((const __m128i *)(const void *)buffer);
}

static inline void pack_columns_x86(const quantized_matrix *m, size_t lanes, uint32_t *w) {
    for (size_t r = 0; r < m->rows; r += 4, w += lanes)
        for (size_t c = 0; c < lanes; c += 16) {
            __m128i *to = (__m128i *)(void *)(w + c);
            if (c >= m->columns) {
                memset(to, 0, 16 * sizeof *w);
                continue;
            }
            const __m128i x0 = columns_of(m, r, c), x1 = columns_of(m, r + 1, c);
            const __m128i x2 = columns_of(m, r + 2, c), x3 = columns_of(m, r + 3, c);
            const __m128i low01 = _mm_unpacklo_epi8(x0, x1), high01 = _mm_unpackhi_epi8(x0, x1);
            const __m128i low23 = _mm_unpacklo_epi8(x2, x3), high23 = _mm_unpackhi_epi8(x2, x3);
            _mm_storeu_si128(to, _mm_unpacklo_epi16(low01, low23));
            _mm_storeu_si128(to + 1, _mm_unpackhi_epi16(low01, low23));
            _mm_storeu_si128(to + 2, _mm_unpacklo_epi16(high01, high23));
            _mm_storeu_si128(to + 3, _mm_unpackhi_epi16(high01, high23));
        }
}

#endif
