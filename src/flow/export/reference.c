// SPDX-License-Identifier: Apache-2.0
// The reference representation: rewrites quantize, dequantize and the operators between them as
// arithmetic on integers. Source: torchao 0.18's reference_representation_rewrite, pattern by
// pattern.
#include <string.h>

#include "flow/export/convert.h"
#include "quantizers/patterns/replace.h"

#define DECOMPOSED "torch.ops.quantized_decomposed."
#define ATEN       "torch.ops.aten."
#define OUT        "torch.ops.higher_order.out_dtype(torch.ops.aten."
#define LINE       "\n    "
#define DEQUANTIZE(name, x, s, z, low, high)                                                       \
    LINE name " = " DECOMPOSED "dequantize_per_tensor(" x ", " s ", " z ", " low ", " high         \
              ", torch.int8)"
#define QUANTIZE(x, s, z, low, high)                                                               \
    LINE "q = " DECOMPOSED "quantize_per_tensor(" x ", " s ", " z ", " low ", " high               \
         ", torch.int8)" LINE "return q\n"

// --- parameters of the rows ---

#define DYNAMIC_LINEAR                                                                             \
    "def forward(self, x, x_min, x_max, x_eps, w, w_scale, w_zero, w_min, w_max, bias):"
#define STATIC_LAYER                                                                               \
    "def forward(self, x, x_scale, x_zero, x_min, x_max, w, w_scale, w_zero, w_min, w_max, bias, " \
    "y_scale, y_zero, y_min, y_max"
#define STATIC_LINEAR STATIC_LAYER "):"
#define STATIC_CONV   STATIC_LAYER ", stride, padding, dilation, transposed, output_padding, groups):"
#define BINARY                                                                                     \
    "def forward(self, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, low, high):"
#define POOL                                                                                       \
    "def forward(self, x, x_scale, x_zero, x_min, x_max, y_scale, y_zero, y_min, y_max, kernel, "  \
    "stride):"
#define PER_TENSOR  "def forward(self, x, scale, zero, low, high):"
#define PER_CHANNEL "def forward(self, x, scales, zeros, axis, low, high):"

#define CHOOSE                                                                                     \
    LINE "choose_qparams = " DECOMPOSED                                                            \
         "choose_qparams.tensor(x, x_min, x_max, x_eps, torch.int8)" LINE                          \
         "getitem = choose_qparams[0]" LINE "getitem_1 = choose_qparams[1]"

// The accumulator of a static layer, for an operator and the shape of its bias.
#define STATIC_SUM(call, shaped, sum)                                                              \
    LINE "clamp = " ATEN "clamp(x, x_min, x_max)" LINE "clamp_1 = " ATEN                           \
         "clamp(w, w_min, w_max)" LINE "to = " ATEN "to.dtype(clamp, torch.int16)" LINE            \
         "to_1 = " ATEN "to.dtype(clamp_1, torch.int16)" LINE "sub = " ATEN                        \
         "sub.Tensor(to, x_zero)" LINE "sub_1 = " ATEN "sub.Tensor(to_1, w_zero)" LINE             \
         "out_dtype = " OUT call LINE "mul = " ATEN "mul.Tensor(x_scale, w_scale)" LINE            \
         "out_dtype_1 = " OUT "div.Tensor, torch.int32, bias, mul)" shaped LINE "add = " ATEN      \
         "add.Tensor(out_dtype, " sum ")" LINE "mul_1 = " ATEN "mul.Tensor(x_scale, w_scale)" LINE \
         "div = " ATEN "div.Tensor(mul_1, y_scale)" LINE "out_dtype_2 = " OUT                      \
         "mul.Tensor, torch.int32, add, div)" LINE "add_1 = " ATEN                                 \
         "add.Tensor(out_dtype_2, y_zero)" LINE "clamp_2 = " ATEN                                  \
         "clamp(add_1, y_min, y_max)" LINE "to_2 = " ATEN "to.dtype(clamp_2, torch.int8)" LINE     \
         "return to_2\n"

