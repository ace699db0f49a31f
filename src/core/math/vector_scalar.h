// SPDX-License-Identifier: Apache-2.0
// Vectors of one float, in plain C. They define the operations of wider vectors (runtime/kernels/
// f32_ISA.h). core/math/vector_functions.h and core/math/vector_rows.h use only these operations,
// whose results IEEE 754 defines exactly, except for the bits of a NaN. A file includes one kind of
// vectors.
//
// Private to core/math.
#ifndef CORE_MATH_VECTOR_SCALAR_H
#define CORE_MATH_VECTOR_SCALAR_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WIDTH = 1 };
typedef float vec;
typedef bool vmask;

static inline vec v_set(float a) {
    return a;
}
static inline vec v_load(const float *x) {
    return *x;
}
static inline void v_store(float *y, vec a) {
    *y = a;
}
// Loads the first `count` < WIDTH elements; the others are 0. Stores only these.
static inline vec v_load_first(const float *x, size_t count) {
    return count > 0 ? *x : 0.0F;
}
static inline void v_store_first(float *y, vec a, size_t count) {
    if (count > 0) *y = a;
}
// `a` with zeros beyond the first `count` elements.
static inline vec v_keep(vec a, size_t count) {
    return count > 0 ? a : 0.0F;
}

static inline vec v_add(vec a, vec b) {
    return a + b;
}
static inline vec v_sub(vec a, vec b) {
    return a - b;
}
static inline vec v_mul(vec a, vec b) {
    return a * b;
}
static inline vec v_div(vec a, vec b) {
    return a / b;
}
// a * b + c, rounded once. Without an instruction the library's function is slow: instead the exact
// product is added in double, which rounds twice. That can only be wrong near the middle between
// two floats, where the library is used, and for denormal floats.
static inline vec v_fma(vec a, vec b, vec c) {
#ifdef __FP_FAST_FMAF
    return fmaf(a, b, c);
#else
    const double sum = (double)a * (double)b + (double)c;
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    const bool is_between = (bits & 0x1fffffffU) == 0x10000000U;
    return is_between || fabs(sum) < 0x1p-126 ? fmaf(a, b, c) : (float)sum;
#endif
}
static inline vec v_sqrt(vec a) {
    return sqrtf(a);
}
// If they are equal or one is NaN, the second one.
static inline vec v_max(vec a, vec b) {
    return a > b ? a : b;
}
static inline vec v_min(vec a, vec b) {
    return a < b ? a : b;
}
static inline vec v_abs(vec a) {
    return fabsf(a);
}
// |size| with the sign of `sign`; size is not negative.
static inline vec v_with_sign(vec size, vec sign) {
    return copysignf(size, sign);
}

static inline vmask v_less(vec a, vec b) {
    return a < b;
}
static inline vmask v_is_nan(vec a) {
    return a != a;
}
static inline vec v_blend(vmask mask, vec yes, vec no) {
    return mask ? yes : no;
}

// 2^n for n = shifted - 1.5 * 2^23, an integer in [-127, 128]: 0 and infinity at its ends. The low
// bits of the sum are n, and are shifted into the exponent.
static inline vec v_power(vec shifted) {
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + 0x3f800000U;
    memcpy(&shifted, &bits, sizeof bits);
    return shifted;
}

// The sum of a vector's elements by halves: a[i] + a[i + WIDTH / 2], and so on.
static inline float v_fold(vec a) {
    return a;
}
static inline float v_fold_max(vec a) {
    return a;
}

#endif
