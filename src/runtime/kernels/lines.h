// SPDX-License-Identifier: Apache-2.0
// Kernels over lines of floats. Every level gives the same bits: sums have a fixed order (sixteen
// of them, joined pairwise), and no multiplication is fused with an addition.
#ifndef RUNTIME_KERNELS_LINES_H
#define RUNTIME_KERNELS_LINES_H

#include <stddef.h>

#include "runtime/isa.h"

typedef struct line_kernels {
    const char *name;
    isa_level needs;
    /// y[i] += x[i]
    void (*add)(const float *x, size_t count, float *y);
    /// y[i] = max(y[i], x[i]); NaN is greater than all
    void (*raise)(const float *x, size_t count, float *y);
    /// y[i] = exp(x[i] - max(x)) / sum; within 2 ulp before the division. x may be y.
    void (*softmax)(const float *x, size_t count, float *y);
    /// y[i] = (x[i] - mean(x)) / sqrt(variance(x) + eps) * weight[i] + bias[i]; weight and bias may
    /// be NULL. x may be y.
    void (*normalize)(const float *x, size_t count, const float *weight, const float *bias,
                      float eps, float *y);
} line_kernels;

/// Best first; the last row needs nothing.
extern const line_kernels tare__line_kernels[];
extern const size_t tare__line_kernel_count;
const line_kernels *tare__lines_choose(isa_level isa);

#define KERNEL(suffix, needs)                                                                      \
    void f32_add__##suffix(const float *x, size_t count, float *y);                                \
    void f32_raise__##suffix(const float *x, size_t count, float *y);                              \
    void f32_softmax__##suffix(const float *x, size_t count, float *y);                            \
    void f32_normalize__##suffix(const float *x, size_t count, const float *weight,                \
                                 const float *bias, float eps, float *y);
#include "runtime/kernels/f32_lines/kernels.def"
#undef KERNEL

#endif
