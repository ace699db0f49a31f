// SPDX-License-Identifier: Apache-2.0
// The integer matrix kernels: what they are given, and the rows that offer them.
//
// Codes travel in words of four along the depth of the sum, as dot-product instructions take them.
// Sums are exact modulo 2^32; every kernel gives the bits of tare__requantize.
#ifndef RUNTIME_KERNELS_TILE_H
#define RUNTIME_KERNELS_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/requant.h"
#include "runtime/isa.h"

/// Constants of the output channels c of a block. Readable up to a multiple of REQUANT_PADDING,
/// zeros there.
typedef struct tile_epilogue {
    const requant *requant;
    int64_t first_channel;          // of the block, within requant
    const int32_t *offset;          // [c] added to the sum: -(x zero point) * sum of the weights
    const int32_t *start;           // [c] offset plus, in rule Q, the integer bias
    const float *multiplier, *bias; // [c] as in requant; in rule Q, bias is 0 (it is in start)
} tile_epilogue;

/// Codes that are added to the value of rule O: (code - zero_point) * scale.
typedef struct tile_addend {
    const uint8_t *codes; // as y lies; NULL: nothing is added
    float scale;
    int32_t zero_point;
    bool is_signed;
} tile_addend;

enum { CONV_PIXELS = 32 };
/// Convolution: weights meet a block of pixels.
///   y[c][p] = requantize(sum over k of x[k][p] * w[c][k])
typedef struct conv_tile {
    const uint32_t *x; // [depth][x_stride] words of unsigned codes; rows readable to CONV_PIXELS
    size_t x_stride;
    const uint32_t *w;       // [channels / tile][depth][tile][words]; see tile_kernel
    size_t depth;            // words
    size_t pixels, channels; // pixels: at most CONV_PIXELS
    tile_epilogue epilogue;
    tile_addend addend; // with codes only in rule O
    uint8_t *y;         // [channels][y_stride]
    float *real;        // in place of y, the value of rule O; NULL: codes are wanted
    size_t y_stride;
} conv_tile;

/// Linear: rows of samples meet the weights, whose channels lie beside each other.
///   y[n][c] = requantize(sum over k of x[n][k] * w[c][k])
typedef struct linear_tile {
    const uint32_t *x; // [rows][depth][words] words of unsigned codes
    const uint32_t *w; // [channels / lanes][depth][lanes]
    size_t depth, rows, channels;
    tile_epilogue epilogue;
    uint8_t *y;  // [rows][y_stride]
    float *real; // in place of y, the value of rule O; NULL: codes are wanted
    bool fuses;  // fmaf(f32(sum), multiplier, bias) instead: one rounding
    size_t y_stride;
} linear_tile;

typedef struct conv_kernel {
    void (*run)(const conv_tile *t);
    /// Four bytes to a word, plane by plane: out[p] = x0[p] | x1[p] << 8 | .., each code ^ flip.
    void (*interleave)(const uint8_t *const x[4], size_t count, uint8_t flip, uint32_t *out);
    /// Words of four neighbours: out[p] = x[p * stride] | x[p * stride + 1] << 8 | .. May read 64
    /// bytes beyond the last place, and write up to a multiple of 16 words.
    void (*slide)(const uint8_t *x, size_t stride, size_t count, uint32_t *out);
    const char *name;
    isa_level needs;
    size_t tile;  // channels that are computed together
    size_t words; // 1: w is four int8; 2: two words, int16 (w0, w2) and (w1, w3)
} conv_kernel;

typedef struct linear_kernel {
    void (*run)(const linear_tile *t);
    const char *name;
    isa_level needs;
    size_t lanes; // channels that lie beside each other
    size_t words; // 1: x is four codes; 2: two words, uint16 (x0, x2) and (x1, x3)
} linear_kernel;

/// Depthwise convolution: one channel meets its own plane, without being gathered. Word d is four
/// taps of a row of the window, `dilation` bytes apart.
///   y[p] = requantize(sum over d, i of x[p * stride + offset[d] + i * dilation] * w[d][i])
typedef struct depthwise_tile {
    const uint8_t *x; // [height][x_stride] and the window's rest, unsigned codes; readable
                      // DEPTHWISE_SLACK bytes beyond
    size_t x_stride;  // bytes from one row of outputs to the next
    size_t stride, dilation;
    const size_t *offset; // [depth]
    const uint32_t *w;    // [depth][words]
    size_t depth;
    size_t height, width; // of the output
    tile_epilogue epilogue;
    uint8_t *y;  // [height][width]
    float *real; // in place of y, the value of rule O; NULL: codes are wanted
} depthwise_tile;
enum { DEPTHWISE_SLACK = 128 };

typedef struct depthwise_kernel {
    void (*run)(const depthwise_tile *t);
    const char *name;
    isa_level needs;
    size_t words; // as in conv_kernel
    size_t reach; // what stride + dilation may be at most
} depthwise_kernel;

/// Best first; the last row needs nothing.
extern const conv_kernel tare__conv_kernels[];
extern const linear_kernel tare__linear_kernels[];
extern const depthwise_kernel tare__depthwise_kernels[];

#define KERNEL(name, needs, tile, words)                                                           \
    void name(const conv_tile *t);                                                                 \
    void name##_interleave(const uint8_t *const x[4], size_t count, uint8_t flip, uint32_t *out);  \
    void name##_slide(const uint8_t *x, size_t stride, size_t count, uint32_t *out);
#include "runtime/kernels/qu8_conv/kernels.def"
#undef KERNEL
#define KERNEL(name, needs, lanes, words) void name(const linear_tile *t);
#include "runtime/kernels/qu8_linear/kernels.def"
#undef KERNEL
#define KERNEL(name, needs, words, reach) void name(const depthwise_tile *t);
#include "runtime/kernels/qu8_depthwise/kernels.def"
#undef KERNEL

/// Four weights as a kernel with so many words of them takes them; `to` starts as zeros.
static inline void tare__store_weights(const int8_t bytes[4], size_t words, uint32_t *to) {
    for (int b = 0; b < 4; b++) {
        if (words == 1)
            to[0] |= (uint32_t)(uint8_t)bytes[b] << 8 * b;
        else // sign-extended to 16 bits, (w0, w2) and (w1, w3)
            to[b % 2] |= (uint32_t)(uint16_t)bytes[b] << 16 * (b / 2);
    }
}

#endif
