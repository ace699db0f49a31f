// SPDX-License-Identifier: Apache-2.0
// Converts a pattern's code to the aten operators that torch.export would emit.
#ifndef QUANTIZERS_PATTERNS_CAPTURE_H
#define QUANTIZERS_PATTERNS_CAPTURE_H

#include "quantizers/patterns/subgraph.h"

/// The value of a pattern's parameter during capture.
typedef struct capture_input {
    tare_dtype dtype;     // of a tensor
    const int64_t *shape; // [rank]; negative: symbolic, equal numbers are equal sizes
    int rank;
    bool is_constant; // it is `constant`, and no parameter any more
    value constant;
} capture_input;

typedef struct capture_example {
    const capture_input *inputs; // by position of the parameters
    size_t count;
} capture_example;

/// Calls of torch's functions, methods and Python's operators become calls of aten's, in torch's
/// order of arguments. Sizes that the code asks for become numbers, or where they are symbolic or
/// there is no example, parameters that match anything. example: NULL: none.
tare_status tare__capture(subgraph_pattern *p, const capture_example *example, tare_error *err);

#endif
