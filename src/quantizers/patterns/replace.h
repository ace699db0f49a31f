// SPDX-License-Identifier: Apache-2.0
// Every match of one pattern becomes another one (torch's replace_pattern).
#ifndef QUANTIZERS_PATTERNS_REPLACE_H
#define QUANTIZERS_PATTERNS_REPLACE_H

#include "model/pass.h"

/// Both as code, with equal parameters and one result.
typedef struct pattern_rewrite {
    const char *name; // what the record calls it
    const char *pattern, *replacement;
} pattern_rewrite;

/// Parameters of the pattern match nodes and literals, and stand for them in the replacement; a
/// match with None in place of one stays as it is. Matches are looked for once, and do not overlap.
/// Nodes of the replacement ask for the names that they have there. `rule`: for the record.
tare_status tare__replace_pattern(pass *p, const pattern_rewrite *rewrite, const char *rule);

#endif
