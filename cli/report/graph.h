// SPDX-License-Identifier: Apache-2.0
// The graph of a model, and the positions of its nodes by graphviz.
#ifndef CLI_REPORT_GRAPH_H
#define CLI_REPORT_GRAPH_H

#include "support/json.h"
#include "tare/tare.h"

/// Texts are lent by the model.
typedef struct graph_node {
    const char *name, *subject, *kind;
    size_t island;          // SIZE_MAX: none
    const char **operators; // of the float model
    size_t operator_count;
    size_t *inputs, input_count;
    bool is_boxed;    // the first node of an island that is drawn as a box
    bool is_constant; // an attribute, such as a scale, or computed only from these: not drawn
} graph_node;

typedef struct graph_drawing {
    graph_node *nodes;
    size_t count, capacity, shown_count;
} graph_drawing;

/// Writes "layout" by graphviz, if it is installed and the graph is not too large; otherwise the
/// page computes its own layout.
tare_status write_layout(graph_drawing *g, json_out *json, tare_error *err);

#endif
