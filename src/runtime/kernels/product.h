// SPDX-License-Identifier: Apache-2.0
// Integer products of channels-last quantized values: the arguments of kernels for linear layers
// and convolutions, and the table of kernels.
//
//   y[r][c] = requantize(sum over taps t and quantized values k of x[t][r][k] * w[t][k][c])
//
// A linear layer has one tap, a convolution one for each pixel of its window. Sums are exact modulo
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
    PRODUCT_LANES = 16,  // adjacent channels
    PRODUCT_VECTORS = 4, // in a block, at most
    PRODUCT_BLOCK = PRODUCT_LANES * PRODUCT_VECTORS,
    PRODUCT_ROWS = 24,       // in a tile of any kernel, at most
    PRODUCT_RUN_ROWS = 960,  // in the tiles of one call of a kernel, at most
    PRODUCT_SIGN_BIT = 0x80, // XOR with it adds 128: signed values become unsigned
};

/// Constants of the channels of a block.
typedef struct tile_epilogue {
    const requant *requant;
    // These three are read as whole vectors; elements beyond the last channel are ignored.
    const int32_t *start; // [c] initial value: -(x zero point) * sum of the weights; in rule Q
                          // plus the integer bias
    const float *multiplier, *bias; // [c] as in requant; in rule Q, bias is 0 (it is in start)
    const int32_t
        *weight_sums; // [c] sums of the weights, for kernels that multiply signed values, whose
                      // sums are too small by 128 times as much; NULL: such a kernel computes them
    bool is_small;    // no float before rounding reaches 2^30, so conversion cannot overflow
} tile_epilogue;

/// What is added to a layer's result, and at which stage.
typedef enum addend_kind {
    ADDEND_OF_QUANTIZED = 1, // to its quantized values, as quantized.add does
    ADDEND_OF_VALUES,        // before rounding: tare__requantize_sum
} addend_kind;

/// Quantized values with the rows and channels of the result.
typedef struct product_addend {
    addend_kind kind;
    native_add add; // for quantized values; a is the layer's
    float scale;    // for values
    int32_t zero_point;
    bool is_signed; // of all quantized values
    const uint8_t *quantized;
    size_t stride; // from a row to the next; in a run, 0: contiguous
} product_addend;

/// The output pixels of the tiles in one call of a kernel, and a block of channels. Weights are
/// [taps][words][channels rounded up to PRODUCT_LANES] words of four int8; missing quantized values
/// of a tap are zeros.
typedef struct product_tile {
    const uint8_t *const *x; // [taps][rows] addresses; with offsets [rows] base addresses
    const size_t *offsets;   // [taps] offsets in quantized values; NULL: they differ by row
    size_t rows, taps;
    size_t tap_size; // quantized values of a tap
    const uint32_t *w;
    size_t row_taps, gap; // after each row of so many taps, words of w are skipped; gap 0: none.
                          // Not for kernels with asks_saturation
    size_t ahead; // bytes from w to the weights that are needed next, to be prefetched; 0: none
    size_t pass;  // how many tiles were multiplied with these weights before
    const bool
        *never_saturates; // [vectors][product_chunks] of w (kernels/saturation.h); NULL: unknown
    size_t channels;      // at most PRODUCT_BLOCK
    tile_epilogue epilogue;
    const product_addend *addend; // NULL: none
    uint8_t *y;                   // [rows][y_stride]
    float *real;                  // instead of y, the values of rule O; NULL: quantized result
    size_t y_stride;
    bool fuses;   // fmaf(f32(sum), multiplier, bias) instead of that value: rounded once
    uint8_t flip; // PRODUCT_SIGN_BIT for signed values, which kernels that take them convert;
                  // else 0
} product_tile;

typedef struct product_kernel {
    kernel_needs needs;
    void (*run)(const product_tile *t);
    const char *name;
    bool asks_saturation;         // faster if it is known that 16-bit sums do not saturate
    bool takes_signed;            // by product_tile.flip; other kernels need converted values
    bool wants_padding;           // faster if windows lie inside their images, at equal distances
    size_t tiles;                 // preferred number per call, at most
    double mac_time, weight_time; // in a tile; of a byte that no cache of the core has. ps, about
    size_t rows[PRODUCT_VECTORS]; // of the best tile, by the number of vectors of a block, 1 first
} product_kernel;

