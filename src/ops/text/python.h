// SPDX-License-Identifier: Apache-2.0
// The Python syntax that generated code uses, for the printer and the parser.
#ifndef OPS_TEXT_PYTHON_H
#define OPS_TEXT_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

typedef enum python_form {
    PYTHON_BINARY,    // a SYMBOL b
    PYTHON_UNARY,     // SYMBOL a
    PYTHON_SUBSCRIPT, // a[b]
    PYTHON_IN_PLACE,  // a SYMBOL b;  n = a
    PYTHON_SET_ITEM,  // a[b] = c;  n = a
} python_form;

/// A function of Python's operator module that generated code writes as an operator.
typedef struct python_operator {
    const char *function; // "operator.add"
    const char *symbol;   // "+"
    python_form form;
} python_operator;

const python_operator *tare__python_operator(const char *function); // NULL if it is no operator
/// Finds an operator of one form by its symbol; NULL if there is none.
const python_operator *tare__python_symbol(python_form form, const char *symbol, size_t length);
/// The number of operands of operators of this form.
size_t tare__python_operand_count(python_form form);

#endif
