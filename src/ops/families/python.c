// SPDX-License-Identifier: Apache-2.0
// Python operators as torch's code generator prints them.
#include "ops/text/python.h"

#include <string.h>

// clang-format off
static const python_operator operators[] = {
    {"operator.add",       "+",   PYTHON_BINARY},
    {"operator.sub",       "-",   PYTHON_BINARY},
    {"operator.mul",       "*",   PYTHON_BINARY},
    {"operator.truediv",   "/",   PYTHON_BINARY},
    {"operator.floordiv",  "//",  PYTHON_BINARY},
    {"operator.mod",       "%",   PYTHON_BINARY},
    {"operator.pow",       "**",  PYTHON_BINARY},
    {"operator.matmul",    "@",   PYTHON_BINARY},
    {"operator.lshift",    "<<",  PYTHON_BINARY},
    {"operator.rshift",    ">>",  PYTHON_BINARY},
    {"operator.and_",      "&",   PYTHON_BINARY},
    {"operator.or_",       "|",   PYTHON_BINARY},
    {"operator.xor",       "^",   PYTHON_BINARY},
    {"operator.eq",        "==",  PYTHON_BINARY},
    {"operator.ne",        "!=",  PYTHON_BINARY},
    {"operator.lt",        "<",   PYTHON_BINARY},
    {"operator.gt",        ">",   PYTHON_BINARY},
    {"operator.le",        "<=",  PYTHON_BINARY},
    {"operator.ge",        ">=",  PYTHON_BINARY},
    {"operator.pos",       "+",   PYTHON_UNARY},
    {"operator.neg",       "-",   PYTHON_UNARY},
    {"operator.invert",    "~",   PYTHON_UNARY},
    {"operator.getitem",   "[]",  PYTHON_SUBSCRIPT},
    {"operator.iadd",      "+=",  PYTHON_IN_PLACE},
    {"operator.isub",      "-=",  PYTHON_IN_PLACE},
    {"operator.imul",      "*=",  PYTHON_IN_PLACE},
    {"operator.itruediv",  "/=",  PYTHON_IN_PLACE},
    {"operator.ifloordiv", "//=", PYTHON_IN_PLACE},
    {"operator.imod",      "%=",  PYTHON_IN_PLACE},
    {"operator.ipow",      "**=", PYTHON_IN_PLACE},
    {"operator.imatmul",   "@=",  PYTHON_IN_PLACE},
    {"operator.ilshift",   "<<=", PYTHON_IN_PLACE},
    {"operator.irshift",   ">>=", PYTHON_IN_PLACE},
    {"operator.iand",      "&=",  PYTHON_IN_PLACE},
    {"operator.ior",       "|=",  PYTHON_IN_PLACE},
    {"operator.ixor",      "^=",  PYTHON_IN_PLACE},
    {"operator.setitem",   "[]=", PYTHON_SET_ITEM},
};
// clang-format on
enum { OPERATOR_COUNT = sizeof operators / sizeof *operators };

const python_operator *tare__python_operator(const char *function) {
    for (int i = 0; i < OPERATOR_COUNT; i++)
        if (strcmp(operators[i].function, function) == 0) return &operators[i];
    return NULL;
}

const python_operator *tare__python_symbol(python_form form, const char *symbol, size_t length) {
    for (int i = 0; i < OPERATOR_COUNT; i++)
        if (operators[i].form == form && strlen(operators[i].symbol) == length &&
            memcmp(operators[i].symbol, symbol, length) == 0)
            return &operators[i];
    return NULL;
}

size_t tare__python_operand_count(python_form form) {
    return form == PYTHON_UNARY ? 1 : form == PYTHON_SET_ITEM ? 3 : 2;
}
