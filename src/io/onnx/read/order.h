// SPDX-License-Identifier: Apache-2.0
// The order in which the nodes of a graph are translated.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_ORDER_H
#define IO_ONNX_READ_ORDER_H

#include "core/memory/arena.h"
#include "core/memory/map.h"
#include "io/onnx/schema.h"

/// Sorts the nodes of g topologically, in the file's order where possible. outer: names that are
/// already known (keys of a map), for the graph of a branch; may be NULL. *out has g->n_node
/// entries in `memory`. Values that are produced twice or never, and cycles, are errors that name
/// them.
tare_status tare__onnx_order(const Onnx__GraphProto *g, const map *outer, arena *memory,
                             const Onnx__NodeProto ***out, tare_error *err);

/// Writes "node 'conv1' (Conv)", or as much as is known, into out[size].
void tare__onnx_describe_node(const Onnx__NodeProto *n, char *out, size_t size);

#endif
