// SPDX-License-Identifier: Apache-2.0
// Reference modules: float weights with their quantization parameters. The weight NAME has the
// buffers NAME_scale, NAME_zero_point and NAME_axis and the configs NAME_dtype and NAME_qscheme.
// Source: torch.ao.nn.quantized.reference (PyTorch 2.15).
#ifndef OPS_CLASSES_REFERENCE_H
#define OPS_CLASSES_REFERENCE_H

#include "core/error.h"
#include "ir/module.h"

/// A weight's quantization parameters. q NULL: it is only converted to float16.
typedef struct weight_qparams {
    const char *name; // of the module's tensor
    tare_dtype dtype;
    const qparams *q;
    bool is_decomposed; // integers have the observer's range, not the dtype's
} weight_qparams;
/// Adds the buffers and configs of one weight to a reference module.
tare_status tare__reference_set_weight(module *m, const weight_qparams *w, tare_error *err);

/// get_quantized_weight: integers in the dtype's full range (in a decomposed module, from
/// NAME_quant_min to NAME_quant_max), or float16 values if that is the dtype and the scheme is
/// None. Fails without a dtype and scheme. The caller releases *out.
tare_status tare__reference_quantized(const module *m, const char *name, tare_tensor **out,
                                      tare_error *err);
/// The same for the tensor `weight`.
tare_status tare__reference_weight(const module *m, tare_tensor **out, tare_error *err);
/// get_weight: the weight that the module computes with, dequantize(quantize(NAME)), or the tensor
/// itself if the scheme is None. The caller releases *out.
tare_status tare__reference_values(const module *m, const char *name, tare_tensor **out,
                                   tare_error *err);

#endif
