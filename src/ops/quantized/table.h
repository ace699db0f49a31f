// SPDX-License-Identifier: Apache-2.0
// Functions of one element of a quantized tensor: there are 256 quantized values, so a large tensor
// is computed by a table lookup, with the same bits as element by element.
#ifndef OPS_QUANTIZED_TABLE_H
#define OPS_QUANTIZED_TABLE_H

#include "ops/op.h"

enum { QUANTIZED_COUNT = 256 };

/// True if an element of the result depends only on the element at the same index.
bool tare__op_is_by_element(const op_info *op);
/// True if y = op(x, numbers..) can be looked up: x is the only tensor among the `count`
/// parameters, x and y are 8-bit, quantized per tensor and of the same shape, and a table is
/// faster.
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
