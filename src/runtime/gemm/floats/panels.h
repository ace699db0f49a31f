// SPDX-License-Identifier: Apache-2.0
// Float products with few rows. They are limited by reading the weights, so these are packed into
// panels of columns in the order in which they are read. Sums have the order of the portable
// kernels (dnnl/float_kernels.c), hence the same bits.
#ifndef RUNTIME_GEMM_FLOATS_PANELS_H
#define RUNTIME_GEMM_FLOATS_PANELS_H

#include "core/tensor/derived.h"
#include "runtime/kernels/rows.h"
#include "runtime/kernels/scratch.h"

/// Weights [columns][inner] as panels of PANEL_COLUMNS columns, the last one possibly narrower:
/// [inner][width].
typedef struct panel_weights {
    derived_item base;
    derived_memory *memory;
    size_t inner, columns;
    float *panels;
} panel_weights;

/// The panels of a float tensor [columns][..] with data, created once and shared. Pages of a mapped
/// tensor are then released. The caller releases *out.
tare_status tare__panel_weights_get(const tare_tensor *weight, panel_weights **out,
                                    tare_error *err);
void tare__panel_weights_release(panel_weights *w); // NULL is allowed

/// The number of floats in a bias for all panels.
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
    /// Applied to the sums of some columns, which begin at element `at` of y. NULL: nothing.
    void (*finish)(const void *user, size_t at, size_t columns, float *sums);
    const void *user;
} panel_product;
/// The threads of the pool divide the panels if there is enough work.
void tare__panels_multiply(const panel_product *p, thread_pool *pool);

#endif
