// SPDX-License-Identifier: Apache-2.0
// Reference modules: a float weight beside its quantization parameters.
#ifndef OPS_REFERENCE_H
#define OPS_REFERENCE_H

#include "core/error.h"
#include "ir/module.h"

/// The weight of a reference module as integers: its tensor `weight`, quantized by the buffers weight_scale and
/// weight_zero_point along weight_axis, to config weight_dtype by config weight_qscheme (the dtype's full range).
/// The caller releases *out. Source: get_quantized_weight of torch.ao.nn.quantized.reference (PyTorch 2.15).
tare_status tare__reference_weight(const module *m, tare_tensor **out, tare_error *err);

#endif
