// SPDX-License-Identifier: Apache-2.0
// A quantized convolution whose groups have one input channel each, packed for a kernel.
#ifndef RUNTIME_KERNELS_QDEPTHWISE_H
#define RUNTIME_KERNELS_QDEPTHWISE_H

#include "ops/quantized_layer.h"
#include "runtime/isa.h"
#include "runtime/kernels/scratch.h"

typedef struct qdepthwise_plan qdepthwise_plan;

/// As tare__qconv_plan_create. *out is NULL for other convolutions, and where a matrix product does
/// better (many outputs of a channel).
tare_status tare__qdepthwise_plan_create(const quantized_layer *layer, const tare_tensor *x,
                                         const tare_tensor *y, isa_level isa, qdepthwise_plan **out,
                                         tare_error *err);
void tare__qdepthwise_plan_destroy(qdepthwise_plan *plan); // NULL is fine
const char *tare__qdepthwise_kernel_name(const qdepthwise_plan *plan);
tare_status tare__qdepthwise_run(const qdepthwise_plan *plan, const tare_tensor *x, tare_tensor *y,
                                 workspace *space, tare_error *err);

#endif
