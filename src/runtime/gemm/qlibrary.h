// SPDX-License-Identifier: Apache-2.0
// Quantized convolutions whose sums a library (oneDNN) computes, if they are exact. The epilogue is
// tare's, so that the results are those of the product kernels. A row block of the output is summed
// at a time, which is then still in the cache.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_QLIBRARY_H
#define RUNTIME_GEMM_QLIBRARY_H

#include "runtime/gemm/qlayer.h"

typedef struct qlibrary qlibrary;

/// *out is NULL without such a library, if its sums are not exact (without VNNI it adds pairs of
/// products in 16 bits, which saturate), and for layers that it does not support: signed quantized
/// values, padding with zero points other than 0, groups, linear layers, float results. The caller
/// destroys *out.
tare_status tare__qlibrary_create(const quantized_layer *layer, const tare_tensor *x,
                                  const tare_tensor *y, isa_level isa, size_t thread_count,
                                  qlibrary **out, tare_error *err);
void tare__qlibrary_destroy(qlibrary *l); // NULL is allowed
qlayer_form tare__qlibrary_form(const qlibrary *l);
size_t tare__qlibrary_scratch_bytes(const qlibrary *l, size_t thread_count);
/// Runs with at most as many threads as it was created for.
void tare__qlibrary_run(const qlibrary *l, const qlayer_run *run);

#endif
