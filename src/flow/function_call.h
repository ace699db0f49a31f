// SPDX-License-Identifier: Apache-2.0
// Calls of functions with their arguments bound to parameters.
// Private to flow.
#ifndef FLOW_FUNCTION_CALL_H
#define FLOW_FUNCTION_CALL_H

#include "ir/graph.h"
#include "ops/op.h"

/// A function call with its arguments bound to the row's parameters by position or keyword.
typedef struct function_call {
    node *function;
    op_call bound;
} function_call;

/// Binds a call of a function in any spelling. False if the node calls no known function or its
/// arguments do not fit. The binding is allocated in `memory`.
bool tare__function_bind(arena *memory, node *n, function_call *out);
/// An argument by its parameter's name; NULL: not given, or the value is no node.
const value *tare__function_argument(const function_call *call, const char *name);
node *tare__function_argument_node(const function_call *call, const char *name);

/// The operands of a sum or product of two; false if one is missing, or `alpha` is not 1.
bool tare__function_operands(const function_call *call, value out[2]);

/// The only user of n; NULL: there is none, or several.
node *tare__only_reader(const node *n);

#endif
