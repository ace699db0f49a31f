// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Products with group-wise weights, in registers of 8 outputs; a panel is two of them. Products of
// bytes are added in pairs to 16 bits, which 4-bit values cannot overflow (2 * 15 * 128); 8-bit
// values are split into halves.
#include <immintrin.h>
#include <string.h>

#include "runtime/kernels/grouped.h"

#define INLINE static inline __attribute__((always_inline))
enum { LANES = 8, ROWS = 4 };

INLINE __m256i broadcast_4(const int8_t *x) {
    int32_t four;
    memcpy(&four, x, sizeof four);
    return _mm256_set1_epi32(four);
}

INLINE __m256i zeros_of(const uint8_t *group, size_t half) {
    const uint8_t *zeros = tare__grouped_zeros(group) + half * LANES;
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)zeros));
}

INLINE __m256 scales_of(const uint8_t *group, size_t half) {
    return _mm256_loadu_ps(tare__grouped_scales(group) + half * LANES);
}

// --- quantized rows ---

INLINE __m256i quads(__m256i quantized, __m256i x) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(quantized, x), _mm256_set1_epi16(1));
}

// 8 bits: low + 16 * high of each value; 4 bits: 4 inputs in the low halves, 4 in the high ones.
INLINE void add_line(int bits, size_t rows, const uint8_t *line, const int8_t *x, size_t ins,
                     __m256i *group_sums) {
    const __m256i quantized = _mm256_loadu_si256((const __m256i *)(const void *)line);
    const __m256i mask = _mm256_set1_epi8(15);
    const __m256i low = _mm256_and_si256(quantized, mask);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(quantized, 4), mask);
    for (size_t r = 0; r < rows; r++) {
        const __m256i first = broadcast_4(x + r * ins);
        const __m256i second = bits == 4 ? broadcast_4(x + r * ins + 4) : first;
        const __m256i of_low = quads(low, first), of_high = quads(high, second);
        group_sums[r] = _mm256_add_epi32(
            group_sums[r],
            _mm256_add_epi32(of_low, bits == 4 ? of_high : _mm256_slli_epi32(of_high, 4)));
    }
}

INLINE void multiply_quantized(const grouped_tile *t, size_t first_row, size_t panel, size_t half,
                               const int bits, const size_t rows) {
    const size_t ins = t->groups * t->group, line_inputs = bits == 4 ? 8 : 4;
    const int8_t *x = t->quantized + first_row * ins;
    const int32_t *quantized_sums = t->quantized_sums + first_row * t->groups;
    const uint8_t *line = tare__grouped_panel(t, panel);
    __m256 sums[ROWS];
    for (size_t r = 0; r < rows; r++) sums[r] = _mm256_setzero_ps();
    for (size_t g = 0; g < t->groups; g++) {
        __m256i group_sums[ROWS];
        const uint8_t *head = line;
        line += tare__grouped_head_bytes(t->has_zeros);
        for (size_t r = 0; r < rows; r++) group_sums[r] = _mm256_setzero_si256();
        for (size_t k = 0; k < t->group; k += line_inputs, line += GROUPED_LINE)
            add_line(bits, rows, line + half * (GROUPED_LINE / 2), x + g * t->group + k, ins,
                     group_sums);
        const __m256 scales = scales_of(head, half);
        const __m256i zeros =
            t->has_zeros ? zeros_of(head, half) : _mm256_set1_epi32(1 << (bits - 1));
        for (size_t r = 0; r < rows; r++) {
            const __m256i less =
                _mm256_mullo_epi32(zeros, _mm256_set1_epi32(quantized_sums[r * t->groups + g]));
            sums[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(group_sums[r], less)),
                                      scales, sums[r]);
        }
    }
    for (size_t r = 0; r < rows; r++)
        _mm256_storeu_ps(t->sums + ((first_row + r) * t->panel_count + panel) * GROUPED_OUTPUTS +
                             half * LANES,
                         sums[r]);
}

// --- floats ---

// The lanes' weights for input n of the line: q - zero point, exact.
INLINE __m256 weight_at(int bits, __m256i line, size_t n, __m256 zeros) {
    const int shift = (int)(bits == 8 || n < 4 ? 8 * n : 8 * (n - 4) + 4);
    const __m256i q =
        _mm256_and_si256(_mm256_srli_epi32(line, shift), _mm256_set1_epi32(bits == 4 ? 15 : 255));
    return _mm256_sub_ps(_mm256_cvtepi32_ps(q), zeros);
}

