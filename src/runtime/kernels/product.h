// SPDX-License-Identifier: Apache-2.0
// Integer products of quantized values that lie channels last: what the kernels of linear layers
// and convolutions are given, and the rows that offer them.
//
//   y[r][c] = requantize(sum over taps t and quantized values k of x[t][r][k] * w[t][k][c])
//
// A linear layer has one tap, a convolution as many as its window has pixels. Sums are exact modulo
// 2^32; every kernel gives the bits of tare__requantize.
#ifndef RUNTIME_KERNELS_PRODUCT_H
#define RUNTIME_KERNELS_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/math/requant.h"
#include "runtime/kernels/isa.h"

enum {
    PRODUCT_LANES = 16,  // channels that lie beside each other
    PRODUCT_VECTORS = 4, // at most, of a block
    PRODUCT_BLOCK = PRODUCT_LANES * PRODUCT_VECTORS,
    PRODUCT_ROWS = 24,       // at most, of any kernel's tile
    PRODUCT_RUN_ROWS = 960,  // at most, of the tiles that a kernel is given at once
    PRODUCT_SIGN_BIT = 0x80, // XOR with it adds 128: signed values become unsigned
};

/// Constants of the channels of a block.
typedef struct tile_epilogue {
    const requant *requant;
    // Whole vectors of these three are read, but not looked at behind the last channel.
    const int32_t *start; // [c] of the sum: -(x zero point) * sum of the weights; in rule Q the
                          // integer bias, too
    const float *multiplier, *bias; // [c] as in requant; in rule Q, bias is 0 (it is in start)
    const int32_t
        *weight_sums; // [c] of the weights, for kernels that multiply signed quantized values and
                      // so miss 128 times as much; NULL: such a kernel counts them
    bool is_small; // no float before rounding reaches 2^30, so that converting it does not overflow
} tile_epilogue;

/// What is added to a layer's result, and where.
typedef enum addend_kind {
    ADDEND_OF_QUANTIZED = 1, // to its quantized values, as quantized.add does
    ADDEND_OF_VALUES,        // before rounding: tare__requantize_sum
} addend_kind;

/// Quantized values in rows and channels as the result's.
typedef struct product_addend {
    addend_kind kind;
    native_add add; // of quantized values; a is the layer's
    float scale;    // of values
    int32_t zero_point;
    bool is_signed; // all quantized values
    const uint8_t *quantized;
    size_t stride; // from a row to the next; in a run, 0: its channels
} product_addend;

/// As many output pixels as the tiles that a kernel is given at once have, and a block of channels.
/// Weights lie as [taps][words][channels rounded up to PRODUCT_LANES] words of four int8, zeros
/// where a tap has no more quantized values.
typedef struct product_tile {
    const uint8_t *const *x; // [taps][rows]; with offsets [rows], what those are from
    const size_t *offsets;   // [taps] quantized values to each; NULL: they differ by row
    size_t rows, taps;
    size_t tap_size; // of a tap
    const uint32_t *w;
    size_t row_taps, gap; // behind each row of so many taps, words of w that are left out; gap 0:
                          // none are. Not for kernels that ask for saturation
    size_t ahead; // bytes from w to weights that are wanted next, to be fetched meanwhile; 0: none
    size_t pass;  // how many tiles have met these weights before
    const bool
        *never_saturates; // [vectors][product_chunks] of w (kernels/saturation.h); NULL: not known
    size_t channels;      // at most PRODUCT_BLOCK
    tile_epilogue epilogue;
    const product_addend *addend; // NULL: none
    uint8_t *y;                   // [rows][y_stride]
    float *real; // in place of y, the value of rule O; NULL: quantized values are wanted
    size_t y_stride;
    bool fuses;   // fmaf(f32(sum), multiplier, bias) in place of that value: one rounding
    uint8_t flip; // PRODUCT_SIGN_BIT for signed quantized values, which become unsigned, of kernels
                  // that take them; else 0
} product_tile;

typedef struct product_kernel {
    kernel_needs needs;
    void (*run)(const product_tile *t);
    const char *name;
    bool asks_saturation; // is faster where it knows that 16-bit sums do not saturate
    bool takes_signed;    // quantized values, by product_tile.flip; else they are converted before
    size_t tiles;         // that it likes to be given at once, at most
    size_t rows[PRODUCT_VECTORS]; // the best tile's, by the vectors of a block, 1 first
} product_kernel;

/// Best first; the last row needs nothing.
extern const product_kernel tare__product_kernels[];
const product_kernel *tare__product_choose(isa_level isa);
/// Of `rows` pixels, each with the addresses of so many taps, how many a kernel is given at once:
/// whole tiles, several where it likes that.
size_t tare__product_run_rows(const product_kernel *k, size_t vectors, size_t taps, size_t rows);

/// Makes signed quantized values unsigned. One pass over a layer's input costs less than an
/// instruction for each word in the innermost loop, which meets it once for each block of channels.
void tare__product_to_unsigned(const uint8_t *restrict x, size_t count, uint8_t *restrict to);

#define KERNEL(name, ...) void name(const product_tile *t);
#include "runtime/kernels/qu8_product/kernels.def"
#undef KERNEL
// The two encodings of one kernel.
void qu8_product__avxvnni_vex(const product_tile *t);
void qu8_product__avx512vl(const product_tile *t);

#ifdef TARE_HAVE_X86_KERNELS
/// The epilogue of a tile of any number of rows, on sums without their initial values:
/// sums[row * sums_stride + channel]. The members of t that say how sums are made are not read.
void qu8_product_finish__avx512vnni(const product_tile *t, const int32_t *sums, size_t sums_stride);
#endif

static inline size_t tare__product_vectors(size_t channels) {
    return (channels + PRODUCT_LANES - 1) / PRODUCT_LANES;
}

/// The quantized values of a tap of the row that begins at `row` of x.
static inline const uint8_t *tare__product_values_at(const product_tile *t,
                                                     const uint8_t *const *row, size_t tap) {
    return t->offsets != NULL ? row[0] + t->offsets[tap] : row[tap * t->rows];
}

/// Words of weights that are left out before a tap.
static inline size_t tare__product_gap(const product_tile *t, size_t tap) {
    return t->gap != 0 && tap > 0 && tap % t->row_taps == 0 ? t->gap : 0;
}

/// The last one to three quantized values of a tap, as a word.
static inline uint32_t tare__product_tail(const uint8_t *x, size_t count) {
    uint32_t word = x[0];
    if (count > 1) word |= (uint32_t)x[1] << 8;
    if (count > 2) word |= (uint32_t)x[2] << 16;
    return word;
}

/// A word of quantized values, of which a tap has `left` at least.
static inline uint32_t tare__product_word(const uint8_t *x, size_t left) {
    uint32_t word;
    if (left < sizeof word) return tare__product_tail(x, left);
    memcpy(&word, x, sizeof word);
    return word;
}

#endif
