// SPDX-License-Identifier: Apache-2.0
// Elementary functions of float32, in one place: operators call these and never libm directly, so
// that versions with the same bits on every machine can take their place.
#ifndef CORE_MATH_F32_H
#define CORE_MATH_F32_H

#include <math.h>

static inline float tare__expf(float x) {
    return expf(x);
}
static inline float tare__expm1f(float x) {
    return expm1f(x);
}
static inline float tare__logf(float x) {
    return logf(x);
}
static inline float tare__log1pf(float x) {
    return log1pf(x);
}
static inline float tare__tanhf(float x) {
    return tanhf(x);
}
static inline float tare__erff(float x) {
    return erff(x);
}
static inline float tare__sinf(float x) {
    return sinf(x);
}
static inline float tare__cosf(float x) {
    return cosf(x);
}
static inline float tare__tanf(float x) {
    return tanf(x);
}
static inline float tare__asinf(float x) {
    return asinf(x);
}
static inline float tare__acosf(float x) {
    return acosf(x);
}
static inline float tare__atanf(float x) {
    return atanf(x);
}
static inline float tare__sinhf(float x) {
    return sinhf(x);
}
static inline float tare__coshf(float x) {
    return coshf(x);
}
static inline float tare__asinhf(float x) {
    return asinhf(x);
}
static inline float tare__acoshf(float x) {
    return acoshf(x);
}
static inline float tare__atanhf(float x) {
    return atanhf(x);
}
static inline float tare__log2f(float x) {
    return log2f(x);
}
static inline float tare__exp2f(float x) {
    return exp2f(x);
}
static inline float tare__sigmoidf(float x) {
    return 1.0f / (1.0f + tare__expf(-x));
}

#endif
