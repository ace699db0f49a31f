// SPDX-License-Identifier: Apache-2.0
// Reference modules: float weights with their quantization parameters.
#include "ops/classes/reference.h"

#include <math.h>
#include <stdio.h>

#include "core/math/requant.h"
#include "ops/quantized/quantize.h"
#include "ops/rules.h"

// The weight's name with the suffix of a parameter ("weight_scale").
typedef struct tensor_key {
    char text[256];
} tensor_key;

static tensor_key key_of(const char *name, const char *suffix) {
    tensor_key key;
    snprintf(key.text, sizeof key.text, "%s_%s", name, suffix);
    return key;
}

static const tare_tensor *tensor_of(const module *m, const char *name, const char *suffix) {
    return tare__module_tensor(m, key_of(name, suffix).text);
}

static const value *config_of(const module *m, const char *name, const char *suffix) {
    return tare__module_config(m, key_of(name, suffix).text);
}

static tare_status bad(const module *m, const char *name, tare_error *err, const char *what) {
    return tare__fail(err, TARE_INVALID_ARGUMENT, "reference module %s: '%s': %s", m->class->name,
                      name, what);
}

static tare_qscheme scheme_of(const module *m, const char *name) {
    const value *v = config_of(m, name, "qscheme");
    return v != NULL && v->kind == VALUE_QSCHEME ? v->as.qscheme : TARE_QSCHEME_UNSET;
}

// A decomposed module names its weight's dtype plainly (torch.int8).
static tare_dtype dtype_of(const module *m, const char *name) {
    const value *v = config_of(m, name, "dtype");
    switch (v != NULL && v->kind == VALUE_DTYPE ? v->as.dtype : TARE_DTYPE_UNSET) {
    case TARE_INT8:
        return TARE_QINT8;
    case TARE_UINT8:
        return TARE_QUINT8;
    case TARE_INT32:
        return TARE_QINT32;
    default:
        return v != NULL && v->kind == VALUE_DTYPE ? v->as.dtype : TARE_DTYPE_UNSET;
    }
}

// The observer's range is only used in decomposed models and for groups; elsewhere the dtype's is.
static void narrow_range(const module *m, const char *name, qparams *q) {
    const value *low = config_of(m, name, "quant_min"), *high = config_of(m, name, "quant_max");
    if (!tare__module_bool(m, "is_decomposed", false) && !tare__qscheme_is_per_group(q->scheme))
        return;
    const int64_t least = q->quant_min, most = q->quant_max;
    if (low != NULL && low->kind == VALUE_INT)
        q->quant_min = tare__clamp_int(low->as.integer, least, most);
    if (high != NULL && high->kind == VALUE_INT)
        q->quant_max = tare__clamp_int(high->as.integer, q->quant_min, most);
}

static tare_status per_channel(const module *m, const char *name, const tare_tensor *weight,
                               tare_dtype dtype, qparams **out, tare_error *err) {
    const tare_tensor *scale = tensor_of(m, name, "scale"), *axis = tensor_of(m, name, "axis");
    const double along = axis != NULL && axis->count == 1 ? tare__tensor_get(axis, 0) : -1;
    if (!(along >= 0 && along < weight->ndim) || weight->shape[(int)along] != scale->count)
        return bad(m, name, err, "the scales do not fit it along its axis");
    return tare__qparams_from_tensors(scale, tensor_of(m, name, "zero_point"), dtype, (int)along,
                                      out, err);
}

// Scales of groups are in the order of the weight's elements.
static tare_status per_group(const module *m, const char *name, const tare_tensor *weight,
                             tare_dtype dtype, qparams **out, tare_error *err) {
    const tare_tensor *scale = tensor_of(m, name, "scale");
    const int64_t row = weight->ndim > 0 ? weight->shape[weight->ndim - 1] : 0;
    if (weight->count < 1 || weight->count % scale->count != 0 ||
        row % (weight->count / scale->count) != 0)
        return bad(m, name, err, "the scales do not divide its rows into equal groups");
    const qparams form = {.scheme = TARE_PER_GROUP_AFFINE, .dtype = dtype};
    return tare__qparams_like(&form, scale, tensor_of(m, name, "zero_point"), out, err);
}

