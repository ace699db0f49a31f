// SPDX-License-Identifier: Apache-2.0
// The model message around the nodes: inputs, outputs, metadata.
// Private to io/onnx/write.
#ifndef IO_ONNX_WRITE_MODEL_H
#define IO_ONNX_WRITE_MODEL_H

#include "io/onnx/write/state.h"

/// Adds t as the next output of the file. other: the output for the other batch size; NULL: the
/// batch is fixed.
tare_status tare__onnx_add_output(onnx_writer *w, const tare_tensor *t, const tare_tensor *other);
/// Renames the outputs as requested, after all nodes have been written.
tare_status tare__onnx_name_outputs(onnx_writer *w);
/// Serializes everything but the elements. Initializers that no node reads are dropped.
tare_status tare__onnx_assemble(onnx_writer *w, onnx_image *out);
/// Writes a JSON object that says how each tensor of the model is obtained from the initializers
/// (write/sources.c). Tensors that are not in the file are added to it, or to the object if they
/// are small.
tare_status tare__onnx_sources(onnx_writer *w, text *out);

#endif
