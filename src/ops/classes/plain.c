// SPDX-License-Identifier: Apache-2.0
// Classes without weights to multiply by: activations, pooling, norms, and what moves data.
#include "ops/classes/class_row.h"

// clang-format off
#define FIELDS(name, ...) static const field name[] = {__VA_ARGS__, {.form = FIELD_END}}
FIELDS(inplace_fields, {FIELD_UNLESS, "inplace", "False"});
FIELDS(hardtanh_fields, {FIELD_NAMED, "min_val", "-1.0"}, {FIELD_NAMED, "max_val", "1.0"},
       {FIELD_UNLESS, "inplace", "False"});
FIELDS(alpha_fields, {FIELD_NAMED, "alpha", "1.0"}, {FIELD_UNLESS, "inplace", "False"});
FIELDS(leaky_relu_fields, {FIELD_NAMED, "negative_slope", "0.01"},
       {FIELD_UNLESS, "inplace", "False"});
FIELDS(prelu_fields, {FIELD_NAMED, "num_parameters", "1"});
FIELDS(softplus_fields, {FIELD_NAMED, "beta", "1.0"}, {FIELD_NAMED, "threshold", "20.0"});
FIELDS(lambd_fields, {FIELD_PLAIN, "lambd", "0.5"});
FIELDS(threshold_fields, {FIELD_NAMED, "threshold", "0"}, {FIELD_NAMED, "value", "0"},
       {FIELD_UNLESS, "inplace", "False"});
FIELDS(gelu_fields, {FIELD_NAMED, "approximate", "'none'"});
FIELDS(dim_fields, {FIELD_NAMED, "dim", "None"});
FIELDS(dropout_fields, {FIELD_NAMED, "p", "0.5"}, {FIELD_NAMED, "inplace", "False"});
FIELDS(flatten_fields, {FIELD_NAMED, "start_dim", "1"}, {FIELD_NAMED, "end_dim", "-1"});
FIELDS(unflatten_fields, {FIELD_NAMED, "dim", "0"}, {FIELD_NAMED, "unflattened_size", "()"});
FIELDS(response_fields, {FIELD_PLAIN, "size", "1"}, {FIELD_NAMED, "alpha", "0.0001"},
       {FIELD_NAMED, "beta", "0.75"}, {FIELD_NAMED, "k", "1.0"});
FIELDS(max_pool_fields, {FIELD_NAMED, "kernel_size", "1"}, {FIELD_NAMED, "stride", "1"},
       {FIELD_NAMED, "padding", "0"}, {FIELD_NAMED, "dilation", "1"},
       {FIELD_NAMED, "ceil_mode", "False"});
FIELDS(avg_pool_fields, {FIELD_NAMED, "kernel_size", "1"}, {FIELD_NAMED, "stride", "1"},
       {FIELD_NAMED, "padding", "0"});
FIELDS(adaptive_pool_fields, {FIELD_NAMED, "output_size", "1"});
FIELDS(batch_norm_fields, {FIELD_PLAIN, "num_features", "0"}, {FIELD_NAMED, "eps", "1e-05"},
       {FIELD_NAMED, "momentum", "0.1"}, {FIELD_NAMED, "affine", "True"},
       {FIELD_HAS_TENSOR, "bias", NULL}, {FIELD_NAMED, "track_running_stats", "True"});
// torch's quantized InstanceNorm hands its arguments on one place too early: what is affine prints as momentum.
FIELDS(instance_norm_fields, {FIELD_PLAIN, "num_features", "0"}, {FIELD_NAMED, "eps", "1e-05"},
       {FIELD_FROM, "momentum", "affine"}, {FIELD_FROM, "affine", "track_running_stats"},
       {FIELD_HAS_TENSOR, "bias", NULL}, {FIELD_FROM, "track_running_stats", ""});
FIELDS(layer_norm_fields, {FIELD_PLAIN, "normalized_shape", "()"}, {FIELD_NAMED, "eps", "1e-05"},
       {FIELD_NAMED, "elementwise_affine", "True"}, {FIELD_HAS_TENSOR, "bias", NULL});
FIELDS(rms_norm_fields, {FIELD_PLAIN, "normalized_shape", "()"}, {FIELD_NAMED, "eps", "None"},
       {FIELD_NAMED, "elementwise_affine", "True"});
