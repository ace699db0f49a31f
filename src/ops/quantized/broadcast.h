// SPDX-License-Identifier: Apache-2.0
// Two tensors of bytes, broadcast to the shape of a third, as rows along which the step of each
// operand is one element or none.
#ifndef OPS_QUANTIZED_BROADCAST_H
#define OPS_QUANTIZED_BROADCAST_H

#include "core/tensor/tensor.h"

typedef struct quantized_broadcast {
    const tare_tensor *a, *b;
    tare_tensor *y;
    int64_t stride_a[TARE_MAX_DIMS], stride_b[TARE_MAX_DIMS];
    int ndim;                      // of the rows
    int64_t count, step_a, step_b; // of a row; steps are 0 or 1
} quantized_broadcast;

/// Merges dimensions through which both operands have one step into rows.
quantized_broadcast tare__quantized_broadcast_of(const tare_tensor *a, const tare_tensor *b,
                                                 tare_tensor *y);
/// The first elements of row i in a and b; in y it is element i * count.
void tare__quantized_broadcast_locate(const quantized_broadcast *p, int64_t i, int64_t *a,
                                      int64_t *b);

#endif
