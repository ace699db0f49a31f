// SPDX-License-Identifier: Apache-2.0
// Names that generated code may not use for a value.
// Private to ir.
#ifndef IR_NAMES_H
#define IR_NAMES_H

#include <stdbool.h>

/// True for Python's keywords and builtins, and for names reserved in torch's generated code
/// ("inf", "torch").
bool tare__name_is_reserved(const char *name);

#endif
