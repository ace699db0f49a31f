// SPDX-License-Identifier: Apache-2.0
#include "quantizers/patterns/capture_rows.h"

#define F "torch.nn.functional."

// The same for one, two and three dimensions.
#define CONV(d)                                                                                    \
    {F "conv" #d "d|torch.conv" #d "d", "conv" #d "d.padding",                                     \
     "input|weight|bias|stride|padding'|dilation|groups",                                          \
     "input|weight|bias:None|stride*" #d ":1|padding|dilation*" #d ":1|groups"},                   \
    {                                                                                              \
        F "conv" #d "d|torch.conv" #d "d", "conv" #d "d.default",                                  \
            "input|weight|bias|stride|padding|dilation|groups",                                    \
            "input|weight|bias:None|stride*" #d ":1|padding*" #d ":0|dilation*" #d ":1|groups"     \
    }
#define CONV_TRANSPOSE(d, overload)                                                                \
    {                                                                                              \
        F "conv_transpose" #d "d|torch.conv_transpose" #d "d", "conv_transpose" #d "d." overload,  \
            "input|weight|bias|stride|padding|output_padding|groups|dilation",                     \
            "input|weight|bias:None|stride*" #d ":1|padding*" #d ":0|output_padding*" #d           \
            ":0|groups:1|dilation*" #d                                                             \
    }
#define MAX_POOL(d)                                                                                \
    {                                                                                              \
        F "max_pool" #d "d|torch.max_pool" #d "d", "max_pool" #d "d.default",                      \
            "input|kernel_size|stride|padding|dilation|ceil_mode",                                 \
            "input|kernel_size*" #d "|stride*" #d ":[]|padding*" #d ":0|dilation*" #d              \
            ":1|ceil_mode"                                                                         \
    }
#define ADAPTIVE(d)                                                                                \
    {                                                                                              \
        F "adaptive_avg_pool" #d "d", "adaptive_avg_pool" #d "d.default", "input|output_size",     \
            "input|output_size*" #d                                                                \
    }
#define UPSAMPLE(d, mode, name)                                                                    \
    {                                                                                              \
        F "interpolate", name #d "d.vec", "input|size|scale_factor|mode=" mode "|align_corners",   \
            "input|size*" #d "=None|scale_factor*" #d "=None", NULL, d + 2                         \
    }
#define SMOOTH(d, mode, name)                                                                      \
    {                                                                                              \
        F "interpolate", name ".vec", "input|size|scale_factor|mode!=" mode "|align_corners",      \
            "input|size*" #d "=None|align_corners=False|scale_factor*" #d "=None", NULL, d + 2     \
    }

// A function of one tensor, and its in-place form.
#define UNARY(name)                                                                                \
    {"torch." name "|." name, name ".default", "input"}, {                                         \
        "torch." name "_|." name "_", name "_.default", "input"                                    \
    }
// An activation: F.name(input, .., inplace).
#define ACTIVATION(name, params, args)                                                             \
    {F name "|torch." name "|." name, name ".default", "input" params "|inplace", "input" args,    \
     name "_.default"},                                                                            \
    {                                                                                              \
        F name "_|torch." name "_|." name "_", name "_.default", "input" params, "input" args      \
    }
#define ARITHMETIC(name, symbol, in_place)                                                         \
    {"torch." name "|operator." symbol "|." name, name ".Tensor", "input&|other|alpha",            \
     "input|other|@alpha"},                                                                        \
    {                                                                                              \
        "operator." in_place "|." name "_", name "_.Tensor", "input&|other|alpha",                 \
            "input|other|@alpha"                                                                   \
    }

// clang-format off
static const capture_row rows[] = {
    CONV(1), CONV(2), CONV(3),
    CONV_TRANSPOSE(1, "default"), CONV_TRANSPOSE(2, "input"), CONV_TRANSPOSE(3, "input"),
    {F "linear|torch._C._nn.linear", "linear.default", "input|weight|bias"},
    {F "embedding", "embedding.default", "input|weight|padding_idx", "weight|input|padding_idx"},
    {F "batch_norm", "batch_norm.default", "input|running_mean|running_var|weight|bias|training|momentum|eps",
     "input|weight=None|bias=None|running_mean|running_var|training=False|momentum=0.1|eps=1e-05|?"},
    {F "instance_norm", "instance_norm.default", "input|running_mean|running_var|weight|bias|use_input_stats|momentum|eps",
     "input|weight=None|bias=None|running_mean=None|running_var=None|use_input_stats=True|momentum=0.1|eps=1e-05|?"},
    {F "layer_norm", "layer_norm.default", "input|normalized_shape|weight|bias|eps",
     "input|normalized_shape|weight=None|bias=None|eps=1e-05|?"},
    {F "group_norm", "group_norm.default", "input|num_groups|weight|bias|eps", "input|num_groups|weight=None|bias=None|eps=1e-05|?"},
    {F "rms_norm", "rms_norm.default", "input|normalized_shape|weight|eps"},
    {F "dropout", "dropout.default", "input|p|training|inplace", "input|p=0.5|training=True", "dropout_.default"},

    ACTIVATION("relu", "", ""), ACTIVATION("relu6", "", ""), ACTIVATION("silu", "", ""), ACTIVATION("mish", "", ""),
    ACTIVATION("selu", "", ""), ACTIVATION("hardswish", "", ""), ACTIVATION("hardsigmoid", "", ""),
    ACTIVATION("hardtanh", "|min_val|max_val", "|min_val=-1.0|max_val=1.0"),
    ACTIVATION("leaky_relu", "|negative_slope", "|negative_slope"),
    ACTIVATION("elu", "|alpha", "|alpha=1.0"), ACTIVATION("celu", "|alpha", "|alpha"),
    ACTIVATION("threshold", "|threshold|value", "|threshold|value"),
    {F "gelu|torch._C._nn.gelu", "gelu.default", "input|approximate", "input|@approximate"},
    {F "softplus|torch._C._nn.softplus", "softplus.default", "input|beta|threshold"},
    {F "logsigmoid|torch._C._nn.log_sigmoid", "log_sigmoid.default", "input"},
    {F "hardshrink", "hardshrink.default", "input|lambd"},
    {F "softshrink", "softshrink.default", "input|lambd"},
    {F "prelu", "prelu.default", "input|weight"},
    {F "glu", "glu.default", "input|dim"},
    {F "sigmoid", "sigmoid.default", "input"}, UNARY("sigmoid"), {F "tanh", "tanh.default", "input"}, UNARY("tanh"),
    UNARY("sqrt"), UNARY("rsqrt"), UNARY("exp"), UNARY("log"), UNARY("neg"), UNARY("abs"), UNARY("erf"), UNARY("sin"), UNARY("cos"),
    UNARY("reciprocal"),
    {"operator.neg", "neg.default", "input"},
    {F "softmax|torch.softmax|.softmax", "softmax.int", "input|dim!|dtype"},
    {F "log_softmax|torch.log_softmax|.log_softmax", "log_softmax.int", "input|dim!|dtype"},

    ARITHMETIC("add", "add", "iadd"), ARITHMETIC("sub", "sub", "isub"),
    ARITHMETIC("mul", "mul", "imul"), ARITHMETIC("div", "truediv", "itruediv"),
    {"torch.add|operator.add", "add.Tensor", "other#|input&", "input|other"},
    {"torch.mul|operator.mul", "mul.Tensor", "other#|input&", "input|other"},
    {"operator.sub", "rsub.Scalar", "other#|input&", "input|other"},
    {.names = "operator.truediv", .aten = "mul.Tensor", .params = "other#|input&", .args = "input|other", .before = "reciprocal.default"},
    {"torch.rsub", "rsub.Scalar", "input|other#"},
    {"operator.floordiv|torch.floor_divide", "floor_divide.default", "input|other"},
    {"torch.pow|operator.pow|.pow", "pow.Tensor_Scalar", "input&|exponent#"},
    {"torch.pow|operator.pow|.pow", "pow.Tensor_Tensor", "input&|exponent&"},
    {"torch.minimum|.minimum", "minimum.default", "input|other"}, {"torch.maximum|.maximum", "maximum.default", "input|other"},
    {"torch.clamp|.clamp", "clamp.default", "input|min|max", "input|min:None|max"},
    {"torch.matmul|operator.matmul|.matmul", "matmul.default", "input|other"},
    {"torch.bmm|.bmm", "bmm.default", "input|mat2"}, {"torch.mm|.mm", "mm.default", "input|mat2"},
    {"torch.addmm", "addmm.default", "input|mat1|mat2|beta|alpha", "input|mat1|mat2|@beta|@alpha"},
    {"torch.baddbmm", "baddbmm.default", "input|batch1|batch2|beta|alpha", "input|batch1|batch2|@beta|@alpha"},
    {"torch.einsum|torch.functional.einsum", "einsum.default", "equation|*operands"},
    {F "scaled_dot_product_attention|torch._C._nn.scaled_dot_product_attention", "scaled_dot_product_attention.default",
     "query|key|value|attn_mask|dropout_p|is_causal|scale", "query|key|value|attn_mask:None|dropout_p:0.0|is_causal:False|@scale"},

    MAX_POOL(1), MAX_POOL(2), MAX_POOL(3),
    {F "avg_pool1d|torch.avg_pool1d", "avg_pool1d.default", "input|kernel_size|stride|padding|ceil_mode|count_include_pad",
     "input|kernel_size*1|stride*1:[]|padding*1:0|ceil_mode:False|count_include_pad"},
    {F "avg_pool2d|torch._C._nn.avg_pool2d", "avg_pool2d.default", "input|kernel_size|stride|padding|ceil_mode|count_include_pad|divisor_override",
     "input|kernel_size*2|stride*2:[]|padding*2:0|ceil_mode:False|count_include_pad:True|divisor_override"},
    {F "avg_pool3d|torch._C._nn.avg_pool3d", "avg_pool3d.default", "input|kernel_size|stride|padding|ceil_mode|count_include_pad|divisor_override",
     "input|kernel_size*3|stride*3:[]|padding*3:0|ceil_mode:False|count_include_pad:True|divisor_override"},
    ADAPTIVE(1), ADAPTIVE(2), ADAPTIVE(3),
    UPSAMPLE(1, "nearest", "upsample_nearest"), UPSAMPLE(2, "nearest", "upsample_nearest"), UPSAMPLE(3, "nearest", "upsample_nearest"),
    SMOOTH(1, "linear", "upsample_linear1d"), SMOOTH(2, "bilinear", "upsample_bilinear2d"),
    SMOOTH(2, "bicubic", "upsample_bicubic2d"), SMOOTH(3, "trilinear", "upsample_trilinear3d"),
    {F "pixel_shuffle|torch.pixel_shuffle", "pixel_shuffle.default", "input|upscale_factor"},
    {F "pad|torch._C._nn.pad", "pad.default", "input|pad|mode|value", "input|pad|mode:'constant'|value"},

    {"torch.mean|.mean", "mean.dim", "input|dim!|keepdim", "input|dim*1|keepdim"}, {"torch.mean|.mean", "mean.default", "input"},
    {"torch.sum|.sum", "sum.dim_IntList", "input|dim!|keepdim", "input|dim*1|keepdim"}, {"torch.sum|.sum", "sum.default", "input"},
    {"torch.amax|.amax", "amax.default", "input|dim|keepdim", "input|dim*1|keepdim"},
    {"torch.amin|.amin", "amin.default", "input|dim|keepdim", "input|dim*1|keepdim"},
    {"torch.max|.max", "max.dim", "input|dim#|keepdim"},
    {"torch.min|.min", "min.dim", "input|dim#|keepdim"},
    {"torch.max|.max", "max.default", "input"}, {"torch.min|.min", "min.default", "input"},
    {"torch.argmax|.argmax", "argmax.default", "input|dim|keepdim"}, {"torch.argmin|.argmin", "argmin.default", "input|dim|keepdim"},
    {"torch.var|.var", "var.dim", "input|dim!|unbiased|keepdim", "input|dim*1|unbiased:True|keepdim"},

    {"torch.cat|torch.concat", "cat.default", "tensors|dim"}, {"torch.stack", "stack.default", "tensors|dim"},
    {"torch.chunk|.chunk", "chunk.default", "input|chunks|dim"},
    {"torch.split|torch.functional.split|.split", "split.Tensor", "input|split_size|dim"},
    {"torch.unbind|.unbind", "unbind.int", "input|dim"},
    {"torch.flatten|.flatten", "flatten.using_ints", "input|start_dim|end_dim", "input|start_dim:0|end_dim"},
    {".view", "view.default", "input|*shape"},
    {"torch.reshape|.reshape", "reshape.default", "input|*shape"},
    {"torch.permute|.permute", "permute.default", "input|*dims"},
    {"torch.transpose|.transpose", "transpose.int", "input|dim0|dim1"}, {"torch.t|.t", "t.default", "input"},
    {".contiguous", "contiguous.default", "input"},
    {"torch.squeeze|.squeeze", "squeeze.dim", "input|dim!"}, {"torch.squeeze|.squeeze", "squeeze.default", "input"},
    {"torch.unsqueeze|.unsqueeze", "unsqueeze.default", "input|dim"},
    {".expand", "expand.default", "input|*sizes"}, {".repeat", "repeat.default", "input|*repeats"},
    {"torch.select|.select", "select.int", "input|dim|index"},
    {".masked_fill|torch.masked_fill", "masked_fill.Scalar", "input|mask|value#"}, {"torch.where", "where.self", "condition|input|other"},
    {".float", "to.dtype", "input", "input|torch.float32"}, {".to", "to.dtype", "input|dtype"}, {".type_as", "type_as.default", "input|other"},
    {"torch.lstm", "lstm.input", "input|hx|params|has_biases|num_layers|dropout|train|bidirectional|batch_first"},
    {"torch.gru", "gru.input", "input|hx|params|has_biases|num_layers|dropout|train|bidirectional|batch_first"},
};
// clang-format on

const capture_row *tare__capture_row_at(size_t index) {
    return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}
