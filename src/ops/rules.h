// SPDX-License-Identifier: Apache-2.0
// Shape rules and loops that operator families share.
#ifndef OPS_RULES_H
#define OPS_RULES_H

#include "ops/call.h"
#include "ops/op.h"

/// The result is like the first parameter: shape, dtype, quantization parameters.
tare_status tare__shape_same(op_call *call);
/// As tare__shape_same, but an integer or bool input gives float32 (sigmoid, softmax).
tare_status tare__shape_same_float(op_call *call);
/// The result is the first parameter itself: nothing is computed (dropout in evaluation, detach).
tare_status tare__shape_identity(op_call *call);
/// NumPy's broadcasting of two shapes; names both shapes when they do not fit.
tare_status tare__broadcast(op_call *call, const tare_tensor *a, const tare_tensor *b, int *ndim,
                            int64_t *shape);
/// Broadcasts `count` elements of `from` to `to`'s strides: the stride of each of to's dimensions
/// within a tensor of shape `from`; 0 where it repeats.
void tare__broadcast_strides(const tare_tensor *from, int ndim, const int64_t *shape,
                             int64_t *stride);
/// The offset of element i of a tensor of this shape, with strides as above.
int64_t tare__strided_offset(int ndim, const int64_t *shape, const int64_t *stride, int64_t i);
/// The stride of dimension `dim` in elements: the product of the sizes after it.
int64_t tare__inner_count(const tare_tensor *x, int dim);
/// The rows of x along a dimension: element i of a row is at offset i * inner from its first one.
typedef struct rows_along {
    const tare_tensor *x;
    int dim;
    int64_t length, inner;
} rows_along;
/// The rows of the first parameter; parameter dim_at is the dimension, `otherwise` if it is not
/// given.
tare_status tare__rows_along(op_call *call, size_t dim_at, int64_t otherwise, rows_along *out);
/// The first element of a row.
int64_t tare__row_start(const rows_along *r, int64_t row);
/// The shape of x with that dimension dropped, or of size 1 (keeps); the number of dimensions.
int tare__row_shape(const rows_along *r, bool keeps, int64_t *shape);
/// a * b of sizes (>= 0); where that overflows the greatest int64, which no shape's check lets
/// pass.
int64_t tare__size_product(int64_t a, int64_t b);
/// The first parameter, refused unless it is float32.
tare_status tare__need_float(op_call *call, size_t i, const tare_tensor **out);
/// Least and greatest element of a float32 tensor; 0, 0 when it is empty.
void tare__find_range(const tare_tensor *x, float *low, float *high);
/// torch.cat into a result of any per-tensor parameters: bytes of others are requantized, element
/// by element. Parameters 0 and 1: the tensors, of the result's dtype, and the dimension.
tare_status tare__join_quantized(op_call *call);
/// "[1, 3]" of a tensor, in the call's memory, for messages.
const char *tare__call_shape_text(op_call *call, const tare_tensor *t);

#endif
