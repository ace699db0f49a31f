// SPDX-License-Identifier: Apache-2.0
// Python's `re.match`, for the syntax that is useful for module names.
// Private to config.
#ifndef CONFIG_PYTHON_REGEX_H
#define CONFIG_PYTHON_REGEX_H

#include <stdbool.h>

#include "core/error.h"

typedef struct python_regex python_regex;

/// Supports literals, `.`, classes, \d \w \s and their complements, groups, `|`, quantifiers (also
/// lazy ones, which match the same strings), and `^ $ \A \Z`. Look-around, back references, flags
/// and \b are refused by name. Names are bytes; character classes are ASCII, independent of the
/// locale.
tare_status tare__python_regex_compile(const char *pattern, python_regex **out, tare_error *err);
void tare__python_regex_destroy(python_regex *regex); // NULL is fine
/// Like re.match, anchored at the start only.
bool tare__python_regex_match(const python_regex *regex, const char *name);

#endif
