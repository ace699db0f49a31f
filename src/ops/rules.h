// SPDX-License-Identifier: Apache-2.0
// Shape rules, checks and helpers that operator families share.
#ifndef OPS_RULES_H
#define OPS_RULES_H

#include "ops/call.h"
#include "ops/op.h"

/// The result has the shape, dtype and quantization parameters of the first parameter.
tare_status tare__shape_same(op_call *call);
/// As tare__shape_same, but an integer or bool input gives float32 (sigmoid, softmax).
tare_status tare__shape_same_float(op_call *call);
/// The result is the first parameter itself, and nothing is computed (dropout in evaluation,
/// detach).
tare_status tare__shape_identity(op_call *call);
/// NumPy's broadcasting of two shapes; the error states both shapes if they do not fit.
tare_status tare__broadcast(op_call *call, const tare_tensor *a, const tare_tensor *b, int *ndim,
                            int64_t *shape);
/// The strides by which a tensor `from` is read when it is broadcast to a shape: one for each
/// dimension of the shape, 0 where `from` repeats.
void tare__broadcast_strides(const tare_tensor *from, int ndim, const int64_t *shape,
                             int64_t *stride);
/// The offset of element i of a tensor of this shape, with strides as above.
int64_t tare__strided_offset(int ndim, const int64_t *shape, const int64_t *stride, int64_t i);
/// The stride of dimension `dim` in elements: the product of the sizes after it.
int64_t tare__inner_count(const tare_tensor *x, int dim);
/// Rows of x along a dimension: element i of a row is at offset i * inner from its first element.
typedef struct rows_along {
    const tare_tensor *x;
    int dim;
    int64_t length, inner;
} rows_along;
/// Reads the rows of the first parameter. The dimension is parameter dim_at, or `otherwise` if it
/// is not given.
tare_status tare__rows_along(op_call *call, size_t dim_at, int64_t otherwise, rows_along *out);
/// The offset of the first element of a row.
int64_t tare__row_start(const rows_along *r, int64_t row);
/// The shape of x without that dimension, or with size 1 there (keeps). Returns the number of
/// dimensions.
int tare__row_shape(const rows_along *r, bool keeps, int64_t *shape);
/// a * b for sizes (>= 0). On overflow INT64_MAX, which every check of a shape rejects.
int64_t tare__size_product(int64_t a, int64_t b);
/// Reads parameter i as a float32 tensor; fails for anything else.
tare_status tare__need_float(op_call *call, size_t i, const tare_tensor **out);
/// Minimum and maximum of a float32 tensor; 0, 0 if it is empty.
void tare__find_range(const tare_tensor *x, float *low, float *high);
/// torch.cat into a result with any per-tensor quantization parameters; inputs with other
/// parameters are requantized element by element. Parameters 0 and 1: the tensors, of the result's
/// dtype, and the dimension.
tare_status tare__join_quantized(op_call *call);
/// The shape of a tensor as text for messages, "[1, 3]", in the call's memory.
const char *tare__call_shape_text(op_call *call, const tare_tensor *t);

#endif
