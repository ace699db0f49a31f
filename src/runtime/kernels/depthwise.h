// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of quantized values that lie channels last: what its kernels are given, and
// the rows that offer them.
//
//   y[r][p][c] = requantize(sum over columns j and rows i of x[p * stride + j * dilation][i][c] *
//                           w[r][j][i][c])
//
// Rows of a column come in words of four. Two rows of output read the same words where the rows of
// their windows follow each other: the second one's weights stand one row lower.
#ifndef RUNTIME_KERNELS_DEPTHWISE_H
#define RUNTIME_KERNELS_DEPTHWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/math/requant.h"
#include "runtime/kernels/isa.h"

enum {
    DEPTHWISE_BLOCK = 64, // channels, at most, of any kernel
    DEPTHWISE_WORD = 4,
    DEPTHWISE_QUAD = 16, // channels of 16 bytes
};

/// The constants of a block of channels, each array in the block's order: channel c stands at
/// tare__depthwise_index(quads, c).
typedef struct depthwise_constants {
    int32_t start[DEPTHWISE_BLOCK]; // of the sums
    float multiplier[DEPTHWISE_BLOCK], bias[DEPTHWISE_BLOCK];
} depthwise_constants;

/// A block of channels of some pixels of one or two rows of output.
typedef struct depthwise_tile {
    const uint8_t *const *x; // [columns of the input][words * 4] where each row's pixel lies
    size_t first;            // channel of a pixel that is the block's first
    size_t words;            // of a column
    size_t columns;          // of a window
    size_t stride, dilation; // of columns
    size_t rows, pixels;     // of output; pixels of a row
    uint8_t flip; // 0x80 for quantized values whose sign is not what the kernel multiplies; else 0
    const uint32_t *w; // [rows][columns][words][16 * quads], in the block's order
    const requant *requant;
    const depthwise_constants *constants;
    bool is_signed;  // the result
    bool is_small;   // as tile_epilogue's
    size_t channels; // of the block
    uint8_t *y;      // [rows][pixels][channels], y_row and y_stride apart
    float *real;     // in place of y, the values of rule O; NULL: quantized values are wanted
    size_t y_row, y_stride;
} depthwise_tile;

typedef struct depthwise_kernel {
    kernel_needs needs;
    void (*run)(const depthwise_tile *t);
    const char *name;
    uint8_t moved; // 128: it multiplies signed quantized values, and sums start that often the
                   // weights higher; 0: unsigned ones
    size_t quads;  // 16 bytes of the widest register, in each of which bytes are interleaved
} depthwise_kernel;

/// Best first; the last row needs nothing.
extern const depthwise_kernel tare__depthwise_kernels[];
const depthwise_kernel *tare__depthwise_choose(isa_level isa);

#define KERNEL(name, needs, quads, moved) void name(const depthwise_tile *t);
#include "runtime/kernels/qu8_depthwise/kernels.def"
#undef KERNEL
// The two encodings of one kernel.
void qu8_depthwise__avxvnni_vex(const depthwise_tile *t);
void qu8_depthwise__avx512vl(const depthwise_tile *t);

/// Those of the narrowest register that holds a block's channels, at most the kernel's.
static inline size_t tare__depthwise_quads(const depthwise_kernel *kernel, size_t channels) {
    size_t quads = 1;
    while (quads < kernel->quads && quads * DEPTHWISE_QUAD < channels) quads *= 2;
    return quads;
}

/// A register of 16 * quads bytes holds as many channels; interleaving four of them gives four
/// registers of int32 lanes, each with four channels of each quad.
static inline size_t tare__depthwise_index(size_t quads, size_t channel) {
    const size_t quad = channel / DEPTHWISE_QUAD, c = channel % DEPTHWISE_QUAD;
    return c / 4 * 4 * quads + quad * 4 + c % 4;
}

/// The values of a block's first channels out of its order.
static inline void tare__depthwise_order(const float *values, size_t quads, size_t count,
                                         float *y) {
    for (size_t c = 0; c < count; c++) y[c] = values[tare__depthwise_index(quads, c)];
}

#endif
