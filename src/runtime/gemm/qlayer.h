// SPDX-License-Identifier: Apache-2.0
// A quantized linear layer or convolution, packed for the fastest kernels. Quantized values are
// channels last: [N][D][H][W][C], or [N][C] for linear layers.
#ifndef RUNTIME_GEMM_QLAYER_H
#define RUNTIME_GEMM_QLAYER_H

#include "ops/quantized/layer.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/scratch.h"

typedef struct qlayer qlayer;

/// Packs the layer for inputs of x's shape (with any batch size) and the parameters of y. *out is
/// NULL if no kernel supports the layer, which the reference then computes. The caller destroys it.
tare_status tare__qlayer_create(const quantized_layer *layer, const tare_tensor *x,
                                const tare_tensor *y, isa_level isa, qlayer **out, tare_error *err);
/// The level to pack a layer for, whose output is y: a small layer leaves tiles (AMX) alone.
isa_level tare__qlayer_level(const quantized_layer *layer, const tare_tensor *y, isa_level isa);
void tare__qlayer_destroy(qlayer *layer); // NULL is allowed
/// Facts about the packed layer.
typedef struct qlayer_form {
    const char *kernel;
    bool is_depthwise;
    size_t subconvolution_count;     // of a transposed convolution
    size_t tile_rows, tile_channels; // of a product's tile
    size_t pixels;                   // that a depthwise kernel computes as one
    size_t weight_bytes;             // packed
    size_t macs;                     // per image, or per row of a linear layer
} qlayer_form;
qlayer_form tare__qlayer_form(const qlayer *layer);
/// Lets a library compute the sums of a layer that a product kernel computes now (qlibrary.h).
/// Takes the arguments of tare__qlayer_create again. *done false: it cannot, and nothing changed.
tare_status tare__qlayer_take_library(qlayer *layer, const quantized_layer *of,
                                      const tare_tensor *x, const tare_tensor *y, isa_level isa,
                                      size_t thread_count, bool *done, tare_error *err);
/// Chooses one of the two implementations if the layer has both. `drop_other` destroys the other
/// one.
void tare__qlayer_choose(qlayer *layer, bool library, bool drop_other);
/// Why tare__qlayer_create cannot pack such a layer; NULL: it can.
const char *tare__qlayer_refusal(const quantized_layer *layer, const tare_tensor *x);
/// Sets other parameters of the input (unsigned values) of a linear layer with a float result.
void tare__qlayer_set_input(qlayer *layer, const qparams *weight, double scale, int32_t zero_point);
/// True if the input may have gaps between pixels (qlayer_run.x_stride).
bool tare__qlayer_takes_stride(const qlayer *layer);
/// True if it can add quantized values to its result, or to its values before rounding.
bool tare__qlayer_adds(const qlayer *layer);
/// Bytes of scratch for a run with this many threads and at most this batch size.
size_t tare__qlayer_scratch_bytes(const qlayer *layer, size_t thread_count, size_t batch);

typedef struct qlayer_run {
    size_t batch; // images, or rows of a linear layer
    const uint8_t *x;
    uint8_t *y;
    size_t x_stride, y_stride;    // quantized values from a pixel to the next; 0: contiguous
    float *real;                  // instead of y if the layer has a float result
    bool fuses;                   // a linear layer with a float result ends with a single fmaf
    const product_addend *addend; // NULL: none; its quantized values may be those of y
    void *scratch;                // 64-byte aligned
    const workspace *space;       // for its threads
} qlayer_run;
void tare__qlayer_run(const qlayer *layer, const qlayer_run *run);

#endif
