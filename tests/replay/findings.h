// SPDX-License-Identifier: Apache-2.0
// What a replay found to differ: the first difference in one line, and all of it for --verbose.
#ifndef REPLAY_FINDINGS_H
#define REPLAY_FINDINGS_H

#include "core/text/text.h"

/// A known difference excuses values, never structure.
typedef enum finding_kind {
    FINDING_STRUCTURE, // texts, names, statistics: half (a)
    FINDING_VALUE,     // outputs of the converted model: half (b)
} finding_kind;

typedef struct findings { // zero-initialized is «nothing differs»
    text first;           // one line
    text detail;          // for --verbose
    size_t structure_count, value_count;
} findings;

void findings_add(findings *f, finding_kind kind, const char *format, ...) TARE_PRINTF(3, 4);
/// A step that failed: "prepare: node 'x': ..".
void findings_add_error(findings *f, finding_kind kind, const char *step, const tare_error *err);
/// Adds all of `more`, which comes after what was found already.
void findings_join(findings *f, const findings *more);
bool findings_any(const findings *f);
void findings_release(findings *f);

#endif
