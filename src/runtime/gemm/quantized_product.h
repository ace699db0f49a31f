// SPDX-License-Identifier: Apache-2.0
// Products of two quantized tensors, with a float result. The second operand is packed during the
// run, as a layer's weights are.
#ifndef RUNTIME_GEMM_QUANTIZED_PRODUCT_H
#define RUNTIME_GEMM_QUANTIZED_PRODUCT_H

#include "runtime/kernels/attention.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/scratch.h"

enum { QUANTIZED_ROW_BLOCK = 24 }; // rows per block: full tiles of every kernel

/// y[r][c] = f32(starts[c] + sum over k of x[r][k] * w[k][c]) * multiplier
typedef struct quantized_product {
    const product_kernel *kernel;
    const uint8_t *x;
    size_t x_step, rows, tap_size; // x_step, tap_size: of a row
    uint8_t flip;                  // PRODUCT_SIGN_BIT for signed quantized values; else 0
    uint8_t *as_unsigned; // [rows][tap_size], copies of signed rows, if the kernel takes only
                          // unsigned ones
    const uint32_t *w;    // blocks of PRODUCT_BLOCK channels, the last one possibly smaller
    size_t channels;
    const int32_t *starts; // NULL: 0
    float multiplier;
    float *y;
    size_t y_step;
} quantized_product;
void tare__quantized_product_run(const quantized_product *p);

static inline size_t tare__quantized_product_lanes(size_t channels) {
    return tare__round_up(channels, PRODUCT_LANES);
}
/// Bytes of a packed matrix [depth][channels] of quantized values.
size_t tare__quantized_product_bytes(size_t depth, size_t channels);
/// Packs m into `w`, a channel for each column. sums: of the columns' signed values, of whole
/// lanes; NULL: nobody asks.
void tare__quantized_product_pack(const attention_kernels *k, const quantized_matrix *m,
                                  uint32_t *w, int32_t *sums);

#endif
