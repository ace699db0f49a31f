// SPDX-License-Identifier: Apache-2.0
// Rounds the weights of a layer with least error of its outputs.
// Private to debug/improve.
#ifndef DEBUG_IMPROVE_ROUND_WEIGHTS_H
#define DEBUG_IMPROVE_ROUND_WEIGHTS_H

#include "debug/improve/layer_inputs.h"

/// Rows [count][inner] with the same inputs, in units of their scales and without zero points, so
/// that every integer in [least, most] is a level.
typedef struct rounding {
    const double *weights;      // [count][inner]
    const double *scales;       // [count][inner]
    const double *least, *most; // [count][inner]
    int64_t count, inner;
    const double *gram; // [inner][inner], second moments of the inputs
    double *quantized;  // [count][inner]: the result, without zero points
    tare_error *err;
} rounding;

/// Rounds to nearest.
void tare__round_nearest(const rounding *r);
/// GPTQ in the form of LDLQ: column by column, and later columns compensate for the error.
tare_status tare__round_gptq(const rounding *r);
/// AdaRound: up or down for each weight, by gradient descent.
tare_status tare__round_adaround(const rounding *r);
/// The squared error of the rows' outputs, sum of (w - w') G (w - w')^T.
tare_status tare__round_error(const rounding *r, double *out);

/// Uses eight independent sums, so that additions need not wait for each other.
static inline double tare__dot8(const double *a, const double *b, int64_t count) {
    double sums[8] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int l = 0; l < 8; l++) sums[l] += a[i + l] * b[i + l];
    for (; i < count; i++) sums[0] += a[i] * b[i];
    for (int l = 0; l < 8; l++) sum += sums[l];
    return sum;
}

#endif
