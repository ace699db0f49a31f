// SPDX-License-Identifier: Apache-2.0
// Quantizing by the range that is found when the model runs, for rules of layers that do it.
// Private to io/onnx/families.
#ifndef IO_ONNX_FAMILIES_QUANTIZE_H
#define IO_ONNX_FAMILIES_QUANTIZE_H

#include "io/onnx/write/write.h"

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
