// SPDX-License-Identifier: Apache-2.0
// Quantization with block-wise scales, by division, and with a range that is found at run time.
// Private to io/onnx/families.
#ifndef IO_ONNX_FAMILIES_QUANTIZE_H
#define IO_ONNX_FAMILIES_QUANTIZE_H

#include "io/onnx/read/import.h"
#include "io/onnx/write/write.h"

// --- reading ---

/// clamp(round(x / scale) + zero). ONNX divides, torch multiplies by the reciprocal, so ties can
/// round differently. zero may be VALUE_NONE.
typedef struct onnx_division {
    value x, scale, zero;
    tare_dtype dtype; // of the integers
    int64_t least, most;
} onnx_division;
tare_status tare__onnx_quantize_by_division(onnx_call *c, const onnx_division *d, value *out);
/// The rules of QuantizeLinear and DequantizeLinear with a block_size.
tare_status tare__onnx_quantize_blocks(onnx_call *c, int64_t block);
tare_status tare__onnx_dequantize_blocks(onnx_call *c, int64_t block);

// --- writing ---

/// How a range becomes a scale and a zero point.
typedef struct dynamic_spec {
    double quant_min, quant_max;
    double eps; // the least scale; 0: as in torch's dynamic layers
    tare_dtype storage;
    bool symmetric;
    int middle; // the zero point if symmetric
} dynamic_spec;
/// The spec of torch's dynamic layers. reduce_range: 7 bits.
dynamic_spec tare__out_dynamic_spec(bool is_signed, bool reduce_range);
/// Writes the integers of x, named `name`, and computes their parameters.
const char *tare__out_quantize_dynamic(onnx_out *o, const tare_tensor *x, const char *name,
                                       const dynamic_spec *s, const char **scale,
                                       const char **zero_point);

#endif
