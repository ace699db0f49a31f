// SPDX-License-Identifier: Apache-2.0
// Functions of one element of a quantized tensor: there are 256 quantized values, so that a large
// tensor is computed by looking each up. Bits are those of computing every element.
#ifndef OPS_QUANTIZED_TABLE_H
#define OPS_QUANTIZED_TABLE_H

#include "ops/op.h"

enum { QUANTIZED_COUNT = 256 };

/// Does an element of the result depend on the element at its index alone?
bool tare__op_is_by_element(const op_info *op);
/// May y = op(x, numbers..) be looked up? x is the only tensor among the `count` parameters, both
/// have bytes quantized per tensor and the same shape, and it is worth it.
bool tare__quantized_table_fits(const op_info *op, const value *const *param, size_t count,
                                const value *y);

/// Computes a result for one quantized value each: in[0] in place of x, into *out.
typedef tare_status (*quantized_function)(void *user, const value *in, value *out);
/// The byte of the result for each byte of x; x and y as above, or smaller.
tare_status tare__quantized_table_make(const tare_tensor *x, const tare_tensor *y,
                                       quantized_function compute, void *user,
                                       uint8_t table[QUANTIZED_COUNT], tare_error *err);
/// x and y as above.
tare_status tare__quantized_table_run(const tare_tensor *x, tare_tensor *y,
                                      quantized_function compute, void *user, tare_error *err);

#endif
