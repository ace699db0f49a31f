// SPDX-License-Identifier: Apache-2.0
// Products of two float matrices of a graph, such as those of attention.
#ifndef RUNTIME_GEMM_FLOATS_BLOCKS_H
#define RUNTIME_GEMM_FLOATS_BLOCKS_H

#include "core/math/rows.h"
#include "dnnl/float_layers.h"

/// The floats of memory that a multiplier lends, for any sizes.
enum { FLOAT_BLOCK_MEMORY = 256 * PANEL_COLUMNS };

/// What multiplies: a library, or, where it is NULL, tare's own functions, in the order of the
/// portable kernels (dnnl/float_kernels.h), hence with the same bits at every level of
/// instructions.
typedef struct float_multiplier {
    float_layers *library;
    const row_functions *functions;
    float *memory; // of the calling thread
} float_multiplier;

/// y = x * w, on the calling thread alone. y must not overlap the others. Fails in a library only.
tare_status tare__float_block_multiply(const float_multiplier *m, const float_block *b,
                                       const float *x, const float *w, float *y);

#endif
