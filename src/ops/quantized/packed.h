// SPDX-License-Identifier: Apache-2.0
// Packed weights: the weight argument of torch.ops.quantized.linear, conv2d and similar functions.
// They are a module of role PACKED, which a get_attr node passes to the function. Its tensors are
// `weight` (quantized) and `bias`. Its config has the convolution's stride, padding,
// output_padding, dilation and groups, the rounding rule `rule`, and `code_min` and `code_max` if
// the output's quantized values have a smaller range than their dtype.
#ifndef OPS_QUANTIZED_PACKED_H
#define OPS_QUANTIZED_PACKED_H

#include "ops/call.h"

/// Indices of the functions' parameters. Dynamic functions have reduce_range in place of the
/// output's scale.
enum { PACKED_INPUT, PACKED_WEIGHTS, PACKED_SCALE, PACKED_ZERO_POINT };
/// The addend of a residual function is the last parameter, though torch passes it second.
enum { PACKED_ADDEND = PACKED_ZERO_POINT + 1 };
enum { PACKED_REDUCE_RANGE = PACKED_SCALE };
/// tare's dynamic functions choose the input's parameters as quantized_decomposed.choose_qparams.
enum {
    PACKED_QUANT_MIN = PACKED_SCALE,
    PACKED_QUANT_MAX,
    PACKED_EPS,
    PACKED_DTYPE,
    PACKED_SYMMETRIC
};

/// The packed weights among a function's arguments; NULL: it has none.
const module *tare__packed_argument(const op_call *call);
/// The same; fails if there are none or they belong to another operator.
tare_status tare__packed_weights(op_call *call, const module **out);
/// True if the function ends with a ReLU.
bool tare__packed_has_relu(const op_call *call);
/// True if the function adds a quantized tensor before rounding.
bool tare__packed_adds(const op_call *call);
/// True if the function returns floats.
bool tare__packed_gives_floats(const op_call *call);
/// True if the function computes its input's parameters as quantized_decomposed does.
bool tare__packed_is_decomposed(const op_call *call);
/// True if the function takes float16 weights.
bool tare__packed_is_half(const op_call *call);
/// The check of the classes of role PACKED.
tare_status tare__packed_check(const module *m, tare_error *err);

#endif
