// SPDX-License-Identifier: Apache-2.0
// State of capturing a pattern.
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
    bool *is_folded; // by id: `folded`, a constant or a parameter, replaces the node
    value *folded;
    size_t count; // the pattern's own nodes have smaller ids
    tare_error *err;
} capture;

/// Arguments in aten's order.
typedef struct aten_call {
    value args[MOST_ARGUMENTS];
    size_t arg_count;
    keyword kwargs[MOST_ARGUMENTS];
    size_t kwarg_count;
} aten_call;

/// Adds a parameter that matches anything.
tare_status tare__capture_parameter(capture *c, value *out);
/// Converts a call of a torch function to aten with the table entry that fits; other calls stay.
/// Errors name the node and the function.
tare_status tare__capture_bind(capture *c, node *n);
tare_status tare__capture_become(capture *c, node *n, const char *target, const aten_call *call);
tare_status tare__capture_insert(capture *c, node *before, const char *target, const value *args,
                                 size_t count, value *out);

#endif
