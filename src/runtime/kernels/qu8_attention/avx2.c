// SPDX-License-Identifier: Apache-2.0
// Attention's kernels with AVX2, eight lanes at a time; the remainder is plain C.
#include <immintrin.h>
#include <math.h>

#include "core/math/exp_quantized.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/qu8_columns_x86.h"

enum { LANES = 8 };

// Packs the words of a row; returns the sum of its quantized values.
static inline int32_t pack_row(const quantized_matrix *m, size_t row, size_t lanes, uint32_t *w) {
    const uint8_t *x = m->x + row * m->step;
    const uint32_t flips = 0x01010101U * m->flip;
    int32_t sum = 0;
    for (size_t i = 0; i < m->columns; i++) sum += (int8_t)(x[i] ^ m->flip);
    for (size_t i = 0; i < m->columns; i += 4, w += lanes) {
        const size_t left = m->columns - i;
        uint32_t word, kept = left >= 4 ? 0 : 8 * (4 - (uint32_t)left);
        if (left >= 4)
            memcpy(&word, x + i, 4);
        else
            word = tare__product_tail(x + i, left);
        *w = word ^ flips << kept >> kept;
    }
    return sum;
}

void qu8_pack_rows__avx2(const quantized_matrix *m, size_t lanes, uint32_t *w, int32_t *sums) {
    for (size_t row = 0; row < m->rows; row++) sums[row] = pack_row(m, row, lanes, w + row);
    for (size_t row = m->rows; row < lanes; row++) {
        sums[row] = 0;
        for (size_t i = 0; i < (m->columns + 3) / 4; i++) w[i * lanes + row] = 0;
    }
}

void qu8_pack_columns__avx2(const quantized_matrix *m, size_t lanes, uint32_t *w, int32_t *sums) {
    pack_columns_x86(m, lanes, w, sums);
}

// Signed values are unsigned ones less 128.
void qu8_sum_rows__avx2(const quantized_matrix *m, int32_t *sums) {
    const uint8_t to_unsigned = m->flip ^ PRODUCT_SIGN_BIT;
    const __m128i flip = _mm_set1_epi8((char)to_unsigned), zeros = _mm_setzero_si128();
    for (size_t r = 0; r < m->rows; r++) {
        const uint8_t *x = m->x + r * m->step;
        __m128i sum = zeros;
        size_t i = 0;
        for (; i + 16 <= m->columns; i += 16) {
            const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(x + i));
            sum = _mm_add_epi64(sum, _mm_sad_epu8(_mm_xor_si128(bytes, flip), zeros));
        }
        int32_t all = _mm_cvtsi128_si32(sum) + _mm_extract_epi32(sum, 2);
        for (; i < m->columns; i++) all += x[i] ^ to_unsigned;
        sums[r] = all - PRODUCT_SIGN_BIT * (int32_t)m->columns;
    }
}

static inline float top_of(const float *x, size_t count) {
    float lanes[LANES], best = -INFINITY;
    __m256 top = _mm256_set1_ps(-INFINITY);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) top = _mm256_max_ps(_mm256_loadu_ps(x + i), top);
    _mm256_storeu_ps(lanes, top);
    for (size_t k = 0; k < LANES; k++) best = lanes[k] > best ? lanes[k] : best;
    for (; i < count; i++) best = x[i] > best ? x[i] : best;
    return best;
}

// tare__exp2_quantized, in the low bytes of numbers to which EXP_QUANTIZED_MAGIC's bits are added.
// A maximum with NaN returns its second operand.
static inline __m256i exp2_quantized(__m256 d) {
    const __m256 magic = _mm256_set1_ps(EXP_QUANTIZED_MAGIC);
    const __m256 moved = _mm256_add_ps(d, _mm256_set1_ps(EXP_QUANTIZED_OFFSET));
    const __m256 at = _mm256_max_ps(moved, _mm256_set1_ps(EXP_QUANTIZED_LEAST));
    const __m256 n = _mm256_add_ps(at, magic), r = _mm256_sub_ps(at, _mm256_sub_ps(n, magic));
    __m256 p = _mm256_set1_ps(EXP_QUANTIZED_C4);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_QUANTIZED_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_QUANTIZED_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_QUANTIZED_C1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_QUANTIZED_C0));
    const __m256i power = _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(n), 23),
                                           _mm256_set1_epi32(0x3f800000));
    return _mm256_castps_si256(_mm256_fmadd_ps(p, _mm256_castsi256_ps(power), magic));
}

uint32_t qu8_weigh__avx2(const float *x, size_t count, uint8_t *quantized) {
    const float top = top_of(x, count);
    const __m256i low = _mm256_set1_epi32(0xFF);
    __m256i sums = _mm256_setzero_si256();
    uint32_t lanes[LANES], sum = 0;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(top));
        const __m256i words = _mm256_and_si256(exp2_quantized(d), low);
        const __m128i halves =
            _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        _mm_storel_epi64((__m128i *)(void *)(quantized + i), _mm_packus_epi16(halves, halves));
        sums = _mm256_add_epi32(sums, words);
    }
    _mm256_storeu_si256((__m256i *)(void *)lanes, sums);
    for (size_t k = 0; k < LANES; k++) sum += lanes[k];
    for (; i < count; i++) sum += quantized[i] = tare__exp2_quantized(x[i] - top);
    return sum;
}

void f32_scale__avx2(float factor, float offset, size_t count, float *y) {
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        _mm256_storeu_ps(
            y + i, _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(y + i), _mm256_set1_ps(factor)),
                                 _mm256_set1_ps(offset)));
    for (; i < count; i++) y[i] = y[i] * factor + offset;
}
