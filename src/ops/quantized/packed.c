// SPDX-License-Identifier: Apache-2.0
// Operator rows of the functions that take packed weights. They compute the same as the quantized
// modules.
#include "ops/quantized/packed.h"

#include "ops/families/families.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/quantized.h"

#define STATIC(name, family)                                                                       \
    {                                                                                              \
        .id = "quantized." #name, .functions = "torch.ops.quantized." #name,                       \
        .params = "qx/X|packed_weight/W_prepack|output_scale/Y_scale_i|"                           \
                  "output_zero_point/Y_zero_point_i",                                              \
        .traits = OP_WEIGHTED | OP_ANY_DTYPE | OP_BY_SAMPLE,                                       \
        .shape = tare__quantized_##family##_shape, .reference = tare__quantized_##family##_forward \
    }
#define RESIDUAL(name, family)                                                                     \
    {                                                                                              \
        .id = "quantized." #name,                                                                  \
        .overloads = "torch.ops.quantized." #name                                                  \
                     "(qx|qaccum|packed_weight|output_scale|output_zero_point)",                   \
        .params = "qx|packed_weight|output_scale|output_zero_point|qaccum",                        \
        .traits = OP_WEIGHTED | OP_ANY_DTYPE | OP_BY_SAMPLE,                                       \
        .shape = tare__quantized_##family##_shape, .reference = tare__quantized_##family##_forward \
    }
#define AND_RELU(row, name, family) row(name, family), row(name##_relu, family)
// Functions of tare's own with a float result, for layers that a float operator follows.
#define FLOATS(name, family)                                                                       \
    {                                                                                              \
        .id = "quantized." #name "_float", .functions = "torch.ops.tare." #name "_float",          \
        .params = "qx/X|packed_weight/W_prepack",                                                  \
        .traits = OP_WEIGHTED | OP_ANY_DTYPE | OP_BY_SAMPLE,                                       \
        .shape = tare__quantized_##family##_shape, .reference = tare__quantized_##family##_forward \
    }
// Not OP_BY_SAMPLE: the input's range is taken over all samples.
#define DYNAMIC(name, function, parameters)                                                        \
    {                                                                                              \
        .id = "quantized." #name, .functions = "torch.ops." function, .params = parameters,        \
        .traits = OP_WEIGHTED | OP_ANY_DTYPE, .shape = tare__dynamic_linear_shape,                 \
        .reference = tare__dynamic_linear_forward                                                  \
    }

// clang-format off
static const op_info rows[] = {
    AND_RELU(STATIC, linear, linear), AND_RELU(STATIC, conv1d, conv),
    AND_RELU(STATIC, conv2d, conv),   AND_RELU(STATIC, conv3d, conv),
    STATIC(conv_transpose1d, conv), STATIC(conv_transpose2d, conv), STATIC(conv_transpose3d, conv),
    AND_RELU(RESIDUAL, conv2d_add, conv),
    FLOATS(linear, linear),         FLOATS(conv1d, conv),
    FLOATS(conv2d, conv),           FLOATS(conv3d, conv),
    FLOATS(conv_transpose1d, conv), FLOATS(conv_transpose2d, conv), FLOATS(conv_transpose3d, conv),
    DYNAMIC(linear_dynamic, "quantized.linear_dynamic", "X|W_prepack|reduce_range"),
    DYNAMIC(linear_relu_dynamic, "quantized.linear_relu_dynamic", "X|W_prepack|reduce_range"),
    DYNAMIC(linear_dynamic_fp16, "quantized.linear_dynamic_fp16", "X|W_prepack"),
    DYNAMIC(linear_relu_dynamic_fp16, "quantized.linear_relu_dynamic_fp16", "X|W_prepack"),
    DYNAMIC(linear_decomposed_dynamic, "tare.linear_dynamic", "X|W_prepack|quant_min|quant_max|eps|dtype|symmetric"),
    DYNAMIC(linear_relu_decomposed_dynamic, "tare.linear_relu_dynamic", "X|W_prepack|quant_min|quant_max|eps|dtype|symmetric"),
};
// clang-format on

const op_table tare__packed_ops = OP_TABLE(rows);

tare_status tare__packed_check(const module *m, tare_error *err) {
    quantized_layer layer;
    const tare_tensor *w = tare__module_tensor(m, "weight");
    const bool is_half = w != NULL && w->dtype == TARE_FLOAT16 && m->class->dims == 0;
    return is_half ? tare__dynamic_linear_check(m, err)
                   : tare__quantized_weights_read(m, &layer, err);
}
