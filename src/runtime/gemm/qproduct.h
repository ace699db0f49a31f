// SPDX-License-Identifier: Apache-2.0
// A quantized linear layer or subconvolution, packed for the product kernels. Quantized values are
// channels last: [N][D][H][W][C], or [N][C] for linear layers.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_QPRODUCT_H
#define RUNTIME_GEMM_QPRODUCT_H

#include "ops/quantized/layer.h"
#include "runtime/gemm/subconvolution.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/scratch.h"

typedef struct qproduct qproduct;
struct qlayer_form; // qlayer.h

/// Packs a subconvolution of a layer that tare__qproduct_refusal accepts, for the parameters of y.
/// The caller destroys it.
tare_status tare__qproduct_create(const quantized_layer *layer, const subconvolution *sub,
                                  const tare_tensor *x, const tare_tensor *y, isa_level isa,
                                  qproduct **out, tare_error *err);
void tare__qproduct_destroy(qproduct *p); // NULL is allowed
void tare__qproduct_set_input(qproduct *p, const qparams *weight, double scale,
                              int32_t zero_point); // as tare__qlayer_set_input
struct qlayer_form tare__qproduct_form(const qproduct *p);
/// True if signed inputs must be converted before a run (tare__product_to_unsigned).
bool tare__qproduct_needs_unsigned(const qproduct *p);
/// Why inputs of x's shape (with any batch size) are not supported; NULL: they are.
const char *tare__qproduct_refusal(const quantized_layer *layer, const tare_tensor *x);
/// Bytes of scratch for a run with this many threads.
size_t tare__qproduct_scratch_bytes(const qproduct *p, size_t thread_count);
struct qlayer_run; // qlayer.h
void tare__qproduct_run(const qproduct *p, const struct qlayer_run *run);

#endif
