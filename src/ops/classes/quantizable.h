// SPDX-License-Identifier: Apache-2.0
// Custom modules that torch splits into gates and projections, so that each can be observed:
// LSTM and MultiheadAttention of torch.ao.nn.quantizable, and their quantized forms, whose children
// are quantized. Source: torch.ao.nn.quantizable.modules (PyTorch 2.15).
// Private to ops/classes.
#ifndef OPS_CLASSES_QUANTIZABLE_H
#define OPS_CLASSES_QUANTIZABLE_H

#include "ops/call.h"

/// Children layers.L.layer_fw (and layer_bw).cell with igates, hgates, gates, .. Arguments (x, (h,
/// c)); the state may be absent. Result (y, (h, c)).
tare_status tare__quantizable_lstm_shape(op_call *call);
tare_status tare__quantizable_lstm_forward(op_call *call);

/// Children linear_Q, linear_K, linear_V, out_proj, ..; without them, the float module itself:
/// tensors in_proj_weight or q_proj_weight, k_proj_weight and v_proj_weight, in_proj_bias, child
/// out_proj. Arguments of torch.nn.MultiheadAttention.forward. Result (output, weights or None).
tare_status tare__multihead_shape(op_call *call);
tare_status tare__multihead_forward(op_call *call);

/// torch.ao.nn.quantized.Quantize (tensors scale and zero_point, config dtype) and DeQuantize.
tare_status tare__quantize_module_shape(op_call *call);
tare_status tare__quantize_module_forward(op_call *call);
tare_status tare__quantize_module_check(const module *m, tare_error *err);
tare_status tare__describe_quantize(const module *m, text *out, tare_error *err);
tare_status tare__dequantize_module_shape(op_call *call);
tare_status tare__dequantize_module_forward(op_call *call);

#endif
