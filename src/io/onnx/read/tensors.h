// SPDX-License-Identifier: Apache-2.0
// Reads the file's tensors, and data in files beside it.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_TENSORS_H
#define IO_ONNX_READ_TENSORS_H

#include "core/memory/budget.h"
#include "core/memory/map.h"
#include "io/onnx/schema.h"

/// The data files of one model that are already mapped, by their location as written.
typedef struct onnx_data_files {
    map mapped;           // -> storage *, references owned
    memory_budget budget; // for what is copied from them, and constants that are computed
} onnx_data_files;
void tare__onnx_data_files_release(onnx_data_files *d);

/// Reads a tensor from raw bytes, from the field of its type or from another file. It is a view of
/// the file's memory or of the mapping if possible. External paths must be relative and lead, after
/// resolving links, to a file in the model's folder. Errors name the tensor. The caller releases
/// *out.
tare_status tare__onnx_read_tensor(const onnx_file *f, onnx_data_files *d,
                                   const Onnx__TensorProto *t, tare_tensor **out, tare_error *err);

#endif
