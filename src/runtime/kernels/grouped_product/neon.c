// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Products with group-wise weights, in registers of 4 outputs; a panel is four of them. Bytes are
// multiplied as signed ones: 8-bit values as q - 128, which sums of the inputs correct.
#include <arm_neon.h>
#include <string.h>

#include "runtime/kernels/grouped.h"

#define INLINE static inline __attribute__((always_inline))
enum { LANES = 4, QUARTERS = 4, ROWS = 4 };

INLINE int8x16_t broadcast_4(const int8_t *x) {
    int32_t four;
    memcpy(&four, x, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

INLINE int32x4_t zeros_of(const grouped_tile *t, const uint8_t *group, size_t quarter) {
    const uint8_t *zeros = tare__grouped_zeros(group) + quarter * LANES;
    int32_t of_lanes[LANES];
    if (!t->has_zeros) return vdupq_n_s32(1 << (t->bits - 1));
    for (int i = 0; i < LANES; i++) of_lanes[i] = zeros[i];
    return vld1q_s32(of_lanes);
}

INLINE float32x4_t scales_of(const uint8_t *group, size_t quarter) {
    return vld1q_f32(tare__grouped_scales(group) + quarter * LANES);
}

// --- quantized rows ---

// The sums of each lane's 4 products.
INLINE int32x4_t quads(int8x16_t quantized, int8x16_t x) {
    const int16x8_t low = vmull_s8(vget_low_s8(quantized), vget_low_s8(x));
    const int16x8_t high = vmull_s8(vget_high_s8(quantized), vget_high_s8(x));
    return vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
}

INLINE void add_line(int bits, size_t rows, const uint8_t *line, const int8_t *x, size_t ins,
                     int32x4_t *group_sums) {
    const uint8x16_t quantized = vld1q_u8(line);
    const int8x16_t low = vreinterpretq_s8_u8(bits == 4 ? vandq_u8(quantized, vdupq_n_u8(15))
                                                        : veorq_u8(quantized, vdupq_n_u8(128)));
    const int8x16_t high = vreinterpretq_s8_u8(vshrq_n_u8(quantized, 4));
    for (size_t r = 0; r < rows; r++) {
        group_sums[r] = vaddq_s32(group_sums[r], quads(low, broadcast_4(x + r * ins)));
        if (bits == 4)
            group_sums[r] = vaddq_s32(group_sums[r], quads(high, broadcast_4(x + r * ins + 4)));
    }
}

INLINE void multiply_quantized(const grouped_tile *t, size_t first_row, size_t panel,
                               size_t quarter, const int bits, const size_t rows) {
    const size_t ins = t->groups * t->group, line_inputs = bits == 4 ? 8 : 4;
    const int8_t *x = t->quantized + first_row * ins;
    const int32_t *quantized_sums = t->quantized_sums + first_row * t->groups;
    const uint8_t *line = tare__grouped_panel(t, panel);
    float32x4_t sums[ROWS];
    for (size_t r = 0; r < rows; r++) sums[r] = vdupq_n_f32(0);
    for (size_t g = 0; g < t->groups; g++) {
        int32x4_t group_sums[ROWS];
        const uint8_t *head = line;
        line += tare__grouped_head_bytes(t->has_zeros);
        for (size_t r = 0; r < rows; r++) group_sums[r] = vdupq_n_s32(0);
        for (size_t k = 0; k < t->group; k += line_inputs, line += GROUPED_LINE)
            add_line(bits, rows, line + quarter * (GROUPED_LINE / QUARTERS), x + g * t->group + k,
                     ins, group_sums);
        const float32x4_t scales = scales_of(head, quarter);
        const int32x4_t zeros =
            vsubq_s32(zeros_of(t, head, quarter), vdupq_n_s32(bits == 8 ? 128 : 0));
        for (size_t r = 0; r < rows; r++) {
            const int32x4_t group_sum =
                vmlsq_s32(group_sums[r], zeros, vdupq_n_s32(quantized_sums[r * t->groups + g]));
            sums[r] = vfmaq_f32(sums[r], vcvtq_f32_s32(group_sum), scales);
        }
    }
    for (size_t r = 0; r < rows; r++)
        vst1q_f32(t->sums + ((first_row + r) * t->panel_count + panel) * GROUPED_OUTPUTS +
                      quarter * LANES,
                  sums[r]);
}

// --- floats ---

// The lanes' weights for input n of the line: q - zero point, exact.
INLINE float32x4_t weight_at(int bits, uint32x4_t line, size_t n, float32x4_t zeros) {
    const int shift = (int)(bits == 8 || n < 4 ? 8 * n : 8 * (n - 4) + 4);
    const uint32x4_t q =
        vandq_u32(vshlq_u32(line, vdupq_n_s32(-shift)), vdupq_n_u32(bits == 4 ? 15 : 255));
    return vsubq_f32(vcvtq_f32_u32(q), zeros);
}

INLINE void multiply_floats(const grouped_tile *t, size_t first_row, size_t first_panel,
                            size_t quarter, const int bits, const size_t rows,
                            const size_t panels) {
    const size_t ins = t->groups * t->group, line_inputs = bits == 4 ? 8 : 4;
    const float *x = t->x + first_row * ins;
    const uint8_t *lines[ROWS], *heads[ROWS];
    float32x4_t sums[ROWS], group_sums[ROWS], zeros[ROWS];
    for (size_t p = 0; p < panels; p++) lines[p] = tare__grouped_panel(t, first_panel + p);
    for (size_t i = 0; i < rows * panels; i++) sums[i] = vdupq_n_f32(0);
    for (size_t g = 0; g < t->groups; g++) {
        for (size_t i = 0; i < rows * panels; i++) group_sums[i] = vdupq_n_f32(0);
        for (size_t p = 0; p < panels; p++) {
            heads[p] = lines[p];
            lines[p] += tare__grouped_head_bytes(t->has_zeros);
            zeros[p] = vcvtq_f32_s32(zeros_of(t, heads[p], quarter));
        }
        for (size_t k = g * t->group; k < (g + 1) * t->group; k += line_inputs)
            for (size_t p = 0; p < panels; p++) {
                const uint32x4_t line =
                    vreinterpretq_u32_u8(vld1q_u8(lines[p] + quarter * (GROUPED_LINE / QUARTERS)));
                lines[p] += GROUPED_LINE;
                for (size_t n = 0; n < line_inputs; n++) {
                    const float32x4_t w = weight_at(bits, line, n, zeros[p]);
                    for (size_t r = 0; r < rows; r++)
                        group_sums[r * panels + p] = vfmaq_f32(group_sums[r * panels + p],
                                                               vdupq_n_f32(x[r * ins + k + n]), w);
                }
            }
        for (size_t p = 0; p < panels; p++) {
            const float32x4_t scales = scales_of(heads[p], quarter);
            for (size_t r = 0; r < rows; r++)
                sums[r * panels + p] =
                    vfmaq_f32(sums[r * panels + p], group_sums[r * panels + p], scales);
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t p = 0; p < panels; p++)
            vst1q_f32(t->sums +
                          ((first_row + r) * t->panel_count + first_panel + p) * GROUPED_OUTPUTS +
                          quarter * LANES,
                      sums[r * panels + p]);
}

// --- forms ---

#define FORM(bits)                                                                                 \
    static void quantized_##bits(const grouped_tile *t, size_t p, size_t quarter) {                \
        for (size_t r = 0, n; r < t->rows; r += n) {                                               \
            n = t->rows - r >= 4 ? 4 : t->rows - r >= 2 ? 2 : 1;                                   \
            if (n == 4) multiply_quantized(t, r, p, quarter, bits, 4);                             \
            if (n == 2) multiply_quantized(t, r, p, quarter, bits, 2);                             \
            if (n == 1) multiply_quantized(t, r, p, quarter, bits, 1);                             \
        }                                                                                          \
    }                                                                                              \
    static void floats_##bits(const grouped_tile *t, size_t p, size_t quarter) {                   \
        for (size_t r = 0, n; r < t->rows; r += n) {                                               \
            n = t->rows - r >= 4 ? 4 : t->rows - r >= 2 ? 2 : 1;                                   \
            if (n == 4) multiply_floats(t, r, p, quarter, bits, 4, 1);                             \
            if (n == 2) multiply_floats(t, r, p, quarter, bits, 2, 1);                             \
            if (n == 1) multiply_floats(t, r, p, quarter, bits, 1, 1);                             \
        }                                                                                          \
    }                                                                                              \
    static void floats_of_row_##bits(const grouped_tile *t, size_t quarter) {                      \
        multiply_floats(t, 0, 0, quarter, bits, 1, 4);                                             \
    }
FORM(4)
FORM(8)
#undef FORM

void grouped_floats__neon(const grouped_tile *t) {
    const bool is_row = t->rows == 1 && t->panel_count == GROUPED_MOST_PANELS;
    for (size_t quarter = 0; quarter < QUARTERS && is_row; quarter++)
        (t->bits == 4 ? floats_of_row_4 : floats_of_row_8)(t, quarter);
    for (size_t p = 0; p < t->panel_count && !is_row; p++)
        for (size_t quarter = 0; quarter < QUARTERS; quarter++)
            (t->bits == 4 ? floats_4 : floats_8)(t, p, quarter);
}

void grouped_quantized__neon(const grouped_tile *t) {
    for (size_t p = 0; p < t->panel_count; p++)
        for (size_t quarter = 0; quarter < QUARTERS; quarter++)
            (t->bits == 4 ? quantized_4 : quantized_8)(t, p, quarter);
}
