// SPDX-License-Identifier: Apache-2.0
// Tiles at a time, so that neither side leaves the cache.
#include "runtime/kernels/transpose.h"

enum { TILE = 16 };

#define DEFINE(name, type)                                                                         \
    static void name(const type *x, int64_t rows, int64_t columns, type *y) {                      \
        for (int64_t r = 0; r < rows; r += TILE)                                                   \
            for (int64_t c = 0; c < columns; c += TILE) {                                          \
                const int64_t last_row = r + TILE < rows ? r + TILE : rows;                        \
                const int64_t last_column = c + TILE < columns ? c + TILE : columns;               \
                for (int64_t k = c; k < last_column; k++)                                          \
                    for (int64_t i = r; i < last_row; i++) y[k * rows + i] = x[i * columns + k];   \
            }                                                                                      \
    }

DEFINE(transpose_words, uint32_t)
DEFINE(transpose_bytes, uint8_t)

void tare__transpose(const transposition *t, const void *x, void *y) {
    const int64_t size = t->rows * t->columns;
    for (int64_t n = 0; n < t->batch; n++) {
        if (t->element == 1)
            transpose_bytes((const uint8_t *)x + n * size, t->rows, t->columns,
                            (uint8_t *)y + n * size);
        else
            transpose_words((const uint32_t *)x + n * size, t->rows, t->columns,
                            (uint32_t *)y + n * size);
    }
}
