// SPDX-License-Identifier: Apache-2.0
/// ONNX files out of models: float ones, and converted ones with QuantizeLinear and
/// DequantizeLinear.
#ifndef TARE_ONNX_H
#define TARE_ONNX_H

#include "tare/model.h"
#include "tare/writer.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How to write; zero means the default.
typedef struct tare_onnx_options {
    uint32_t struct_size;
    int opset; // 13 to 21; 0: 18. Integers of 16 and 4 bits need 21
    /// Tensors of 1 KiB and more go to PATH.DIGEST.data, a file whose name has a digest of its
    /// bytes (16 hexadecimal digits); models of more than 2 GiB are always written so. PATH is
    /// replaced last, then such files of earlier models are removed.
    bool external_data;
    /// Shapes of inputs for which the model has none; a first size of -1 is an open batch. Inputs
    /// whose shape the model fixes are refused, and so are unknown names.
    const tare_input_shape *shapes;
    size_t shape_count;
    /// Receives a JSON object in one call, before the model is written, and also where nodes cannot
    /// be written: {"opset", "batch": "open" | "fixed", "refused": [{"node", "operator",
    /// "reason"}], "notes": [{"node", "note"}]}. NULL: none.
    tare_writer report;
    void *report_user;
} tare_onnx_options;

/// Writes the model as an ONNX file ("-": standard output), under a temporary name that is renamed
/// at the end. A float model becomes float operators. In a converted one (reference form, lowered
/// or decomposed operators) every quantization becomes a QuantizeLinear and every use of a
/// quantized value a DequantizeLinear: per tensor or channel, with the same integers, and with
/// int32 biases of integer layers. The batch stays open where every operator allows it.
/// TARE_UNSUPPORTED names every node that ONNX cannot express, with the reason. Reading the file
/// again gives the same graph, names, parameters and integers; float weights that the file holds as
/// integers are read as the values of these integers. options may be NULL.
TARE_API tare_status tare_model_write_onnx(const tare_model *model, const char *path,
                                           const tare_onnx_options *options, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
