// SPDX-License-Identifier: Apache-2.0
// Linear layers whose weights have 4 or 8 bits and a scale for each group of adjacent inputs, as in
// language models. Inputs are float32, optionally dynamically quantized.
#ifndef OPS_QUANTIZED_GROUPED_H
#define OPS_QUANTIZED_GROUPED_H

#include "ops/call.h"

/// A layer's tensors, lent. A weight is (q - zero point) * scale of its group.
typedef struct grouped_weights {
    const tare_tensor *quantized;  // uint8 [outs][ins], or two values a byte [outs][ins / 2]
    const tare_tensor *scale;      // float32 [outs][groups]
    const tare_tensor *zero_point; // uint8 [outs][groups]; NULL: 2^(bits - 1) everywhere
    const tare_tensor *bias;       // float32 [outs]; NULL: none
    int64_t outs, ins, group, groups;
    int bits; // 4 or 8
    bool quantizes_input;
} grouped_weights;

/// Reads and checks a module of ROLE_GROUPED: tensors `weight`, `weight_scale`,
/// `weight_zero_point`, `bias`; configs `bits`, `group_size`, `activation_dtype` (torch.float32 or
/// torch.int8).
tare_status tare__grouped_read(const module *m, grouped_weights *out, tare_error *err);
/// The quantized weight of output o and input k. With 4 bits, the low half of a byte comes first.
uint8_t tare__grouped_value(const grouped_weights *w, int64_t o, int64_t k);
int32_t tare__grouped_zero(const grouped_weights *w, int64_t o, int64_t g);

/// The scale of a dynamically quantized row: max(|x|, 1e-5) / 127; NaNs are ignored.
/// Source: quantized_decomposed.choose_qparams_per_token, as torchao's dynamic layers use it.
float tare__grouped_row_scale(const float *x, int64_t count);
/// quantized[k] = clamp(rint(x[k] * (1 / scale)), -128, 127)
void tare__grouped_row_quantize(const float *x, int64_t count, float scale, int8_t *quantized);

/// True if a weight suits such a layer: group-wise quantized to qint8 or quint8, with at most 8
/// bits.
bool tare__grouped_takes(const tare_tensor *weight);
/// Sets the tensors and configs of module m for such a weight [outs][ins].
tare_status tare__grouped_set_weight(module *m, const tare_tensor *weight, tare_error *err);

/// Shape rule, reference and check. The definition with float inputs, in float32 and in this order:
///   group_sum(g) = fma over k of the group, ascending: x[k] * (q - zero point) + group_sum
///   sum = fma over g, ascending: group_sum(g) * scale(g) + sum
///   y = sum + bias
/// With quantized inputs group_sum(g) is the exact sum of integer products, rounded to float32
/// once, and
///   y = sum * row scale + bias
/// and a fused ReLU follows.
tare_status tare__grouped_linear_shape(op_call *call);
tare_status tare__grouped_linear_forward(op_call *call);
tare_status tare__grouped_linear_check(const module *m, tare_error *err);

#endif
