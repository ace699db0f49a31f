// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Products with group-wise weights, in registers of 16 outputs. A line of 4-bit values takes 2
// masks, a shift and, for each row, 2 products whose other operand is broadcast from memory.
#include <immintrin.h>
#include <string.h>

#include "runtime/kernels/grouped.h"

#define INLINE static inline __attribute__((always_inline))

INLINE __m512i broadcast_4(const int8_t *x) {
    int32_t four;
    memcpy(&four, x, sizeof four);
    return _mm512_set1_epi32(four);
}

INLINE __m512i zeros_of(const uint8_t *group) {
    const uint8_t *zeros = tare__grouped_zeros(group);
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)zeros));
}

INLINE __m512 scales_of(const uint8_t *group) {
    return _mm512_loadu_ps(tare__grouped_scales(group));
}

// --- quantized rows ---

INLINE void add_line(int bits, size_t rows, const uint8_t *line, const int8_t *x, size_t ins,
                     __m512i *group_sums) {
    const __m512i quantized = _mm512_loadu_si512(line), half = _mm512_set1_epi8(15);
    const __m512i low = bits == 4 ? _mm512_and_si512(quantized, half) : quantized;
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(quantized, 4), half);
    for (size_t r = 0; r < rows; r++) {
        group_sums[r] = _mm512_dpbusd_epi32(group_sums[r], low, broadcast_4(x + r * ins));
        if (bits == 4)
            group_sums[r] = _mm512_dpbusd_epi32(group_sums[r], high, broadcast_4(x + r * ins + 4));
    }
}

INLINE void multiply_quantized(const grouped_tile *t, size_t first_row, size_t panel,
                               const int bits, const bool has_zeros, const size_t rows) {
    const size_t ins = t->groups * t->group, line_inputs = bits == 4 ? 8 : 4;
    const int8_t *x = t->quantized + first_row * ins;
    const int32_t *quantized_sums = t->quantized_sums + first_row * t->groups;
    const uint8_t *line = tare__grouped_panel(t, panel);
    __m512 sums[GROUPED_MOST_ROWS];
    for (size_t r = 0; r < rows; r++) sums[r] = _mm512_setzero_ps();
    for (size_t g = 0; g < t->groups; g++) {
        __m512i group_sums[GROUPED_MOST_ROWS];
        const uint8_t *head = line;
        line += tare__grouped_head_bytes(has_zeros);
        for (size_t r = 0; r < rows; r++)
            group_sums[r] =
                has_zeros
                    ? _mm512_setzero_si512()
                    : _mm512_set1_epi32(-quantized_sums[r * t->groups + g] * (1 << (bits - 1)));
        for (size_t k = 0; k < t->group; k += line_inputs, line += GROUPED_LINE)
            add_line(bits, rows, line, x + g * t->group + k, ins, group_sums);
        const __m512 scales = scales_of(head);
        for (size_t r = 0; r < rows; r++) {
            if (has_zeros)
                group_sums[r] = _mm512_sub_epi32(
                    group_sums[r],
                    _mm512_mullo_epi32(zeros_of(head),
                                       _mm512_set1_epi32(quantized_sums[r * t->groups + g])));
            sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(group_sums[r]), scales, sums[r]);
        }
    }
    for (size_t r = 0; r < rows; r++)
        _mm512_storeu_ps(t->sums + ((first_row + r) * t->panel_count + panel) * GROUPED_OUTPUTS,
                         sums[r]);
}

// --- floats ---

// The lanes' weights for input n of the line: q - zero point, exact.
INLINE __m512 weight_at(int bits, bool has_zeros, __m512i line, size_t n, __m512 table,
                        __m512 zeros) {
    if (bits == 4) {
        const unsigned shift = (unsigned)(n < 4 ? 8 * n : 8 * (n - 4) + 4);
        const __m512 q = _mm512_permutexvar_ps(_mm512_srli_epi32(line, shift), table);
        return has_zeros ? _mm512_sub_ps(q, zeros) : q;
    }
    const __m512i q =
        _mm512_and_si512(_mm512_srli_epi32(line, (unsigned)(8 * n)), _mm512_set1_epi32(255));
    return _mm512_sub_ps(_mm512_cvtepi32_ps(q), zeros);
}

INLINE __m512 table_of(bool has_zeros) {
    const __m512i quantized =
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(quantized, _mm512_set1_epi32(has_zeros ? 0 : 8)));
}

