// SPDX-License-Identifier: Apache-2.0
// Checks that the operators of quantized_decomposed share, with torch's messages.
#ifndef OPS_QUANTIZED_DECOMPOSED_H
#define OPS_QUANTIZED_DECOMPOSED_H

#include <string.h>

#include "ops/op.h"

/// The dtype can hold quantized values, and the range fits into it.
tare_status tare__decomposed_check_range(op_call *call, tare_dtype dtype, int64_t quant_min,
                                         int64_t quant_max);
/// Parameter `index` of the call is a dtype, those before it quant_min and quant_max.
tare_status tare__decomposed_read_range(op_call *call, size_t index, tare_dtype *dtype,
                                        int64_t *quant_min, int64_t *quant_max);
/// float32, or half precision, which is computed in float32.
tare_status tare__decomposed_check_float(op_call *call, const tare_tensor *x);
/// Axis is within x; negative ones count from the end.
tare_status tare__decomposed_check_axis(op_call *call, size_t index, const tare_tensor *x,
                                        int *axis);
/// x as a float of this dtype holds it; dtypes that are no half precision leave it.
float tare__round_to(tare_dtype dtype, float x);
/// clamp, with NaN passing as 0.
double tare__decomposed_clamp(double q, int64_t quant_min, int64_t quant_max);

#define DECOMPOSED_NAMES "torch.ops.quantized_decomposed."
/// True if the node returns quantized values without their parameters, which have no meaning alone.
static inline bool tare__gives_bare_integers(const node *n) {
    return n->op == NODE_CALL_FUNCTION && strncmp(n->target, DECOMPOSED_NAMES "quantize_per_",
                                                  sizeof DECOMPOSED_NAMES "quantize_per_" - 1) == 0;
}

#endif
