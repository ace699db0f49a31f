// SPDX-License-Identifier: Apache-2.0
// Products with an instruction that adds four products of bytes to each of four sums: up to 6
// pixels by 16 channels, whose sums stay in registers. A level's file defines, before it includes
// this,
//   DOT(acc, w, x)             the instruction, x: one word for all
//   DOT_LANE(acc, w, x, lane)  the same with a word of four
//   DOT_MOVED                  what its quantized values are less than unsigned ones
#include "runtime/kernels/qu8_product/neon.h"

enum { DOT_ROWS = 6 };

static inline uint8x16_t word_for_all(uint32_t word) {
    return vreinterpretq_u8_u32(vdupq_n_u32(word));
}

// Adds the products of four words of depth; x holds each row's quantized values.
UNROLLED void add_four_words(int32x4_t acc[DOT_ROWS][NEON_QUADS], size_t rows,
                             const uint8x16_t x[DOT_ROWS], const uint32_t *w, size_t step) {
#define ADD_WORD(lane)                                                                             \
    for (size_t i = 0; i < NEON_QUADS; i++) {                                                      \
        const int8x16_t weights = load_weights(w + (lane)*step + 4 * i);                           \
        for (size_t r = 0; r < rows; r++) acc[r][i] = DOT_LANE(acc[r][i], weights, x[r], lane);    \
    }
    ADD_WORD(0)
    ADD_WORD(1)
    ADD_WORD(2)
    ADD_WORD(3)
#undef ADD_WORD
}

UNROLLED void add_one_word(int32x4_t acc[DOT_ROWS][NEON_QUADS], size_t rows,
                           const uint8x16_t x[DOT_ROWS], const uint32_t *w) {
    for (size_t i = 0; i < NEON_QUADS; i++) {
        const int8x16_t weights = load_weights(w + 4 * i);
        for (size_t r = 0; r < rows; r++) acc[r][i] = DOT(acc[r][i], weights, x[r]);
    }
}

UNROLLED void add_taps(const product_tile *t, int32x4_t acc[DOT_ROWS][NEON_QUADS], size_t rows,
                       const uint32_t *w) {
    const uint8x16_t flip = vdupq_n_u8((uint8_t)(t->flip ^ DOT_MOVED));
    const size_t step = words_of_step(t);
    for (size_t tap = 0; tap < t->taps; tap++) {
        const uint8_t *at[DOT_ROWS];
        for (size_t r = 0; r < rows; r++) at[r] = tare__product_values_at(t, t->x + r, tap);
        w += tare__product_gap(t, tap);
        uint8x16_t x[DOT_ROWS];
        size_t k = 0;
        for (; k + 16 <= t->tap_size; k += 16, w += 4 * step) {
            for (size_t r = 0; r < rows; r++) x[r] = veorq_u8(vld1q_u8(at[r] + k), flip);
            add_four_words(acc, rows, x, w, step);
        }
        for (; k < t->tap_size; k += 4, w += step) {
            const size_t left = t->tap_size - k < 4 ? t->tap_size - k : 4;
            for (size_t r = 0; r < rows; r++)
                x[r] = veorq_u8(word_for_all(tare__product_word(at[r] + k, left)), flip);
            add_one_word(acc, rows, x, w);
        }
    }
}

UNROLLED void run_dots(const product_tile *t, size_t rows) {
    for (size_t c = 0; c < t->channels; c += PRODUCT_LANES) {
        const neon_sums start = start_of(t, c, DOT_MOVED);
        int32x4_t acc[DOT_ROWS][NEON_QUADS];
        neon_sums sums[DOT_ROWS];
        for (size_t r = 0; r < rows; r++)
            for (size_t i = 0; i < NEON_QUADS; i++) acc[r][i] = vreinterpretq_s32_u32(start.v[i]);
        add_taps(t, acc, rows, t->w + c);
        for (size_t r = 0; r < rows; r++)
            for (size_t i = 0; i < NEON_QUADS; i++) sums[r].v[i] = vreinterpretq_u32_s32(acc[r][i]);
        finish(t, sums, rows, c);
    }
}
