// SPDX-License-Identifier: Apache-2.0
// A pattern while it is captured.
// Private to quantizers/patterns.
#ifndef QUANTIZERS_PATTERNS_CAPTURE_STATE_H
#define QUANTIZERS_PATTERNS_CAPTURE_STATE_H

#include "quantizers/patterns/capture_example.h"

enum { MOST_ARGUMENTS = 12 };

typedef struct capture {
    subgraph_pattern *p;
    graph *g;
    arena scratch;
    bool has_facts;
    capture_facts facts;
    bool *is_folded; // by id: the node is the constant, or the parameter, `folded`
    value *folded;
    size_t count; // ids below it are the pattern's own
    tare_error *err;
} capture;

/// Arguments in aten's order.
typedef struct aten_call {
    value args[MOST_ARGUMENTS];
    size_t arg_count;
    keyword kwargs[MOST_ARGUMENTS];
    size_t kwarg_count;
} aten_call;

/// A parameter that matches anything.
tare_status tare__capture_parameter(capture *c, value *out);
/// A call of torch's becomes one of aten's by the row that it fits; others stay. Errors name the
/// node and the function.
tare_status tare__capture_bind(capture *c, node *n);
tare_status tare__capture_become(capture *c, node *n, const char *target, const aten_call *call);
tare_status tare__capture_insert(capture *c, node *before, const char *target, const value *args,
                                 size_t count, value *out);

#endif
