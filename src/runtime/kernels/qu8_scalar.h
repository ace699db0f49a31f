// SPDX-License-Identifier: Apache-2.0
// Building blocks of the kernels in plain C, in a form that compilers vectorize for any instruction
// set.
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_QU8_SCALAR_H
#define RUNTIME_KERNELS_QU8_SCALAR_H

#include <stddef.h>

#include "core/math/requant.h"

/// rint(x) for |x| < 2^22: the sum has no fraction bits left, and addition rounds like rint.
static inline float round_small(float x) {
    const float shift = 12582912.0F; // 1.5 * 2^23
    return (x + shift) - shift;
}

/// max(x, bound) and min(x, bound); if x is NaN, the bound.
static inline float at_least(float x, float bound) {
    return x > bound ? x : bound;
}
static inline float at_most(float x, float bound) {
    return x < bound ? x : bound;
}

/// y[i] = the quantized value of sum sums[i] (modulo 2^32, including its initial value) of a
/// channel with these constants. Bounds are applied to the float, which equals clamping the
/// quantized value.
static inline void requantize_sums(const requant *r, const uint32_t *sums, const float *multiplier,
                                   const float *bias, size_t count, uint8_t *y) {
    const bool is_o = r->rule == REQUANT_O;
    const int32_t shift = is_o ? 0 : r->zero_point;
    const float inverse = r->inverse, zero_point = (float)r->zero_point;
    const float low = (float)(r->lo - shift), high = (float)(r->hi - shift);
    for (size_t i = 0; i < count; i++) {
        const float sum = (float)tare__wrap_int32((int64_t)sums[i]);
        const float o = (sum * multiplier[i] + bias[i]) * inverse + zero_point;
        const float f = (sum + bias[i]) * multiplier[i];
        const float bounded = at_most(at_least(is_o ? o : f, low), high);
        y[i] = (uint8_t)((int32_t)round_small(bounded) + shift);
    }
}

/// The floats that rules F and Q round, for such sums.
static inline void scale_sums(const uint32_t *sums, const float *multiplier, const float *bias,
                              size_t count, float *y) {
    for (size_t i = 0; i < count; i++) {
        const float sum = (float)tare__wrap_int32((int64_t)sums[i]) + bias[i];
        y[i] = sum * multiplier[i];
    }
}

/// The values of rule O for such sums.
static inline void real_sums(const uint32_t *sums, const float *multiplier, const float *bias,
                             size_t count, float *y) {
    for (size_t i = 0; i < count; i++) {
        const float product = (float)tare__wrap_int32((int64_t)sums[i]) * multiplier[i];
        y[i] = product + bias[i];
    }
}

#endif
