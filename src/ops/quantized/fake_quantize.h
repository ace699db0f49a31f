// SPDX-License-Identifier: Apache-2.0
// Quantize and dequantize in one step, in float: simulates integers in training.
#ifndef OPS_QUANTIZED_FAKE_QUANTIZE_H
#define OPS_QUANTIZED_FAKE_QUANTIZE_H

#include "core/tensor/tensor.h"

/// Parameters of torch.fake_quantize_per_tensor_affine and per_channel_affine, lent.
typedef struct fake_quantizer {
    const tare_tensor *scale;      // float32: 1 value, or one per channel
    const tare_tensor *zero_point; // int32, or float32 for float qparams; as many
    int axis;                      // of the channels; -1: per tensor
    int64_t quant_min, quant_max;
} fake_quantizer;

/// Checks that the parameters fit x, a float32 tensor. Errors state how many were expected.
tare_status tare__fake_quantize_check(const fake_quantizer *f, const tare_tensor *x,
                                      tare_error *err);
/// Fills y from x, float32 tensors of one shape that the parameters fit, by the formulas of
/// core/math/requant.h.
void tare__fake_quantize_into(const fake_quantizer *f, const tare_tensor *x, tare_tensor *y);

#endif
