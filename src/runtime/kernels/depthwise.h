// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of codes that lie channels last: what its kernels are given, and the rows
// that offer them.
//
//   y[p][c] = requantize(sum over taps t of x[p][t][c] * w[t][c])
#ifndef RUNTIME_KERNELS_DEPTHWISE_H
#define RUNTIME_KERNELS_DEPTHWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/requant.h"
#include "runtime/isa.h"

enum { DEPTHWISE_BLOCK = 64, DEPTHWISE_WORD = 4 };

/// The constants of a block of channels, each array in the kernel's order: channel c of the block
/// stands at tare__depthwise_place(quads, c).
typedef struct depthwise_constants {
    int32_t start[DEPTHWISE_BLOCK]; // of the sums
    float multiplier[DEPTHWISE_BLOCK], bias[DEPTHWISE_BLOCK];
} depthwise_constants;

/// A block of channels of some output pixels. Taps come in fours: a word of weights holds four taps
/// of a channel.
typedef struct depthwise_tile {
    const uint8_t *const *x; // [pixels][fours * 4] where each tap lies
    size_t first;            // channel of a tap that is the block's first
    size_t pixels, fours;
    uint8_t flip;      // 0x80 for signed codes, which become unsigned; else 0
    const uint32_t *w; // [fours][DEPTHWISE_BLOCK], in the kernel's order
    const requant *requant;
    const depthwise_constants *constants;
    bool is_signed;  // the result
    size_t channels; // at most DEPTHWISE_BLOCK
    uint8_t *y;      // [pixels][y_stride]
    float *real;     // in place of y, the values of rule O; NULL: codes are wanted
    size_t y_stride;
} depthwise_tile;

typedef struct depthwise_kernel {
    void (*run)(const depthwise_tile *t);
    const char *name;
    isa_level needs;
    size_t quads; // groups of four lanes of a register, in each of which bytes are interleaved
} depthwise_kernel;

/// Best first; the last row needs nothing.
extern const depthwise_kernel tare__depthwise_kernels[];
const depthwise_kernel *tare__depthwise_choose(isa_level isa);

#define KERNEL(name, needs, quads) void name(const depthwise_tile *t);
#include "runtime/kernels/qu8_depthwise/kernels.def"
#undef KERNEL

/// Registers of quads * 16 bytes hold as many channels; interleaving four of them gives four
/// registers of int32 lanes, each with four channels of each quad.
static inline size_t tare__depthwise_place(size_t quads, size_t channel) {
    const size_t bytes = 16 * quads, whole = channel / bytes, c = channel % bytes;
    return whole * bytes + c % 16 / 4 * 4 * quads + c / 16 * 4 + c % 4;
}

/// The values of a pixel out of the kernel's order.
static inline void tare__depthwise_order(const float *values, size_t quads, size_t first,
                                         size_t last, float *y) {
    for (size_t c = first; c < last; c++) y[c] = values[tare__depthwise_place(quads, c) - first];
}

#endif
