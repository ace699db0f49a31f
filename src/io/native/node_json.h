// SPDX-License-Identifier: Apache-2.0
// The arguments of a node in a model file.
#ifndef IO_NATIVE_NODE_JSON_H
#define IO_NATIVE_NODE_JSON_H

#include "ir/graph.h"

/// As tare__graph_insert, with the arguments as a file has them: {"args": [..], "kwargs": {..}},
/// which may name nodes before `before`.
tare_status tare__graph_insert_json(graph *g, const node_spec *spec, const char *arguments,
                                    node *before, node **out, tare_error *err);
/// As tare__node_set_args, in the same form; nodes before n.
tare_status tare__node_set_json(node *n, const char *arguments, tare_error *err);

#endif
