// SPDX-License-Identifier: Apache-2.0
// Kernels of quantized attention besides products: they pack operands during the run as weights are
// packed, and turn scores into softmax weights. Every level gives the same bits.
#ifndef RUNTIME_KERNELS_ATTENTION_H
#define RUNTIME_KERNELS_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/kernels/isa.h"

/// A matrix of quantized values to be packed as the weights of a block.
typedef struct quantized_matrix {
    const uint8_t *x;
    size_t step; // bytes between rows
    size_t rows, columns;
    uint8_t flip; // 0x80 for unsigned values, which are converted to signed ones; else 0
} quantized_matrix;

typedef struct attention_kernels {
    kernel_needs needs;
    const char *name;
    /// Packs a channel per row (keys): w[d][r] is the word of quantized values 4d .. 4d + 3 of row
    /// r, zeros outside the matrix. sums[r]: of the row's signed values. lanes: a multiple of 16,
    /// at least m->rows; w [ceil(columns / 4)][lanes], sums [lanes].
    void (*pack_rows)(const quantized_matrix *m, size_t lanes, uint32_t *w, int32_t *sums);
    /// Packs a channel per column (values): w[d][c] is the word of rows 4d .. 4d + 3 of column c,
    /// zeros outside the matrix. sums[c]: of the column's signed values; NULL: nobody asks. lanes:
    /// a multiple of 16, at least m->columns; sums [lanes].
    void (*pack_columns)(const quantized_matrix *m, size_t lanes, uint32_t *w, int32_t *sums);
    /// sums[r]: of the signed values of row r.
    void (*sum_rows)(const quantized_matrix *m, int32_t *sums);
    /// quantized[i] = tare__exp2_quantized(x[i] - max(x)). Returns their sum. count >= 1.
    uint32_t (*weigh)(const float *x, size_t count, uint8_t *quantized);
    /// y[i] = y[i] * factor + offset, not fused
    void (*scale)(float factor, float offset, size_t count, float *y);
} attention_kernels;

/// Fastest first; the last row runs everywhere.
extern const attention_kernels tare__attention_kernels[];
extern const size_t tare__attention_kernel_count;
const attention_kernels *tare__attention_choose(isa_level isa);

#define KERNEL(suffix, needs)                                                                      \
    void qu8_pack_rows__##suffix(const quantized_matrix *m, size_t lanes, uint32_t *w,             \
                                 int32_t *sums);                                                   \
    void qu8_pack_columns__##suffix(const quantized_matrix *m, size_t lanes, uint32_t *w,          \
                                    int32_t *sums);                                                \
    void qu8_sum_rows__##suffix(const quantized_matrix *m, int32_t *sums);                         \
    uint32_t qu8_weigh__##suffix(const float *x, size_t count, uint8_t *quantized);                \
    void f32_scale__##suffix(float factor, float offset, size_t count, float *y);
#include "runtime/kernels/qu8_attention/kernels.def"
#undef KERNEL

#endif
