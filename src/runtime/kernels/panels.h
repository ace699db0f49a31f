// SPDX-License-Identifier: Apache-2.0
// Products of few rows of floats: reading the weights is what they cost, so these lie in panels of
// columns in the order in which they are read. Sums have the order of the portable kernels
// (ops/float_kernels.c), and their bits.
#ifndef RUNTIME_KERNELS_PANELS_H
#define RUNTIME_KERNELS_PANELS_H

#include "core/derived.h"
#include "runtime/kernels/lines.h"
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

static inline size_t tare__panel_count(const panel_weights *w) {
    return tare__ceil_div(w->columns, PANEL_COLUMNS);
}
static inline size_t tare__panel_columns(const panel_weights *w, size_t panel) {
    return tare__part_of(w->columns, panel * PANEL_COLUMNS, PANEL_COLUMNS);
}
/// As many floats are a bias for all panels.
static inline size_t tare__panel_bias_count(const panel_weights *w) {
    return tare__round_up(w->columns, PANEL_STEP);
}
/// Columns of a panel, of x [rows][inner] for 1 to PANEL_ROWS rows: to [PANEL_ROWS][PANEL_COLUMNS].
/// bias: of all panels.
void tare__panel_multiply(const line_kernels *k, const panel_weights *w, size_t panel,
                          const float *x, size_t rows, const float *bias, float *y);
/// The threads that are worth so many multiply-accumulates.
static inline thread_pool *tare__panel_threads(thread_pool *pool, size_t macs) {
    enum { LEAST_SHARED = 1 << 17 }; // are done while a thread wakes up
    return macs >= LEAST_SHARED ? pool : NULL;
}

#endif
