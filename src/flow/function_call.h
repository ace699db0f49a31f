// SPDX-License-Identifier: Apache-2.0
// Calls of functions, as passes look at them.
// Private to flow.
#ifndef FLOW_FUNCTION_CALL_H
#define FLOW_FUNCTION_CALL_H

#include "ir/graph.h"
#include "ops/op.h"

/// A call of a function, its arguments bound to the row's parameters by position or keyword.
typedef struct function_call {
    node *function;
    op_call bound;
} function_call;

/// Binds a call of any spelling; false: the node calls no function that is known, or its arguments
/// do not fit. The binding lives in `memory`.
bool tare__function_bind(arena *memory, node *n, function_call *out);
/// An argument by its parameter's name; NULL: not given, or no such node.
const value *tare__function_argument(const function_call *call, const char *name);
node *tare__function_argument_node(const function_call *call, const char *name);

/// The operands of a sum or product of two; false: one is not given, or `alpha` has an effect.
bool tare__function_operands(const function_call *call, value out[2]);

/// Does it give the values of its first input as they are, outside of training?
bool tare__passes_on(const op_info *op);

/// The only node that reads n; NULL: none or several do.
node *tare__only_reader(const node *n);

#endif
