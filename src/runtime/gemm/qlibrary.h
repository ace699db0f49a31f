// SPDX-License-Identifier: Apache-2.0
// Quantized convolutions whose sums a library computes (oneDNN), where these are exact; what comes
// after the sums is ours, so that the quantized values are those of the product kernels. A row
// block of rows of the output is summed at a time, which the cache then still holds.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_QLIBRARY_H
#define RUNTIME_GEMM_QLIBRARY_H

#include "runtime/gemm/qlayer.h"

typedef struct qlibrary qlibrary;

/// *out is NULL where there is no such library, where it is not exact (without VNNI it adds pairs
/// of products in 16 bits, which saturate), and for what it does not cover: signed quantized
/// values, padding of zero points other than 0, groups, linear layers, results in floats. The
/// caller destroys *out.
tare_status tare__qlibrary_create(const quantized_layer *layer, const tare_tensor *x,
                                  const tare_tensor *y, isa_level isa, size_t thread_count,
                                  qlibrary **out, tare_error *err);
void tare__qlibrary_destroy(qlibrary *l); // NULL is fine
qlayer_form tare__qlibrary_form(const qlibrary *l);
size_t tare__qlibrary_scratch_bytes(const qlibrary *l, size_t thread_count);
/// Of at most as many threads as it was created for.
void tare__qlibrary_run(const qlibrary *l, const qlayer_run *run);

#endif
