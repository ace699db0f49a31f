// SPDX-License-Identifier: Apache-2.0
// Lowering tables: the operators that torch lowers without a weight. Names and groups are torch's;
// what is not listed stays between dequantize and quantize (group_norm, torch.permute, the method
// flatten, prelu).
#include <string.h>

#include "flow/lower/fx/lower.h"

typedef struct special_row {
    const char *name;
    special_group group;
    const char *quantized; // SPECIAL_DEFAULT functions
} special_row;

#define F "torch.nn.functional."
#define Q "torch.ops.quantized."
static const special_row functions[] = {
    {F "hardsigmoid", SPECIAL_FIXED, NULL},
    {"torch.sigmoid", SPECIAL_FIXED, NULL},
    {"torch.tanh", SPECIAL_FIXED, NULL},
    {F "elu", SPECIAL_DEFAULT, Q "elu"},
    {F "hardswish", SPECIAL_DEFAULT, Q "hardswish"},
    {F "instance_norm", SPECIAL_DEFAULT, Q "instance_norm"},
    {F "layer_norm", SPECIAL_DEFAULT, Q "layer_norm"},
    {F "leaky_relu", SPECIAL_DEFAULT, Q "leaky_relu"},
    {F "dropout", SPECIAL_DEFAULT, Q "dropout"},
    {"torch.adaptive_avg_pool1d", SPECIAL_COPY, NULL},
    {F "adaptive_avg_pool2d", SPECIAL_COPY, NULL},
    {F "adaptive_avg_pool3d", SPECIAL_COPY, NULL},
    {F "hardtanh", SPECIAL_COPY, NULL},
    {"torch._C._nn.hardtanh_", SPECIAL_COPY, NULL},
    {F "interpolate", SPECIAL_COPY, NULL},
    {F "max_pool1d", SPECIAL_COPY, NULL},
    {F "max_pool2d", SPECIAL_COPY, NULL},
    {F "max_pool3d", SPECIAL_COPY, NULL},
    {F "relu", SPECIAL_COPY, NULL},
    {F "relu6", SPECIAL_COPY, NULL},
    {"torch.avg_pool1d", SPECIAL_COPY, NULL},
    {"torch._C._nn.avg_pool2d", SPECIAL_COPY, NULL},
    {"torch._C._nn.avg_pool3d", SPECIAL_COPY, NULL},
    {"torch.clamp", SPECIAL_COPY, NULL},
    {"torch.flatten", SPECIAL_COPY, NULL},
    {"torch.mean", SPECIAL_COPY, NULL},
    {"operator.floordiv", SPECIAL_COPY, NULL},
    {"torch.channel_shuffle", SPECIAL_COPY, NULL},
    {"torch.narrow", SPECIAL_SHAPE, NULL},
    {"torch.transpose", SPECIAL_SHAPE, NULL},
    {"torch.repeat_interleave", SPECIAL_SHAPE, NULL},
    {"torch.squeeze", SPECIAL_SHAPE, NULL},
    {"torch.stack", SPECIAL_SHAPE, NULL},
    {"torch.unsqueeze", SPECIAL_SHAPE, NULL},
    {"torch.pixel_shuffle", SPECIAL_SHAPE, NULL},
    {"torch.pixel_unshuffle", SPECIAL_SHAPE, NULL},
    {"torch.cat", SPECIAL_OTHER, NULL},
};

static const special_row methods[] = {
    {"hardsigmoid", SPECIAL_FIXED, NULL}, {"hardsigmoid_", SPECIAL_FIXED, NULL},
    {"sigmoid", SPECIAL_FIXED, NULL},     {"sigmoid_", SPECIAL_FIXED, NULL},
    {"tanh", SPECIAL_FIXED, NULL},        {"tanh_", SPECIAL_FIXED, NULL},
    {"clamp", SPECIAL_COPY, NULL},        {"mean", SPECIAL_COPY, NULL},
    {"relu", SPECIAL_COPY, NULL},         {"relu_", SPECIAL_COPY, NULL},
    {"contiguous", SPECIAL_SHAPE, NULL},  {"detach", SPECIAL_SHAPE, NULL},
    {"detach_", SPECIAL_SHAPE, NULL},     {"permute", SPECIAL_SHAPE, NULL},
    {"repeat", SPECIAL_SHAPE, NULL},      {"repeat_interleave", SPECIAL_SHAPE, NULL},
    {"reshape", SPECIAL_SHAPE, NULL},     {"resize_", SPECIAL_SHAPE, NULL},
    {"shape", SPECIAL_SHAPE, NULL},       {"size", SPECIAL_SHAPE, NULL},
    {"squeeze", SPECIAL_SHAPE, NULL},     {"squeeze_", SPECIAL_SHAPE, NULL},
    {"transpose", SPECIAL_SHAPE, NULL},   {"unsqueeze", SPECIAL_SHAPE, NULL},
    {"unsqueeze_", SPECIAL_SHAPE, NULL},  {"view", SPECIAL_SHAPE, NULL},
};

