// SPDX-License-Identifier: Apache-2.0
// Functions of one element of a quantized tensor: there are 256 quantized values, so that a large
// tensor is computed by looking each up. Bits are those of computing every element.
#ifndef OPS_QUANTIZED_TABLE_H
#define OPS_QUANTIZED_TABLE_H

#include "ops/op.h"

enum { QUANTIZED_COUNT = 256 };

/// May y = op(x, numbers..) be looked up? x is the only tensor among the `count` parameters, both
/// have bytes quantized per tensor and the same shape, and it is worth it.
bool tare__quantized_table_fits(const op_info *op, const value *const *param, size_t count,
                                const value *y);

/// Computes a result for one quantized value each: in[0] in place of x, into *out.
typedef tare_status (*quantized_function)(void *user, const value *in, value *out);
/// x and y as above.
tare_status tare__quantized_table_run(const tare_tensor *x, tare_tensor *y,
                                      quantized_function compute, void *user, tare_error *err);

/// Is the result of a call that a shape rule has bound a function of each quantized value of its
/// first argument x?
bool tare__is_function_of_one_value(const op_call *call, const tare_tensor *x);
/// Runs a call that a shape rule has bound on x in place of its first argument, into y. In the
/// call's memory.
tare_status tare__call_on(const op_call *call, op_compute compute, tare_tensor *x, tare_tensor *y);
/// The table of a call that a shape rule has bound, whose reference is `compute`: what it gives for
/// each quantized value of its first argument x, a byte each. *known false: its result is no
/// function of one quantized value alone. In the call's memory.
tare_status tare__quantized_table_of(const op_call *call, op_compute compute, const tare_tensor *x,
                                     uint8_t table[QUANTIZED_COUNT], bool *known);

#endif