/// Fastest first; the last row runs everywhere.
extern const product_kernel tare__product_kernels[];
const product_kernel *tare__product_choose(isa_level isa);
/// The rows per call of a kernel, out of `rows` pixels with that many taps each: whole tiles,
/// several if the kernel prefers that.
size_t tare__product_run_rows(const product_kernel *k, size_t vectors, size_t taps, size_t rows);

static inline size_t tare__product_vectors(size_t channels) {
    return (channels + PRODUCT_LANES - 1) / PRODUCT_LANES;
}

/// True for products that tiles (AMX) are slower for than vectors, which then compute them. So few
/// rows wait for weights, which the other kernel fetches ahead. Of so little depth, sums go through
/// memory for few products; and a step of few words takes as long as one of whole lines.
static inline bool tare__product_is_for_vectors(size_t rows, size_t taps, size_t tap_size,
                                                uint8_t flip) {
    enum { FEW_ROWS = 2, LEAST_TAP = 12, LEAST_DEPTH = 32 };
    return (rows <= FEW_ROWS || tap_size < LEAST_TAP || taps * tap_size < LEAST_DEPTH) && flip == 0;
}
/// The name of the kernel that computes such products, which k may leave to another one.
const char *tare__product_name(const product_kernel *k, size_t rows, size_t taps, size_t tap_size,
                               uint8_t flip);
/// True for so few products that preparing tiles (AMX) takes longer than vectors do. A core that
/// has not multiplied tiles for some microseconds waits for the unit that does.
bool tare__product_is_small(size_t rows, size_t depth, size_t channels);
/// The fastest kernel for a single product.
const product_kernel *tare__product_choose_for(isa_level isa, size_t rows, size_t depth,
                                               size_t channels);

/// Converts signed quantized values to unsigned. A pass over a layer's input costs less than one
/// instruction per word in the innermost loop, which reads each word once per block of channels.
void tare__product_to_unsigned(const uint8_t *restrict x, size_t count, uint8_t *restrict to);

/// The initial sums of kernels that multiply signed quantized values as they are: each is 128 less
/// than the one that the tile means, and so 128 times the sum of the weights is added.
/// `sum_weights`: of sixteen channels from c on, where nobody counted them before.
void tare__product_move_starts(const product_tile *t,
                               void (*sum_weights)(const product_tile *t, size_t c,
                                                   int32_t sums[PRODUCT_LANES]),
                               int32_t start[PRODUCT_BLOCK]);

#define KERNEL(name, ...) void name(const product_tile *t);
#include "runtime/kernels/qu8_product/kernels.def"
#undef KERNEL
// Two encodings of one kernel.
void qu8_product__avxvnni_vex(const product_tile *t);
void qu8_product__avx512vl(const product_tile *t);

#ifdef TARE_HAVE_X86_KERNELS
/// The epilogue of a tile with any number of rows, on sums without their initial values: sums[row *
/// sums_stride + channel]. Members of t that describe the computation of sums are not read.
void qu8_product_finish__avx512vnni(const product_tile *t, const int32_t *sums, size_t sums_stride);
#endif

/// The quantized values of a tap for the row at index `row` of x.
static inline const uint8_t *tare__product_values_at(const product_tile *t,
                                                     const uint8_t *const *row, size_t tap) {
    return t->offsets != NULL ? row[0] + t->offsets[tap] : row[tap * t->rows];
}

/// Words of weights that are skipped before a tap.
static inline size_t tare__product_gap(const product_tile *t, size_t tap) {
    return t->gap != 0 && tap > 0 && tap % t->row_taps == 0 ? t->gap : 0;
}

/// The last one to three quantized values of a tap as a word.
static inline uint32_t tare__product_tail(const uint8_t *x, size_t count) {
    uint32_t word = x[0];
    if (count > 1) word |= (uint32_t)x[1] << 8;
    if (count > 2) word |= (uint32_t)x[2] << 16;
    return word;
}

/// A word of quantized values; `left`: quantized values of the tap from there on.
static inline uint32_t tare__product_word(const uint8_t *x, size_t left) {
    uint32_t word;
    if (left < sizeof word) return tare__product_tail(x, left);
    memcpy(&word, x, sizeof word);
    return word;
}

#endif
