// SPDX-License-Identifier: Apache-2.0
// Replaces every match of a pattern by another one (torch's replace_pattern).
#ifndef QUANTIZERS_PATTERNS_REPLACE_H
#define QUANTIZERS_PATTERNS_REPLACE_H

#include "model/pass.h"

/// Pattern and replacement as code, with equal parameters and one result.
typedef struct pattern_rewrite {
    const char *name; // its name in the record
    const char *pattern, *replacement;
} pattern_rewrite;

/// Parameters of the pattern match nodes and literals, which the replacement uses. A match with
/// None for a parameter is not replaced. Matches are searched once and do not overlap. New nodes
/// request the names that they have in the replacement. `rule`: for the record.
tare_status tare__replace_pattern(pass *p, const pattern_rewrite *rewrite, const char *rule);

#endif
