// SPDX-License-Identifier: Apache-2.0
/// Writing models as ONNX files: float models, and converted ones with QuantizeLinear and
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
    int opset; // 13 to 21; 0: 18. 16-bit and 4-bit integers need 21
    /// Writes tensors of 1 KiB and more to PATH.DIGEST.data, where DIGEST is a digest of the file's
    /// bytes (16 hexadecimal digits). Models of more than 2 GiB are always written this way. PATH
    /// is replaced last; then the data files of earlier models at PATH are removed.
    bool external_data;
    /// Shapes of inputs that have no shape in the model; a first size of -1 means an open batch.
    /// Inputs whose shape the model fixes and unknown names are errors.
    const tare_input_shape *shapes;
    size_t shape_count;
    /// Receives a JSON object in one call, before the model is written; also if it cannot be
    /// written because of its nodes: {"opset", "batch": "open" | "fixed", "refused": [{"node",
    /// "operator", "reason"}], "notes": [{"node", "note"}]}. NULL: none.
    tare_writer report;
    void *report_user;
} tare_onnx_options;

/// Writes the model as an ONNX file, as tare_file_write does ("-": standard output). A float model
/// becomes float operators. In a converted model (reference form, lowered or decomposed operators)
/// every quantization becomes a QuantizeLinear and every use of a quantized value a
/// DequantizeLinear, per tensor or per channel, with the same integers; biases of integer layers
/// are int32. The batch stays open if every operator allows it. Reading the file gives the same
/// graph, names, parameters and integers; a float weight that the file holds as integers is read as
/// the dequantized values. options may be NULL. TARE_UNSUPPORTED names every node that ONNX cannot
/// express, with the reason.
TARE_API tare_status tare_model_write_onnx(const tare_model *model, const char *path,
                                           const tare_onnx_options *options, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
