// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Products with Arm's matrix instructions. usmmla adds the products of two pixels and two channels
// over eight unsigned and signed bytes to four sums: up to 12 pixels by 8 channels at a time. A
// single pixel uses the dot product of such bytes.
#include <arm_neon.h>

#define DOT_MOVED                 0
#define DOT(acc, w, x)            vusdotq_s32(acc, x, w)
#define DOT_LANE(acc, w, x, lane) vsudotq_laneq_s32(acc, w, x, lane)
#include "runtime/kernels/qu8_product/neon_dot.h"

enum { ROWS = 12, ROW_PAIRS = ROWS / 2, HALF = 8, CHANNEL_PAIRS = HALF / 2 };

// Eight quantized values of two rows, side by side.
static inline uint8x16_t load_pair(const uint8_t *a, const uint8_t *b) {
    return vcombine_u8(vld1_u8(a), vld1_u8(b));
}

// The same if at most four are left.
static inline uint8x16_t load_last(const uint8_t *a, const uint8_t *b, size_t left) {
    return vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(tare__product_word(a, left)),
                                             vcreate_u64(tare__product_word(b, left))));
}

// Adds the products of two words of depth: low and high contain the words of 8 channels.
UNROLLED void add_words(int32x4_t acc[ROW_PAIRS][CHANNEL_PAIRS], size_t pairs,
                        const uint8x16_t x[ROW_PAIRS], const uint32x4_t low[2],
                        const uint32x4_t high[2]) {
    for (size_t i = 0; i < 2; i++) {
        const int8x16_t even = vreinterpretq_s8_u32(vzip1q_u32(low[i], high[i]));
        const int8x16_t odd = vreinterpretq_s8_u32(vzip2q_u32(low[i], high[i]));
        for (size_t p = 0; p < pairs; p++) {
            acc[p][2 * i] = vusmmlaq_s32(acc[p][2 * i], x[p], even);
            acc[p][2 * i + 1] = vusmmlaq_s32(acc[p][2 * i + 1], x[p], odd);
        }
    }
}

UNROLLED void add_matrices(const product_tile *t, int32x4_t acc[ROW_PAIRS][CHANNEL_PAIRS],
                           size_t rows, const uint32_t *w) {
    const uint8x16_t flip = vdupq_n_u8(t->flip);
    const size_t step = words_of_step(t), pairs = (rows + 1) / 2;
    const uint32x4_t none[2] = {vdupq_n_u32(0), vdupq_n_u32(0)};
    for (size_t tap = 0; tap < t->taps; tap++) {
        const uint8_t *at[ROWS];
        for (size_t r = 0; r < rows; r++) at[r] = tare__product_values_at(t, t->x + r, tap);
        w += tare__product_gap(t, tap);
        uint8x16_t x[ROW_PAIRS];
        size_t k = 0;
        // An odd row is paired with itself; the extra sums are not read.
        for (; k + 8 <= t->tap_size; k += 8, w += 2 * step) {
            const uint32x4_t low[2] = {vld1q_u32(w), vld1q_u32(w + 4)};
            const uint32x4_t high[2] = {vld1q_u32(w + step), vld1q_u32(w + step + 4)};
            for (size_t p = 0; p < pairs; p++)
                x[p] = veorq_u8(load_pair(at[2 * p] + k, at[2 * p + (2 * p + 1 < rows)] + k), flip);
            add_words(acc, pairs, x, low, high);
        }
        for (; k < t->tap_size; k += 4, w += step) {
            const uint32x4_t low[2] = {vld1q_u32(w), vld1q_u32(w + 4)};
            const size_t left = t->tap_size - k < 4 ? t->tap_size - k : 4;
            for (size_t p = 0; p < pairs; p++)
                x[p] = veorq_u8(load_last(at[2 * p] + k, at[2 * p + (2 * p + 1 < rows)] + k, left),
                                flip);
            add_words(acc, pairs, x, low, none);
        }
    }
}

// Adds the sums of channels 8 * half and on.
UNROLLED void add_half(const product_tile *t, neon_sums sums[ROWS], size_t rows, const uint32_t *w,
                       size_t half) {
    const size_t pairs = (rows + 1) / 2;
    int32x4_t acc[ROW_PAIRS][CHANNEL_PAIRS];
    for (size_t p = 0; p < pairs; p++)
        for (size_t i = 0; i < CHANNEL_PAIRS; i++) acc[p][i] = vdupq_n_s32(0);
    add_matrices(t, acc, rows, w + half * HALF);
    for (size_t p = 0; p < pairs; p++)
        for (size_t i = 0; i < CHANNEL_PAIRS; i += 2) {
            // Two sums of a row are adjacent.
            const uint64x2_t a = vreinterpretq_u64_s32(acc[p][i]);
            const uint64x2_t b = vreinterpretq_u64_s32(acc[p][i + 1]);
            const size_t quad = half * 2 + i / 2;
            const uint32x4_t first = vreinterpretq_u32_u64(vzip1q_u64(a, b));
            const uint32x4_t second = vreinterpretq_u32_u64(vzip2q_u64(a, b));
            sums[2 * p].v[quad] = vaddq_u32(sums[2 * p].v[quad], first);
            if (2 * p + 1 < rows)
                sums[2 * p + 1].v[quad] = vaddq_u32(sums[2 * p + 1].v[quad], second);
        }
}

UNROLLED void run_rows(const product_tile *t, size_t rows) {
    for (size_t c = 0; c < t->channels; c += PRODUCT_LANES) {
        const neon_sums start = start_of(t, c, DOT_MOVED);
        neon_sums sums[ROWS];
        for (size_t r = 0; r < rows; r++) sums[r] = start;
        add_half(t, sums, rows, t->w + c, 0);
        if (c + HALF < t->channels) add_half(t, sums, rows, t->w + c, 1);
        finish(t, sums, rows, c);
    }
}

// One function per number of rows.
#define EACH_COUNT(X) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#define DEFINE(rows)                                                                               \
    static void tile_##rows(const product_tile *t) {                                               \
        run_rows(t, rows);                                                                         \
    }
static void tile_1(const product_tile *t) {
    run_dots(t, 1);
}
EACH_COUNT(DEFINE)
#undef DEFINE

#define ROW(rows) tile_##rows,
static void (*const tiles[ROWS])(const product_tile *) = {tile_1, EACH_COUNT(ROW)};
#undef ROW

void qu8_product__i8mm(const product_tile *t) {
    tiles[t->rows - 1](t);
}
