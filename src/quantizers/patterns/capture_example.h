// SPDX-License-Identifier: Apache-2.0
// Results of a pattern's nodes on an example.
// Private to quantizers/patterns.
#ifndef QUANTIZERS_PATTERNS_CAPTURE_EXAMPLE_H
#define QUANTIZERS_PATTERNS_CAPTURE_EXAMPLE_H

#include "quantizers/patterns/capture.h"

typedef struct capture_facts {
    value *by_id;   // tensors only with their rank (VALUE_TENSOR, count); other values unchanged
    bool *is_known; // by id
    size_t count;
} capture_facts;

/// Runs the pattern on tensors without data. The facts live in `memory`.
tare_status tare__capture_run(subgraph_pattern *p, const capture_example *example, arena *memory,
                              capture_facts *out, tare_error *err);
/// True if a size in the results depends on a symbolic one.
bool tare__capture_is_symbolic(int64_t size);

#endif
