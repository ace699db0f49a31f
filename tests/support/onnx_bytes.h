// SPDX-License-Identifier: Apache-2.0
// ONNX files in few words, byte for byte as protobuf writes them. Each piece is a text that holds
// bytes; what takes a piece releases it.
#ifndef SUPPORT_ONNX_BYTES_H
#define SUPPORT_ONNX_BYTES_H

#include <stdint.h>

#include "core/text/text.h"

void pb_int(text *t, unsigned field, int64_t value);
void pb_bytes(text *t, unsigned field, const void *bytes, size_t size);
void pb_text(text *t, unsigned field, const char *chars);
void pb_message(text *t, unsigned field, text message);

/// A node; inputs and outputs are names with spaces between ("-" is the empty name).
text onnx_node(const char *op_type, const char *name, const char *inputs, const char *outputs);
void onnx_attr_int(text *node, const char *name, int64_t value);
void onnx_attr_ints(text *node, const char *name, const int64_t *values, size_t count);
void onnx_attr_float(text *node, const char *name, float value);
void onnx_attr_text(text *node, const char *name, const char *value);
/// A branch or body. Takes the graph.
void onnx_attr_graph(text *node, const char *name, text graph);
/// An attribute with the value of an attribute of the function around the node.
void onnx_attr_ref(text *node, const char *name, const char *of_function);
/// dynamo's metadata: "['', 'fc', 'linear']" and the classes of the same.
void onnx_scope_of(text *node, const char *names, const char *classes);
void onnx_add_node(text *graph, text node);
/// A node without attributes.
void onnx_call(text *graph, const char *op_type, const char *name, const char *inputs,
               const char *outputs);
/// A float input; shape as "N,3,8,8": numbers, and names of open sizes.
void onnx_input(text *graph, const char *name, const char *shape);
void onnx_output(text *graph, const char *name);
/// A float initializer with small numbers that depend on the index only, as raw bytes.
void onnx_floats(text *graph, const char *name, int ndim, const int64_t *dims);
/// A float initializer without dimensions.
void onnx_number(text *graph, const char *name, float value);
void onnx_int64s(text *graph, const char *name, const int64_t *values, size_t count);
/// A float initializer of `count` elements whose data lies elsewhere. offset and length: NULL for
/// none.
void onnx_external(text *graph, const char *name, int64_t count, const char *location,
                   const char *offset, const char *length);
/// The whole file. Takes the graph.
text onnx_model(text graph, int64_t opset);

/// A function of the domain "own", whose opset is 0: not said. attributes: names with spaces
/// between. Its nodes are added with onnx_function_node.
text onnx_function(const char *name, const char *inputs, const char *outputs,
                   const char *attributes, int64_t opset);
void onnx_function_node(text *function, text node);
/// Its default for a float attribute.
void onnx_function_default(text *function, const char *name, float value);
/// Adds the function to the file. Takes it.
void onnx_add_function(text *file, text function);
/// A node that calls a function.
text onnx_function_call(const char *function, const char *name, const char *inputs,
                        const char *outputs);

#endif