// With several panels or rows, sums are independent.
INLINE void multiply_floats(const grouped_tile *t, size_t first_row, size_t first_panel,
                            size_t half, const int bits, const size_t rows, const size_t panels) {
    const size_t ins = t->groups * t->group, line_inputs = bits == 4 ? 8 : 4;
    const float *x = t->x + first_row * ins;
    const uint8_t *lines[ROWS], *heads[ROWS];
    __m256 sums[ROWS], group_sums[ROWS], zeros[ROWS];
    for (size_t p = 0; p < panels; p++) lines[p] = tare__grouped_panel(t, first_panel + p);
    for (size_t i = 0; i < rows * panels; i++) sums[i] = _mm256_setzero_ps();
    for (size_t g = 0; g < t->groups; g++) {
        for (size_t i = 0; i < rows * panels; i++) group_sums[i] = _mm256_setzero_ps();
        for (size_t p = 0; p < panels; p++) {
            heads[p] = lines[p];
            lines[p] += tare__grouped_head_bytes(t->has_zeros);
            zeros[p] = t->has_zeros ? _mm256_cvtepi32_ps(zeros_of(heads[p], half))
                                    : _mm256_set1_ps((float)(1 << (bits - 1)));
        }
        for (size_t k = g * t->group; k < (g + 1) * t->group; k += line_inputs)
            for (size_t p = 0; p < panels; p++) {
                const __m256i line = _mm256_loadu_si256(
                    (const __m256i *)(const void *)(lines[p] + half * (GROUPED_LINE / 2)));
                lines[p] += GROUPED_LINE;
                for (size_t n = 0; n < line_inputs; n++) {
                    const __m256 w = weight_at(bits, line, n, zeros[p]);
                    for (size_t r = 0; r < rows; r++)
                        group_sums[r * panels + p] = _mm256_fmadd_ps(
                            _mm256_set1_ps(x[r * ins + k + n]), w, group_sums[r * panels + p]);
                }
            }
        for (size_t p = 0; p < panels; p++) {
            const __m256 scales = scales_of(heads[p], half);
            for (size_t r = 0; r < rows; r++)
                sums[r * panels + p] =
                    _mm256_fmadd_ps(group_sums[r * panels + p], scales, sums[r * panels + p]);
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t p = 0; p < panels; p++)
            _mm256_storeu_ps(
                t->sums + ((first_row + r) * t->panel_count + first_panel + p) * GROUPED_OUTPUTS +
                    half * LANES,
                sums[r * panels + p]);
}

// --- forms ---

#define FORM(bits)                                                                                 \
    static void quantized_##bits(const grouped_tile *t, size_t p, size_t half) {                   \
        for (size_t r = 0, n; r < t->rows; r += n) {                                               \
            n = t->rows - r >= 4 ? 4 : t->rows - r >= 2 ? 2 : 1;                                   \
            if (n == 4) multiply_quantized(t, r, p, half, bits, 4);                                \
            if (n == 2) multiply_quantized(t, r, p, half, bits, 2);                                \
            if (n == 1) multiply_quantized(t, r, p, half, bits, 1);                                \
        }                                                                                          \
    }                                                                                              \
    static void floats_##bits(const grouped_tile *t, size_t p, size_t half) {                      \
        for (size_t r = 0, n; r < t->rows; r += n) {                                               \
            n = t->rows - r >= 4 ? 4 : t->rows - r >= 2 ? 2 : 1;                                   \
            if (n == 4) multiply_floats(t, r, p, half, bits, 4, 1);                                \
            if (n == 2) multiply_floats(t, r, p, half, bits, 2, 1);                                \
            if (n == 1) multiply_floats(t, r, p, half, bits, 1, 1);                                \
        }                                                                                          \
    }                                                                                              \
    static void floats_of_row_##bits(const grouped_tile *t, size_t half) {                         \
        multiply_floats(t, 0, 0, half, bits, 1, 4);                                                \
    }
FORM(4)
FORM(8)
#undef FORM

void grouped_floats__avx2(const grouped_tile *t) {
    const bool is_row = t->rows == 1 && t->panel_count == GROUPED_MOST_PANELS;
    for (size_t half = 0; half < 2 && is_row; half++)
        (t->bits == 4 ? floats_of_row_4 : floats_of_row_8)(t, half);
    for (size_t p = 0; p < t->panel_count && !is_row; p++)
        for (size_t half = 0; half < 2; half++) (t->bits == 4 ? floats_4 : floats_8)(t, p, half);
}

void grouped_quantized__avx2(const grouped_tile *t) {
    for (size_t p = 0; p < t->panel_count; p++)
        for (size_t half = 0; half < 2; half++)
            (t->bits == 4 ? quantized_4 : quantized_8)(t, p, half);
}
