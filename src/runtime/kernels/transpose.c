// SPDX-License-Identifier: Apache-2.0
// Tiles at a time, so that neither side leaves the cache.
#include "runtime/kernels/transpose.h"

enum { TILE = 16 };

#define DEFINE(name, type)                                                                         \
    void name(const type *x, int64_t rows, int64_t columns, type *y) {                             \
        for (int64_t r = 0; r < rows; r += TILE)                                                   \
            for (int64_t c = 0; c < columns; c += TILE) {                                          \
                const int64_t last_row = r + TILE < rows ? r + TILE : rows;                        \
                const int64_t last_column = c + TILE < columns ? c + TILE : columns;               \
                for (int64_t k = c; k < last_column; k++)                                          \
                    for (int64_t i = r; i < last_row; i++) y[k * rows + i] = x[i * columns + k];   \
            }                                                                                      \
    }

DEFINE(tare__transpose_f32, float)
DEFINE(tare__transpose_u8, uint8_t)
