// SPDX-License-Identifier: Apache-2.0
// Shape rules, references and checks of quantized module classes, for the class tables.
#ifndef OPS_QUANTIZED_H
#define OPS_QUANTIZED_H

#include "ops/call.h"

/// torch.ao.nn.quantized.Linear and its fused kin. Tensors `weight`, `bias`, `scale`, `zero_point`;
/// config `rule`. Input quint8 or qint8 [.., I], output of its dtype [.., O].
tare_status tare__quantized_linear_shape(op_call *call);
tare_status tare__quantized_linear_forward(op_call *call);
/// torch.ao.nn.quantized.Conv1d, .., ConvTranspose3d and their fused kin. Input [N, C, ..] or [C,
/// ..]. ConvAdd2d and ConvAddReLU2d take the addend as second argument.
tare_status tare__quantized_conv_shape(op_call *call);
tare_status tare__quantized_conv_forward(op_call *call);
/// Of both.
tare_status tare__quantized_layer_check(const module *m, tare_error *err);

/// torch.ao.nn.quantized.dynamic.Linear and LinearReLU: float in, float out; config `rule`.
tare_status tare__dynamic_linear_shape(op_call *call);
tare_status tare__dynamic_linear_forward(op_call *call);
tare_status tare__dynamic_linear_check(const module *m, tare_error *err);

/// Every other quantized module with output parameters of its own (LeakyReLU, ELU, Hardswish,
/// Softmax, LayerNorm, BatchNorm2d, ..): quantize(op(dequantize(x)), scale, zero_point), where op
/// is the float operator of the class's row, bound to config and tensors as the float module binds
/// it.
tare_status tare__quantized_rule_shape(op_call *call);
tare_status tare__quantized_rule_forward(op_call *call);
tare_status tare__quantized_rule_check(const module *m, tare_error *err);

#endif
