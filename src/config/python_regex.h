// SPDX-License-Identifier: Apache-2.0
// Python's `re.match`, with the syntax that names of modules need.
// Private to config.
#ifndef CONFIG_PYTHON_REGEX_H
#define CONFIG_PYTHON_REGEX_H

#include <stdbool.h>

#include "core/error.h"

typedef struct python_regex python_regex;

/// Literals, `.`, classes, \d \w \s and their opposites, groups, `|`, quantifiers (lazy ones too:
/// they accept the same texts), `^ $ \A \Z`. Look-around, back references, flags and \b are refused
/// by name. Names are bytes; character classes are ASCII, whatever the locale.
tare_status tare__python_regex_compile(const char *pattern, python_regex **out, tare_error *err);
void tare__python_regex_destroy(python_regex *regex); // NULL is fine
/// re.match: anchored at the start only.
bool tare__python_regex_match(const python_regex *regex, const char *name);

#endif
