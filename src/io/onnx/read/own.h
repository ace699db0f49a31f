// SPDX-License-Identifier: Apache-2.0
// Files that tare wrote itself.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_OWN_H
#define IO_ONNX_READ_OWN_H

#include "io/native/model_file.h"
#include "io/onnx/schema.h"

/// Reads the model that the file was written from. *root is NULL if the file does not hold it, or
/// if its nodes and constants are not those that the model would be written as: the file is then
/// read node by node like any other. `extra` as in tare__model_file_read. Fails only if memory runs
/// out.
tare_status tare__onnx_read_own(const onnx_file *file, const registry *classes,
                                const model_state_io *state, module **root, json_t **extra,
                                tare_error *err);

#endif
