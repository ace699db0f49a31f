// SPDX-License-Identifier: Apache-2.0
// One operation as generated code writes it.
// Private to ops/text.
#ifndef OPS_TEXT_PARSE_OPERATION_H
#define OPS_TEXT_PARSE_OPERATION_H

#include "ops/text/parse_value.h"
#include "ops/text/python.h"

// The right-hand side of an assignment, before it becomes a node.
typedef struct operation {
    node_op op;
    const char *target;
    value *args; // in the scratch arena
    size_t arg_count;
    keyword *kwargs;
    size_t kwarg_count, kwarg_capacity;
} operation;

/// Parses the right-hand side of an assignment. The caller frees o->kwargs, also after a failure.
tare_status tare__parse_operation(parser *p, operation *o);
/// The call of an operator's function on these operands.
tare_status tare__parse_set_operator(parser *p, operation *o, const python_operator *rule,
                                     const value *operands, size_t count);
/// [value]
tare_status tare__parse_subscript(parser *p, value *out);

#endif
