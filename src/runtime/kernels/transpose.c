// SPDX-License-Identifier: Apache-2.0
// Tiles at a time, so that neither side leaves the cache; few rows, as of the channels of pictures,
// column by column.
#include "runtime/kernels/transpose.h"

#include <string.h>

enum { TILE = 16, FEW = 4 };

// The columns of `rows` rows, which is a constant where it matters.
#define DEFINE(name, type)                                                                         \
    static inline __attribute__((always_inline)) void name##_few(                                  \
        const type *x, int64_t rows, int64_t columns, int64_t first, int64_t last, type *y) {      \
        for (int64_t c = first; c < last; c++)                                                     \
            for (int64_t r = 0; r < rows; r++) y[c * rows + r] = x[r * columns + c];               \
    }                                                                                              \
    static void name##_tiles(const type *x, int64_t rows, int64_t columns, int64_t first,          \
                             int64_t last, type *y) {                                              \
        for (int64_t r = 0; r < rows; r += TILE)                                                   \
            for (int64_t c = first; c < last; c += TILE) {                                         \
                const int64_t last_row = r + TILE < rows ? r + TILE : rows;                        \
                const int64_t last_column = c + TILE < last ? c + TILE : last;                     \
                for (int64_t k = c; k < last_column; k++)                                          \
                    for (int64_t i = r; i < last_row; i++) y[k * rows + i] = x[i * columns + k];   \
            }                                                                                      \
    }                                                                                              \
    static void name(const type *x, int64_t rows, int64_t columns, int64_t first, int64_t last,    \
                     type *y) {                                                                    \
        switch (rows) {                                                                            \
        case 1:                                                                                    \
            name##_few(x, 1, columns, first, last, y);                                             \
            break;                                                                                 \
        case 2:                                                                                    \
            name##_few(x, 2, columns, first, last, y);                                             \
            break;                                                                                 \
        case 3:                                                                                    \
            name##_few(x, 3, columns, first, last, y);                                             \
            break;                                                                                 \
        case FEW:                                                                                  \
            name##_few(x, FEW, columns, first, last, y);                                           \
            break;                                                                                 \
        default:                                                                                   \
            name##_tiles(x, rows, columns, first, last, y);                                        \
        }                                                                                          \
    }

DEFINE(transpose_words, uint32_t)
DEFINE(transpose_bytes, uint8_t)

// Pictures: four pixels of three planes at a time, as words.
static void interleave_three(const uint8_t *x, int64_t columns, int64_t first, int64_t last,
                             uint8_t *y) {
    int64_t c = first;
#if defined __BYTE_ORDER__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; c + 4 <= last; c += 4) {
        uint32_t r, g, b;
        memcpy(&r, x + c, sizeof r);
        memcpy(&g, x + columns + c, sizeof g);
        memcpy(&b, x + 2 * columns + c, sizeof b);
        const uint32_t w0 = (r & 0xFF) | (g & 0xFF) << 8 | (b & 0xFF) << 16 | (r & 0xFF00) << 16;
        const uint32_t w1 = (g >> 8 & 0xFF) | (b & 0xFF00) | (r & 0xFF0000) | (g & 0xFF0000) << 8;
        const uint32_t w2 =
            (b >> 16 & 0xFF) | (r >> 16 & 0xFF00) | (g >> 8 & 0xFF0000) | (b & 0xFF000000);
        memcpy(y + 3 * c, &w0, sizeof w0);
        memcpy(y + 3 * c + 4, &w1, sizeof w1);
        memcpy(y + 3 * c + 8, &w2, sizeof w2);
    }
#endif
    transpose_bytes(x, 3, columns, c, last, y);
}

void tare__transpose_columns(const transposition *t, int64_t image, int64_t first, int64_t last,
                             const void *x, void *y) {
    const int64_t at = image * t->rows * t->columns;
    if (t->element == 1 && t->rows == 3)
        interleave_three((const uint8_t *)x + at, t->columns, first, last, (uint8_t *)y + at);
    else if (t->element == 1)
        transpose_bytes((const uint8_t *)x + at, t->rows, t->columns, first, last,
                        (uint8_t *)y + at);
    else
        transpose_words((const uint32_t *)x + at, t->rows, t->columns, first, last,
                        (uint32_t *)y + at);
}

transposition tare__channels_moved(const tare_tensor *t, bool has_batch, bool to_last) {
    const int64_t batch = has_batch ? t->shape[0] : 1, channels = t->shape[has_batch ? 1 : 0];
    const int64_t pixels = batch * channels > 0 ? t->count / batch / channels : 0;
    return (transposition){.batch = batch,
                           .rows = to_last ? channels : pixels,
                           .columns = to_last ? pixels : channels,
                           .element = tare_dtype_size(t->dtype)};
}

void tare__transpose(const transposition *t, const void *x, void *y) {
    for (int64_t n = 0; n < t->batch; n++) tare__transpose_columns(t, n, 0, t->columns, x, y);
}