static tare_status per_tensor(const tare_tensor *scale, const tare_tensor *zero_point,
                              tare_dtype dtype, qparams **out, tare_error *err) {
    const double s = tare__tensor_get(scale, 0), z = tare__tensor_get(zero_point, 0);
    qparams *q = tare__qparams_create(TARE_PER_TENSOR_AFFINE, dtype, 0, 1, &s, &z);
    if (q == NULL) return tare__out_of_memory(err);
    const tare_status status = tare__qparams_check(q, err);
    if (status != TARE_OK)
        tare__qparams_release(q);
    else
        *out = q;
    return status;
}

static tare_status read_qparams(const module *m, const char *name, const tare_tensor *weight,
                                qparams **out, tare_error *err) {
    const tare_tensor *scale = tensor_of(m, name, "scale");
    const tare_tensor *zero_point = tensor_of(m, name, "zero_point");
    const tare_dtype dtype = dtype_of(m, name);
    const tare_qscheme scheme = scheme_of(m, name);
    if (scheme == TARE_QSCHEME_UNSET || !tare__dtype(dtype)->is_quantized)
        return bad(m, name, err, "expected a qscheme and a quantized dtype");
    if (scale == NULL || zero_point == NULL || scale->count != zero_point->count ||
        scale->count < 1)
        return bad(m, name, err, "expected a scale and a zero point of equal size");
    if (tare__qscheme_is_per_group(scheme))
        TARE_TRY(per_group(m, name, weight, dtype, out, err));
    else if (tare__qscheme_is_per_channel(scheme))
        TARE_TRY(per_channel(m, name, weight, dtype, out, err));
    else
        TARE_TRY(per_tensor(scale, zero_point, dtype, out, err));
    narrow_range(m, name, *out);
    return TARE_OK;
}

// quantized_decomposed.quantize_per_channel rounds before it adds the zero point, which need not be
// an integer, and truncates the sum.
static tare_status cut_off_quantized(const tare_tensor *weight, const qparams *q, tare_tensor **out,
                                     tare_error *err) {
    TARE_TRY(tare__tensor_quantized(weight->ndim, weight->shape, q, out, err));
    const int64_t inner = tare__inner_count(weight, q->axis);
    for (int64_t i = 0; i < weight->count; i++) {
        const int64_t c = i / inner % q->count;
        const float rounded = nearbyintf(tare__f32(weight)[i] * tare__inverse_scale(q->scale[c]));
        const double code = (double)(rounded + (float)q->zero_point[c]);
        const double low = (double)q->quant_min, high = (double)q->quant_max;
        tare__tensor_set(*out, i, trunc(code < low ? low : code > high ? high : code));
    }
    return TARE_OK;
}

static tare_status to_half(const tare_tensor *weight, tare_tensor **out, tare_error *err) {
    TARE_TRY(tare_tensor_create(TARE_FLOAT16, weight->ndim, weight->shape, out, err));
    for (int64_t i = 0; i < weight->count; i++) tare__tensor_set(*out, i, tare__f32(weight)[i]);
    return TARE_OK;
}

tare_status tare__reference_quantized(const module *m, const char *name, tare_tensor **out,
                                      tare_error *err) {
    const tare_tensor *weight = tare__module_tensor(m, name);
    if (weight == NULL || weight->dtype != TARE_FLOAT32 || weight->data == NULL)
        return bad(m, name, err, "expected a float32 tensor");
    if (dtype_of(m, name) == TARE_FLOAT16 && scheme_of(m, name) == TARE_QSCHEME_UNSET)
        return to_half(weight, out, err);
    qparams *q = NULL;
    TARE_TRY(read_qparams(m, name, weight, &q, err));
    const bool cuts = q->scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS &&
                      tare__module_bool(m, "is_decomposed", false);
    const tare_status status =
        cuts ? cut_off_quantized(weight, q, out, err) : tare__quantize_tensor(weight, q, out, err);
    tare__qparams_release(q);
    return status;
}

tare_status tare__reference_weight(const module *m, tare_tensor **out, tare_error *err) {
    return tare__reference_quantized(m, "weight", out, err);
}

tare_status tare__reference_values(const module *m, const char *name, tare_tensor **out,
                                   tare_error *err) {
    if (scheme_of(m, name) == TARE_QSCHEME_UNSET) {
        *out = tare_tensor_retain(tare__module_tensor(m, name));
        return TARE_OK;
    }
    tare_tensor *quantized = NULL;
    TARE_TRY(tare__reference_quantized(m, name, &quantized, err));
    const tare_status status = tare_tensor_to_float(quantized, out, err);
    tare_tensor_release(quantized);
    return status;
}
