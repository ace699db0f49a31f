// SPDX-License-Identifier: Apache-2.0
// Classes of custom modules, observed and quantized, and of their submodules.
#include "ops/classes/class_row.h"
#include "ops/classes/quantizable.h"

#define NNQA "torch.ao.nn.quantizable."

// clang-format off
static const field functional_fields[] = {
    {FIELD_TENSOR, "scale", "1.0"}, {FIELD_TENSOR, "zero_point", "0"}, {.form = FIELD_END}};
static const field linear_fields[] = {
    {FIELD_NAMED, "in_features", "0"}, {FIELD_NAMED, "out_features", "0"},
    {FIELD_HAS_TENSOR, "bias", NULL}, {.form = FIELD_END}};

// A container for submodules of another module.
#define SUBMODULE(package, class_name, printed)                                                         \
    { .name = package class_name, .print_name = printed, .role = ROLE_CONTAINER }
#define CUSTOM(package, class_name, printed, the_role, family, functions)                          \
    { .name = package class_name, .print_name = printed, .role = ROLE_##the_role, .op = family,    \
      .shape = tare__##functions##_shape, .forward = tare__##functions##_forward }

static const module_class rows[] = {
    CUSTOM(NNQA, "LSTM", "QuantizableLSTM", OBSERVED, "lstm", quantizable_lstm),
    CUSTOM(NNQ, "LSTM", "QuantizedLSTM", QUANTIZED, "lstm", quantizable_lstm),
    SUBMODULE(NNQA, "LSTMCell", "QuantizableLSTMCell"),
    SUBMODULE(NNQA, "_LSTMLayer", "_LSTMLayer"),
    SUBMODULE(NNQA, "_LSTMSingleLayer", "_LSTMSingleLayer"),

    CUSTOM(NN, "MultiheadAttention", "MultiheadAttention", FLOAT, "multihead", multihead),
    CUSTOM(NNQA, "MultiheadAttention", "QuantizableMultiheadAttention", OBSERVED, "multihead",
           multihead),
    CUSTOM(NNQ, "MultiheadAttention", "QuantizedMultiheadAttention", QUANTIZED, "multihead",
           multihead),
    // The float attention's output projection, which torch never quantizes dynamically.
    CLASS(NN, "NonDynamicallyQuantizableLinear", "NonDynamicallyQuantizableLinear", FLOAT, "linear",
          0, NONE, linear_fields),

    {.name = NNQ "QFunctional", .print_name = "QFunctional", .role = ROLE_CONTAINER,
     .describe = tare__describe_fields, .kind = functional_fields},
    {.name = NNQ "Quantize", .print_name = "Quantize", .role = ROLE_QUANTIZED, .op = "quant_stub",
     .describe = tare__describe_quantize, .shape = tare__quantize_module_shape,
     .forward = tare__quantize_module_forward, .check = tare__quantize_module_check},
    {.name = NNQ "DeQuantize", .print_name = "DeQuantize", .role = ROLE_QUANTIZED,
     .op = "dequant_stub", .shape = tare__dequantize_module_shape,
     .forward = tare__dequantize_module_forward},
};
// clang-format on

const class_table tare__custom_classes = {rows, sizeof rows / sizeof *rows};
