// SPDX-License-Identifier: Apache-2.0
// The model message around the nodes: inputs, outputs, metadata.
// Private to io/onnx/write.
#ifndef IO_ONNX_WRITE_MODEL_H
#define IO_ONNX_WRITE_MODEL_H

#include "io/onnx/write/state.h"

/// t becomes the next output of the file. other: the same for another batch; NULL: the batch is
/// fixed.
tare_status tare__onnx_add_output(onnx_writer *w, const tare_tensor *t, const tare_tensor *other);
/// When all are there: nodes that give one call it as it is to be called.
tare_status tare__onnx_name_outputs(onnx_writer *w);
/// Everything but elements as bytes. Initializers that nothing reads are left out.
tare_status tare__onnx_assemble(onnx_writer *w, onnx_image *out);
/// A JSON object: how each tensor of our own file is had from the initializers (write/sources.c).
/// Tensors that are not in the file are put there, or into the object where they are small.
tare_status tare__onnx_sources(onnx_writer *w, text *out);

#endif
