// SPDX-License-Identifier: Apache-2.0
// The results of a pattern's nodes when it is run with an example.
// Private to quantizers/patterns.
#ifndef QUANTIZERS_PATTERNS_CAPTURE_EXAMPLE_H
#define QUANTIZERS_PATTERNS_CAPTURE_EXAMPLE_H

#include "quantizers/patterns/capture.h"

typedef struct capture_facts {
    value *by_id;   // for tensors their ranks (VALUE_TENSOR, count); numbers unchanged
    bool *is_known; // by id
    size_t count;
} capture_facts;

/// Runs the pattern on tensors without data. Lives in `memory`.
tare_status tare__capture_run(subgraph_pattern *p, const capture_example *example, arena *memory,
                              capture_facts *out, tare_error *err);
/// True if a size from the run is symbolic.
bool tare__capture_is_symbolic(int64_t size);

#endif