FIELDS(group_norm_fields, {FIELD_PLAIN, "num_groups", "1"}, {FIELD_PLAIN, "num_channels", "0"},
       {FIELD_NAMED, "eps", "1e-05"}, {FIELD_NAMED, "affine", "True"},
       {FIELD_HAS_TENSOR, "bias", NULL});
FIELDS(pixel_shuffle_fields, {FIELD_NAMED, "upscale_factor", "1"});
FIELDS(pixel_unshuffle_fields, {FIELD_NAMED, "downscale_factor", "1"});
FIELDS(channel_shuffle_fields, {FIELD_NAMED, "groups", "1"});
FIELDS(pad_fields, {FIELD_NAMED, "padding", "0"}, {FIELD_NAMED, "value", "0.0"});
FIELDS(zero_pad_fields, {FIELD_PLAIN, "padding", "0"});
FIELDS(upsample_fields, {FIELD_UNLESS, "scale_factor", "None"}, {FIELD_UNLESS, "size", "None"},
       {FIELD_NAMED, "mode", "'nearest'"});

#define FLOAT_CLASS(NAME, FAMILY, DIMS, FIELDS) CLASS(NN, NAME, NAME, FLOAT, FAMILY, DIMS, NONE, FIELDS)
#define QUANTIZED_CLASS(NAME, FAMILY, DIMS, FIELDS) \
    CLASS(NNQ, NAME, "Quantized" NAME, QUANTIZED, FAMILY, DIMS, NONE, FIELDS)
// A float class whose quantized form keeps its name and its text.
#define BOTH_CLASSES(NAME, FAMILY, DIMS, FIELDS) \
    FLOAT_CLASS(NAME, FAMILY, DIMS, FIELDS), QUANTIZED_CLASS(NAME, FAMILY, DIMS, FIELDS)

