// SPDX-License-Identifier: Apache-2.0
/// The integers of quantized layers, for code generators: weights, biases and the constants of
/// requantization. A reference model has these values only implicitly, as float operators between
/// quantize and dequantize.
#ifndef TARE_HANDOFF_H
#define TARE_HANDOFF_H

#include "tare/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The parameters of a quantize or dequantize node with one constant scale: value = (element -
/// zero_point) * scale.
typedef struct tare_node_qparams {
    uint32_t struct_size;
    tare_dtype dtype; // as in the graph: quint8, qint8, .. (FX mode) or uint8, int8, ..
    double scale;     // > 0, finite
    int64_t zero_point;
    int64_t quant_min, quant_max; // the range of elements
} tare_node_qparams;
/// Reads the parameters of a quantize or dequantize node. False for other nodes, and if the
/// parameters are computed by the graph, per channel, or out of range; *out is then unchanged.
TARE_API bool tare_node_get_qparams(const tare_model *model, const tare_node *node,
                                    tare_node_qparams *out);

/// A convolution or linear layer whose input is dequantized and whose weight is quantized. For
/// output channel c, with integers x of the input and w of the weight:
///
///   sum  = bias[c] + sum over all taps of (x - input.zero_point) * (w - zero point of w)
///   out  = clamp(round(sum * multiplier[c]) + output.zero_point, output_min, output_max)
///
/// With symmetric weights the first line is bias[c] - input.zero_point * weight_sums[c] + sum of x
/// * w. Padding counts as x = input.zero_point. The rounding is the backend's choice; torch's
/// engines differ in it (docs/differences.md).
typedef struct tare_integer_layer {
    uint32_t struct_size;
    /// The module that holds stride, padding, .. (tare_module_config_ints); of a fused module, the
    /// convolution or linear layer inside. NULL: the node calls a function, and they are among its
    /// arguments.
    const tare_module *module;
    int64_t channel_count;     // of the output
    const tare_tensor *weight; // its integers and parameters: qint8 or quint8, [O][I/groups][..];
                               // of transposed convolutions [I][O/groups][..]
    const tare_tensor *bias;   // int32 [channel_count], in units of input.scale * weight scale;
                               // NULL: the layer has none
    int64_t saturated_bias_count;    // channels whose bias did not fit into int32
    const tare_tensor *weight_sums;  // int32 [channel_count]: the sum of a channel's w
    tare_node_qparams input;         // of the dequantize node that the layer reads
    const tare_node *input_node;     // that dequantize node
    const tare_node *output_node;    // the quantize node that reads the result; NULL: it is float
    tare_node_qparams output;        // of output_node; scale 1, zero point 0 where there is none
    bool has_relu;                   // between the sum and output_node
    int64_t output_min, output_max;  // clamp to these, the relu included
    const double *multiplier;        // [channel_count]: input.scale * weight scale / output.scale
    const int32_t *fixed_multiplier; // [channel_count]: 2^30 .. 2^31 - 1
    const int32_t *shift;            // [channel_count]: multiplier = fixed_multiplier * 2^(shift -
                                     // 31), rounded
} tare_integer_layer;

/// Computes the integers of the layer that `node` calls. model: the result of
/// tare_convert_to_reference_fx, tare_convert_to_reference_decomposed_fx or tare_convert_pt2e; it
/// must outlive *out. TARE_UNSUPPORTED, with the reason, if `node` is not such a layer: another
/// operator, a float input, a weight that is float or computed, parameters that are not constant.
/// The caller destroys *out.
TARE_API tare_status tare_integer_layer_create(const tare_model *model, const tare_node *node,
                                               const tare_integer_layer **out, tare_error *err);
/// Frees the layer. NULL is allowed.
TARE_API void tare_integer_layer_destroy(const tare_integer_layer *layer);

#ifdef __cplusplus
}
#endif
#endif
