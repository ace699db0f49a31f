// SPDX-License-Identifier: Apache-2.0
// Converts a pattern's code to the aten operators that torch.export would emit.
#ifndef QUANTIZERS_PATTERNS_CAPTURE_H
#define QUANTIZERS_PATTERNS_CAPTURE_H

#include "quantizers/patterns/subgraph.h"

/// The value of a pattern's parameter during capture.
typedef struct capture_input {
    tare_dtype dtype;     // for a tensor
    const int64_t *shape; // [rank]; negative: symbolic, and equal numbers mean equal sizes
    int rank;
    bool is_constant; // `constant` replaces the parameter
    value constant;
} capture_input;

typedef struct capture_example {
    const capture_input *inputs; // by position of the parameters
    size_t count;
} capture_example;

/// Converts calls of torch's functions and methods and Python's operators to calls of aten
/// operators, with arguments in aten's order. Sizes that the code reads become numbers, or, if
/// symbolic or without an example, parameters that match anything. example: NULL: none.
tare_status tare__capture(subgraph_pattern *p, const capture_example *example, tare_error *err);

#endif
