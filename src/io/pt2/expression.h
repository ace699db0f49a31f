// SPDX-License-Identifier: Apache-2.0
// Sizes as programs write them, in sympy's constructors: Add(Symbol('s0', integer=True),
// Integer(1)).
// Private to io/pt2.
#ifndef IO_PT2_EXPRESSION_H
#define IO_PT2_EXPRESSION_H

#include <stdint.h>

#include "core/memory/map.h"

/// Its value where symbols are what `symbols` says (tare__map_int). False where it has functions
/// that are not known here, symbols without a value, or overflows. Sizes are never negative, but
/// operands of an expression may be.
bool tare__expression_value(const char *chars, const map *symbols, int64_t *out);
/// Calls visit with the name of every symbol, as often as it stands there.
bool tare__expression_symbols(const char *chars,
                              bool (*visit)(void *user, const char *name, size_t length),
                              void *user);

#endif
