// SPDX-License-Identifier: Apache-2.0
// Writes JSON values as compact text whose numbers read back unchanged.
#ifndef CORE_JSON_WRITE_H
#define CORE_JSON_WRITE_H

#include <jansson.h>

#include "core/text/text.h"

/// Appends `value`, keys in their order of insertion. Doubles are written as the shortest decimal
/// that reads back the same, which jansson alone does not do (0.1 becomes 0.10000000000000001).
void tare__json_write(const json_t *value, text *out);

#endif
