// SPDX-License-Identifier: Apache-2.0
// A depthwise subconvolution of channels-last quantized values, packed for its kernels.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_QDEPTHWISE_H
#define RUNTIME_GEMM_QDEPTHWISE_H

#include "ops/quantized/layer.h"
#include "runtime/gemm/subconvolution.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/scratch.h"

typedef struct qdepthwise qdepthwise;
struct qlayer_run; // qlayer.h

/// Packs a subconvolution of a layer for the parameters of y. *out is NULL if the layer is no
/// depthwise convolution. The caller destroys it.
tare_status tare__qdepthwise_create(const quantized_layer *layer, const subconvolution *sub,
                                    const tare_tensor *x, const tare_tensor *y, isa_level isa,
                                    qdepthwise **out, tare_error *err);
void tare__qdepthwise_destroy(qdepthwise *p);                  // NULL is allowed
struct qlayer_form tare__qdepthwise_form(const qdepthwise *p); // qlayer.h
/// Bytes of scratch, 64-byte aligned, for a run with this many threads.
size_t tare__qdepthwise_scratch_bytes(const qdepthwise *p, size_t thread_count);
void tare__qdepthwise_run(const qdepthwise *p, const struct qlayer_run *run);

#endif
