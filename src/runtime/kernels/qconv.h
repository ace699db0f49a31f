// SPDX-License-Identifier: Apache-2.0
// A quantized convolution, packed for a kernel. Tensors are [N][C][H][W] (or without H, or without
// N).
#ifndef RUNTIME_KERNELS_QCONV_H
#define RUNTIME_KERNELS_QCONV_H

#include "ops/quantized_layer.h"
#include "runtime/isa.h"
#include "runtime/kernels/scratch.h"

typedef struct qconv_plan qconv_plan;

/// Packs the layer for inputs of x's shape (but for the batch) and parameters and outputs of y's.
/// *out is NULL when no kernel covers it (three dimensions, transposed, reflecting): the reference
/// does. The caller destroys it.
tare_status tare__qconv_plan_create(const quantized_layer *layer, const tare_tensor *x,
                                    const tare_tensor *y, isa_level isa, qconv_plan **out,
                                    tare_error *err);
void tare__qconv_plan_destroy(qconv_plan *plan); // NULL is fine
const char *tare__qconv_kernel_name(const qconv_plan *plan);
/// addend: codes of y's shape, for a layer that adds; else NULL.
tare_status tare__qconv_run(const qconv_plan *plan, const tare_tensor *x, const tare_tensor *addend,
                            tare_tensor *y, workspace *space, tare_error *err);

#endif
