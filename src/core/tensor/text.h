// SPDX-License-Identifier: Apache-2.0
// Small tensors as torch prints them.
#ifndef CORE_TENSOR_TEXT_H
#define CORE_TENSOR_TEXT_H

#include "core/tensor/tensor.h"
#include "core/text/text.h"

/// A one-dimensional float32 tensor: "tensor([])", "tensor([0.0039, 1.2500])". Four digits, one
/// width for all, scientific when the magnitudes differ much, lines of at most 80 characters, only
/// the first and last three of more than 1000 values. Source: torch/_tensor_str.py (PyTorch 2.15).
void tare__text_float_tensor(text *out, const float *values, size_t count);
/// The same of a one-dimensional float32 or integer tensor, with torch's note of the dtype:
/// "tensor([0, 1], dtype=torch.int32)".
void tare__text_tensor(text *out, const tare_tensor *t);

#endif
