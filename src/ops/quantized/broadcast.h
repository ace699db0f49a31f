// SPDX-License-Identifier: Apache-2.0
// Broadcasting of two 8-bit tensors to the shape of a third. The result is divided into rows along
// which each operand has stride 1 or 0.
#ifndef OPS_QUANTIZED_BROADCAST_H
#define OPS_QUANTIZED_BROADCAST_H

#include "core/tensor/tensor.h"

typedef struct quantized_broadcast {
    const tare_tensor *a, *b;
    tare_tensor *y;
    int64_t stride_a[TARE_MAX_DIMS], stride_b[TARE_MAX_DIMS];
    int ndim;                      // leading dimensions of y, which enumerate the rows
    int64_t count, step_a, step_b; // elements of a row; strides of a and b along it, 0 or 1
} quantized_broadcast;

/// Merges trailing dimensions into rows as far as both operands keep a constant stride of 0 or 1.
quantized_broadcast tare__quantized_broadcast_of(const tare_tensor *a, const tare_tensor *b,
                                                 tare_tensor *y);
/// Offsets of the first elements of row i in a and b; in y the offset is i * count.
void tare__quantized_broadcast_locate(const quantized_broadcast *p, int64_t i, int64_t *a,
                                      int64_t *b);

#endif
