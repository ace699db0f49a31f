// SPDX-License-Identifier: Apache-2.0
// ONNX models as ours.
#ifndef IO_ONNX_ONNX_H
#define IO_ONNX_ONNX_H

#include "ir/module.h"
#include "ops/classes.h"
#include "tare/model.h"

/// Do these bytes look like an ONNX model (or a cut-off one) rather than like anything else?
bool tare__onnx_is_model(const unsigned char *bytes, size_t size);

/// What a file says about where it comes from.
typedef struct onnx_origin {
    bool is_torch;       // written by one of torch's exporters
    bool has_batch_norm; // at least one batch norm is left
    bool has_conv;
} onnx_origin;

/// The model in `size` bytes, as a torch.fx.GraphModule with modules under the names that the user
/// knows. path: where the bytes come from, for data files beside it ("-": standard input). Weights
/// are views of what was unpacked or mapped. options may be NULL. Errors name node, operator and
/// value. The caller releases *root.
tare_status tare__onnx_read(const unsigned char *bytes, size_t size, const char *path,
                            const registry *classes, const tare_model_read_options *options,
                            module **root, onnx_origin *origin, tare_error *err);

#endif
