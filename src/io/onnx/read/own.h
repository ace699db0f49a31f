// SPDX-License-Identifier: Apache-2.0
// Files that tare wrote itself.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_OWN_H
#define IO_ONNX_READ_OWN_H

#include "io/native/model_file.h"
#include "io/onnx/schema.h"

/// The model that the file was written from, if it says so and its nodes and constants are still
/// what that model is written as: then graph, names and parameters are those of before. *root is
/// NULL where they are not, and the file is to be read node by node as any other. `extra` as
/// tare__model_file_read has it. Fails when memory is gone.
tare_status tare__onnx_read_own(const onnx_file *file, const registry *classes,
                                const model_state_io *state, module **root, json_t **extra,
                                tare_error *err);

#endif
