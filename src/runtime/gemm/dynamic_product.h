// SPDX-License-Identifier: Apache-2.0
// Products of constant weights and floats that are quantized on the fly.
#ifndef RUNTIME_GEMM_DYNAMIC_PRODUCT_H
#define RUNTIME_GEMM_DYNAMIC_PRODUCT_H

#include "ops/quantized/dynamic.h"
#include "runtime/gemm/qlayer.h"
#include "runtime/kernels/context.h"
#include "runtime/kernels/scan.h"

/// A layer of such weights, packed; *out is NULL if no kernel covers it. y: its result.
tare_status tare__dynamic_pack(const module *m, const dynamic_weights *w, const tare_tensor *y,
                               isa_level isa, qlayer **out, tare_error *err);
/// Least and greatest of count > 0 floats, as such layers find them.
void tare__dynamic_range(const scan_kernels *k, const float *x, size_t count, float *min,
                         float *max);
/// The scheme of floats of this range, and their scale: of unsigned values, 128 higher where the
/// layer's are signed, as products take them.
quantized_scheme tare__dynamic_scheme(const dynamic_weights *w, float min, float max,
                                      double *scale);
/// y = weights * x for floats x [rows][inner], rows > 0, by packed weights that have inner > 0
/// columns.
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
