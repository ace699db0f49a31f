// SPDX-License-Identifier: Apache-2.0
// Lookup tables of bound calls that are functions of one quantized value.
#ifndef OPS_QUANTIZED_CALL_TABLE_H
#define OPS_QUANTIZED_CALL_TABLE_H

#include "ops/quantized/table.h"

/// True if a shaped call computes each element of its result from the element of x at the same
/// index alone, and all other arguments are numbers.
bool tare__is_function_of_one_value(const op_call *call, const tare_tensor *x);
/// Runs a bound call with x in place of its only tensor argument (of the first argument if there is
/// no such) and with y as its result. Allocates in the call's memory.
tare_status tare__call_on(const op_call *call, op_compute compute, tare_tensor *x, tare_tensor *y);
/// The table of a shaped call with reference `compute`: the result for each of the 256 quantized
/// values of x, as a byte. *known is false if the call is no function of one value, as above.
/// Allocates in the call's memory.
tare_status tare__quantized_table_of(const op_call *call, op_compute compute, const tare_tensor *x,
                                     uint8_t table[QUANTIZED_COUNT], bool *known);

#endif
