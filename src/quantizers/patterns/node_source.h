// SPDX-License-Identifier: Apache-2.0
// The origin of every node of an exported graph: functions and modules, from the exporter's
// metadata, with the names that patterns use.
#ifndef QUANTIZERS_PATTERNS_NODE_SOURCE_H
#define QUANTIZERS_PATTERNS_NODE_SOURCE_H

#include "tare/pt2e.h"

#include "ir/graph.h"

/// Functions and classes by their public names; NULL if the metadata does not contain them.
typedef struct node_source {
    const char *function, *call; // from the innermost entry of source_fn_stack: the function, and
                                 // the name of that call
    // torch's torch_fn, which exports without Python-level tracing have instead: the bare name
    // ("add"), and the name of that call.
    const char *torch_function, *torch_call;
    const char *class, *path; // the innermost module's class and path
    const tare_node_meta *meta;
} node_source;

typedef struct node_sources {
    arena memory;
    node_source *by_id;
    tare_node_meta **metas; // [count]
    size_t count;           // nodes with smaller ids are known
} node_sources;

/// Reads the metadata of all nodes. Nodes created later have no source.
tare_status tare__node_sources_read(const graph *g, node_sources *out, tare_error *err);
void tare__node_sources_release(node_sources *s);
/// Never NULL.
const node_source *tare__node_source(const node_sources *s, const node *n);
/// The node's result if it is a single tensor; NULL: none, several, or unknown.
const tare_value_info *tare__node_tensor_info(const node_sources *s, const node *n);
/// True if the node was traced inside a module of this class.
bool tare__node_is_in_class(const node_sources *s, const node *n, const char *class_name);
/// True if the node was traced inside the module at this path (torchao's get_module_name_filter).
bool tare__node_is_in_module(const node_sources *s, const node *n, const char *path);

/// The canonical name of a source, a function or a class as users write it. In `memory`; NULL: out
/// of memory.
const char *tare__source_name(arena *memory, const char *name);

#endif
