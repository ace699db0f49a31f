// SPDX-License-Identifier: Apache-2.0
// Floating-point numbers to integers: in C, a cast is undefined if the number does not fit.
#ifndef CORE_MATH_FLOAT_TO_INT_H
#define CORE_MATH_FLOAT_TO_INT_H

#include <stdint.h>

/// Truncates x; out of range gives the nearest bound, NaN gives 0.
static inline int64_t tare__cut_int64(double x) {
    if (x >= 0x1p63) return INT64_MAX;
    if (x >= -0x1p63) return (int64_t)x;
    return x < 0 ? INT64_MIN : 0;
}

static inline int32_t tare__cut_int32(double x) {
    if (x >= 0x1p31) return INT32_MAX;
    if (x > -0x1p31 - 1) return (int32_t)x;
    return x < 0 ? INT32_MIN : 0;
}

#endif
