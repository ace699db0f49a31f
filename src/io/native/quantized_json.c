// SPDX-License-Identifier: Apache-2.0
// Assembles and splits quantized tensors. Zero points are int64 in files, except for float qparams.
#include "io/native/quantized_json.h"

#include <inttypes.h>

#include "core/memory/alloc.h"

typedef struct quantized {
    tare_dtype dtype;
    tare_qscheme scheme;
    int64_t axis, group_size, quant_min, quant_max;
} quantized;

static tare_status read_integer(const json_at *object, const char *key, int64_t *out,
                                tare_error *err) {
    if (!tare__json_has(object, key)) return TARE_OK;
    const json_at at = tare__json_get(object, key);
    return tare__json_int(&at, out, err);
}

static tare_status read_description(const json_at *at, quantized *out, tare_error *err) {
    static const char *const keys[] = {"dtype",     "qscheme",   "axis", "group_size",
                                       "quant_min", "quant_max", NULL};
    TARE_TRY(tare__json_only_keys(at, keys, err));
    const json_at dtype = tare__json_get(at, "dtype"), scheme = tare__json_get(at, "qscheme");
    const char *name = NULL;
    TARE_TRY(tare__json_string(&dtype, &name, err));
    out->dtype = tare_dtype_from_name(name);
    if (!tare__dtype(out->dtype)->is_quantized)
        return tare__json_fail(&dtype, err, "'%s' is not a quantized dtype", name);
    TARE_TRY(tare__json_string(&scheme, &name, err));
    out->scheme = tare_qscheme_from_name(name);
    if (out->scheme == TARE_QSCHEME_UNSET)
        return tare__json_fail(&scheme, err, "unknown qscheme '%s'", name);
    out->quant_min = tare__dtype(out->dtype)->min;
    out->quant_max = tare__dtype(out->dtype)->max;
    TARE_TRY(read_integer(at, "axis", &out->axis, err));
    TARE_TRY(read_integer(at, "group_size", &out->group_size, err));
    TARE_TRY(read_integer(at, "quant_min", &out->quant_min, err));
    TARE_TRY(read_integer(at, "quant_max", &out->quant_max, err));
    if (out->quant_min >= out->quant_max || out->quant_min < tare__dtype(out->dtype)->min ||
        out->quant_max > tare__dtype(out->dtype)->max)
        return tare__json_fail(at, err, "[%" PRId64 ", %" PRId64 "] is not a range of %s",
                               out->quant_min, out->quant_max, tare_dtype_name(out->dtype));
    return TARE_OK;
}

static tare_status check_tensor(const json_at *at, const char *name, const char *suffix,
                                const tare_tensor *t, tare_dtype dtype, tare_error *err) {
    if (t == NULL) return tare__json_fail(at, err, "the file has no tensor '%s%s'", name, suffix);
    if (t->dtype != dtype)
        return tare__json_fail(at, err, "tensor '%s%s' is of %s, expected %s", name, suffix,
                               tare_dtype_name(t->dtype), tare_dtype_name(dtype));
    return TARE_OK;
}

static tare_status check_counts(const json_at *at, const char *name, const quantized *q,
                                const tare_tensor *integers, int64_t scales, int64_t zero_points,
                                tare_error *err) {
    int64_t expected = 1;
    if (tare__qscheme_is_per_group(q->scheme)) {
        // Creating the tensor checks whether they divide its rows.
        if (q->group_size < 1 || integers->count % q->group_size != 0)
            return tare__json_fail(
                at, err, "groups of %" PRId64 " elements do not divide the %" PRId64 " of '%s'",
                q->group_size, integers->count, name);
        expected = integers->count / q->group_size;
    } else if (tare__qscheme_is_per_channel(q->scheme)) {
        if (q->axis < 0 || q->axis >= integers->ndim)
            return tare__json_fail(at, err, "axis %" PRId64 " is not one of the %d of '%s'",
                                   q->axis, integers->ndim, name);
        expected = integers->shape[q->axis];
    } else if (q->axis != 0) {
        return tare__json_fail(at, err, "a per-tensor scheme has no axis");
    }
    if (q->group_size != 0 && !tare__qscheme_is_per_group(q->scheme))
        return tare__json_fail(at, err, "only a scheme per group has a group size");
    if (scales != expected || zero_points != expected)
        return tare__json_fail(at, err,
                               "tensor '%s' needs %" PRId64 " scales and zero points, the file has "
                               "%" PRId64 " and %" PRId64,
                               name, expected, scales, zero_points);
    return TARE_OK;
}

