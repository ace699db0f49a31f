// SPDX-License-Identifier: Apache-2.0
// Operands of functions with broadcasting: tensors and numbers, and their common dtype.
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
/// The element at flat index i of a tensor; for a number, the number.
double tare__operand_at(const operand *side, int64_t i);

enum { WALK_OPERANDS = 3 };

/// Iterates over broadcast operands. The last dimensions of the result form a run along which each
/// operand advances by a constant step of 0 or 1; the outer dimensions have a stride for each
/// operand.
typedef struct walk {
    const int64_t *shape; // of the result, lent
    int64_t stride[WALK_OPERANDS][TARE_MAX_DIMS];
    int64_t run, step[WALK_OPERANDS];
    int outer_ndim;
    size_t count;
} walk;

/// tensors: NULL for a number.
walk tare__walk(const tare_tensor *const *tensors, size_t count, int ndim, const int64_t *shape);
/// The offset in each operand of element `at` < end of the result. Returns how many elements from
/// there to `end` are in its run.
int64_t tare__walk_at(const walk *w, int64_t at, int64_t end, int64_t *offset);

#endif
