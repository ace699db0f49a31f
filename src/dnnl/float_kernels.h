// SPDX-License-Identifier: Apache-2.0
// Float convolution and matrix products. A portable implementation gives the same bits everywhere;
// a provider (oneDNN) is faster and rounds in its own order. Operators call only these functions.
#ifndef DNNL_FLOAT_KERNELS_H
#define DNNL_FLOAT_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tensor/tensor.h"

/// Convolution of x [batch][in_channels][in..] with w [out_channels][in_channels /
/// groups][kernel..] to y [batch][out_channels][out..]; bias [out_channels] or NULL. Unused
/// dimensions of the three have size, stride and dilation 1. Outside of x there are zeros; pad
/// counts those before the first element.
typedef struct float_conv {
    int64_t batch, groups, in_channels, out_channels;
    int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
    /// The tensor that w is the data of, when it will come again (a module's own weight): a
    /// provider may keep it with a packed form. NULL: w is new at every call.
    tare_tensor *constant;
} float_conv;

/// y [rows][columns] = a [rows][inner] * b (+ bias [columns], may be NULL). b is [inner][columns],
/// or [columns][inner] if transposed (as a linear layer's weight).
typedef struct float_product {
    int64_t rows, inner, columns;
    bool transposed;
} float_product;

/// The same for rows that are `*_step` floats apart, without a bias. All sizes are above 0.
typedef struct float_block {
    int64_t rows, inner, columns;
    int64_t x_step, w_step, y_step;
    bool transposed;
} float_block;

/// True for products of two tensors of a graph that are computed by tare's own functions, in the
/// order of the portable implementation, even where there is a library: a call of it would cost
/// more than it gains.
static inline bool tare__float_product_is_small(int64_t rows, int64_t inner, int64_t columns) {
    enum { MOST = 1 << 19 }; // multiply-accumulates
    return rows <= MOST && inner <= MOST && columns <= MOST && rows * inner <= MOST &&
           rows * inner * columns <= MOST;
}

/// The functions of a provider; `state` is its cache of compiled primitives, one per session.
typedef struct float_provider {
    const char *name;
    tare_status (*create)(void **state, tare_error *err);
    void (*destroy)(void *state);
    tare_status (*conv)(void *state, const float_conv *c, const float *x, const float *w,
                        const float *bias, float *y, tare_error *err);
    tare_status (*product)(void *state, const float_product *p, const float *a, const float *b,
                           const float *bias, float *y, tare_error *err);
} float_provider;
extern const float_provider tare__portable_floats;
extern const float_provider tare__dnnl_floats; // only where TARE_HAVE_DNNL is defined

/// The fastest provider of this build, or the one that TARE_FLOATS in the environment names
/// ("portable", and "oneDNN" where the build has it). TARE_INVALID_ARGUMENT for other names.
tare_status tare__float_provider_choose(const float_provider **out, tare_error *err);

/// A provider and its cache. Not shared between threads.
typedef struct float_kernels float_kernels;
/// provider NULL: the one that tare__float_provider_choose finds. The caller destroys *out.
tare_status tare__float_kernels_create(const float_provider *provider, float_kernels **out,
                                       tare_error *err);
void tare__float_kernels_destroy(float_kernels *k); // NULL is fine

/// What multiplies two tensors of a graph: NULL for small products.
static inline float_kernels *tare__float_kernels_for(float_kernels *k, const float_product *p) {
    return tare__float_product_is_small(p->rows, p->inner, p->columns) ? NULL : k;
}

/// k NULL: the portable implementation.
tare_status tare__float_convolve(float_kernels *k, const float_conv *c, const float *x,
                                 const float *w, const float *bias, float *y, tare_error *err);
tare_status tare__float_multiply(float_kernels *k, const float_product *p, const float *a,
                                 const float *b, const float *bias, float *y, tare_error *err);

#endif
