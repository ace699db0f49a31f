// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Products for every 64-bit Arm CPU: up to 4 pixels by 8 channels at a time. Quantized values are
// converted to signed ones; products of bytes fit 16 bits, and two of them at a time are added to a
// sum, so that nothing saturates.
#include "runtime/kernels/qu8_product/neon.h"

enum { ROWS = 4, HALF = 8, PAIRS = 4 }; // PAIRS: registers of half a vector; a sum uses two lanes

UNROLLED void add_word(int32x4_t acc[ROWS][PAIRS], size_t rows, const int8x8_t x[ROWS],
                       const uint32_t *w) {
    for (size_t i = 0; i < PAIRS; i++) {
        const int8x8_t weights = vreinterpret_s8_u32(vld1_u32(w + 2 * i));
        for (size_t r = 0; r < rows; r++)
            acc[r][i] = vpadalq_s16(acc[r][i], vmull_s8(weights, x[r]));
    }
}

UNROLLED void add_taps(const product_tile *t, int32x4_t acc[ROWS][PAIRS], size_t rows,
                       const uint32_t *w) {
    const uint32_t flip = (t->flip ^ 0x80U) * 0x01010101U;
    const size_t step = words_of_step(t);
    for (size_t tap = 0; tap < t->taps; tap++) {
        const uint8_t *at[ROWS];
        for (size_t r = 0; r < rows; r++) at[r] = tare__product_values_at(t, t->x + r, tap);
        w += tare__product_gap(t, tap);
        for (size_t k = 0; k < t->tap_size; k += 4, w += step) {
            const size_t left = t->tap_size - k < 4 ? t->tap_size - k : 4;
            int8x8_t x[ROWS];
            for (size_t r = 0; r < rows; r++)
                x[r] = vreinterpret_s8_u32(vdup_n_u32(tare__product_word(at[r] + k, left) ^ flip));
            add_word(acc, rows, x, w);
        }
    }
}

UNROLLED void add_half(const product_tile *t, neon_sums sums[ROWS], size_t rows, const uint32_t *w,
                       size_t half) {
    int32x4_t acc[ROWS][PAIRS];
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < PAIRS; i++) acc[r][i] = vdupq_n_s32(0);
    add_taps(t, acc, rows, w + half * HALF);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < PAIRS; i += 2) {
            uint32x4_t *to = &sums[r].v[half * 2 + i / 2];
            *to = vaddq_u32(*to, vreinterpretq_u32_s32(vpaddq_s32(acc[r][i], acc[r][i + 1])));
        }
}

UNROLLED void run_rows(const product_tile *t, size_t rows) {
    for (size_t c = 0; c < t->channels; c += PRODUCT_LANES) {
        const neon_sums start = start_of(t, c, 0x80);
        neon_sums sums[ROWS];
        for (size_t r = 0; r < rows; r++) sums[r] = start;
        add_half(t, sums, rows, t->w + c, 0);
        if (c + HALF < t->channels) add_half(t, sums, rows, t->w + c, 1);
        finish(t, sums, rows, c);
    }
}

void qu8_product__neon(const product_tile *t) {
    switch (t->rows) {
    case 1:
        run_rows(t, 1);
        return;
    case 2:
        run_rows(t, 2);
        return;
    case 3:
        run_rows(t, 3);
        return;
    default:
        run_rows(t, ROWS);
        return;
    }
}
