// SPDX-License-Identifier: Apache-2.0
// Reads quantized linear and convolution modules into plain structs. References and fast kernels
// both use them, so that they interpret a module equally.
#ifndef OPS_QUANTIZED_LAYER_H
#define OPS_QUANTIZED_LAYER_H

#include "core/math/requant.h"
#include "ir/module.h"
#include "ops/call.h"

enum { SPATIAL = 3 };

/// Every convolution is treated as one over depth, height and width; missing dimensions have size
/// 1, stride 1 and no padding. Weights of transposed convolutions are [I][O/groups][..].
typedef struct conv_geometry {
    int dims;
    bool is_transposed,
        reflects; // reflects: padding mirrors the input instead of repeating its zero point
    int64_t groups, in_channels, out_channels;
    int64_t kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL];
    int64_t pad_before[SPATIAL], pad_after[SPATIAL], output_padding[SPATIAL];
} conv_geometry;

typedef struct quantized_layer {
    const module *module;      // of role QUANTIZED or PACKED
    const tare_tensor *weight; // quantized
    const tare_tensor *bias;   // float32 [O]; NULL: none
    int64_t out_channels;
    double scale; // of the output
    int64_t zero_point;
    requant_rule rule;
    int64_t quantized_min,
        quantized_max; // of the output's quantized values, besides the dtype's range
    bool relu;
    bool is_plain;      // nothing but ReLU is fused
    bool adds;          // adds a quantized tensor before rounding and ReLU (tare__requantize_sum)
    bool gives_floats;  // the output is float32, f32(acc) * aw + bias; scale and zero_point are
                        // unused
    conv_geometry conv; // convolutions only
} quantized_layer;

/// Reads and checks a module of role QUANTIZED; everything in it may come from a file.
/// call_name: the calling node, for modules that keep an output scale for each call; NULL: the
/// module's own.
tare_status tare__quantized_layer_read(const module *m, const char *call_name, quantized_layer *out,
                                       tare_error *err);
/// The same without the output's parameters; also for a module of role PACKED.
tare_status tare__quantized_weights_read(const module *m, quantized_layer *out, tare_error *err);
/// The layer of a call: of a module, or of a function that takes packed weights (packed.h) and its
/// output's parameters as arguments.
tare_status tare__call_layer_read(op_call *call, quantized_layer *out);
/// The module with the weights of such a call; NULL: it has none.
const module *tare__call_layer_module(const op_call *call);
/// The tensor that the layer is applied to; NULL if that argument is missing or no tensor.
const tare_tensor *tare__call_layer_input(const op_call *call);
/// The addend of a layer that adds; it must be quantized and have the result's shape. NULL if that
/// argument is missing or no tensor.
const tare_tensor *tare__call_layer_addend(const op_call *call);
/// The number in a module's one-element tensor.
tare_status tare__module_number(const module *m, const char *name, double *out, tare_error *err);
/// Output parameters: a module with several calls has `scale_of_CALL` and `zero_point_of_CALL` for
/// each of them besides its `scale` and `zero_point` (written by lowering).
tare_status tare__module_output(const module *m, const char *call_name, double *scale,
                                double *zero_point, tare_error *err);
#define OUTPUT_NAME_JOINT "_of_"
/// Output sizes of a convolution over an input of these sizes; false if the output is empty or the
/// sizes are not supported.
bool tare__conv_output_size(const conv_geometry *g, const int64_t *in, int64_t *out);
/// The sizes [N, C, D, H, W] of a convolution's input; without a batch N is 1. False if the rank is
/// wrong.
bool tare__conv_sizes(const conv_geometry *g, const tare_tensor *x, int64_t sizes[5]);

/// The requantization constants of the layer for these parameters of its input and output. output
/// is NULL if the layer gives floats, which are computed as in rule O. The caller destroys *out.
tare_status tare__quantized_layer_requant(const quantized_layer *layer, const qparams *input,
                                          const qparams *output, requant **out, tare_error *err);
/// Quantized values of a quint8 or qint8 tensor minus their zero point, which may differ per
/// channel. The caller frees *out with tare__free.
tare_status tare__centered_quantized(const tare_tensor *t, int16_t **out, tare_error *err);
/// Sum of the products of `count` such quantized values, modulo 2^32 as machines add.
int32_t tare__dot_quantized(const int16_t *x, const int16_t *w, int64_t count);
/// Stores a quantized value in a quint8 or qint8 tensor.
static inline void tare__store_quantized(const tare_tensor *t, int64_t i, int32_t q) {
    ((uint8_t *)t->data)[i] = (uint8_t)q;
}
/// Loads a quantized value from a quint8 or qint8 tensor.
static inline int32_t tare__load_quantized(const tare_tensor *t, int64_t i) {
    return t->dtype == TARE_QINT8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}
/// True for quint8 and qint8 tensors with one scale and a zero point of 8 bits.
bool tare__is_byte_quantized(const tare_tensor *t);
/// Ensures that a quantized value minus its zero point fits 16 bits, whatever a file contains.
bool tare__has_byte_zero_points(const qparams *q);

#endif
