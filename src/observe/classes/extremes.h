// SPDX-License-Identifier: Apache-2.0
// Minimum and maximum of float tensors.
// Private to observe/classes.
#ifndef OBSERVE_CLASSES_EXTREMES_H
#define OBSERVE_CLASSES_EXTREMES_H

#include "core/tensor/tensor.h"

/// Minimum and maximum of `count` > 0 values. A NaN makes both NaN, as in torch.aminmax; a zero is
/// returned as +0.
void tare__extremes(const float *values, int64_t count, float *min, float *max);
/// The same for each slice along `axis` (0 <= axis < x->ndim) of a non-empty float32 tensor; min
/// and max have shape[axis] elements.
void tare__extremes_per_channel(const tare_tensor *x, int axis, float *min, float *max);

/// The smaller or greater of two values; NaN if either is NaN, unlike fminf and fmaxf.
static inline float tare__least(float a, float b) {
    return a < b || a != a ? a : b;
}
static inline float tare__most(float a, float b) {
    return a > b || a != a ? a : b;
}

#endif
