// SPDX-License-Identifier: Apache-2.0
// Reading ONNX models.
#ifndef IO_ONNX_ONNX_H
#define IO_ONNX_ONNX_H

#include "io/native/model_file.h"
#include "ir/module.h"
#include "ops/classes/classes.h"
#include "tare/model.h"

/// Returns true if the bytes look like an ONNX model, complete or cut off, and like no other
/// format.
bool tare__onnx_is_model(const unsigned char *bytes, size_t size);

/// What the file says about its origin.
typedef struct onnx_origin {
    bool is_torch;       // written by one of torch's exporters
    bool has_batch_norm; // at least one batch norm is left
    bool has_conv;
    bool is_quantized; // it contains QuantizeLinear, DequantizeLinear or MatMulNBits
    json_t
        *extra; // the `record` of a file that tare wrote; the caller calls json_decref. NULL: none
} onnx_origin;

/// Reads the model in `size` bytes as a torch.fx.GraphModule whose modules have the names that the
/// user knows. path: where the bytes come from, to find data files beside it ("-": standard input;
/// NULL: memory). Weights are views of the unpacked or mapped file. A file that tare wrote gives
/// the model that it was written from (own.h); state is for the modules of that model and may be
/// NULL. options may be NULL. Errors name node, operator and value. The caller releases *root.
tare_status tare__onnx_read(const unsigned char *bytes, size_t size, const char *path,
                            const registry *classes, const model_state_io *state,
                            const tare_model_read_options *options, module **root,
                            onnx_origin *origin, tare_error *err);

#endif
