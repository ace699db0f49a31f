// SPDX-License-Identifier: Apache-2.0
// Predefined patterns.
#ifndef QUANTIZERS_PATTERNS_READY_PATTERNS_H
#define QUANTIZERS_PATTERNS_READY_PATTERNS_H

#include "quantizers/patterns/subgraph.h"

/// All forms of a predefined pattern, see tare_subgraph_pattern_ready. TARE_NOT_FOUND with a
/// suggestion for an unknown name.
tare_status tare__ready_pattern_forms(const char *name, subgraph_forms *out, tare_error *err);

#endif
