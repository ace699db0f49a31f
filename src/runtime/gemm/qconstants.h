// SPDX-License-Identifier: Apache-2.0
// Per-channel constants of an integer layer, as kernels take them.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_QCONSTANTS_H
#define RUNTIME_GEMM_QCONSTANTS_H

#include "ops/quantized/layer.h"
#include "runtime/kernels/product.h"

typedef struct qconstants {
    requant *requant;
    int32_t *sum;       // [channels] sums of weights
    int32_t *start;     // [channels] initial values of the sums
    float *no_bias;     // zeros
    uint8_t flip;       // 0x80 for qint8 inputs, which are converted to unsigned values; else 0
    uint8_t zero_value; // the input's zero point as an unsigned value
    bool is_small;      // as in tile_epilogue
} qconstants;

/// True if the kernels support this layer with such an input: one byte per quantized value, nothing
/// fused but ReLU and an addend.
bool tare__qconstants_fit(const quantized_layer *layer, const tare_tensor *x);
/// For weights without zero points.
tare_status tare__qconstants_create(const quantized_layer *layer, const qparams *input,
                                    const qparams *output, qconstants *out, tare_error *err);
/// The same with given sums of weights, which then need not be read.
tare_status tare__qconstants_create_of(const quantized_layer *layer, const int32_t *sums,
                                       const qparams *input, const qparams *output, qconstants *out,
                                       tare_error *err);
/// Sets other parameters of an input of unsigned values, for a layer with a float result.
void tare__qconstants_set_input(qconstants *q, const qparams *weight, double scale,
                                int32_t zero_point);
void tare__qconstants_release(qconstants *q);
tile_epilogue tare__qconstants_epilogue(const qconstants *q, int64_t first_channel);

#endif
