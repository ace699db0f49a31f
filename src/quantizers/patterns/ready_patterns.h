// SPDX-License-Identifier: Apache-2.0
// Ready-made patterns.
#ifndef QUANTIZERS_PATTERNS_READY_PATTERNS_H
#define QUANTIZERS_PATTERNS_READY_PATTERNS_H

#include "quantizers/patterns/subgraph.h"

/// All forms of a ready-made pattern, see tare_subgraph_pattern_ready. TARE_NOT_FOUND with a
/// suggestion for other names.
tare_status tare__ready_pattern_forms(const char *name, subgraph_forms *out, tare_error *err);

#endif
