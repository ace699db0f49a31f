// SPDX-License-Identifier: Apache-2.0
// Sets the arguments of nodes from JSON, in the form that model files have.
#ifndef IO_NATIVE_NODE_JSON_H
#define IO_NATIVE_NODE_JSON_H

#include "ir/graph.h"

/// As tare__graph_insert, with the arguments as JSON: {"args": [..], "kwargs": {..}}. They may
/// refer to nodes before `before`.
tare_status tare__graph_insert_json(graph *g, const node_spec *spec, const char *arguments,
                                    node *before, node **out, tare_error *err);
/// As tare__node_set_args, with arguments in the same form, which may refer to nodes before n.
tare_status tare__node_set_json(node *n, const char *arguments, tare_error *err);

#endif
