// SPDX-License-Identifier: Apache-2.0
// Helpers that many reading rules share.
#include "io/onnx/read/rules_common.h"

#include <string.h>

tare_status tare__onnx_call(onnx_call *c, bool is_method, const char *target, const value *args,
                            size_t count, value *out) {
    const onnx_emit e = {.target = target, .args = args, .arg_count = count};
    return is_method ? tare__onnx_method(c, &e, out) : tare__onnx_function(c, &e, out);
}

tare_status tare__onnx_to(onnx_call *c, const value *v, tare_dtype dtype, value *out) {
    const tare_tensor *t = tare__onnx_meta(c, v);
    *out = *v;
    if (t == NULL || t->dtype == dtype) return TARE_OK;
    return ONNX_METHOD(c, out, "to", *v, tare__dtype_value(dtype));
}

tare_status tare__onnx_finish(onnx_call *c, const value *v, tare_dtype dtype) {
    value converted;
    TARE_TRY(tare__onnx_to(c, v, dtype, &converted));
    tare__onnx_set_output(c, 0, &converted);
    return TARE_OK;
}

tare_status tare__onnx_axis(onnx_call *c, int64_t axis, int ndim, int64_t *out) {
    if (axis < -(int64_t)ndim || axis >= ndim)
        return tare__onnx_malformed(c, "axis %lld does not exist in %d dimensions", (long long)axis,
                                    ndim);
    *out = axis < 0 ? axis + ndim : axis;
    return TARE_OK;
}

tare_status tare__onnx_attr_axis(onnx_call *c, const char *name, int64_t otherwise, int ndim,
                                 int64_t *out) {
    int64_t axis = 0;
    TARE_TRY(tare__onnx_attr_int(c, name, otherwise, &axis));
    return tare__onnx_axis(c, axis, ndim, out);
}

tare_status tare__onnx_axes(onnx_call *c, int input_since, size_t i, int ndim,
                            int64_t axes[TARE_MAX_DIMS], size_t *count, bool *given) {
    if (tare__onnx_opset(c) < input_since)
        TARE_TRY(tare__onnx_attr_ints(c, "axes", TARE_MAX_DIMS, axes, count, given));
    else
        TARE_TRY(tare__onnx_input_ints(c, i, "axes", TARE_MAX_DIMS, axes, count, given));
    for (size_t k = 0; k < *count; k++) TARE_TRY(tare__onnx_axis(c, axes[k], ndim, &axes[k]));
    return TARE_OK;
}

tare_status tare__onnx_permute(onnx_call *c, const value *x, const int64_t *order, size_t count,
                               value *out) {
    value args[TARE_MAX_DIMS + 1] = {*x};
    size_t moved = 0, first = 0, last = 0;
    for (size_t i = 0; i < count; i++) {
        args[i + 1] = tare__int(order[i]);
        if (order[i] == (int64_t)i) continue;
        if (moved++ == 0) first = i;
        last = i;
    }
    *out = *x;
    if (moved == 0) return TARE_OK;
    if (moved == 2)
        return ONNX_METHOD(c, out, "transpose", *x, tare__int((int64_t)first),
                           tare__int((int64_t)last));
    return tare__onnx_call(c, true, "permute", args, count + 1, out);
}

tare_status tare__onnx_new_floats(onnx_call *c, int ndim, const int64_t *shape, tare_tensor **out) {
    return tare__onnx_new_tensor(c, TARE_FLOAT32, ndim, shape, out);
}

tare_status tare__onnx_attr_choice(onnx_call *c, const char *name, const char *otherwise,
                                   const char *const *names, size_t count, size_t *out) {
    const char *found = NULL;
    TARE_TRY(tare__onnx_attr_string(c, name, otherwise, &found));
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], found) == 0) {
            *out = i;
            return TARE_OK;
        }
    return tare__onnx_fail(c, "attribute '%s' is '%s', which is not supported", name, found);
}

tare_status tare__onnx_need_first(onnx_call *c, const char *name, value *x, const tare_tensor **t) {
    TARE_TRY(tare__onnx_need_input(c, 0, name, x));
    return tare__onnx_need_meta(c, 0, name, t);
}

tare_status tare__onnx_give(onnx_call *c, const value *v) {
    tare__onnx_set_output(c, 0, v);
    return TARE_OK;
}
