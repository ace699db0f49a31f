// SPDX-License-Identifier: Apache-2.0
// Packed weights: what torch.ops.quantized.linear, conv2d and their kin take in place of a weight.
// A module of role PACKED holds them, a get_attr node hands it to the function at run time. Tensors
// `weight` (quantized) and `bias`; config: the convolution's stride, padding, output_padding,
// dilation and groups, `rule`, how accumulators are rounded, and `quantized_min` and
// `quantized_max`, if the quantized values of the result are bounded more closely than by their
// dtype.
#ifndef OPS_QUANTIZED_PACKED_H
#define OPS_QUANTIZED_PACKED_H

#include "ops/call.h"

/// Parameters of the functions' rows. Dynamic ones have no output parameters, but a flag for 7
/// bits.
enum { PACKED_INPUT, PACKED_WEIGHTS, PACKED_SCALE, PACKED_ZERO_POINT };
/// The addend of a residual function is the last parameter, though torch passes it second.
enum { PACKED_ADDEND = PACKED_ZERO_POINT + 1 };
enum { PACKED_REDUCE_RANGE = PACKED_SCALE };
/// Ours choose parameters as exported programs do.
enum {
    PACKED_QUANT_MIN = PACKED_SCALE,
    PACKED_QUANT_MAX,
    PACKED_EPS,
    PACKED_DTYPE,
    PACKED_SYMMETRIC
};

/// The packed weights among a function's arguments; NULL: it has none.
const module *tare__packed_argument(const op_call *call);
/// The same, which must be those of the row's operator.
tare_status tare__packed_weights(op_call *call, const module **out);
/// True if the row ends with a ReLU.
bool tare__packed_has_relu(const op_call *call);
/// True if the row adds quantized values to its sums.
bool tare__packed_adds(const op_call *call);
/// True if the row returns its sums as floats.
bool tare__packed_gives_floats(const op_call *call);
/// True if the row computes its input's parameters as quantized_decomposed does.
bool tare__packed_is_decomposed(const op_call *call);
/// True if the row takes float16 weights.
bool tare__packed_is_half(const op_call *call);
/// The check of the classes of role PACKED.
tare_status tare__packed_check(const module *m, tare_error *err);

#endif
