// SPDX-License-Identifier: Apache-2.0
// Lookup tables of bound calls that are functions of one quantized value.
#ifndef OPS_QUANTIZED_CALL_TABLE_H
#define OPS_QUANTIZED_CALL_TABLE_H

#include "ops/quantized/table.h"

/// True if the result of a shaped call is a function of each quantized value of x, the only
/// argument that is no number.
bool tare__is_function_of_one_value(const op_call *call, const tare_tensor *x);
/// Runs a call that a shape rule has bound on x in place of that argument (the first one where
/// there is none such), into y. In the call's memory.
tare_status tare__call_on(const op_call *call, op_compute compute, tare_tensor *x, tare_tensor *y);
/// The table of a shaped call with reference `compute`: the result for each quantized value of x, a
/// byte each. *known is false if its result is no such function. Allocated in the call's memory.
tare_status tare__quantized_table_of(const op_call *call, op_compute compute, const tare_tensor *x,
                                     uint8_t table[QUANTIZED_COUNT], bool *known);

#endif
