// SPDX-License-Identifier: Apache-2.0
// Compares printed models: every character exactly, float literals as numbers.
#ifndef REPLAY_TEXT_COMPARE_H
#define REPLAY_TEXT_COMPARE_H

#include "replay/agreement.h"
#include "replay/findings.h"

/// Adds a structural finding that names the first line to differ, and a diff to the detail. `what`
/// names the text ("converted_text").
void compare_texts(const char *what, const char *ours, const char *recorded,
                   const agreement *numbers, findings *out);

#endif
