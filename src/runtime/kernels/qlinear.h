// SPDX-License-Identifier: Apache-2.0
// A quantized linear layer, packed for a kernel.
#ifndef RUNTIME_KERNELS_QLINEAR_H
#define RUNTIME_KERNELS_QLINEAR_H

#include "ops/quantized_layer.h"
#include "runtime/isa.h"
#include "runtime/kernels/scratch.h"

typedef struct qlinear_plan qlinear_plan;

/// Packs the layer for inputs with x's parameters and outputs with y's. *out is NULL when no kernel
/// covers it: the reference does. The caller destroys it.
tare_status tare__qlinear_plan_create(const quantized_layer *layer, const tare_tensor *x,
                                      const tare_tensor *y, isa_level isa, qlinear_plan **out,
                                      tare_error *err);
void tare__qlinear_plan_destroy(qlinear_plan *plan); // NULL is fine
const char *tare__qlinear_kernel_name(const qlinear_plan *plan);
/// Other parameters of the input, for a layer that gives floats; fuses: its end is one fmaf.
void tare__qlinear_set_input(qlinear_plan *plan, const qparams *weight, double scale,
                             int32_t zero_point, bool fuses);
/// As tare__qlinear_run, on `rows` rows of codes.
tare_status tare__qlinear_run_codes(const qlinear_plan *plan, const uint8_t *x, size_t rows,
                                    tare_tensor *y, workspace *space, tare_error *err);
/// x [.., I] and y [.., O] as the plan was made for, with any number of rows.
tare_status tare__qlinear_run(const qlinear_plan *plan, const tare_tensor *x, tare_tensor *y,
                              workspace *space, tare_error *err);

#endif
