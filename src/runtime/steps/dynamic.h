// SPDX-License-Identifier: Apache-2.0
// Quantized values of floats whose range is found in the run, and the numbers that it gives them.
// Private to runtime/steps.
#ifndef RUNTIME_STEPS_DYNAMIC_H
#define RUNTIME_STEPS_DYNAMIC_H

#include "runtime/gemm/dynamic_product.h"
#include "runtime/plan/records.h"

/// Is it a linear layer from floats to floats, of packed weights?
bool tare__plan_is_dynamic_linear(const plan_record *r);
/// Is it one that quantizes its input on the fly, by weights that kernels take?
bool tare__plan_is_dynamic_layer(const plan_record *r);

/// Of unsigned values, 128 higher where the layer's are signed.
typedef struct dynamic_input {
    double scale;
    int32_t zero_point;
} dynamic_input;
/// Buffers that the next step reads. Layers that ask for the same values share them.
tare_status tare__plan_dynamic_quantized(plan_builder *b, const plan_record *layer,
                                         const dynamic_weights *w, size_t x, size_t *quantized,
                                         size_t *input);

#endif
