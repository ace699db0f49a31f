// SPDX-License-Identifier: Apache-2.0
// Which findings follow from others, and their order: causes first.
// Private to debug/analyze.
#ifndef DEBUG_ANALYZE_CAUSES_H
#define DEBUG_ANALYZE_CAUSES_H

#include "debug/analyze/findings.h"

/// The float node that computes what a quantize node reads, or the placeholder, through nodes that
/// return their input unchanged; NULL: none.
const node *tare__cause_value(const probe *p, const node *quantize);

/// Links findings that follow from another one (their sentences say so, and their remedy is that
/// one's where it helps them, too), and sorts: by descending cost, where a cause counts with the
/// largest cost of those that follow from it; then those that follow; then what costs little, and
/// what costs nothing.
tare_status tare__causes_sort(finding_list *f);

#endif
