// SPDX-License-Identifier: Apache-2.0
// Constant parameters for outputs with a known range: sigmoid's is always in [0, 1].
#include <math.h>

#include "core/error.h"
#include "core/memory/alloc.h"
#include "observe/classes/builtin.h"
#include "observe/classes/uniform.h"

typedef struct fixed {
    float scale;
    int32_t zero_point; // torch keeps an int32 tensor
} fixed;

static tare_status read_parameters(const tare_observer_args *args, tare_observer_info *info,
                                   tare_error *err) {
    double scale = 0;
    if (!tare_observer_args_double(args, "scale", &scale) ||
        !tare_observer_args_int(args, "zero_point", &info->fixed_zero_point))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "needs the arguments scale and zero_point");
    if (!((float)scale > 0 && isfinite((float)scale)))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "scale must be positive and finite in float32, found %g", scale);
    if (info->fixed_zero_point < INT32_MIN || info->fixed_zero_point > INT32_MAX)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "zero_point %lld exceeds 32 bits",
                          (long long)info->fixed_zero_point);
    info->fixed_scale = (float)scale;
    info->has_fixed_qparams = true;
    return TARE_OK;
}

static tare_status read_info(const tare_observer_args *args, tare_observer_info *info,
                             tare_error *err) {
    info->dtype = TARE_QUINT8;
    info->qscheme = TARE_PER_TENSOR_AFFINE;
    info->has_range = info->has_qparams = true;
    info->quant_max = 255;
    tare_observer_args_dtype(args, "dtype", &info->dtype);
    tare_observer_args_qscheme(args, "qscheme", &info->qscheme);
    tare_observer_args_int(args, "quant_min", &info->quant_min);
    tare_observer_args_int(args, "quant_max", &info->quant_max);
    tare_observer_args_bool(args, "is_dynamic", &info->is_dynamic);
    if (info->is_dynamic)
        return tare__fail(err, TARE_UNSUPPORTED,
                          "FixedQParamsObserver doesn't support dynamic quantization");
    return read_parameters(args, info, err);
}

static tare_status create(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err) {
    (void)user;
    TARE_TRY(read_info(args, info, err));
    fixed *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    *made = (fixed){info->fixed_scale, (int32_t)info->fixed_zero_point};
    *state = made;
    return TARE_OK;
}

static tare_status clone(const void *state, void **out, tare_error *err) {
    fixed *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    *made = *(const fixed *)state;
    *out = made;
    return TARE_OK;
}

static tare_status qparams_of(const void *state, tare_qparams_sink sink, void *sink_user,
                              bool *is_calibrated, tare_error *err) {
    const fixed *s = state;
    const double scale = (double)s->scale, zero_point = s->zero_point;
    *is_calibrated = true;
    return sink(sink_user, 1, &scale, &zero_point, err);
}

static tare_status save_state(const void *state, tare_state_save save, void *io, tare_error *err) {
    const fixed *s = state;
    const int64_t one = 1;
    tare_tensor *zero_point = NULL;
    TARE_TRY(tare__save_floats("scale", 1, 1, &s->scale, save, io, err));
    TARE_TRY(tare_tensor_from_data(TARE_INT32, 1, &one, &s->zero_point, &zero_point, err));
    const tare_status status = save(io, "zero_point", zero_point, err);
    tare_tensor_release(zero_point);
    return status;
}

static tare_status load_state(void *state, tare_state_load load, void *io, tare_error *err) {
    fixed *s = state;
    const tare_tensor *scale = NULL, *zero_point = load(io, "zero_point");
    TARE_TRY(tare__load_floats(load, io, "scale", &scale, err));
    if (scale->count != 1 || zero_point == NULL || zero_point->count != 1 ||
        zero_point->dtype != TARE_INT32 || zero_point->data == NULL)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "'scale' must be one float32 and 'zero_point' one int32");
    const float found = tare__f32(scale)[0];
    if (!(found > 0) || !isfinite(found))
        return tare__fail(err, TARE_MALFORMED_FILE, "'scale' must be positive and finite, found %g",
                          (double)found);
    s->scale = tare__f32(scale)[0];
    s->zero_point = *(const int32_t *)zero_point->data;
    return TARE_OK;
}

static const char *const arguments[] = {"scale",     "zero_point", "dtype",      "qscheme",
                                        "quant_min", "quant_max",  "is_dynamic", NULL};
const tare_observer_class tare__fixed_qparams_observer = {
    .struct_size = sizeof(tare_observer_class),
    .name = "FixedQParamsObserver",
    .arguments = arguments,
    .create = create,
    .destroy = tare__free,
    .clone = clone,
    .qparams = qparams_of,
    .save = save_state,
    .load = load_state,
};
