// SPDX-License-Identifier: Apache-2.0
// Functions on packed weights: their rows, and how they find the weights. What they compute is what
// the quantized modules compute.
#include "ops/quantized/packed.h"

#include <stdio.h>
#include <string.h>

#include "core/text/text.h"
#include "ops/families/families.h"
#include "ops/quantized/quantized.h"

const module *tare__packed_argument(const op_call *call) {
    const value *v = call->module == NULL ? call->param[PACKED_WEIGHTS] : NULL;
    return v != NULL && v->kind == VALUE_MODULE ? v->as.module : NULL;
}

tare_status tare__packed_weights(op_call *call, const module **out) {
    const module *m = tare__packed_argument(call);
    char wanted[64];
    if (m == NULL) return tare__call_fail(call, "expected packed weights as its second input");
    if (m->class->dims > 0)
        snprintf(wanted, sizeof wanted, "quantized.%s%dd", m->class->op, m->class->dims);
    else
        snprintf(wanted, sizeof wanted, "quantized.%s", m->class->op);
    if (!tare__starts_with(call->op->id, wanted))
        return tare__call_fail(call, "cannot use the weights of a %s", m->class->name);
    *out = m;
    return TARE_OK;
}

bool tare__packed_has_relu(const op_call *call) {
    return strstr(call->op->id, "_relu") != NULL;
}

bool tare__packed_adds(const op_call *call) {
    return strstr(call->op->id, "_add") != NULL;
}

bool tare__packed_gives_floats(const op_call *call) {
    return tare__ends_with(call->op->id, "_float");
}

bool tare__packed_is_decomposed(const op_call *call) {
    return strstr(call->op->id, "_decomposed_") != NULL;
}

bool tare__packed_is_half(const op_call *call) {
    return tare__ends_with(call->op->id, "_fp16");
}

// --- rows ---

#define STATIC(name, family)                                                                       \
    {                                                                                              \
        .id = "quantized." #name, .functions = "torch.ops.quantized." #name,                       \
        .params = "qx/X|packed_weight/W_prepack|output_scale/Y_scale_i|"                           \
                  "output_zero_point/Y_zero_point_i",                                              \
        .traits = OP_WEIGHTED | OP_ANY_DTYPE | OP_BY_SAMPLE,                                       \
        .shape = tare__quantized_##family##_shape, .reference = tare__quantized_##family##_forward \
    }
#define RESIDUAL(name)                                                                             \
    {                                                                                              \
        .id = "quantized." name,                                                                   \
        .overloads = "torch.ops.quantized." name                                                   \
                     "(qx|qaccum|packed_weight|output_scale|output_zero_point)",                   \
        .params = "qx|packed_weight|output_scale|output_zero_point|qaccum",                        \
        .traits = OP_WEIGHTED | OP_ANY_DTYPE | OP_BY_SAMPLE, .shape = tare__quantized_conv_shape,  \
        .reference = tare__quantized_conv_forward                                                  \
    }
// Ours: what a float operator reads next, so that codes are not needed.
#define FLOATS(name, family)                                                                       \
    {                                                                                              \
        .id = "quantized." #name "_float", .functions = "torch.ops.tare." #name "_float",          \
        .params = "qx/X|packed_weight/W_prepack",                                                  \
        .traits = OP_WEIGHTED | OP_ANY_DTYPE | OP_BY_SAMPLE,                                       \
        .shape = tare__quantized_##family##_shape, .reference = tare__quantized_##family##_forward \
    }
// Their input's range is that of all samples.
#define DYNAMIC(name, function, parameters)                                                        \
    {                                                                                              \
        .id = "quantized." #name, .functions = "torch.ops." function, .params = parameters,        \
        .traits = OP_WEIGHTED | OP_ANY_DTYPE, .shape = tare__dynamic_linear_shape,                 \
        .reference = tare__dynamic_linear_forward                                                  \
    }

// clang-format off
static const op_info rows[] = {
    STATIC(linear, linear),         STATIC(linear_relu, linear),
    STATIC(conv1d, conv),           STATIC(conv1d_relu, conv),
    STATIC(conv2d, conv),           STATIC(conv2d_relu, conv),
    STATIC(conv3d, conv),           STATIC(conv3d_relu, conv),
    STATIC(conv_transpose1d, conv), STATIC(conv_transpose2d, conv), STATIC(conv_transpose3d, conv),
    RESIDUAL("conv2d_add"),         RESIDUAL("conv2d_add_relu"),
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
