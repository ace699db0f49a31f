// SPDX-License-Identifier: Apache-2.0
// Products of constant weights and floats that are quantized during the run.
#ifndef RUNTIME_GEMM_DYNAMIC_PRODUCT_H
#define RUNTIME_GEMM_DYNAMIC_PRODUCT_H

#include "ops/quantized/dynamic.h"
#include "runtime/gemm/qlayer.h"
#include "runtime/kernels/context.h"
#include "runtime/kernels/scan.h"

/// Packs a layer with such weights; *out is NULL if no kernel supports it. y: its result.
tare_status tare__dynamic_pack(const module *m, const dynamic_weights *w, const tare_tensor *y,
                               isa_level isa, qlayer **out, tare_error *err);
/// Minimum and maximum of count > 0 floats, as dynamic layers compute them.
void tare__dynamic_range(const scan_kernels *k, const float *x, size_t count, float *min,
                         float *max);
/// Scheme and scale for floats in this range, as unsigned values: 128 higher if the layer's are
/// signed.
quantized_scheme tare__dynamic_scheme(const dynamic_weights *w, float min, float max,
                                      double *scale);
/// y = weights * x for floats x [rows][inner], rows > 0, with packed weights [outer][inner], inner
/// > 0.
typedef struct dynamic_product {
    qlayer *layer;
    const dynamic_weights *w;
    const float *x;
    size_t rows;
    float *y; // [rows][outer]
} dynamic_product;
/// memory: kept from one product to the next.
tare_status tare__dynamic_product_run(const kernel_context *kernels, scratch *memory,
                                      const dynamic_product *p, tare_error *err);

#endif
