// SPDX-License-Identifier: Apache-2.0
// Sums in torch's order, so that averages that lie on a rounding boundary round as torch's do.
#ifndef OPS_LINE_SUM_H
#define OPS_LINE_SUM_H

#include <stddef.h>
#include <stdint.h>

enum { LINE_SUM_WIDTH = 32 };

/// y[c] = sum of x[i * stride + c] over i < count, for c < width <= LINE_SUM_WIDTH: each column as
/// torch sums a line of count floats that lie side by side (PyTorch 2.15, whichever the processor:
/// four rows of eight lanes, carried over every sixteen rows). count >= 0.
/// Source: aten/src/ATen/native/cpu/SumKernel.cpp, vectorized_inner_sum and scalar_inner_sum.
void tare__line_sum(const float *x, int64_t count, size_t stride, size_t width, float *y);

#endif
