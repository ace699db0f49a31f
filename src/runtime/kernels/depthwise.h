// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of channels-last quantized values: the arguments and the table of kernels.
//
//   y[r][p][c] = requantize(sum over columns j and rows i of x[p * stride + j * dilation][i][c] *
//                           w[r][j][i][c])
//
// The rows of a column are stored in words of four. If the windows of two output rows are a row
// apart, both rows read the same words: the weights of the second one are shifted by a row.
#ifndef RUNTIME_KERNELS_DEPTHWISE_H
#define RUNTIME_KERNELS_DEPTHWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/math/requant.h"
#include "runtime/kernels/isa.h"

enum {
    DEPTHWISE_BLOCK = 64, // largest number of channels of any kernel
    DEPTHWISE_WORD = 4,
    DEPTHWISE_QUAD = 16, // channels of 16 bytes
};

/// The constants of a block of channels, in the block's order: channel c is at
/// tare__depthwise_index(quads, c).
typedef struct depthwise_constants {
    int32_t start[DEPTHWISE_BLOCK]; // initial values of the sums
    float multiplier[DEPTHWISE_BLOCK], bias[DEPTHWISE_BLOCK];
} depthwise_constants;

/// Pixels of one or two output rows, for a block of channels.
typedef struct depthwise_tile {
    const uint8_t *const
        *x;         // [columns of the input][words * 4] addresses of pixels, one for each row
    size_t first;   // first channel of the block within a pixel
    size_t words;   // words of a column
    size_t columns; // columns of a window
    size_t stride, dilation; // in columns
    size_t rows, pixels;     // output rows; pixels of a row
    uint8_t flip; // 0x80 if the quantized values have another sign than the kernel takes; else 0
    const uint32_t *w; // [rows][columns][words][16 * quads], in the block's order
    const requant *requant;
    const depthwise_constants *constants;
    bool is_signed;  // of the result
    bool is_small;   // as in tile_epilogue
    size_t channels; // of the block, or the first ones of it
    size_t quads;    // in whose order the block's weights and constants are
    uint8_t *y;      // [rows][pixels][channels], with strides y_row and y_stride
    float *real;     // instead of y, the values of rule O; NULL: quantized result
    size_t y_row, y_stride;
} depthwise_tile;

typedef struct depthwise_kernel {
    kernel_needs needs;
    void (*run)(const depthwise_tile *t);
    const char *name;
    uint8_t moved; // 128: it multiplies signed values, and sums start with 128 times the
                   // weights; 0: it multiplies unsigned values
    size_t quads;  // 16-byte lanes of the widest register, in which bytes are interleaved
} depthwise_kernel;

/// Fastest first; the last row runs everywhere.
extern const depthwise_kernel tare__depthwise_kernels[];
const depthwise_kernel *tare__depthwise_choose(isa_level isa);

#define KERNEL(name, needs, quads, moved) void name(const depthwise_tile *t);
#include "runtime/kernels/qu8_depthwise/kernels.def"
#undef KERNEL
// Two encodings of one kernel.
void qu8_depthwise__avxvnni_vex(const depthwise_tile *t);
void qu8_depthwise__avx512vl(const depthwise_tile *t);

// Columns that a kernel interleaves in advance at most, and their words.
enum { DEPTHWISE_KEPT_COLUMNS = 24, DEPTHWISE_KEPT_WORDS = 2 };
/// Are interleaved columns kept for the pixels that share them? `span`: columns from the first to
/// the last of a pixel.
static inline bool tare__depthwise_keeps_columns(size_t words, size_t span, size_t stride) {
    return words <= DEPTHWISE_KEPT_WORDS && span <= DEPTHWISE_KEPT_COLUMNS && stride < span;
}

/// The quads of the narrowest register that holds a block's channels, at most the kernel's.
static inline size_t tare__depthwise_quads(const depthwise_kernel *kernel, size_t channels) {
    size_t quads = 1;
    while (quads < kernel->quads && quads * DEPTHWISE_QUAD < channels) quads *= 2;
    return quads;
}

/// A register of 16 * quads bytes holds that many channels. Interleaving four registers gives four
/// registers of int32 lanes, each with four channels of each quad.
static inline size_t tare__depthwise_index(size_t quads, size_t channel) {
    const size_t quad = channel / DEPTHWISE_QUAD, c = channel % DEPTHWISE_QUAD;
    return c / 4 * 4 * quads + quad * 4 + c % 4;
}

/// Stores the values of a block's first channels in their natural order.
static inline void tare__depthwise_order(const float *values, size_t quads, size_t count,
                                         float *y) {
    enum { TOGETHER = 4 }; // channels beside each other in both orders
    size_t c = 0;
    for (; c + TOGETHER <= count; c += TOGETHER)
        memcpy(y + c, values + tare__depthwise_index(quads, c), TOGETHER * sizeof *y);
    for (; c < count; c++) y[c] = values[tare__depthwise_index(quads, c)];
}

#endif
