// SPDX-License-Identifier: Apache-2.0
// Small float tensors as torch prints them.
#ifndef CORE_TENSOR_TEXT_H
#define CORE_TENSOR_TEXT_H

#include "core/text.h"

/// A one-dimensional float32 tensor: "tensor([])", "tensor([0.0039, 1.2500])". Four digits, one
/// width for all, scientific when the magnitudes differ much, lines of at most 80 characters, only
/// the first and last three of more than 1000 values. Source: torch/_tensor_str.py (PyTorch 2.15).
void tare__text_float_tensor(text *out, const float *values, size_t count);

#endif
