// SPDX-License-Identifier: Apache-2.0
// Lowering tables: the operators that torch lowers without a weight. Names and groups are torch's;
// what is not listed stays between dequantize and quantize (group_norm, torch.permute, the method
// flatten, prelu).
#include <string.h>

#include "flow/lower/fx/lower.h"

typedef struct special_row {
    const char *name;
    special_group group;
} special_row;

#define F "torch.nn.functional."
static const special_row functions[] = {
    {F "hardsigmoid", SPECIAL_FIXED},
    {"torch.sigmoid", SPECIAL_FIXED},
    {"torch.tanh", SPECIAL_FIXED},
    {F "elu", SPECIAL_DEFAULT},
    {F "hardswish", SPECIAL_DEFAULT},
    {F "instance_norm", SPECIAL_DEFAULT},
    {F "layer_norm", SPECIAL_DEFAULT},
    {F "leaky_relu", SPECIAL_DEFAULT},
    {F "dropout", SPECIAL_DEFAULT},
    {"torch.adaptive_avg_pool1d", SPECIAL_COPY},
    {F "adaptive_avg_pool2d", SPECIAL_COPY},
    {F "adaptive_avg_pool3d", SPECIAL_COPY},
    {F "hardtanh", SPECIAL_COPY},
    {"torch._C._nn.hardtanh_", SPECIAL_COPY},
    {F "interpolate", SPECIAL_COPY},
    {F "max_pool1d", SPECIAL_COPY},
    {F "max_pool2d", SPECIAL_COPY},
    {F "max_pool3d", SPECIAL_COPY},
    {F "relu", SPECIAL_COPY},
    {F "relu6", SPECIAL_COPY},
    {"torch.avg_pool1d", SPECIAL_COPY},
    {"torch._C._nn.avg_pool2d", SPECIAL_COPY},
    {"torch._C._nn.avg_pool3d", SPECIAL_COPY},
    {"torch.clamp", SPECIAL_COPY},
    {"torch.flatten", SPECIAL_COPY},
    {"torch.mean", SPECIAL_COPY},
    {"operator.floordiv", SPECIAL_COPY},
    {"torch.channel_shuffle", SPECIAL_COPY},
    {"torch.narrow", SPECIAL_SHAPE},
    {"torch.transpose", SPECIAL_SHAPE},
    {"torch.repeat_interleave", SPECIAL_SHAPE},
    {"torch.squeeze", SPECIAL_SHAPE},
    {"torch.stack", SPECIAL_SHAPE},
    {"torch.unsqueeze", SPECIAL_SHAPE},
    {"torch.pixel_shuffle", SPECIAL_SHAPE},
    {"torch.pixel_unshuffle", SPECIAL_SHAPE},
    {"torch.cat", SPECIAL_OTHER},
};

static const special_row methods[] = {
    {"hardsigmoid", SPECIAL_FIXED}, {"hardsigmoid_", SPECIAL_FIXED},
    {"sigmoid", SPECIAL_FIXED},     {"sigmoid_", SPECIAL_FIXED},
    {"tanh", SPECIAL_FIXED},        {"tanh_", SPECIAL_FIXED},
    {"clamp", SPECIAL_COPY},        {"mean", SPECIAL_COPY},
    {"relu", SPECIAL_COPY},         {"relu_", SPECIAL_COPY},
    {"contiguous", SPECIAL_SHAPE},  {"detach", SPECIAL_SHAPE},
    {"detach_", SPECIAL_SHAPE},     {"permute", SPECIAL_SHAPE},
    {"repeat", SPECIAL_SHAPE},      {"repeat_interleave", SPECIAL_SHAPE},
    {"reshape", SPECIAL_SHAPE},     {"resize_", SPECIAL_SHAPE},
    {"shape", SPECIAL_SHAPE},       {"size", SPECIAL_SHAPE},
    {"squeeze", SPECIAL_SHAPE},     {"squeeze_", SPECIAL_SHAPE},
    {"transpose", SPECIAL_SHAPE},   {"unsqueeze", SPECIAL_SHAPE},
    {"unsqueeze_", SPECIAL_SHAPE},  {"view", SPECIAL_SHAPE},
};

#define NN "torch.nn."
static const special_row modules[] = {
    {NN "Hardsigmoid", SPECIAL_FIXED},
    {NN "Sigmoid", SPECIAL_FIXED},
    {NN "Tanh", SPECIAL_FIXED},
    {NN "Softmax", SPECIAL_FIXED},
    {"torch.ao.nn.quantized.reference.ConvTranspose1d", SPECIAL_DEFAULT},
    {"torch.ao.nn.quantized.reference.ConvTranspose2d", SPECIAL_DEFAULT},
    {"torch.ao.nn.quantized.reference.ConvTranspose3d", SPECIAL_DEFAULT},
    {NN "ELU", SPECIAL_DEFAULT},
    {NN "LeakyReLU", SPECIAL_DEFAULT},
    {NN "Hardswish", SPECIAL_DEFAULT},
    {NN "InstanceNorm1d", SPECIAL_DEFAULT},
    {NN "InstanceNorm2d", SPECIAL_DEFAULT},
    {NN "InstanceNorm3d", SPECIAL_DEFAULT},
    {NN "LayerNorm", SPECIAL_DEFAULT},
    {NN "Dropout", SPECIAL_DEFAULT},
    {NN "PReLU", SPECIAL_DEFAULT},
    {NN "BatchNorm2d", SPECIAL_DEFAULT},
    {NN "BatchNorm3d", SPECIAL_DEFAULT},
    {"torch.ao.nn.intrinsic.BNReLU2d", SPECIAL_DEFAULT},
    {"torch.ao.nn.intrinsic.BNReLU3d", SPECIAL_DEFAULT},
    {NN "AdaptiveAvgPool1d", SPECIAL_COPY},
    {NN "AdaptiveAvgPool2d", SPECIAL_COPY},
    {NN "AdaptiveAvgPool3d", SPECIAL_COPY},
    {NN "AvgPool1d", SPECIAL_COPY},
    {NN "AvgPool2d", SPECIAL_COPY},
    {NN "AvgPool3d", SPECIAL_COPY},
    {NN "Hardtanh", SPECIAL_COPY},
    {NN "MaxPool1d", SPECIAL_COPY},
    {NN "MaxPool2d", SPECIAL_COPY},
    {NN "MaxPool3d", SPECIAL_COPY},
    {NN "ReLU", SPECIAL_COPY},
    {NN "ReLU6", SPECIAL_COPY},
    {NN "ChannelShuffle", SPECIAL_COPY},
    {NN "Identity", SPECIAL_SHAPE},
    {NN "PixelShuffle", SPECIAL_SHAPE},
    {NN "PixelUnshuffle", SPECIAL_SHAPE},
};

static const special_row *find(const special_row *rows, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

#define FIND(rows, name) find(rows, sizeof(rows) / sizeof *(rows), name)

special_group tare__special_function(const char *name) {
    const special_row *row = FIND(functions, name);
    return row != NULL ? row->group : SPECIAL_NONE;
}

special_group tare__special_method(const char *name) {
    const special_row *row = FIND(methods, name);
    return row != NULL ? row->group : SPECIAL_NONE;
}

special_group tare__special_module(const module_class *class) {
    const special_row *row = FIND(modules, class->name);
    return row != NULL ? row->group : SPECIAL_NONE;
}
