// SPDX-License-Identifier: Apache-2.0
// Transposes matrices in tiles, so that both sides stay in the cache. For files built with -O3.
#ifndef RUNTIME_GEMM_TRANSPOSE_TILES_H
#define RUNTIME_GEMM_TRANSPOSE_TILES_H

#include <stdint.h>

enum { TRANSPOSE_TILE = 16 };

// Defines name(x, x_step, rows, columns, y, y_step): y[c * y_step + r] = x[r * x_step + c]. The
// rows of a full tile are unrolled: the speed of a short loop depends on its alignment to lines of
// the instruction cache. Steps are passed by value: bytes that are written may be those of any
// struct.
#define DEFINE_TRANSPOSE(name, type)                                                               \
    static void name##_tile(const type *x, int64_t x_step, int64_t height, int64_t width, type *y, \
                            int64_t y_step) {                                                      \
        for (int64_t k = 0; k < width; k++, x++, y += y_step)                                      \
            if (height == TRANSPOSE_TILE) {                                                        \
                _Pragma("GCC unroll 16") for (int64_t i = 0; i < TRANSPOSE_TILE; i++) y[i] =       \
                    x[i * x_step];                                                                 \
            } else {                                                                               \
                for (int64_t i = 0; i < height; i++) y[i] = x[i * x_step];                         \
            }                                                                                      \
    }                                                                                              \
    static void name(const type *x, int64_t x_step, int64_t rows, int64_t columns, type *y,        \
                     int64_t y_step) {                                                             \
        const int64_t tile = TRANSPOSE_TILE;                                                       \
        for (int64_t r = 0; r < rows; r += tile)                                                   \
            for (int64_t c = 0; c < columns; c += tile)                                            \
                name##_tile(x + r * x_step + c, x_step, r + tile < rows ? tile : rows - r,         \
                            c + tile < columns ? tile : columns - c, y + c * y_step + r, y_step);  \
    }

#endif