// With several panels or rows, sums are independent.
INLINE void multiply_floats(const grouped_tile *t, size_t first_row, size_t first_panel,
                            const int bits, const bool has_zeros, const size_t rows,
                            const size_t panels) {
    const size_t ins = t->groups * t->group, line_inputs = bits == 4 ? 8 : 4;
    const float *x = t->x + first_row * ins;
    const __m512 table = table_of(has_zeros);
    const uint8_t *lines[GROUPED_MOST_PANELS], *heads[GROUPED_MOST_PANELS];
    __m512 sums[GROUPED_MOST_ROWS], group_sums[GROUPED_MOST_ROWS], zeros[GROUPED_MOST_PANELS];
    for (size_t p = 0; p < panels; p++) lines[p] = tare__grouped_panel(t, first_panel + p);
    for (size_t i = 0; i < rows * panels; i++) sums[i] = _mm512_setzero_ps();
    for (size_t g = 0; g < t->groups; g++) {
        for (size_t i = 0; i < rows * panels; i++) group_sums[i] = _mm512_setzero_ps();
        for (size_t p = 0; p < panels; p++) {
            heads[p] = lines[p];
            lines[p] += tare__grouped_head_bytes(has_zeros);
            zeros[p] = has_zeros ? _mm512_cvtepi32_ps(zeros_of(heads[p])) : _mm512_set1_ps(128);
        }
        for (size_t k = g * t->group; k < (g + 1) * t->group; k += line_inputs)
            for (size_t p = 0; p < panels; p++) {
                const __m512i line = _mm512_loadu_si512(lines[p]);
                lines[p] += GROUPED_LINE;
                for (size_t n = 0; n < line_inputs; n++) {
                    const __m512 w = weight_at(bits, has_zeros, line, n, table, zeros[p]);
                    for (size_t r = 0; r < rows; r++)
                        group_sums[r * panels + p] = _mm512_fmadd_ps(
                            _mm512_set1_ps(x[r * ins + k + n]), w, group_sums[r * panels + p]);
                }
            }
        for (size_t p = 0; p < panels; p++) {
            const __m512 scales = scales_of(heads[p]);
            for (size_t r = 0; r < rows; r++)
                sums[r * panels + p] =
                    _mm512_fmadd_ps(group_sums[r * panels + p], scales, sums[r * panels + p]);
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t p = 0; p < panels; p++)
            _mm512_storeu_ps(t->sums + ((first_row + r) * t->panel_count + first_panel + p) *
                                           GROUPED_OUTPUTS,
                             sums[r * panels + p]);
}

// --- forms ---

// Sums of short groups are independent anyway, and adjacent panels are several streams.
enum { LONG_GROUP = 128 };

#define ROWS_AT_ONCE(left) ((left) >= 8 ? 8 : (left) >= 4 ? 4 : (left) >= 2 ? 2 : 1)

#define FORM(bits, zeros)                                                                          \
    static void quantized_##bits##_##zeros(const grouped_tile *t) {                                \
        for (size_t p = 0; p < t->panel_count; p++)                                                \
            for (size_t r = 0, n; r < t->rows; r += n) {                                           \
                n = ROWS_AT_ONCE(t->rows - r);                                                     \
                if (n == 8) multiply_quantized(t, r, p, bits, zeros, 8);                           \
                if (n == 4) multiply_quantized(t, r, p, bits, zeros, 4);                           \
                if (n == 2) multiply_quantized(t, r, p, bits, zeros, 2);                           \
                if (n == 1) multiply_quantized(t, r, p, bits, zeros, 1);                           \
            }                                                                                      \
    }                                                                                              \
    static void floats_##bits##_##zeros(const grouped_tile *t) {                                   \
        if (t->rows == 1 && t->panel_count == 4 && t->group >= LONG_GROUP) {                       \
            multiply_floats(t, 0, 0, bits, zeros, 1, 4);                                           \
            return;                                                                                \
        }                                                                                          \
        for (size_t p = 0; p < t->panel_count; p++)                                                \
            for (size_t r = 0, n; r < t->rows; r += n) {                                           \
                n = ROWS_AT_ONCE(t->rows - r);                                                     \
                if (n == 8) multiply_floats(t, r, p, bits, zeros, 8, 1);                           \
                if (n == 4) multiply_floats(t, r, p, bits, zeros, 4, 1);                           \
                if (n == 2) multiply_floats(t, r, p, bits, zeros, 2, 1);                           \
                if (n == 1) multiply_floats(t, r, p, bits, zeros, 1, 1);                           \
            }                                                                                      \
    }
FORM(4, false)
FORM(4, true)
FORM(8, false)
FORM(8, true)
#undef FORM

void grouped_floats__avx512vnni(const grouped_tile *t) {
    if (t->bits == 4)
        (t->has_zeros ? floats_4_true : floats_4_false)(t);
    else
        (t->has_zeros ? floats_8_true : floats_8_false)(t);
}

void grouped_quantized__avx512vnni(const grouped_tile *t) {
    if (t->bits == 4)
        (t->has_zeros ? quantized_4_true : quantized_4_false)(t);
    else
        (t->has_zeros ? quantized_8_true : quantized_8_false)(t);
}
