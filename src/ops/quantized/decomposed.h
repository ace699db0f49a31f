// SPDX-License-Identifier: Apache-2.0
// Checks that the operators of quantized_decomposed share, with torch's messages.
#ifndef OPS_QUANTIZED_DECOMPOSED_H
#define OPS_QUANTIZED_DECOMPOSED_H

#include <string.h>

#include "ops/op.h"

/// Checks that the dtype can hold quantized values and that the range fits into it.
tare_status tare__decomposed_check_range(op_call *call, tare_dtype dtype, int64_t quant_min,
                                         int64_t quant_max);
/// Reads the dtype from parameter `index` of the call, and quant_min and quant_max from the two
/// before it.
tare_status tare__decomposed_read_range(op_call *call, size_t index, tare_dtype *dtype,
                                        int64_t *quant_min, int64_t *quant_max);
/// Checks that x is float32, float16 or bfloat16. Half precision is computed in float32.
tare_status tare__decomposed_check_float(op_call *call, const tare_tensor *x);
/// Reads an axis of x from parameter `index`; negative ones count from the end.
tare_status tare__decomposed_check_axis(op_call *call, size_t index, const tare_tensor *x,
                                        int *axis);
/// x rounded to float16 or bfloat16; with any other dtype x itself.
float tare__round_to(tare_dtype dtype, float x);
/// q clamped to the range; NaN becomes 0.
double tare__decomposed_clamp(double q, int64_t quant_min, int64_t quant_max);

#define DECOMPOSED_NAMES "torch.ops.quantized_decomposed."
/// True if the node returns quantized values without their parameters, which have no meaning alone.
static inline bool tare__gives_bare_integers(const node *n) {
    return n->op == NODE_CALL_FUNCTION && strncmp(n->target, DECOMPOSED_NAMES "quantize_per_",
                                                  sizeof DECOMPOSED_NAMES "quantize_per_" - 1) == 0;
}

#endif
