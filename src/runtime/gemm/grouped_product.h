// SPDX-License-Identifier: Apache-2.0
// Linear layers of weights in groups (ops/quantized/grouped.h): weights packed once for all who
// read them, and products shared by threads.
#ifndef RUNTIME_GEMM_GROUPED_PRODUCT_H
#define RUNTIME_GEMM_GROUPED_PRODUCT_H

#include "ops/quantized/grouped.h"
#include "runtime/gemm/packed_weights.h"
#include "runtime/kernels/context.h"
#include "runtime/kernels/grouped.h"

/// Such a layer as its panels lie (kernels/grouped.h).
typedef struct grouped_layer {
    grouped_weights w;
    bool relu;
    packed_weights *packed; // reference owned
    size_t panel_count, panel_bytes;
} grouped_layer;

/// Can kernels compute the layer? Groups fill whole lines.
bool tare__grouped_layer_suits(const grouped_weights *w);
/// Packs the weights, which suit; out->w and relu are the caller's. The caller releases it.
tare_status tare__grouped_layer_pack(const grouped_weights *w, bool relu, grouped_layer *out,
                                     tare_error *err);
void tare__grouped_layer_release(grouped_layer *l);
/// Bytes of packed weights that a product reads.
size_t tare__grouped_layer_bytes(const grouped_layer *l);
/// Memory that a product of so many rows needs beside its result.
size_t tare__grouped_scratch_bytes(const grouped_layer *l, size_t rows);
/// y [rows][outs] of x [rows][ins]; memory: as many bytes, at a line.
void tare__grouped_multiply(const kernel_context *kernels, const grouped_layer *l, size_t rows,
                            const float *x, void *memory, float *y);

#endif
