// SPDX-License-Identifier: Apache-2.0
// A quantized linear layer or convolution, packed for the best kernels. Quantized values lie
// channels last: [N][D][H][W][C], or [N][C] for linear layers.
#ifndef RUNTIME_GEMM_QLAYER_H
#define RUNTIME_GEMM_QLAYER_H

#include "ops/quantized/layer.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/scratch.h"

typedef struct qlayer qlayer;

/// Packs the layer for inputs of x's shape (but for the batch) and parameters and outputs of y's.
/// *out is NULL when no kernel covers it: the reference does. The caller destroys it.
tare_status tare__qlayer_create(const quantized_layer *layer, const tare_tensor *x,
                                const tare_tensor *y, isa_level isa, qlayer **out, tare_error *err);
void tare__qlayer_destroy(qlayer *layer); // NULL is fine
/// What it was packed for.
typedef struct qlayer_form {
    const char *kernel;
    bool is_depthwise;
    size_t subconvolution_count;     // convolutions that a transposed one was taken apart to
    size_t tile_rows, tile_channels; // of a product: of a tile
    size_t weight_bytes;             // packed
    size_t macs;                     // of an image, or of a row of a linear layer
} qlayer_form;
qlayer_form tare__qlayer_form(const qlayer *layer);
/// Has a library compute the sums of a layer that a product kernel computes now (qlibrary.h);
/// *done false: it stays as it is. What tare__qlayer_create was given is given again.
tare_status tare__qlayer_take_library(qlayer *layer, const quantized_layer *of,
                                      const tare_tensor *x, const tare_tensor *y, isa_level isa,
                                      size_t thread_count, bool *done, tare_error *err);
/// Which of the two it is, where it has both: `drop_other` forgets the one that is not chosen.
void tare__qlayer_choose(qlayer *layer, bool library, bool drop_other);
/// Why tare__qlayer_create packs no such layer; NULL: it does.
const char *tare__qlayer_refusal(const quantized_layer *layer, const tare_tensor *x);
/// Other parameters of the unsigned values of a linear layer's input; it gives floats.
void tare__qlayer_set_input(qlayer *layer, const qparams *weight, double scale, int32_t zero_point);
/// Can pixels of its input lie apart (qlayer_run.x_stride)?
bool tare__qlayer_takes_stride(const qlayer *layer);
/// Can it add other quantized values to its own, or to its values?
bool tare__qlayer_adds(const qlayer *layer);
/// Memory that a run of this many threads, and of at most this batch, works in.
size_t tare__qlayer_scratch_bytes(const qlayer *layer, size_t thread_count, size_t batch);

typedef struct qlayer_run {
    size_t batch; // images, or rows of a linear layer
    const uint8_t *x;
    uint8_t *y;
    size_t x_stride, y_stride;    // quantized values from a pixel to the next; 0: its channels
    float *real;                  // in place of y where the layer gives floats
    bool fuses;                   // the epilogue of a linear layer with a float result is one fmaf
    const product_addend *addend; // NULL: none; its quantized values may be y
    void *scratch;                // 64-byte aligned
    const workspace *space;       // for its threads
} qlayer_run;
void tare__qlayer_run(const qlayer *layer, const qlayer_run *run);

#endif
