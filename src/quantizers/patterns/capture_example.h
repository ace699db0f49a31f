// SPDX-License-Identifier: Apache-2.0
// What the nodes of a pattern give when it is run under an example.
// Private to quantizers/patterns.
#ifndef QUANTIZERS_PATTERNS_CAPTURE_EXAMPLE_H
#define QUANTIZERS_PATTERNS_CAPTURE_EXAMPLE_H

#include "quantizers/patterns/capture.h"

typedef struct capture_facts {
    value *by_id;   // tensors became their ranks (VALUE_TENSOR, count); numbers are what they are
    bool *is_known; // by id
    size_t count;
} capture_facts;

/// Runs the pattern on tensors without data. Lives in `memory`.
tare_status tare__capture_run(subgraph_pattern *p, const capture_example *example, arena *memory,
                              capture_facts *out, tare_error *err);
/// Is a size that came out of the run symbolic?
bool tare__capture_is_symbolic(int64_t size);

#endif
