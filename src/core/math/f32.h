// SPDX-License-Identifier: Apache-2.0
// Elementary functions of float32 as fixed sequences of IEEE operations: every machine, C library
// and instruction set gives the same bits (except those of a NaN). Operators call these and never
// libm, except for functions that IEEE 754 defines exactly (sqrt, fma).
//
// The errors stated are the largest ones over all floats, in ulp of the exact result where that is
// a normal float. The first group is computed by vectors, in the same bits
// (core/math/vector_functions.h); the others go through double.
#ifndef CORE_MATH_F32_H
#define CORE_MATH_F32_H

#include <math.h>

float tare__expf(float x);     // 1.04 ulp
float tare__expm1f(float x);   // 1.6 ulp
float tare__tanhf(float x);    // 2.6 ulp
float tare__erff(float x);     // 1.4 ulp
float tare__sigmoidf(float x); // 2.5 ulp above -87; 0 or the smallest normal floats below

// All of these: 0.501 ulp.
float tare__logf(float x);
float tare__log1pf(float x);
float tare__log2f(float x);
float tare__exp2f(float x);
float tare__sinf(float x);
float tare__cosf(float x);
float tare__tanf(float x);
float tare__asinf(float x);
float tare__acosf(float x);
float tare__atanf(float x);
float tare__sinhf(float x);
float tare__coshf(float x);
float tare__asinhf(float x);
float tare__acoshf(float x);
float tare__atanhf(float x);

#endif
