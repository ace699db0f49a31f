// SPDX-License-Identifier: Apache-2.0
// The parameters of a result, from numbers in the call.
#include "ops/quantized/rule.h"

#include <math.h>

tare_status tare__make_output_qparams(op_call *call, tare_dtype dtype, double scale,
                                      double zero_point, const qparams **out) {
    const dtype_info *info = tare__dtype(dtype);
    if (!isfinite((float)scale) || !((float)scale > 0))
        return tare__call_fail(call, "expected an output scale > 0, found %g", scale);
    if (zero_point != rint(zero_point) || zero_point < (double)info->min ||
        zero_point > (double)info->max)
        return tare__call_fail(call, "expected an output zero point of %s, found %g", info->name,
                               zero_point);
    *out = tare__qparams_per_tensor(dtype, scale, (int64_t)zero_point);
    return *out != NULL ? TARE_OK : tare__out_of_memory(call->err);
}

tare_status tare__output_qparams(op_call *call, tare_dtype dtype, size_t scale, size_t zero_point,
                                 const qparams **out) {
    double s, z;
    if (!tare__call_given(call, scale) || !tare__call_given(call, zero_point))
        return tare__call_fail(call, "expected an output scale and zero point");
    TARE_TRY(tare__call_double(call, scale, 0, &s));
    TARE_TRY(tare__call_double(call, zero_point, 0, &z));
    return tare__make_output_qparams(call, dtype, s, z, out);
}
