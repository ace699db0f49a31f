// SPDX-License-Identifier: Apache-2.0
// Products of few rows of floats: reading the weights is what they cost, so these lie in panels of
// columns in the order in which they are read. Sums have the order of the portable kernels
// (dnnl/float_kernels.c), and their bits.
#ifndef RUNTIME_GEMM_PANELS_H
#define RUNTIME_GEMM_PANELS_H

#include "core/tensor/derived.h"
#include "runtime/kernels/rows.h"
#include "runtime/kernels/scratch.h"

/// Weights [columns][inner] as panels of PANEL_COLUMNS columns, the last one narrower:
/// [inner][width].
typedef struct panel_weights {
    derived_thing base;
    derived_memory *memory;
    size_t inner, columns;
    float *panels;
} panel_weights;

/// The panels of a float tensor with data, [columns][..], made once for all who ask. Mapped weights
/// leave memory then. The caller releases *out.
tare_status tare__panel_weights_get(const tare_tensor *weight, panel_weights **out,
                                    tare_error *err);
void tare__panel_weights_release(panel_weights *w); // NULL is fine

/// As many floats are a bias for all panels.
static inline size_t tare__panel_bias_count(const panel_weights *w) {
    return tare__round_up(w->columns, PANEL_STEP);
}
/// y [rows][columns] = x [rows][inner] times the weights, plus bias.
typedef struct panel_product {
    const row_functions *functions;
    const panel_weights *weights;
    const float *bias; // of all panels
    size_t rows;
    const float *x;
    float *y;
    /// What follows the sums of some columns, which stand from element `at` of y on. NULL: nothing.
    void (*finish)(const void *user, size_t at, size_t columns, float *sums);
    const void *user;
} panel_product;
/// Threads of the pool share the panels, where there is enough for them to do.
void tare__panels_multiply(const panel_product *p, thread_pool *pool);

#endif
