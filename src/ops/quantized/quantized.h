// SPDX-License-Identifier: Apache-2.0
// Shape rules, references and checks of quantized and dynamic module classes. The activation input
// is a quint8 or qint8 tensor; tensors `scale` and `zero_point` are the output's parameters, config
// `rule` determines how accumulators are rounded.
#ifndef OPS_QUANTIZED_QUANTIZED_H
#define OPS_QUANTIZED_QUANTIZED_H

#include "ops/call.h"

/// The functions in class rows of roles QUANTIZED, DYNAMIC and GROUPED: they call the family's
/// functions below, by the row's operator.
tare_status tare__quantized_module_shape(op_call *call);
tare_status tare__quantized_module_forward(op_call *call);
tare_status tare__quantized_module_check(const module *m, tare_error *err);

/// Linear and its fused variants. Tensors `weight`, `bias`. Input [.., I], output of its dtype [..,
/// O].
tare_status tare__quantized_linear_shape(op_call *call);
tare_status tare__quantized_linear_forward(op_call *call);
/// Conv1d, .., ConvTranspose3d and their fused variants. Input [N, C, ..] or [C, ..]. ConvAdd2d and
/// ConvAddReLU2d take the addend as second argument.
tare_status tare__quantized_conv_shape(op_call *call);
tare_status tare__quantized_conv_forward(op_call *call);
/// For both.
tare_status tare__quantized_layer_check(const module *m, tare_error *err);

/// Dynamic Linear and LinearReLU: float in, float out.
tare_status tare__dynamic_linear_shape(op_call *call);
tare_status tare__dynamic_linear_forward(op_call *call);
tare_status tare__dynamic_linear_check(const module *m, tare_error *err);

/// LSTM, GRU and single cells. The gates' products are dynamically quantized, everything else is
/// float.
tare_status tare__dynamic_recurrent_forward(op_call *call);
tare_status tare__dynamic_recurrent_check(const module *m, tare_error *err);

/// Embedding and EmbeddingBag with quint8 or quint4x2 rows: indices in, float out. They run like
/// the float modules, because the operators accept quantized tables.
tare_status tare__quantized_embedding_check(const module *m, tare_error *err);

/// Every other quantized module with output parameters of its own (LeakyReLU, BatchNorm2d,
/// ..): quantize(op(dequantize(x)), scale, zero_point), where op is the float operator of the
/// class's row, bound to config and tensors as the float module binds it.
tare_status tare__quantized_rule_shape(op_call *call);
tare_status tare__quantized_rule_forward(op_call *call);
tare_status tare__quantized_rule_check(const module *m, tare_error *err);
/// True for such a module.
bool tare__quantized_module_has_rule(const module *m);

#endif
