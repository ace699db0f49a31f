// SPDX-License-Identifier: Apache-2.0
// Floats that are quantized with a range found during the run, and the resulting parameters.
// Private to runtime/steps.
#ifndef RUNTIME_STEPS_DYNAMIC_H
#define RUNTIME_STEPS_DYNAMIC_H

#include "runtime/gemm/dynamic_product.h"
#include "runtime/plan/records.h"

/// True for a linear layer from floats to floats with packed weights.
bool tare__plan_is_dynamic_linear(const plan_record *r);
/// True if it quantizes its input dynamically and kernels take its weights.
bool tare__plan_is_dynamic_layer(const plan_record *r);

/// The parameters of the input as unsigned values: 128 higher if the layer's are signed.
typedef struct dynamic_input {
    double scale;
    int32_t zero_point;
} dynamic_input;
/// Buffers that the next step reads. Layers with the same input and parameters share them.
tare_status tare__plan_dynamic_quantized(plan_builder *b, const plan_record *layer,
                                         const dynamic_weights *w, size_t x, size_t *quantized,
                                         size_t *input);

#endif
