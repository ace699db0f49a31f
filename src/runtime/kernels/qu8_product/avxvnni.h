// SPDX-License-Identifier: Apache-2.0
// Products with vpdpbusd in 256-bit registers: up to 6 pixels by 16 channels at a time. It adds
// four products of unsigned and signed bytes to an int32 lane without saturating. The file of an
// encoding defines DOT, the instruction, and QU8_PRODUCT, the kernel's name.
enum { ROWS = 6 };
#include "runtime/kernels/qu8_product/ymm.h"

UNROLLED void add_word(__m256i acc[ROWS][HALVES], size_t rows, const __m256i x[ROWS],
                       const uint32_t *w) {
    for (size_t h = 0; h < HALVES; h++) {
        const __m256i weights = load_weights(w + h * HALF);
        for (size_t r = 0; r < rows; r++) acc[r][h] = DOT(acc[r][h], x[r], weights);
    }
}

UNROLLED void add_taps(const product_tile *t, __m256i acc[ROWS][HALVES], size_t rows, size_t c) {
    const size_t step = words_of_step(t), whole = t->tap_size / 4 * 4, tail = t->tap_size - whole;
    const uint32_t *w = t->w + c;
    for (size_t tap = 0; tap < t->taps; tap++) {
        const uint8_t *at[ROWS];
        for (size_t r = 0; r < rows; r++) at[r] = tare__product_values_at(t, t->x + r, tap);
        w += tare__product_gap(t, tap);
        __m256i x[ROWS];
        for (size_t k = 0; k < whole; k += 4, w += step) {
            for (size_t r = 0; r < rows; r++)
                x[r] = _mm256_set1_epi32((int32_t)tare__product_word(at[r] + k, 4));
            add_word(acc, rows, x, w);
        }
        if (tail == 0) continue;
        for (size_t r = 0; r < rows; r++)
            x[r] = _mm256_set1_epi32((int32_t)tare__product_tail(at[r] + whole, tail));
        add_word(acc, rows, x, w);
        w += step;
    }
}

void QU8_PRODUCT(const product_tile *t) {
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
    case 4:
        run_rows(t, 4);
        return;
    case 5:
        run_rows(t, 5);
        return;
    default:
        run_rows(t, ROWS);
        return;
    }
}
