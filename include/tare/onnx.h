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
    /// Shapes of inputs that the model does not say, the first size -1 for an open batch. Inputs
    /// whose shape the model fixes, and names that it has not, are refused.
    const tare_input_shape *shapes;
    size_t shape_count;
    /// Gets a JSON object in one piece, before the model is written, also where nodes cannot be:
    /// {"opset", "batch": "open" | "fixed", "refused": [{"node", "operator", "reason"}], "notes":
    /// [{"node", "note"}]}. NULL: nobody.
    tare_writer report;
    void *report_user;
} tare_onnx_options;

/// Writes the model as an ONNX file ("-": standard output): to a temporary name first, which is
/// renamed when all is written. A float model becomes float operators. Of a converted one, in
/// reference form, lowered or of decomposed operators, every quantization becomes a QuantizeLinear
/// and every use of a quantized value a DequantizeLinear: per tensor or channel, with the very
/// integers, and biases of integer layers as int32. The batch stays open as far as every operator
/// allows. What ONNX cannot express is TARE_UNSUPPORTED with every such node and the reason.
/// Reading the file again gives the same graph, names, parameters and integers; float weights that
/// the file holds as integers come back as what these stand for. options may be NULL.
TARE_API tare_status tare_model_write_onnx(const tare_model *model, const char *path,
                                           const tare_onnx_options *options, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
