// SPDX-License-Identifier: Apache-2.0
// Transposes matrices: between [C][pixels] and [pixels][C].
#ifndef RUNTIME_GEMM_TRANSPOSE_H
#define RUNTIME_GEMM_TRANSPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/tensor/tensor.h"
#include "runtime/kernels/elementwise.h"

/// y[n][c][r] = x[n][r][c] for elements of 1 or 4 bytes.
typedef struct transposition {
    int64_t batch, rows, columns;
    size_t element; // bytes
} transposition;
void tare__transpose(const elementwise_kernels *k, const transposition *t, const void *x, void *y);
/// Converts a tensor [N][C][..], or [C][..] without a batch, to channels last, or back.
transposition tare__channels_moved(const tare_tensor *t, bool has_batch, bool to_last);
/// Transposes columns [first, last) of one image.
void tare__transpose_columns(const elementwise_kernels *k, const transposition *t, int64_t image,
                             int64_t first, int64_t last, const void *x, void *y);

#endif