// clang-format off
static const pattern_rewrite rows[] = {
    {"dynamic int8 linear",
     DYNAMIC_LINEAR CHOOSE
     LINE "q = " DECOMPOSED "quantize_per_tensor(x, getitem, getitem_1, x_min, x_max, torch.int8)"
     DEQUANTIZE("dq", "q", "getitem", "getitem_1", "x_min", "x_max")
     DEQUANTIZE("dq_1", "w", "w_scale", "w_zero", "w_min", "w_max")
     LINE "linear = " ATEN "linear.default(dq, dq_1, bias)" LINE "return linear\n",
     DYNAMIC_LINEAR CHOOSE
     LINE "div = " ATEN "div.Tensor(x, getitem)"
     LINE "round_1 = " ATEN "round.default(div)"
     LINE "to = " ATEN "to.dtype(round_1, torch.int32)"
     LINE "add = " ATEN "add.Tensor(to, getitem_1)"
     LINE "clamp = " ATEN "clamp.default(add, x_min, x_max)"
     LINE "to_1 = " ATEN "to.dtype(clamp, torch.int8)"
     LINE "clamp_1 = " ATEN "clamp(w, w_min, w_max)"
     LINE "to_2 = " ATEN "to.dtype(to_1, torch.int16)"
     LINE "to_3 = " ATEN "to.dtype(clamp_1, torch.int16)"
     LINE "sub = " ATEN "sub.Tensor(to_2, getitem_1)"
     LINE "sub_1 = " ATEN "sub.Tensor(to_3, w_zero)"
     LINE "out_dtype = " OUT "linear.default, torch.int32, sub, sub_1, None)"
     LINE "mul = " ATEN "mul.Tensor(getitem, w_scale)"
     LINE "out_dtype_1 = " OUT "div.Tensor, torch.int32, bias, mul)"
     LINE "add_1 = " ATEN "add.Tensor(out_dtype, out_dtype_1)"
     LINE "mul_1 = " ATEN "mul.Tensor(getitem, w_scale)"
     LINE "mul_2 = " ATEN "mul.Tensor(add_1, mul_1)" LINE "return mul_2\n"},
    {"static int8 linear",
     STATIC_LINEAR
     DEQUANTIZE("dq", "x", "x_scale", "x_zero", "x_min", "x_max")
     DEQUANTIZE("dq_1", "w", "w_scale", "w_zero", "w_min", "w_max")
     LINE "linear = " ATEN "linear.default(dq, dq_1, bias)"
     QUANTIZE("linear", "y_scale", "y_zero", "y_min", "y_max"),
     STATIC_LINEAR
     STATIC_SUM("linear.default, torch.int32, sub, sub_1, None)", "", "out_dtype_1")},
    {"static int8 convolution",
     STATIC_CONV
     DEQUANTIZE("dq", "x", "x_scale", "x_zero", "x_min", "x_max")
     DEQUANTIZE("dq_1", "w", "w_scale", "w_zero", "w_min", "w_max")
     LINE "convolution = " ATEN "convolution.default(dq, dq_1, bias, stride, padding, dilation, "
          "transposed, output_padding, groups)"
     QUANTIZE("convolution", "y_scale", "y_zero", "y_min", "y_max"),
     STATIC_CONV
     STATIC_SUM("convolution.default, torch.int32, sub, sub_1, None, stride, padding, dilation, "
                "transposed, output_padding, groups)",
                LINE "unsqueeze = " ATEN "unsqueeze.default(out_dtype_1, -1)"
                LINE "unsqueeze_1 = " ATEN "unsqueeze.default(unsqueeze, -1)", "unsqueeze_1")},
    {"int8 add and relu",
     BINARY
     DEQUANTIZE("dq", "a", "a_scale", "a_zero", "low", "high")
     DEQUANTIZE("dq_1", "b", "b_scale", "b_zero", "low", "high")
     LINE "add = " ATEN "add.Tensor(dq, dq_1)" LINE "relu = " ATEN "relu.default(add)"
     QUANTIZE("relu", "y_scale", "y_zero", "low", "high"),
     BINARY
     LINE "to = " ATEN "to.dtype(a, torch.int32)" LINE "to_1 = " ATEN "to.dtype(b, torch.int32)"
     LINE "sub = " ATEN "sub.Tensor(to, a_zero)" LINE "div = " ATEN "div.Tensor(a_scale, y_scale)"
     LINE "out_dtype = " OUT "mul.Tensor, torch.int32, sub, div)"
     LINE "sub_1 = " ATEN "sub.Tensor(to_1, b_zero)"
     LINE "div_1 = " ATEN "div.Tensor(b_scale, y_scale)"
     LINE "out_dtype_1 = " OUT "mul.Tensor, torch.int32, sub_1, div_1)"
     LINE "add = " ATEN "add.Tensor(out_dtype, out_dtype_1)"
     LINE "add_1 = " ATEN "add.Tensor(add, y_zero)"
     LINE "clamp = " ATEN "clamp(add_1, y_zero, high)"
     LINE "to_2 = " ATEN "to.dtype(clamp, torch.int8)" LINE "return to_2\n"},
    {"int8 add",
     BINARY
     DEQUANTIZE("dq", "a", "a_scale", "a_zero", "low", "high")
     DEQUANTIZE("dq_1", "b", "b_scale", "b_zero", "low", "high")
     LINE "add = " ATEN "add.Tensor(dq, dq_1)"
     QUANTIZE("add", "y_scale", "y_zero", "low", "high"),
     BINARY
     LINE "to = " ATEN "to.dtype(a, torch.int32)" LINE "to_1 = " ATEN "to.dtype(b, torch.int32)"
     LINE "div = " ATEN "div.Tensor(a_scale, y_scale)" LINE "sub = " ATEN "sub.Tensor(to, a_zero)"
     LINE "mul = " ATEN "mul.Tensor(div, sub)" LINE "round_1 = " ATEN "round.default(mul)"
     LINE "to_2 = " ATEN "to.dtype(round_1, torch.int32)"
     LINE "div_1 = " ATEN "div.Tensor(b_scale, y_scale)"
     LINE "sub_1 = " ATEN "sub.Tensor(to_1, b_zero)"
     LINE "mul_1 = " ATEN "mul.Tensor(div_1, sub_1)" LINE "round_2 = " ATEN "round.default(mul_1)"
     LINE "to_3 = " ATEN "to.dtype(round_2, torch.int32)"
     LINE "add = " ATEN "add.Tensor(to_2, to_3)" LINE "add_1 = " ATEN "add.Tensor(add, y_zero)"
     LINE "clamp = " ATEN "clamp.default(add_1, -128, 127)"
     LINE "to_4 = " ATEN "to.dtype(clamp, torch.int8)" LINE "return to_4\n"},
    {"int8 max_pool2d",
     POOL
     DEQUANTIZE("dq", "x", "x_scale", "x_zero", "x_min", "x_max")
     LINE "pool = " ATEN "max_pool2d_with_indices.default(dq, kernel, stride)"
     LINE "getitem = pool[0]" QUANTIZE("getitem", "y_scale", "y_zero", "y_min", "y_max"),
     POOL
     LINE "clamp = " ATEN "clamp(x, x_min, x_max)" LINE "to = " ATEN "to.dtype(clamp, torch.int32)"
     LINE "sub = " ATEN "sub.Tensor(to, x_zero)"
     LINE "max_pool2d_with_indices = " ATEN "max_pool2d_with_indices.default(sub, kernel, stride)"
     LINE "getitem = max_pool2d_with_indices[0]"
     LINE "div = " ATEN "div.Tensor(x_scale, y_scale)" LINE "mul = " ATEN "mul.Tensor(getitem, div)"
     LINE "add = " ATEN "add.Tensor(mul, y_zero)" LINE "clamp_1 = " ATEN "clamp(add, y_min, y_max)"
     LINE "to_1 = " ATEN "to.dtype(clamp_1, torch.int8)" LINE "return to_1\n"},
    {"int8 quantize_per_tensor",
     PER_TENSOR QUANTIZE("x", "scale", "zero", "low", "high"),
     PER_TENSOR
     LINE "div = " ATEN "div.Tensor(x, scale)" LINE "round_1 = " ATEN "round.default(div)"
     LINE "to = " ATEN "to.dtype(round_1, torch.int32)" LINE "add = " ATEN "add.Tensor(to, zero)"
     LINE "clamp = " ATEN "clamp(add, low, high)"
     LINE "to_1 = " ATEN "to.dtype(clamp, torch.int8)" LINE "return to_1\n"},
    {"int8 dequantize_per_tensor",
     PER_TENSOR DEQUANTIZE("dq", "x", "scale", "zero", "low", "high") LINE "return dq\n",
     PER_TENSOR
     LINE "clamp = " ATEN "clamp(x, low, high)" LINE "to = " ATEN "to.dtype(clamp, torch.float32)"
     LINE "sub = " ATEN "sub.Tensor(to, zero)" LINE "mul = " ATEN "mul.Tensor(sub, scale)"
     LINE "to_1 = " ATEN "to.dtype(mul, torch.float32)" LINE "return to_1\n"},
    {"int8 quantize_per_channel",
     PER_CHANNEL
     LINE "q = " DECOMPOSED "quantize_per_channel(x, scales, zeros, axis, low, high, torch.int8)"
     LINE "return q\n",
     PER_CHANNEL
     LINE "transpose = " ATEN "transpose.int(x, axis, -1)"
     LINE "div = " ATEN "div.Tensor(transpose, scales)" LINE "round_1 = " ATEN "round.default(div)"
     LINE "to = " ATEN "to.dtype(round_1, torch.int32)" LINE "add = " ATEN "add.Tensor(to, zeros)"
     LINE "clamp = " ATEN "clamp.default(add, low, high)"
     LINE "transpose_1 = " ATEN "transpose.int(clamp, axis, -1)"
     LINE "to_1 = " ATEN "to.dtype(transpose_1, torch.int8)" LINE "return to_1\n"},
    {"int8 dequantize_per_channel",
     PER_CHANNEL
     LINE "dq = " DECOMPOSED "dequantize_per_channel(x, scales, zeros, axis, low, high, torch.int8)"
     LINE "return dq\n",
     PER_CHANNEL
     LINE "clamp = " ATEN "clamp.default(x, low, high)"
     LINE "transpose = " ATEN "transpose.int(clamp, axis, -1)"
     LINE "to = " ATEN "to.dtype(transpose, torch.int32)" LINE "sub = " ATEN "sub.Tensor(to, zeros)"
     LINE "to_1 = " ATEN "to.dtype(sub, torch.float32)"
     LINE "mul = " ATEN "mul.Tensor(to_1, scales)"
     LINE "transpose_1 = " ATEN "transpose.int(mul, axis, -1)" LINE "return transpose_1\n"},
};
// clang-format on

// --- packets ---

// Patterns name operators without overload: any overload matches.
static const char *const packets[] = {
    DECOMPOSED "quantize_per_tensor",
    DECOMPOSED "dequantize_per_tensor",
    DECOMPOSED "quantize_per_channel",
    DECOMPOSED "dequantize_per_channel",
};

static void use_packets(const graph *g) {
    for (node *n = g->first; n != NULL; n = n->next) {
        if (n->op != NODE_CALL_FUNCTION) continue;
        for (size_t i = 0; i < sizeof packets / sizeof *packets; i++) {
            const size_t length = strlen(packets[i]);
            if (strncmp(n->target, packets[i], length) == 0 && n->target[length] == '.')
                n->target = packets[i];
        }
        if (strcmp(n->target, ATEN "clamp.Tensor") == 0) n->target = ATEN "clamp";
    }
}

tare_status tare__pt2e_reference_representation(pass *p) {
    use_packets(p->model->root->graph);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TARE_TRY(tare__replace_pattern(p, &rows[i], "reference representation"));
    return tare__remove_unused_modules(p);
}
