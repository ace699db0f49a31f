// SPDX-License-Identifier: Apache-2.0
// The file's tensors as ours, and data that lies in files beside it.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_TENSORS_H
#define IO_ONNX_READ_TENSORS_H

#include "core/memory/budget.h"
#include "core/memory/map.h"
#include "io/onnx/schema.h"

/// The data files of one model that are mapped already, by their location as written.
typedef struct onnx_data_files {
    map mapped;           // -> storage *, references owned
    memory_budget budget; // of what is copied out of them, and of constants that are computed
} onnx_data_files;
void tare__onnx_data_files_release(onnx_data_files *d);

/// The tensor, in raw bytes, in the field of its type or in another file. A view of the file's
/// memory or of the mapping where that is possible. External paths must be relative and lead to a
/// file inside of the model's folder, whatever links there are. Errors name the tensor. The caller
/// releases *out.
tare_status tare__onnx_read_tensor(const onnx_file *f, onnx_data_files *d,
                                   const Onnx__TensorProto *t, tare_tensor **out, tare_error *err);

#endif
