// SPDX-License-Identifier: Apache-2.0
// In which order a graph's nodes are translated.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_ORDER_H
#define IO_ONNX_READ_ORDER_H

#include "core/memory/arena.h"
#include "core/memory/map.h"
#include "io/onnx/schema.h"

/// The nodes of g so that each stands behind those whose values it uses, in the file's own order
/// where that is possible. outer: names that are known already (a map's keys), for the graph of a
/// branch; may be NULL. *out has g->n_node entries in `memory`. Values that are made twice or
/// never, and circles, are errors that name them.
tare_status tare__onnx_order(const Onnx__GraphProto *g, const map *outer, arena *memory,
                             const Onnx__NodeProto ***out, tare_error *err);

/// "node 'conv1' (Conv)", or what is known of it, into out[size].
void tare__onnx_describe_node(const Onnx__NodeProto *n, char *out, size_t size);

#endif
