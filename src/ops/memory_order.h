// SPDX-License-Identifier: Apache-2.0
// The memory format that torch would give a tensor. tare's tensors are always contiguous, but
// torch's averages of quantized values round differently for each format, and its quantized
// convolutions return channels last.
#ifndef OPS_MEMORY_ORDER_H
#define OPS_MEMORY_ORDER_H

#include "ops/call.h"

/// Sets the memory format of a call's result from its operator and inputs, after its shape rule.
void tare__note_memory_order(op_call *call);
/// True if torch includes the zero point in the sum that it rounds when it averages x, the
/// quantized first parameter of the call. Its native engines do, unless x is channels last. False
/// for operators that do not average.
bool tare__rounds_with_zero_point(const op_call *call, const tare_tensor *x);

#endif
