// SPDX-License-Identifier: Apache-2.0
// The origin of every node of an exported graph, from the exporter's metadata, in the names that
// patterns use.
#ifndef QUANTIZERS_PATTERNS_NODE_SOURCE_H
#define QUANTIZERS_PATTERNS_NODE_SOURCE_H

#include "tare/pt2e.h"

#include "ir/graph.h"

/// Functions and classes by their public names; NULL if the exporter does not state them.
typedef struct node_source {
    const char *function, *call; // the innermost of source_fn_stack, and the name of that call
    // torch's torch_fn, which exports without tracing of Python have instead: the bare name
    // ("add"), and the name of that call.
    const char *torch_function, *torch_call;
    const char *class, *path; // the innermost module, its path
    const tare_node_meta *meta;
} node_source;

typedef struct node_sources {
    arena memory;
    node_source *by_id;
    tare_node_meta **metas; // [count]
    size_t count;           // ids below it are known
} node_sources;

/// Reads the metadata of all nodes. Nodes that are made later have no source.
tare_status tare__node_sources_read(const graph *g, node_sources *out, tare_error *err);
void tare__node_sources_release(node_sources *s);
/// Never NULL.
const node_source *tare__node_source(const node_sources *s, const node *n);
/// The one tensor that the node gives; NULL: none, several, or unknown.
const tare_value_info *tare__node_tensor_info(const node_sources *s, const node *n);
/// True if one of the modules that ran has this class.
bool tare__node_is_in_class(const node_sources *s, const node *n, const char *class_name);
/// torchao's get_module_name_filter: is this one of the modules that ran?
bool tare__node_is_in_module(const node_sources *s, const node *n, const char *path);

/// The canonical name of a source: of a class as users write it, or of a function. In `memory`;
/// NULL if memory ran out.
const char *tare__source_name(arena *memory, const char *name);

#endif
