// SPDX-License-Identifier: Apache-2.0
// Attention's kernels with AVX512-VNNI, sixteen lanes at a time.
#include <immintrin.h>
#include <math.h>

#include "core/math/exp_quantized.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/qu8_avx512.h"
#include "runtime/kernels/qu8_columns_x86.h"

enum { LANES = 16, BYTES = 64 };

static inline __mmask16 mask_of(size_t left) {
    return (__mmask16)(left < LANES ? (1U << left) - 1 : 0xFFFFU);
}

// Sixteen rows of a matrix.
typedef struct row_group {
    const uint8_t *x;
    size_t rows; // number of valid rows
    __mmask16 mask;
    bool is_near;    // offsets fit 32 bits
    __m512i offsets; // of the rows, in bytes
} row_group;

static inline row_group row_group_of(const quantized_matrix *m, size_t row) {
    const __m512i each = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const size_t left = row < m->rows ? m->rows - row : 0;
    return (row_group){.x = m->x + row * m->step,
                       .rows = left < LANES ? left : LANES,
                       .mask = mask_of(left),
                       .is_near = m->step <= INT32_MAX / LANES,
                       .offsets = _mm512_mullo_epi32(each, _mm512_set1_epi32((int)m->step))};
}

// The rows' words at one depth.
static inline __m512i words_of(const quantized_matrix *m, const row_group *g, size_t at) {
    const size_t left = m->columns - at;
    const __m512i flip = _mm512_set1_epi8((char)m->flip);
    if (left >= 4 && g->is_near) {
        const __m512i zeros = _mm512_setzero_si512();
        const __m512i words = _mm512_mask_i32gather_epi32(zeros, g->mask, g->offsets, g->x + at, 1);
        return _mm512_maskz_xor_epi32(g->mask, words, flip);
    }
    const uint8_t *x = g->x + at;
    uint32_t words[LANES] = {0};
    for (size_t r = 0; r < g->rows; r++, x += m->step) words[r] = tare__product_word(x, left);
    const uint32_t unused = left < 4 ? 8 * (4 - (uint32_t)left) : 0;
    return _mm512_maskz_xor_epi32(g->mask, _mm512_loadu_si512(words),
                                  _mm512_srli_epi32(flip, unused));
}

void qu8_pack_rows__avx512vnni(const quantized_matrix *m, size_t lanes, uint32_t *w,
                               int32_t *sums) {
    const __m512i ones = _mm512_set1_epi8(1);
    for (size_t row = 0; row < lanes; row += LANES) {
        const row_group g = row_group_of(m, row);
        __m512i sum = _mm512_setzero_si512();
        for (size_t i = 0; i < m->columns; i += 4) {
            const __m512i words = words_of(m, &g, i);
            sum = _mm512_dpbusd_epi32(sum, ones, words);
            _mm512_storeu_si512(w + i / 4 * lanes + row, words);
        }
        _mm512_storeu_si512(sums + row, sum);
    }
}

void qu8_pack_columns__avx512vnni(const quantized_matrix *m, size_t lanes, uint32_t *w,
                                  int32_t *sums) {
    pack_columns_x86(m, lanes, w, sums);
}

void qu8_sum_rows__avx512vnni(const quantized_matrix *m, int32_t *sums) {
    const __m512i ones = _mm512_set1_epi8(1), flip = _mm512_set1_epi8((char)m->flip);
    for (size_t r = 0; r < m->rows; r++) {
        const uint8_t *x = m->x + r * m->step;
        __m512i sum = _mm512_setzero_si512();
        for (size_t i = 0; i < m->columns; i += BYTES) {
            const size_t left = m->columns - i;
            const __mmask64 mask = left < BYTES ? ((__mmask64)1 << left) - 1 : ~(__mmask64)0;
            const __m512i bytes = _mm512_maskz_loadu_epi8(mask, x + i);
            sum = _mm512_dpbusd_epi32(sum, ones,
                                      _mm512_xor_si512(bytes, _mm512_maskz_mov_epi8(mask, flip)));
        }
        sums[r] = _mm512_reduce_add_epi32(sum);
    }
}

static inline float top_of(const float *x, size_t count) {
    const __m512 least = _mm512_set1_ps(-INFINITY);
    __m512 top[4] = {least, least, least, least};
    size_t i = 0;
    for (; i + BYTES <= count; i += BYTES)
        EACH_OF_FOUR(v) top[v] = _mm512_max_ps(_mm512_loadu_ps(x + i + v * LANES), top[v]);
    for (; i < count; i += LANES)
        top[0] = _mm512_mask_max_ps(top[0], mask_of(count - i),
                                    _mm512_maskz_loadu_ps(mask_of(count - i), x + i), top[0]);
    return _mm512_reduce_max_ps(
        _mm512_max_ps(_mm512_max_ps(top[0], top[1]), _mm512_max_ps(top[2], top[3])));
}

