// SPDX-License-Identifier: Apache-2.0
// Per-channel constants of an integer layer, as kernels take them.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_QCONSTANTS_H
#define RUNTIME_GEMM_QCONSTANTS_H

#include "ops/quantized/layer.h"
#include "runtime/kernels/product.h"

typedef struct qconstants {
    requant *requant;
    int32_t *sum;       // [channels] of the weights
    int32_t *start;     // [channels] of the sums
    float *no_bias;     // zeros
    uint8_t flip;       // 0x80 for qint8 inputs, which become unsigned values; else 0
    uint8_t zero_value; // the input's zero point as such a quantized value
    bool is_small;      // as tile_epilogue's
} qconstants;

/// Can the kernels compute this layer on such an input? (one byte per quantized value, nothing
/// fused but ReLU and an addend)
bool tare__qconstants_fit(const quantized_layer *layer, const tare_tensor *x);
/// Of weights without zero points.
tare_status tare__qconstants_create(const quantized_layer *layer, const qparams *input,
                                    const qparams *output, qconstants *out, tare_error *err);
/// The same with the sums of the channels' weights without zero points, which need not be read.
tare_status tare__qconstants_create_of(const quantized_layer *layer, const int32_t *sums,
                                       const qparams *input, const qparams *output, qconstants *out,
                                       tare_error *err);
/// Other parameters of an input of unsigned values, for a layer that gives floats.
void tare__qconstants_set_input(qconstants *q, const qparams *weight, double scale,
                                int32_t zero_point);
void tare__qconstants_release(qconstants *q);
tile_epilogue tare__qconstants_epilogue(const qconstants *q, int64_t first_channel);

#endif