static tare_status check_values(const json_at *at, const char *name, const qparams *q,
                                tare_error *err) {
    int64_t c = 0;
    switch (tare__qparams_fault(q, &c)) {
    case QPARAMS_BAD_SCALE:
        return tare__json_fail(at, err, "scale %g of '%s' at channel %" PRId64 " is not a scale",
                               q->scale[c], name, c);
    case QPARAMS_BAD_ZERO_POINT:
        return tare__json_fail(at, err,
                               "zero point %g of '%s' at channel %" PRId64 " is out of range",
                               q->zero_point[c], name, c);
    case QPARAMS_FINE:
        break;
    }
    return TARE_OK;
}

static tare_status attach(const json_at *at, const char *name, const quantized *q,
                          const tare_tensor *integers, const tare_tensor *scale,
                          const double *zero_point, tare_tensor **out, tare_error *err) {
    qparams *made = tare__qparams_create(q->scheme, q->dtype, (int)q->axis, scale->count,
                                         scale->data, zero_point);
    if (made == NULL) return tare__out_of_memory(err);
    made->quant_min = q->quant_min; // there is no other reference yet
    made->quant_max = q->quant_max;
    tare_status status = check_values(at, name, made, err);
    if (status == TARE_OK) status = tare__tensor_requalify(integers, made, out, err);
    tare__qparams_release(made);
    return status;
}

tare_status tare__quantized_join(const json_at *at, const char *name, const tare_tensor *integers,
                                 const tare_tensor *scale, const tare_tensor *zero_point,
                                 tare_tensor **out, tare_error *err) {
    quantized q = {0};
    TARE_TRY(read_description(at, &q, err));
    const bool are_whole = q.scheme != TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
    TARE_TRY(
        check_tensor(at, name, QUANTIZED_INTEGERS, integers, tare__dtype(q.dtype)->storage, err));
    TARE_TRY(check_tensor(at, name, QUANTIZED_SCALE, scale, TARE_FLOAT64, err));
    TARE_TRY(check_tensor(at, name, QUANTIZED_ZERO_POINT, zero_point,
                          are_whole ? TARE_INT64 : TARE_FLOAT64, err));
    TARE_TRY(check_counts(at, name, &q, integers, scale->count, zero_point->count, err));
    const int64_t count = scale->count;
    double *zero_points = tare__alloc_zeroed((size_t)count + 1, sizeof *zero_points);
    if (zero_points == NULL) return tare__out_of_memory(err);
    for (int64_t i = 0; i < count; i++) zero_points[i] = tare__tensor_get(zero_point, i);
    const tare_status status = attach(at, name, &q, integers, scale, zero_points, out, err);
    tare__free(zero_points);
    return status;
}

static tare_status split_zero_points(const qparams *q, tare_tensor **out, tare_error *err) {
    if (q->scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS)
        return tare_tensor_from_data(TARE_FLOAT64, 1, &q->count, q->zero_point, out, err);
    TARE_TRY(tare_tensor_create(TARE_INT64, 1, &q->count, out, err));
    int64_t *whole = (*out)->data;
    for (int64_t i = 0; i < q->count; i++) whole[i] = (int64_t)q->zero_point[i];
    return TARE_OK;
}

tare_status tare__quantized_split(const tare_tensor *t, tare_tensor **integers, tare_tensor **scale,
                                  tare_tensor **zero_point, tare_error *err) {
    tare_tensor *whole = NULL, *scales = NULL, *zero_points = NULL;
    tare_status status = tare__tensor_requalify(t, NULL, &whole, err);
    if (status == TARE_OK)
        status = tare_tensor_from_data(TARE_FLOAT64, 1, &t->q->count, t->q->scale, &scales, err);
    if (status == TARE_OK) status = split_zero_points(t->q, &zero_points, err);
    if (status != TARE_OK) {
        tare_tensor_release(whole);
        tare_tensor_release(scales);
        return status;
    }
    *integers = whole;
    *scale = scales;
    *zero_point = zero_points;
    return TARE_OK;
}

void tare__quantized_to_json(const tare_tensor *t, text *out) {
    const dtype_info *info = tare__dtype(t->dtype);
    tare__text_printf(out, "{\"dtype\": \"%s\", \"qscheme\": \"%s\"", info->name,
                      tare_qscheme_name(t->q->scheme));
    if (tare__qscheme_is_per_channel(t->q->scheme))
        tare__text_printf(out, ", \"axis\": %d", t->q->axis);
    if (tare__qscheme_is_per_group(t->q->scheme))
        tare__text_printf(out, ", \"group_size\": %" PRId64, tare__group_size(t));
    if (t->q->quant_min != info->min || t->q->quant_max != info->max)
        tare__text_printf(out, ", \"quant_min\": %" PRId64 ", \"quant_max\": %" PRId64,
                          t->q->quant_min, t->q->quant_max);
    tare__text_char(out, '}');
}