// tare__exp2_quantized, in the low bytes of numbers to which EXP_QUANTIZED_MAGIC's bits are added.
// A maximum with NaN returns its second operand.
static inline __attribute__((always_inline)) void exp2_quantized(const __m512 d[4],
                                                                 __m512i quantized[4]) {
    const __m512 magic = _mm512_set1_ps(EXP_QUANTIZED_MAGIC);
    const __m512i one = _mm512_set1_epi32(0x3f800000);
    __m512 r[4], n[4], p[4];
    EACH_OF_FOUR(v) {
        const __m512 moved = _mm512_add_ps(d[v], _mm512_set1_ps(EXP_QUANTIZED_OFFSET));
        r[v] = _mm512_max_ps(moved, _mm512_set1_ps(EXP_QUANTIZED_LEAST));
    }
    EACH_OF_FOUR(v) n[v] = _mm512_add_ps(r[v], magic);
    EACH_OF_FOUR(v) r[v] = _mm512_sub_ps(r[v], _mm512_sub_ps(n[v], magic));
    EACH_OF_FOUR(v) p[v] = _mm512_set1_ps(EXP_QUANTIZED_C4);
    EACH_OF_FOUR(v) p[v] = _mm512_fmadd_ps(p[v], r[v], _mm512_set1_ps(EXP_QUANTIZED_C3));
    EACH_OF_FOUR(v) p[v] = _mm512_fmadd_ps(p[v], r[v], _mm512_set1_ps(EXP_QUANTIZED_C2));
    EACH_OF_FOUR(v) p[v] = _mm512_fmadd_ps(p[v], r[v], _mm512_set1_ps(EXP_QUANTIZED_C1));
    EACH_OF_FOUR(v) p[v] = _mm512_fmadd_ps(p[v], r[v], _mm512_set1_ps(EXP_QUANTIZED_C0));
    EACH_OF_FOUR(v) {
        const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(n[v]), 23);
        const __m512 power = _mm512_castsi512_ps(_mm512_add_epi32(bits, one));
        quantized[v] = _mm512_castps_si512(_mm512_fmadd_ps(p[v], power, magic));
    }
}

// The bytes of 64 scores; 0 outside the mask.
static inline __attribute__((always_inline)) __m512i weigh_block(const float *x, __mmask64 mask,
                                                                 __m512 top) {
    const __m512i low = _mm512_set1_epi32(0xFF);
    __mmask16 lanes[4];
    __m512 d[4];
    __m512i quantized[4];
    EACH_OF_FOUR(v) {
        lanes[v] = (__mmask16)(mask >> v * LANES);
        d[v] = _mm512_sub_ps(_mm512_maskz_loadu_ps(lanes[v], x + v * LANES), top);
    }
    exp2_quantized(d, quantized);
    EACH_OF_FOUR(v) quantized[v] = _mm512_maskz_and_epi32(lanes[v], quantized[v], low);
    return pack_quantized(false, quantized);
}

uint32_t qu8_weigh__avx512vnni(const float *x, size_t count, uint8_t *quantized) {
    const __m512 top = _mm512_set1_ps(top_of(x, count));
    const __m512i ones = _mm512_set1_epi8(1);
    __m512i sum = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + BYTES <= count; i += BYTES) {
        const __m512i bytes = weigh_block(x + i, ~(__mmask64)0, top);
        sum = _mm512_dpbusd_epi32(sum, bytes, ones);
        _mm512_storeu_si512(quantized + i, bytes);
    }
    if (i < count) {
        const __mmask64 mask = ((__mmask64)1 << (count - i)) - 1;
        const __m512i bytes = weigh_block(x + i, mask, top);
        sum = _mm512_dpbusd_epi32(sum, bytes, ones);
        _mm512_mask_storeu_epi8(quantized + i, mask, bytes);
    }
    return (uint32_t)_mm512_reduce_add_epi32(sum);
}

void f32_scale__avx512vnni(float factor, float offset, size_t count, float *y) {
    const __m512 factors = _mm512_set1_ps(factor), offsets = _mm512_set1_ps(offset);
    for (size_t i = 0; i < count; i += LANES) {
        const __mmask16 mask = mask_of(count - i);
        const __m512 values = _mm512_maskz_loadu_ps(mask, y + i);
        _mm512_mask_storeu_ps(y + i, mask, _mm512_add_ps(_mm512_mul_ps(values, factors), offsets));
    }
}
