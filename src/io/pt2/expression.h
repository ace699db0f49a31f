// SPDX-License-Identifier: Apache-2.0
// Size expressions of programs, which are written as sympy constructors:
// Add(Symbol('s0', integer=True), Integer(1)).
// Private to io/pt2.
#ifndef IO_PT2_EXPRESSION_H
#define IO_PT2_EXPRESSION_H

#include <stdint.h>

#include "core/memory/map.h"

/// The value of an expression. symbols: name -> value (tare__map_int). False for unknown functions,
/// symbols without a value, and overflow. Sizes are never negative, but operands of an expression
/// may be.
bool tare__expression_value(const char *chars, const map *symbols, int64_t *out);
/// Calls visit with the name of every symbol, for each occurrence.
bool tare__expression_symbols(const char *chars,
                              bool (*visit)(void *user, const char *name, size_t length),
                              void *user);

#endif
