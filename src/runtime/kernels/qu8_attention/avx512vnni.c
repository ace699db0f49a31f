// SPDX-License-Identifier: Apache-2.0
// Attention's kernels with AVX512-VNNI, sixteen lanes at a time.
#include <immintrin.h>
#include <math.h>

#include "core/exp_code.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/qu8_avx512.h"
#include "runtime/kernels/qu8_columns_x86.h"

enum { LANES = 16, BYTES = 64 };

static inline __mmask16 mask_of(size_t left) {
    return (__mmask16)(left < LANES ? (1U << left) - 1 : 0xFFFFU);
}

// The words of sixteen rows at one depth.
static inline __m512i words_of(const code_matrix *m, size_t row, size_t at, __mmask16 rows) {
    const uint8_t *x = m->x + row * m->step + at;
    uint32_t words[LANES] = {0};
    const size_t left = m->columns - at;
    for (size_t r = 0; r < LANES && row + r < m->rows; r++, x += m->step)
        if (left >= 4)
            memcpy(&words[r], x, 4);
        else
            words[r] = tare__product_tail(x, left);
    const uint32_t flips = 0x01010101U * m->flip, kept = left >= 4 ? 0 : 8 * (4 - (uint32_t)left);
    const __m512i flip = _mm512_set1_epi32((int)(flips << kept >> kept));
    return _mm512_maskz_xor_epi32(rows, _mm512_loadu_si512(words), flip);
}

void qu8_pack_rows__avx512vnni(const code_matrix *m, size_t lanes, uint32_t *w, int32_t *sums) {
    const __m512i ones = _mm512_set1_epi8(1);
    for (size_t row = 0; row < lanes; row += LANES) {
        const __mmask16 rows = row < m->rows ? mask_of(m->rows - row) : 0;
        __m512i sum = _mm512_setzero_si512();
        for (size_t i = 0; i < m->columns; i += 4) {
            const __m512i words = words_of(m, row, i, rows);
            sum = _mm512_dpbusd_epi32(sum, ones, words);
            _mm512_storeu_si512(w + i / 4 * lanes + row, words);
        }
        _mm512_storeu_si512(sums + row, sum);
    }
}

void qu8_pack_columns__avx512vnni(const code_matrix *m, size_t lanes, uint32_t *w) {
    pack_columns_x86(m, lanes, w);
}

static inline float top_of(const float *x, size_t count) {
    __m512 top = _mm512_set1_ps(-INFINITY);
    for (size_t i = 0; i < count; i += LANES)
        top = _mm512_mask_max_ps(top, mask_of(count - i),
                                 _mm512_maskz_loadu_ps(mask_of(count - i), x + i), top);
    return _mm512_reduce_max_ps(top);
}

// tare__exp2_code, in the low bytes of numbers that are EXP_CODE_MAGIC's bits higher. The second
// operand of a maximum is what it gives for NaN.
static inline __m512i exp2_codes(__m512 d) {
    const __m512 magic = _mm512_set1_ps(EXP_CODE_MAGIC);
    const __m512 moved = _mm512_add_ps(d, _mm512_set1_ps(EXP_CODE_OFFSET));
    const __m512 at = _mm512_max_ps(moved, _mm512_set1_ps(EXP_CODE_LEAST));
    const __m512 n = _mm512_add_ps(at, magic), r = _mm512_sub_ps(at, _mm512_sub_ps(n, magic));
    __m512 p = _mm512_set1_ps(EXP_CODE_C4);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_CODE_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_CODE_C2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_CODE_C1));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_CODE_C0));
    const __m512i power = _mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(n), 23),
                                           _mm512_set1_epi32(0x3f800000));
    return _mm512_castps_si512(_mm512_fmadd_ps(p, _mm512_castsi512_ps(power), magic));
}

// The bytes of 64 scores; 0 where the mask has none.
static inline __m512i weigh_block(const float *x, __mmask64 mask, __m512 top) {
    const __m512i low = _mm512_set1_epi32(0xFF);
    __m512i codes[4];
    for (size_t v = 0; v < 4; v++) {
        const __mmask16 part = (__mmask16)(mask >> v * LANES);
        const __m512 d = _mm512_sub_ps(_mm512_maskz_loadu_ps(part, x + v * LANES), top);
        codes[v] = _mm512_maskz_and_epi32(part, exp2_codes(d), low);
    }
    return pack_codes(false, codes);
}

uint32_t qu8_weigh__avx512vnni(const float *x, size_t count, uint8_t *codes) {
    const __m512 top = _mm512_set1_ps(top_of(x, count));
    const __m512i ones = _mm512_set1_epi8(1);
    __m512i sum = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + BYTES <= count; i += BYTES) {
        const __m512i bytes = weigh_block(x + i, ~(__mmask64)0, top);
        sum = _mm512_dpbusd_epi32(sum, bytes, ones);
        _mm512_storeu_si512(codes + i, bytes);
    }
    if (i < count) {
        const __mmask64 mask = ((__mmask64)1 << (count - i)) - 1;
        const __m512i bytes = weigh_block(x + i, mask, top);
        sum = _mm512_dpbusd_epi32(sum, bytes, ones);
        _mm512_mask_storeu_epi8(codes + i, mask, bytes);
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
