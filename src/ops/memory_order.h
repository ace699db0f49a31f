// SPDX-License-Identifier: Apache-2.0
// The memory format that torch would give a tensor. tare's tensors are always contiguous, but
// torch's averages of quantized values round differently for each format, and its quantized
// convolutions return channels last.
#ifndef OPS_MEMORY_ORDER_H
#define OPS_MEMORY_ORDER_H

#include "ops/call.h"

/// Marks the result of a call whose shape rule has run, from its operator and its inputs.
void tare__note_memory_order(op_call *call);
/// True if torch averages this quantized tensor, the call's first, with the zero point included in
/// the rounded sum. Its native engines do unless channels are innermost. False for operators that
/// do not average.
bool tare__rounds_with_zero_point(const op_call *call, const tare_tensor *x);

#endif
