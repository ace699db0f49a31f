// SPDX-License-Identifier: Apache-2.0
// Matrices turned over: between [C][pixels] and [pixels][C].
#ifndef RUNTIME_KERNELS_TRANSPOSE_H
#define RUNTIME_KERNELS_TRANSPOSE_H

#include <stdint.h>

/// y[c][r] = x[r][c]
void tare__transpose_f32(const float *x, int64_t rows, int64_t columns, float *y);
void tare__transpose_u8(const uint8_t *x, int64_t rows, int64_t columns, uint8_t *y);

#endif
