// SPDX-License-Identifier: Apache-2.0
// Operands of functions that broadcast: tensors and numbers, and the dtype they have in common.
#ifndef OPS_FAMILIES_ARITHMETIC_H
#define OPS_FAMILIES_ARITHMETIC_H

#include "ops/call.h"

typedef struct operand {
    const tare_tensor *t; // NULL: a number
    double number;
    bool is_float, is_bool; // of a number
} operand;

/// Parameter i as an operand; refuses quantized tensors.
tare_status tare__read_operand(op_call *call, size_t i, operand *out);
/// torch's rule for two operands; unset when both are numbers.
tare_dtype tare__common_dtype(const operand side[2]);
/// The element at flat index i of a tensor; a number is the same everywhere.
double tare__operand_at(const operand *side, int64_t i);

#endif
