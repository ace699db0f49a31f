// SPDX-License-Identifier: Apache-2.0
// Products of two tensors of quantized values: rows of one by the other, packed in the run as a
// layer's weights are, to floats.
#ifndef RUNTIME_GEMM_QUANTIZED_PRODUCT_H
#define RUNTIME_GEMM_QUANTIZED_PRODUCT_H

#include "runtime/kernels/attention.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/scratch.h"

enum { QUANTIZED_ROW_BLOCK = 24 }; // rows that go through together: whole tiles of every kernel

/// y[r][c] = f32(starts[c] + sum over k of x[r][k] * w[k][c]) * multiplier
typedef struct quantized_product {
    const product_kernel *kernel;
    const uint8_t *x;
    size_t x_step, rows, tap_size; // of a row
    uint8_t flip;                  // PRODUCT_RAISE for signed quantized values; else 0
    uint8_t *raised;   // [rows][tap_size], for unsigned ones where the kernel takes no others
    const uint32_t *w; // blocks of PRODUCT_BLOCK channels, the last one of fewer
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
/// Bytes of a matrix of `depth` quantized values by `channels`, packed.
size_t tare__quantized_product_bytes(size_t depth, size_t channels);
/// Packs a channel per column of m into `w`.
void tare__quantized_product_pack(const attention_kernels *k, const quantized_matrix *m,
                                  uint32_t *w);

#endif
