// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels between floats and quantized bytes, with the bits of core/math/requant.h.
#ifndef RUNTIME_KERNELS_ELEMENTWISE_H
#define RUNTIME_KERNELS_ELEMENTWISE_H

#include <stddef.h>

#include "core/math/requant.h"
#include "runtime/kernels/isa.h"

/// Quantized values of a per-tensor scheme, quint8 or qint8.
typedef struct quantized_scheme {
    float scale, inverse; // inverse: 1 / scale, rounded
    int32_t zero_point, least, most;
    bool is_signed;
} quantized_scheme;

/// Converts sums of quantized values to an average: rint((sum - less) / divisor + before) + after,
/// within bounds.
typedef struct quantized_average {
    float divisor, before;
    int32_t less, after, least, most;
} quantized_average;

/// A weighted sum of rows of quantized values, minus the zero point each.
typedef struct quantized_blend {
    int32_t zero_point, least, most;
    bool is_signed;
    size_t rows;
    const uint8_t *x[8];
    float weight[8];
} quantized_blend;

/// Windows over equidistant rows of quantized values, and their results.
typedef struct quantized_windows {
    bool is_signed;
    size_t taps[2],
        tap_stride[2]; // rows of a window (outer and inner loop, > 0); bytes between them
    size_t windows, x_step,
        y_step;   // bytes from a window to the next, and from a result to the next
    size_t count; // quantized values of a row
} quantized_windows;

typedef struct elementwise_kernels {
    kernel_needs needs;
    const char *name;
    /// y[i] = tare__quantize(x[i])
    void (*quantize)(const quantized_scheme *s, const float *x, size_t count, uint8_t *y);
    /// y[i] = tare__dequantize(x[i])
    void (*dequantize)(const quantized_scheme *s, const uint8_t *x, size_t count, float *y);
    /// y[i] = tare__native_add_quantized(a[i], b[i])
    void (*add)(const native_add *op, bool is_signed, const uint8_t *a, const uint8_t *b,
                size_t count, uint8_t *y);
    /// y[i] = tare__quantized_mul_quantized(a[i], b[i])
    void (*mul)(const quantized_mul *op, bool is_signed, const uint8_t *a, const uint8_t *b,
                size_t count, uint8_t *y);
    /// sums[i] += x[i]
    void (*sum)(bool is_signed, const uint8_t *x, size_t count, int32_t *sums);
    /// y[i] = table[x[i]]; y may be x
    void (*look_up)(const uint8_t table[256], const uint8_t *x, size_t count, uint8_t *y);
    /// y[i * y_step + c] = max over a, b of
    ///   x[i * x_step + a * tap_stride[0] + b * tap_stride[1] + c]; y may not overlap x
    void (*greatest)(const quantized_windows *w, const uint8_t *x, uint8_t *y);
    /// Planes to pixels: y[i * planes + k] = x[k * stride + i]; y may not overlap x
    void (*interleave)(const uint8_t *x, size_t stride, size_t planes, size_t count, uint8_t *y);
    /// y[i] = tare__quantize(tare__dequantize(x[i]) * scale[i] + shift[i]), product and sum rounded
    /// separately; y may be x
    void (*affine)(const quantized_scheme *from, const quantized_scheme *to, const uint8_t *x,
                   const float *scale, const float *shift, size_t count, uint8_t *y);
    /// y[i] = the quantized value of sums[i]
    void (*average)(const quantized_average *a, const int32_t *sums, size_t count, uint8_t *y);
    /// y[i] = rint(sum over k of weight[k] * (x[k][i] - zero_point)) + zero_point, in order of k
    void (*blend)(const quantized_blend *b, size_t count, uint8_t *y);
    /// y[i] = tare__dequantize_embedding(x[i], scale, bias)
    void (*expand)(bool is_signed, float scale, float bias, const uint8_t *x, size_t count,
                   float *y);
    /// y[i] = tare__quantize(GELU of x[i], defined in core/math/elements.def). NULL: there is no
    /// faster form than GELU followed by quantize
    void (*quantize_gelu)(const quantized_scheme *s, const float *x, size_t count, uint8_t *y);
} elementwise_kernels;

/// Fastest first; the last row runs everywhere.
extern const elementwise_kernels tare__elementwise_kernels[];
extern const size_t tare__elementwise_kernel_count;
const elementwise_kernels *tare__elementwise_choose(isa_level isa);

#define KERNEL(suffix, needs)                                                                      \
    void qu8_quantize__##suffix(const quantized_scheme *s, const float *x, size_t count,           \
                                uint8_t *y);                                                       \
    void qu8_dequantize__##suffix(const quantized_scheme *s, const uint8_t *x, size_t count,       \
                                  float *y);                                                       \
    void qu8_add__##suffix(const native_add *op, bool is_signed, const uint8_t *a,                 \
                           const uint8_t *b, size_t count, uint8_t *y);                            \
    void qu8_mul__##suffix(const quantized_mul *op, bool is_signed, const uint8_t *a,              \
                           const uint8_t *b, size_t count, uint8_t *y);                            \
    void qu8_sum__##suffix(bool is_signed, const uint8_t *x, size_t count, int32_t *sums);         \
    void qu8_look_up__##suffix(const uint8_t table[256], const uint8_t *x, size_t count,           \
                               uint8_t *y);                                                        \
    void qu8_greatest__##suffix(const quantized_windows *w, const uint8_t *x, uint8_t *y);         \
    void qu8_interleave__##suffix(const uint8_t *x, size_t stride, size_t planes, size_t count,    \
                                  uint8_t *y);                                                     \
    void qu8_affine__##suffix(const quantized_scheme *from, const quantized_scheme *to,            \
                              const uint8_t *x, const float *scale, const float *shift,            \
                              size_t count, uint8_t *y);                                           \
    void qu8_average__##suffix(const quantized_average *a, const int32_t *sums, size_t count,      \
                               uint8_t *y);                                                        \
    void qu8_blend__##suffix(const quantized_blend *b, size_t count, uint8_t *y);                  \
    void qu8_expand__##suffix(bool is_signed, float scale, float bias, const uint8_t *x,           \
                              size_t count, float *y);
#define KERNEL_WITH(name, suffix, needs, has, look_up, quantize_gelu)                              \
    KERNEL(suffix, needs)                                                                          \
    void qu8_look_up__##look_up(const uint8_t table[256], const uint8_t *x, size_t count,          \
                                uint8_t *y);                                                       \
    void quantize_gelu(const quantized_scheme *s, const float *x, size_t count, uint8_t *y);
#include "runtime/kernels/qu8_elementwise/kernels.def"
#undef KERNEL
#undef KERNEL_WITH

#endif
