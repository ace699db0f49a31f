// SPDX-License-Identifier: Apache-2.0
// Quantization parameters in the form that kernels take.
#ifndef RUNTIME_KERNELS_SCHEMES_H
#define RUNTIME_KERNELS_SCHEMES_H

#include "ops/call.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/product.h"

/// The scheme of a tensor of 8-bit quantized values.
quantized_scheme tare__quantized_scheme_of(const tare_tensor *t);
/// A sum or product of quantized values, for quantized.add, mul and their forms with a ReLU.
typedef struct quantized_binary {
    bool is_signed, is_product;
    native_add add;
    quantized_mul mul;
} quantized_binary;
/// True for such a call, except sums in fixed-point arithmetic.
bool tare__is_quantized_binary(const op_call *call);
bool tare__is_quantized_sum(const op_call *call);
/// For operands and a result with these schemes, which need not be the call's.
quantized_binary tare__quantized_binary_of(const op_call *call, const tare_tensor *a,
                                           const tare_tensor *b, const tare_tensor *y);
void tare__quantized_binary_run(const quantized_binary *op, const elementwise_kernels *k,
                                const uint8_t *a, const uint8_t *b, size_t count, uint8_t *y);
/// The addend for a layer that adds these quantized values.
product_addend tare__value_addend_of(const tare_tensor *t);

#endif
