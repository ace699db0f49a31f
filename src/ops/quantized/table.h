// SPDX-License-Identifier: Apache-2.0
// Functions of one element of a quantized tensor: there are 256 codes, so that a large tensor is
// computed by looking each up. Bits are those of computing every element.
#ifndef OPS_QUANTIZED_TABLE_H
#define OPS_QUANTIZED_TABLE_H

#include "ops/op.h"

enum { CODE_COUNT = 256 };

/// May y = op(x, numbers..) be looked up? x is the only tensor among the `count` parameters, both
/// have bytes quantized per tensor and the same shape, and it is worth it.
bool tare__code_table_fits(const op_info *op, const value *const *param, size_t count,
                           const value *y);

/// Computes a result for one code each: in[0] in place of x, into *out.
typedef tare_status (*code_function)(void *user, const value *in, value *out);
/// x and y as above.
tare_status tare__code_table_run(const tare_tensor *x, tare_tensor *y, code_function compute,
                                 void *user, tare_error *err);

/// Is the result of a call that a shape rule has bound a function of each code of its first
/// argument x?
bool tare__is_function_of_a_code(const op_call *call, const tare_tensor *x);
/// Runs a call that a shape rule has bound on x in place of its first argument, into y. In the
/// call's memory.
tare_status tare__call_on(const op_call *call, op_compute compute, tare_tensor *x, tare_tensor *y);
/// The table of a call that a shape rule has bound, whose reference is `compute`: what it gives for
/// each code of its first argument x, a byte each. *known false: its result is no function of one
/// code alone. In the call's memory.
tare_status tare__code_table_of(const op_call *call, op_compute compute, const tare_tensor *x,
                                uint8_t table[CODE_COUNT], bool *known);

#endif
