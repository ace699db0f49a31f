// SPDX-License-Identifier: Apache-2.0
// Operators are rows: everything known about one stands in one row of its family's table.
// To add an operator: add a row to the family's file in ops/ (or a new family to op_table.c), and its test.
#ifndef OPS_OP_H
#define OPS_OP_H

#include "ops/call.h"

/// What passes may ask of an operator instead of asking its name.
typedef enum op_trait {
    OP_ELEMENTWISE = 1 << 0,    // one output element per input element
    OP_KEEPS_QPARAMS = 1 << 1,  // on quantized input the output has the input's qparams (max_pool, relu, clamp)
    OP_MOVES_DATA = 1 << 2,     // only moves elements: works on the integers as they are (view, cat of equals)
    OP_WEIGHTED = 1 << 3,       // multiply-accumulates with a weight
    OP_IMPURE = 1 << 4,         // kept by dead code elimination (setitem, assert)
    OP_NOT_ON_TENSORS = 1 << 5, // result is not a tensor (size, getattr shape)
    OP_IN_PLACE = 1 << 6,       // torch writes the first input; we return the result
} op_trait;

typedef struct op_info {
    const char *id;         // family member: "relu", "conv2d", "add"
    const char *functions;  // qualified names as torch prints them, first the one of the id; '|' between:
                            // "torch.nn.functional.relu|torch.relu"; NULL: no function
    const char *methods;    // "relu|relu_"; NULL: no method
    const char *params;     // parameter names in order: "input|inplace"
    unsigned traits;
    /// Output qparams that do not depend on the input (sigmoid: 1/256, 0); scale 0: none.
    float fixed_scale;
    int fixed_zero_point;
    tare_status (*shape)(op_call *call);
    tare_status (*reference)(op_call *call); // float (and plain integer) tensors
    /// Quantized inputs, where the general rule quantize(op(dequantize(x))) with KEEPS_QPARAMS or fixed
    /// output qparams is not it. NULL: the general rule.
    tare_status (*quantized)(op_call *call);
    /// Multiply-accumulates of one call, for coverage. NULL: none.
    int64_t (*macs)(const op_call *call);
} op_info;

/// By qualified name (any synonym) or bare method name; NULL if unknown.
const op_info *tare__op_function(const char *name);
const op_info *tare__op_method(const char *name);
/// The name that torch prints for a function: synonyms of one object share it ("torch.conv2d" for
/// "torch.nn.functional.conv2d"). The argument itself when the name is unknown. Static storage or the argument.
const char *tare__function_canonical(const char *name);
/// Code that torch prints for a function: "torch.conv2d", "operator.add" -> "_operator.add" forms are
/// handled by print.c; this returns the base for node names ("conv2d").
const char *tare__function_base_name(const char *name);

/// Every row, for listings and tests; NULL past the end.
const op_info *tare__op_at(size_t index);

/// Runs a bound call: shape rule, allocation, reference (or the quantized form). On success
/// call->result holds references that tare__call_release gives back.
tare_status tare__op_run(op_call *call, bool shapes_only);
void tare__value_release_tensors(value *v); // gives back every tensor reference inside

#endif
