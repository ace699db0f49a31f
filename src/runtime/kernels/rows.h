// SPDX-License-Identifier: Apache-2.0
// Kernels over rows of floats. Every level gives the same bits, which core/math/rows.h and
// core/math/elements.def define.
#ifndef RUNTIME_KERNELS_ROWS_H
#define RUNTIME_KERNELS_ROWS_H

#include <stddef.h>

#include "core/math/elements.h"
#include "core/math/rows.h"
#include "runtime/kernels/isa.h"

typedef struct row_kernels {
    kernel_needs needs;
    const char *name;
    void (*add)(const float *x, size_t count, float *y);
    void (*sum)(const float *a, const float *b, size_t count, float *y);
    void (*max_into)(const float *x, size_t count, float *y);
    void (*softmax)(const float *x, size_t count, float *y);
    void (*log_softmax)(const float *x, size_t count, float *y);
    void (*moments)(const float *x, size_t count, float *mean, float *variance);
    void (*scale_shift)(const float *x, size_t count, float scale, float shift, float *y);
    void (*affine)(const float *x, size_t count, const float *scale, const float *shift, float *y);
    void (*blend)(const float *const x[], const float *share, size_t rows, size_t count, float *y);
    void (*panel)(const float *x, size_t rows, size_t inner, const float *w, size_t width,
                  const float *bias, float *y);
    void (*normalize)(const float *x, size_t count, const float *weight, const float *bias,
                      float eps, float *y);
    void (*rms_normalize)(const float *x, size_t count, const float *weight, float eps, float *y);
    void (*columns)(const float *x, size_t count, size_t stride, size_t width, float *y);
    const element_loop *elements; // by element_kind
    const binary_loop *binary;    // by binary_kind
} row_kernels;

/// Best first; the last row needs nothing.
extern const row_kernels tare__row_kernels[];
extern const size_t tare__row_kernel_count;
const row_kernels *tare__row_kernels_choose(isa_level isa);

#define KERNEL(suffix, level)                                                                      \
    ROW_FUNCTIONS(suffix)                                                                          \
    extern const element_loop f32_elements__##suffix[ELEMENT_COUNT];                               \
    extern const binary_loop f32_binary__##suffix[BINARY_COUNT];
#include "runtime/kernels/f32_rows/kernels.def"
#undef KERNEL

#endif
