// SPDX-License-Identifier: Apache-2.0
// The memory order that torch would give a tensor. Ours are always in the order of their
// dimensions, but torch's averages of quantized values round differently for each order, and its
// convolutions of quantized values give channels last.
#ifndef OPS_MEMORY_ORDER_H
#define OPS_MEMORY_ORDER_H

#include "ops/call.h"

/// Marks the result of a call whose shape rule has run, from its operator and its inputs.
void tare__note_memory_order(op_call *call);
/// Does torch average this quantized tensor, the call's first, with the zero point in the sum that
/// it rounds? Its native engines do where channels do not lie innermost. False for operators that
/// do not average.
bool tare__rounds_with_zero_point(const op_call *call, const tare_tensor *x);

#endif
