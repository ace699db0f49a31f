// SPDX-License-Identifier: Apache-2.0
// The quantization parameters that kernels take.
#ifndef RUNTIME_KERNELS_SCHEMES_H
#define RUNTIME_KERNELS_SCHEMES_H

#include "ops/call.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/product.h"

/// The scheme of a tensor of quantized bytes.
quantized_scheme tare__quantized_scheme_of(const tare_tensor *t);
/// A sum or product of quantized values, as quantized.add, mul and those with a ReLU compute it.
typedef struct quantized_binary {
    bool is_signed, is_product;
    native_add add;
    quantized_mul mul;
} quantized_binary;
/// Is it such a call, and no sum in fixed point?
bool tare__is_quantized_binary(const op_call *call);
bool tare__is_quantized_sum(const op_call *call);
/// Of operands and a result with these schemes; they need not be the call's.
quantized_binary tare__quantized_binary_of(const op_call *call, const tare_tensor *a,
                                           const tare_tensor *b, const tare_tensor *y);
void tare__quantized_binary_run(const quantized_binary *op, const elementwise_kernels *k,
                                const uint8_t *a, const uint8_t *b, size_t count, uint8_t *y);
/// What a layer that adds takes from these quantized values.
product_addend tare__value_addend_of(const tare_tensor *t);

#endif
