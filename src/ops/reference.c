// SPDX-License-Identifier: Apache-2.0
// Reference modules: a float weight beside its quantization parameters.
#include "ops/reference.h"

#include "ops/quantize.h"

static tare_status bad(const module *m, tare_error *err, const char *what) {
    return tare__fail(err, TARE_INVALID_ARGUMENT, "reference module %s: %s", m->class->name, what);
}

static tare_status read_qparams(const module *m, const tare_tensor *weight, qparams **out,
                                tare_error *err) {
    const value *dtype = tare__module_config(m, "weight_dtype");
    const value *scheme = tare__module_config(m, "weight_qscheme");
    const tare_tensor *scale = tare__module_tensor(m, "weight_scale");
    const tare_tensor *zero_point = tare__module_tensor(m, "weight_zero_point");
    const tare_tensor *axis = tare__module_tensor(m, "weight_axis");
    if (dtype == NULL || dtype->kind != VALUE_DTYPE || scheme == NULL ||
        scheme->kind != VALUE_QSCHEME)
        return bad(m, err, "expected config weight_dtype and weight_qscheme");
    if (!tare__dtype(dtype->as.dtype)->is_quantized)
        return bad(m, err, "its weight_dtype is no quantized dtype");
    if (scale == NULL || zero_point == NULL || scale->count != zero_point->count ||
        scale->count < 1 || axis == NULL || axis->count != 1)
        return bad(m, err, "expected weight_scale and weight_zero_point of equal size, and weight_axis");
    if (!tare__qscheme_is_per_channel(scheme->as.qscheme)) {
        *out = tare__qparams_per_tensor(dtype->as.dtype, tare__tensor_get(scale, 0),
                                        (int64_t)tare__tensor_get(zero_point, 0));
        return *out != NULL ? TARE_OK : tare__out_of_memory(err);
    }
    const double along = tare__tensor_get(axis, 0);
    if (!(along >= 0 && along < weight->ndim) || weight->shape[(int)along] != scale->count)
        return bad(m, err, "weight_scale does not fit the weight along weight_axis");
    return tare__qparams_from_tensors(scale, zero_point, dtype->as.dtype, (int)along, out, err);
}

tare_status tare__reference_weight(const module *m, tare_tensor **out, tare_error *err) {
    const tare_tensor *weight = tare__module_tensor(m, "weight");
    if (weight == NULL || weight->dtype != TARE_FLOAT32)
        return bad(m, err, "expected a float32 tensor weight");
    qparams *q = NULL;
    TARE_TRY(read_qparams(m, weight, &q, err));
    const tare_status status = tare__quantize_tensor(weight, q, out, err);
    tare__qparams_release(q);
    return status;
}
