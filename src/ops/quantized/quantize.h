// SPDX-License-Identifier: Apache-2.0
// Conversion of whole tensors between float and integers, by the formulas of core/math/requant.h.
#ifndef OPS_QUANTIZED_QUANTIZE_H
#define OPS_QUANTIZED_QUANTIZE_H

#include "core/tensor/tensor.h"

/// Fills the quantized tensor y, which has data, from a float32 tensor of equal element count.
void tare__quantize_into(const tare_tensor *x, tare_tensor *y);
/// A new quantized tensor of x's shape. The caller releases *out.
tare_status tare__quantize_tensor(const tare_tensor *x, const qparams *q, tare_tensor **out,
                                  tare_error *err);
/// TARE_INVALID_ARGUMENT unless every scale is finite and not negative, and every zero point a
/// whole number of the dtype (with float qparams: finite). Quantizing with other parameters is
/// undefined.
tare_status tare__qparams_check(const qparams *q, tare_error *err);
/// Per-channel parameters from tensors of equal size; float zero points make them float qparams.
/// They are checked. The caller releases *out.
tare_status tare__qparams_from_tensors(const tare_tensor *scales, const tare_tensor *zero_points,
                                       tare_dtype dtype, int axis, qparams **out, tare_error *err);
/// The same with scheme, dtype and axis of `form`.
tare_status tare__qparams_like(const qparams *form, const tare_tensor *scales,
                               const tare_tensor *zero_points, qparams **out, tare_error *err);

#endif
