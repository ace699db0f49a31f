// SPDX-License-Identifier: Apache-2.0
// Linear layers with group-wise weights (ops/quantized/grouped.h): weights are packed once and
// shared, threads divide the products.
#ifndef RUNTIME_GEMM_FLOATS_GROUPED_PRODUCT_H
#define RUNTIME_GEMM_FLOATS_GROUPED_PRODUCT_H

#include "ops/quantized/grouped.h"
#include "runtime/gemm/packed_weights.h"
#include "runtime/kernels/context.h"
#include "runtime/kernels/grouped.h"

/// A layer with packed panels (kernels/grouped.h).
typedef struct grouped_layer {
    grouped_weights w;
    bool relu;
    packed_weights *packed; // reference owned
    size_t panel_count, panel_bytes;
} grouped_layer;

/// True if kernels can compute the layer: its groups fill whole blocks of 64 bytes.
bool tare__grouped_layer_suits(const grouped_weights *w);
/// Packs the weights, which must suit; the caller sets out->w and relu, and releases the layer.
tare_status tare__grouped_layer_pack(const grouped_weights *w, bool relu, grouped_layer *out,
                                     tare_error *err);
void tare__grouped_layer_release(grouped_layer *l);
/// Bytes of packed weights that a product reads.
size_t tare__grouped_layer_bytes(const grouped_layer *l);
/// Bytes of scratch for a product with this many rows.
size_t tare__grouped_scratch_bytes(const grouped_layer *l, size_t rows);
/// y [rows][outs] = x [rows][ins] times the weights. memory: scratch, aligned to a cache line.
void tare__grouped_multiply(const kernel_context *kernels, const grouped_layer *l, size_t rows,
                            const float *x, void *memory, float *y);

#endif
