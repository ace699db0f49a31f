// SPDX-License-Identifier: Apache-2.0
// Quantizing with scales of blocks, by division, and by the range that is found when the model
// runs, for rules that do it. Private to io/onnx/families.
#ifndef IO_ONNX_FAMILIES_QUANTIZE_H
#define IO_ONNX_FAMILIES_QUANTIZE_H

#include "io/onnx/read/import.h"
#include "io/onnx/write/write.h"

// --- reading ---

/// clamp(round(x / scale) + zero): ONNX divides where torch multiplies by the inverse, so that ties
/// fall otherwise. zero may be VALUE_NONE.
typedef struct onnx_division {
    value x, scale, zero;
    tare_dtype dtype; // of the integers
    int64_t least, most;
} onnx_division;
tare_status tare__onnx_quantize_by_division(onnx_call *c, const onnx_division *d, value *out);
/// The whole rules of QuantizeLinear and DequantizeLinear with a block_size.
tare_status tare__onnx_quantize_blocks(onnx_call *c, int64_t block);
tare_status tare__onnx_dequantize_blocks(onnx_call *c, int64_t block);

// --- writing ---

/// How a range becomes a scale and a zero point.
typedef struct dynamic_spec {
    double quant_min, quant_max;
    double eps; // the least scale; 0: as torch's dynamic layers
    tare_dtype storage;
    bool symmetric;
    int middle; // the zero point where it is symmetric
} dynamic_spec;
/// That of torch's dynamic layers. reduce_range: 7 bits.
dynamic_spec tare__out_dynamic_spec(bool is_signed, bool reduce_range);
/// The integers of x, called `name`, and their parameters.
const char *tare__out_quantize_dynamic(onnx_out *o, const tare_tensor *x, const char *name,
                                       const dynamic_spec *s, const char **scale,
                                       const char **zero_point);

#endif
