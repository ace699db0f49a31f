// SPDX-License-Identifier: Apache-2.0
// Checks of the operators of quantized_decomposed. Source: torch.ao.quantization.fx._decomposed of
// PyTorch 2.15.
#include <math.h>

#include "core/tensor/half.h"
#include "ops/quantized/decomposed.h"

// Dtypes of quantized values, and their bounds.
static const struct {
    tare_dtype dtype;
    int64_t low, high;
} bounds[] = {
    {TARE_UINT8, 0, 255},
    {TARE_INT8, -128, 127},
    {TARE_UINT16, 0, 65535},
    {TARE_INT16, -32768, 32767},
    {TARE_INT32, INT32_MIN, INT32_MAX},
    {TARE_FLOAT8_E5M2, -57344, 57344},
    {TARE_FLOAT8_E4M3FN, -448, 448},
};

tare_status tare__decomposed_check_range(op_call *call, tare_dtype dtype, int64_t quant_min,
                                         int64_t quant_max) {
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (bounds[i].dtype != dtype) continue;
        if (quant_min < bounds[i].low)
            return tare__call_fail(call,
                                   "quant_min out of bounds for dtype, quant_min_lower_bound: "
                                   "%lld quant_min: %lld",
                                   (long long)bounds[i].low, (long long)quant_min);
        if (quant_max > bounds[i].high)
            return tare__call_fail(call,
                                   "quant_max out of bounds for dtype, quant_max_upper_bound: "
                                   "%lld quant_max: %lld",
                                   (long long)bounds[i].high, (long long)quant_max);
        return TARE_OK;
    }
    return tare__call_fail(call, "Unsupported dtype: %s", tare_dtype_name(dtype));
}

tare_status tare__decomposed_read_range(op_call *call, size_t index, tare_dtype *dtype,
                                        int64_t *quant_min, int64_t *quant_max) {
    TARE_TRY(tare__call_int(call, index - 2, 0, quant_min));
    TARE_TRY(tare__call_int(call, index - 1, 0, quant_max));
    return tare__call_dtype(call, index, TARE_DTYPE_UNSET, dtype);
}

tare_status tare__decomposed_check_float(op_call *call, const tare_tensor *x) {
    if (x->dtype == TARE_FLOAT32 || x->dtype == TARE_FLOAT16 || x->dtype == TARE_BFLOAT16)
        return TARE_OK;
    return tare__call_fail(call, "Expecting input to have dtype torch.float32, but got dtype: %s",
                           tare_dtype_name(x->dtype));
}

tare_status tare__decomposed_check_axis(op_call *call, size_t index, const tare_tensor *x,
                                        int *axis) {
    int64_t given = 0;
    TARE_TRY(tare__call_int(call, index, 0, &given));
    if (given >= x->ndim) return tare__call_fail(call, "Expecting axis to be < %d", x->ndim);
    return tare__call_dim(call, index, 0, x->ndim, axis);
}

float tare__round_to(tare_dtype dtype, float x) {
    if (dtype == TARE_BFLOAT16) return tare__bfloat16_to_float(tare__float_to_bfloat16(x));
    return dtype == TARE_FLOAT16 ? tare__float16_to_float(tare__float_to_float16(x)) : x;
}

double tare__decomposed_clamp(double q, int64_t quant_min, int64_t quant_max) {
    if (isnan(q)) return 0;
    return fmin(fmax(q, (double)quant_min), (double)quant_max);
}
