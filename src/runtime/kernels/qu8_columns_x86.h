// SPDX-License-Identifier: Apache-2.0
// Packs columns of quantized values on x86, and adds them: four rows of sixteen columns become
// words. Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_QU8_COLUMNS_X86_H
#define RUNTIME_KERNELS_QU8_COLUMNS_X86_H

#include <immintrin.h>
#include <string.h>

#include "runtime/kernels/attention.h"

// Up to sixteen bytes, with zeros behind them; none that is not there is read.
static inline __m128i bytes_of(const uint8_t *x, size_t count) {
    uint64_t low = 0, high = 0;
    uint32_t first, last;
    if (count >= 16) return _mm_loadu_si128((const __m128i *)(const void *)x);
    if (count >= 8) {
        memcpy(&low, x, 8);
        memcpy(&high, x + count - 8, 8);
        high = count > 8 ? high >> 8 * (16 - count) : 0;
    } else if (count >= 4) {
        memcpy(&first, x, 4);
        memcpy(&last, x + count - 4, 4);
        low = first | (uint64_t)last << 8 * (count - 4);
    } else {
        for (size_t i = 0; i < count; i++) low |= (uint64_t)x[i] << 8 * i;
    }
    return _mm_set_epi64x((long long)high, (long long)low);
}

// Sixteen columns of four rows, of which some may lie outside the matrix, as words.
static inline void words_of_rows(const quantized_matrix *m, size_t r, size_t c, size_t count,
                                 __m128i flip, __m128i words[4]) {
    __m128i x[4];
    for (size_t i = 0; i < 4; i++)
        x[i] = r + i < m->rows ? _mm_xor_si128(bytes_of(m->x + (r + i) * m->step + c, count), flip)
                               : _mm_setzero_si128();
    const __m128i low01 = _mm_unpacklo_epi8(x[0], x[1]), high01 = _mm_unpackhi_epi8(x[0], x[1]);
    const __m128i low23 = _mm_unpacklo_epi8(x[2], x[3]), high23 = _mm_unpackhi_epi8(x[2], x[3]);
    words[0] = _mm_unpacklo_epi16(low01, low23);
    words[1] = _mm_unpackhi_epi16(low01, low23);
    words[2] = _mm_unpacklo_epi16(high01, high23);
    words[3] = _mm_unpackhi_epi16(high01, high23);
}

static inline void pack_columns_x86(const quantized_matrix *m, size_t lanes, uint32_t *w,
                                    int32_t *sums) {
    uint8_t flips[16];
    memset(flips, m->flip, sizeof flips);
    const __m128i ones = _mm_set1_epi8(1), pairs = _mm_set1_epi16(1);
    for (size_t c = 0; c < lanes; c += 16, w += 16) {
        const size_t count = c < m->columns ? m->columns - c : 0;
        const __m128i flip = bytes_of(flips, count);
        __m128i sum[4] = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128(),
                          _mm_setzero_si128()};
        uint32_t *to = w;
        for (size_t r = 0; r < m->rows; r += 4, to += lanes) {
            __m128i words[4];
            words_of_rows(m, r, c, count, flip, words);
            for (size_t i = 0; i < 4; i++) {
                const __m128i of_pairs = _mm_maddubs_epi16(ones, words[i]);
                sum[i] = _mm_add_epi32(sum[i], _mm_madd_epi16(of_pairs, pairs));
                _mm_storeu_si128((__m128i *)(void *)to + i, words[i]);
            }
        }
        for (size_t i = 0; sums != NULL && i < 4; i++)
            _mm_storeu_si128((__m128i *)(void *)(sums + c) + i, sum[i]);
    }
}

#endif