#define DIMS_CLASSES(D)                                                                            \
    FLOAT_CLASS("BatchNorm" #D "d", "batch_norm", D, batch_norm_fields),                           \
    FLOAT_CLASS("InstanceNorm" #D "d", "instance_norm", D, batch_norm_fields),                     \
    QUANTIZED_CLASS("InstanceNorm" #D "d", "instance_norm", D, instance_norm_fields),              \
    FLOAT_CLASS("MaxPool" #D "d", "max_pool", D, max_pool_fields),                                 \
    FLOAT_CLASS("AvgPool" #D "d", "avg_pool", D, avg_pool_fields),                                 \
    FLOAT_CLASS("AdaptiveAvgPool" #D "d", "adaptive_avg_pool", D, adaptive_pool_fields),           \
    FLOAT_CLASS("AdaptiveMaxPool" #D "d", "adaptive_max_pool", D, adaptive_pool_fields),           \
    FLOAT_CLASS("Dropout" #D "d", "dropout", D, dropout_fields),                                   \
    FLOAT_CLASS("ReflectionPad" #D "d", "pad", D, zero_pad_fields),                                \
    FLOAT_CLASS("ReplicationPad" #D "d", "pad", D, zero_pad_fields),                               \
    FLOAT_CLASS("CircularPad" #D "d", "pad", D, zero_pad_fields)
#define NORM_RELU_CLASSES(D)                                                                       \
    QUANTIZED_CLASS("BatchNorm" #D "d", "batch_norm", D, batch_norm_fields),                       \
    CLASS(NNI, "BNReLU" #D "d", "BNReLU" #D "d", FUSED, "batch_norm", D, RELU, NULL),              \
    CLASS(NNIQ, "BNReLU" #D "d", "QuantizedBNReLU" #D "d", QUANTIZED, "batch_norm", D, RELU,       \
          batch_norm_fields)

static const module_class rows[] = {
    FLOAT_CLASS("ReLU", "relu", 0, inplace_fields),
    FLOAT_CLASS("ReLU6", "relu6", 0, inplace_fields),
    FLOAT_CLASS("Hardtanh", "hardtanh", 0, hardtanh_fields),
    FLOAT_CLASS("Sigmoid", "sigmoid", 0, NULL),
    FLOAT_CLASS("Tanh", "tanh", 0, NULL),
    FLOAT_CLASS("Hardsigmoid", "hardsigmoid", 0, NULL),
    BOTH_CLASSES("Hardswish", "hardswish", 0, NULL),
    BOTH_CLASSES("ELU", "elu", 0, alpha_fields),
    BOTH_CLASSES("LeakyReLU", "leaky_relu", 0, leaky_relu_fields),
    FLOAT_CLASS("PReLU", "prelu", 0, prelu_fields),
    QUANTIZED_CLASS("PReLU", "prelu", 0, NULL),
    FLOAT_CLASS("GELU", "gelu", 0, gelu_fields),
    FLOAT_CLASS("SiLU", "silu", 0, inplace_fields),
    FLOAT_CLASS("Mish", "mish", 0, inplace_fields),
    FLOAT_CLASS("CELU", "celu", 0, alpha_fields),
    FLOAT_CLASS("SELU", "selu", 0, inplace_fields),
    FLOAT_CLASS("GLU", "glu", 0, dim_fields),
    FLOAT_CLASS("LogSigmoid", "log_sigmoid", 0, NULL),
    FLOAT_CLASS("Softsign", "softsign", 0, NULL),
    FLOAT_CLASS("Tanhshrink", "tanhshrink", 0, NULL),
    FLOAT_CLASS("Hardshrink", "hardshrink", 0, lambd_fields),
    FLOAT_CLASS("Softshrink", "softshrink", 0, lambd_fields),
    FLOAT_CLASS("Threshold", "threshold", 0, threshold_fields),
    FLOAT_CLASS("Softplus", "softplus", 0, softplus_fields),
    BOTH_CLASSES("Softmax", "softmax", 0, dim_fields),
    FLOAT_CLASS("LogSoftmax", "log_softmax", 0, dim_fields),
    BOTH_CLASSES("Dropout", "dropout", 0, dropout_fields),
    FLOAT_CLASS("AlphaDropout", "dropout", 0, dropout_fields),
    FLOAT_CLASS("FeatureAlphaDropout", "dropout", 0, dropout_fields),
    FLOAT_CLASS("Identity", "identity", 0, NULL),

    DIMS_CLASSES(1), DIMS_CLASSES(2), DIMS_CLASSES(3),
    NORM_RELU_CLASSES(2), NORM_RELU_CLASSES(3),
    BOTH_CLASSES("LayerNorm", "layer_norm", 0, layer_norm_fields),
    FLOAT_CLASS("LocalResponseNorm", "local_response_norm", 0, response_fields),
    FLOAT_CLASS("RMSNorm", "rms_norm", 0, rms_norm_fields),
    BOTH_CLASSES("GroupNorm", "group_norm", 0, group_norm_fields),

    FLOAT_CLASS("Unflatten", "unflatten", 0, unflatten_fields),
    FLOAT_CLASS("Flatten", "flatten", 0, flatten_fields),
    FLOAT_CLASS("PixelShuffle", "pixel_shuffle", 0, pixel_shuffle_fields),
    FLOAT_CLASS("PixelUnshuffle", "pixel_unshuffle", 0, pixel_unshuffle_fields),
    FLOAT_CLASS("ChannelShuffle", "channel_shuffle", 0, channel_shuffle_fields),
    FLOAT_CLASS("ConstantPad1d", "pad", 1, pad_fields),
    FLOAT_CLASS("ConstantPad2d", "pad", 2, pad_fields),
    FLOAT_CLASS("ConstantPad3d", "pad", 3, pad_fields),
    FLOAT_CLASS("ZeroPad1d", "zero_pad", 1, zero_pad_fields),
    FLOAT_CLASS("ZeroPad2d", "zero_pad", 2, zero_pad_fields),
    FLOAT_CLASS("ZeroPad3d", "zero_pad", 3, zero_pad_fields),
    FLOAT_CLASS("Upsample", "interpolate", 0, upsample_fields),
    FLOAT_CLASS("UpsamplingNearest2d", "interpolate", 0, upsample_fields),
    FLOAT_CLASS("UpsamplingBilinear2d", "interpolate", 0, upsample_fields),

    // Calls that carry a decision but compute nothing.
    CLASS("torch.ao.quantization.", "QuantStub", "QuantStub", FLOAT, "quant_stub", 0, NONE, NULL),
    CLASS("torch.ao.quantization.", "DeQuantStub", "DeQuantStub", FLOAT, "dequant_stub", 0, NONE, NULL),
    CLASS("torch.export.", "GuardsFn", "GuardsFn", FLOAT, "guards", 0, NONE, NULL),
};
// clang-format on

const class_table tare__plain_classes = {rows, sizeof rows / sizeof *rows};
