// SPDX-License-Identifier: Apache-2.0
// Transposes matrices in tiles. Few rows, such as the channels of images, are transposed column by
// column; of bytes, by the elementwise kernels.
#include "runtime/gemm/transpose.h"

#include "runtime/gemm/transpose_tiles.h"

enum { FEW = 4 };

DEFINE_TRANSPOSE(transpose_word_tiles, uint32_t)
DEFINE_TRANSPOSE(transpose_byte_tiles, uint8_t)

// Transposes `rows` rows, a constant.
static inline __attribute__((always_inline)) void few_words(const uint32_t *x, int64_t rows,
                                                            int64_t columns, int64_t first,
                                                            int64_t last, uint32_t *y) {
    for (int64_t c = first; c < last; c++)
        for (int64_t r = 0; r < rows; r++) y[c * rows + r] = x[r * columns + c];
}

static void transpose_words(const uint32_t *x, int64_t rows, int64_t columns, int64_t first,
                            int64_t last, uint32_t *y) {
    switch (rows) {
    case 1:
        few_words(x, 1, columns, first, last, y);
        break;
    case 2:
        few_words(x, 2, columns, first, last, y);
        break;
    case 3:
        few_words(x, 3, columns, first, last, y);
        break;
    case FEW:
        few_words(x, FEW, columns, first, last, y);
        break;
    default:
        transpose_word_tiles(x + first, columns, rows, last - first, y + first * rows, rows);
    }
}

static void transpose_bytes(const elementwise_kernels *k, const uint8_t *x, int64_t rows,
                            int64_t columns, int64_t first, int64_t last, uint8_t *y) {
    if (rows <= FEW)
        k->interleave(x + first, (size_t)columns, (size_t)rows, (size_t)(last - first),
                      y + first * rows);
    else
        transpose_byte_tiles(x + first, columns, rows, last - first, y + first * rows, rows);
}

void tare__transpose_columns(const elementwise_kernels *k, const transposition *t, int64_t image,
                             int64_t first, int64_t last, const void *x, void *y) {
    const int64_t at = image * t->rows * t->columns;
    if (t->element == 1)
        transpose_bytes(k, (const uint8_t *)x + at, t->rows, t->columns, first, last,
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

void tare__transpose(const elementwise_kernels *k, const transposition *t, const void *x, void *y) {
    for (int64_t n = 0; n < t->batch; n++) tare__transpose_columns(k, t, n, 0, t->columns, x, y);
}