#define NN "torch.nn."
static const special_row modules[] = {
    {NN "Hardsigmoid", SPECIAL_FIXED, NULL},
    {NN "Sigmoid", SPECIAL_FIXED, NULL},
    {NN "Tanh", SPECIAL_FIXED, NULL},
    {NN "Softmax", SPECIAL_FIXED, NULL},
    {"torch.ao.nn.quantized.reference.ConvTranspose1d", SPECIAL_DEFAULT, NULL},
    {"torch.ao.nn.quantized.reference.ConvTranspose2d", SPECIAL_DEFAULT, NULL},
    {"torch.ao.nn.quantized.reference.ConvTranspose3d", SPECIAL_DEFAULT, NULL},
    {NN "ELU", SPECIAL_DEFAULT, NULL},
    {NN "LeakyReLU", SPECIAL_DEFAULT, NULL},
    {NN "Hardswish", SPECIAL_DEFAULT, NULL},
    {NN "InstanceNorm1d", SPECIAL_DEFAULT, NULL},
    {NN "InstanceNorm2d", SPECIAL_DEFAULT, NULL},
    {NN "InstanceNorm3d", SPECIAL_DEFAULT, NULL},
    {NN "LayerNorm", SPECIAL_DEFAULT, NULL},
    {NN "Dropout", SPECIAL_DEFAULT, NULL},
    {NN "PReLU", SPECIAL_DEFAULT, NULL},
    {NN "BatchNorm2d", SPECIAL_DEFAULT, NULL},
    {NN "BatchNorm3d", SPECIAL_DEFAULT, NULL},
    {"torch.ao.nn.intrinsic.BNReLU2d", SPECIAL_DEFAULT, NULL},
    {"torch.ao.nn.intrinsic.BNReLU3d", SPECIAL_DEFAULT, NULL},
    {NN "AdaptiveAvgPool1d", SPECIAL_COPY, NULL},
    {NN "AdaptiveAvgPool2d", SPECIAL_COPY, NULL},
    {NN "AdaptiveAvgPool3d", SPECIAL_COPY, NULL},
    {NN "AvgPool1d", SPECIAL_COPY, NULL},
    {NN "AvgPool2d", SPECIAL_COPY, NULL},
    {NN "AvgPool3d", SPECIAL_COPY, NULL},
    {NN "Hardtanh", SPECIAL_COPY, NULL},
    {NN "MaxPool1d", SPECIAL_COPY, NULL},
    {NN "MaxPool2d", SPECIAL_COPY, NULL},
    {NN "MaxPool3d", SPECIAL_COPY, NULL},
    {NN "ReLU", SPECIAL_COPY, NULL},
    {NN "ReLU6", SPECIAL_COPY, NULL},
    {NN "ChannelShuffle", SPECIAL_COPY, NULL},
    {NN "Identity", SPECIAL_SHAPE, NULL},
    {NN "PixelShuffle", SPECIAL_SHAPE, NULL},
    {NN "PixelUnshuffle", SPECIAL_SHAPE, NULL},
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

const char *tare__special_quantized_function(const char *name) {
    const special_row *row = FIND(functions, name);
    return row != NULL ? row->quantized : NULL;
}

bool tare__special_drops_argument(const char *quantized_function, const char *argument) {
    static const struct {
        const char *function, *argument;
    } dropped[] = {
        {Q "hardswish", "inplace"},         {Q "elu", "inplace"},
        {Q "dropout", "inplace"},           {Q "instance_norm", "running_mean"},
        {Q "instance_norm", "running_var"}, {Q "instance_norm", "use_input_stats"},
        {Q "instance_norm", "momentum"},
    };
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (strcmp(dropped[i].function, quantized_function) == 0 &&
            strcmp(dropped[i].argument, argument) == 0)
            return true;
    return false;
}

const char *tare__quantized_binary(const char *name, bool with_relu) {
    static const struct {
        const char *function, *plain, *relu;
    } rows[] = {
        {"operator.add", Q "add", Q "add_relu"},  {"torch.add", Q "add", Q "add_relu"},
        {"operator.mul", Q "mul", Q "mul_relu"},  {"torch.mul", Q "mul", Q "mul_relu"},
        {"torch.matmul", Q "matmul", Q "matmul"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].function, name) == 0) return with_relu ? rows[i].relu : rows[i].plain;
    return NULL;
}
