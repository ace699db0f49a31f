// SPDX-License-Identifier: Apache-2.0
// Operands of functions that broadcast: tensors and numbers, and their common dtype.
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

enum { WALK_OPERANDS = 3 };

/// The steps of operands through the dimensions of a result that they broadcast to, and the run
/// along the last ones where each advances by a fixed 0 or 1.
typedef struct walk {
    const int64_t *shape; // of the result, lent
    int64_t stride[WALK_OPERANDS][TARE_MAX_DIMS];
    int64_t run, step[WALK_OPERANDS];
    int outer_ndim;
    size_t count;
} walk;

/// NULL among the tensors is a number.
walk tare__walk(const tare_tensor *const *tensors, size_t count, int ndim, const int64_t *shape);
/// The offset in each operand of the run that starts at element `at` of the result.
void tare__walk_at(const walk *w, int64_t at, int64_t *offset);

#endif
