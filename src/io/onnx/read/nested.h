// SPDX-License-Identifier: Apache-2.0
// Graphs that are attributes of nodes (branches, bodies of loops), and sequences. The nodes of such
// a graph are translated in place, as often as it runs: no graph within the model remains.
// Private to io/onnx.
#ifndef IO_ONNX_READ_NESTED_H
#define IO_ONNX_READ_NESTED_H

#include "io/onnx/read/import.h"

/// A graph attribute.
typedef struct onnx_nested {
    const void *graph;
    const char *name; // the attribute's
    size_t input_count, output_count;
} onnx_nested;

/// Reads the attribute, which must be given.
tare_status tare__onnx_attr_graph(onnx_call *c, const char *name, onnx_nested *out);
/// Translates the graph's nodes with these values of its inputs; gives its outputs. Values of the
/// graphs around it are known inside; its own are forgotten afterwards.
tare_status tare__onnx_run_nested(onnx_call *c, const onnx_nested *g, const value *inputs,
                                  value *outputs);
/// Counts nodes that are made beside those of the graphs; fails if they come to more than the
/// limit.
tare_status tare__onnx_count_unrolled(onnx_call *c, size_t count);
/// The number in v, if it is a constant of one element that is the same for all open sizes and
/// batches. *is_known: whether it is.
void tare__onnx_decided(const onnx_call *c, const value *v, double *out, bool *is_known);
/// A sequence of these values, as the value of a name of the file.
tare_status tare__onnx_sequence(onnx_call *c, const value *items, size_t count, value *out);

#endif
