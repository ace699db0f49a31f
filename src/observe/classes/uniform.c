// SPDX-License-Identifier: Apache-2.0
// The common part of uniform observers: reads constructor arguments, checked in torch's order, and
// saves and loads state tensors.
#include "observe/classes/uniform.h"

#include <math.h>
#include <string.h>

#include "observe/dtype_roles.h"

// A user's range must fit the dtype if it is signed; torch does not check unsigned ones.
static tare_status find_fault(const uniform *u, tare_error *err) {
    if (u->quant_min > 0 || u->quant_max < 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "Used-specified quantization range must include 0.");
    if (u->quant_min >= u->quant_max)
        return tare__fail(
            err, TARE_INVALID_ARGUMENT,
            "qmin must be strictly less than qmax for user-specified quantization range.");
    const bool is_byte = u->dtype == TARE_QINT8 || u->dtype == TARE_INT8;
    const bool is_word = u->dtype == TARE_QINT32 || u->dtype == TARE_INT32;
    const int64_t most = is_byte ? 256 : is_word ? 4294967296 : 0;
    // The unsigned difference cannot overflow for any values.
    const uint64_t length_minus_1 = (uint64_t)u->quant_max - (uint64_t)u->quant_min;
    if (most != 0 && length_minus_1 > (uint64_t)most - 1)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "quantization range should be positive and not exceed the maximum bit "
                          "range (=%lld).",
                          (long long)most);
    return TARE_OK;
}

// Adds the values as a hint, because torch's message does not include them.
static tare_status check_custom_range(const uniform *u, tare_error *err) {
    const tare_status status = find_fault(u, err);
    if (status == TARE_OK) return TARE_OK;
    return tare__hint(err, status, "quant_min is %lld, quant_max %lld", (long long)u->quant_min,
                      (long long)u->quant_max);
}

typedef struct range_row {
    tare_dtype dtype;
    int64_t min, max, reduced_min, reduced_max;
} range_row;
static const range_row ranges[] = {
    {TARE_QINT8, -128, 127, -64, 63},
    {TARE_INT8, -128, 127, -64, 63},
    {TARE_QUINT8, 0, 255, 0, 127},
    {TARE_UINT8, 0, 255, 0, 127},
    {TARE_QINT32, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX},
    {TARE_INT32, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX},
    {TARE_UINT16, 0, 65535, 0, 65535},
    {TARE_INT16, -32768, 32767, -32768, 32767},
};

static void use_dtype_range(uniform *u) {
    u->quant_min = 0;
    u->quant_max = 15; // torch's range for every other type
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (ranges[i].dtype != u->dtype) continue;
        u->quant_min = u->reduce_range ? ranges[i].reduced_min : ranges[i].min;
        u->quant_max = u->reduce_range ? ranges[i].reduced_max : ranges[i].max;
    }
}

static tare_status resolve_range(const tare_observer_args *args, uniform *u, tare_error *err) {
    const bool has_min = tare_observer_args_int(args, "quant_min", &u->quant_min);
    const bool has_max = tare_observer_args_int(args, "quant_max", &u->quant_max);
    u->has_custom_range = has_min && has_max; // if only one is given, both are ignored, as in torch
    if (!u->has_custom_range) {
        use_dtype_range(u);
        return TARE_OK;
    }
    TARE_TRY(check_custom_range(u, err));
    if (u->reduce_range) {
        u->quant_min = tare__floor_half(u->quant_min);
        u->quant_max = tare__floor_half(u->quant_max);
    }
    return TARE_OK;
}

tare_status tare__uniform_read(const tare_observer_args *args, tare_qscheme default_qscheme,
                               uniform *out, tare_error *err) {
    double eps = 0x1p-23;
    uniform u = {.dtype = TARE_QUINT8, .qscheme = default_qscheme};
    tare_observer_args_dtype(args, "dtype", &u.dtype);
    tare_observer_args_qscheme(args, "qscheme", &u.qscheme);
    tare_observer_args_bool(args, "reduce_range", &u.reduce_range);
    tare_observer_args_bool(args, "is_dynamic", &u.is_dynamic);
    tare_observer_args_double(args, "eps", &eps);
    u.eps = (float)eps;
    if (!tare__dtype_has_role(u.dtype, DTYPE_MEASURED))
        return tare__fail(
            err, TARE_INVALID_ARGUMENT,
            "Default Observer only works for (torch.qint8, torch.quint8, torch.quint4x2, "
            "torch.qint32, torch.int8, torch.uint8, torch.int16, torch.int32, torch.float8_e5m2, "
            "torch.float8_e4m3fn, torch.uint16) data type");
    TARE_TRY(resolve_range(args, &u, err));
    *out = u;
    return TARE_OK;
}

tare_status tare__uniform_refuse_reduced_symmetric(const uniform *u, const char *gap,
                                                   tare_error *err) {
    const bool is_symmetric =
        u->qscheme == TARE_PER_TENSOR_SYMMETRIC || u->qscheme == TARE_PER_CHANNEL_SYMMETRIC;
    if (!is_symmetric || !u->reduce_range || u->dtype != TARE_QUINT8) return TARE_OK;
    return tare__fail(err, TARE_UNSUPPORTED,
                      "Cannot reduce range for symmetric%squantization for quint8", gap);
}

void tare__uniform_info(const uniform *u, tare_observer_info *info) {
    info->dtype = u->dtype;
    info->qscheme = u->qscheme;
    info->is_dynamic = u->is_dynamic;
    info->has_range = true;
    info->quant_min = u->quant_min;
    info->quant_max = u->quant_max;
    info->has_eps = true;
    info->eps = u->eps;
    info->has_qparams = true;
}

// --- state ---

tare_status tare__save_floats(const char *name, int ndim, size_t count, const float *values,
                              tare_state_save save, void *io, tare_error *err) {
    const int64_t shape[1] = {(int64_t)count};
    tare_tensor *t = NULL;
    TARE_TRY(tare_tensor_from_data(TARE_FLOAT32, ndim, shape, values, &t, err));
    const tare_status status = save(io, name, t, err);
    tare_tensor_release(t);
    return status;
}

tare_status tare__save_eps(const uniform *u, tare_state_save save, void *io, tare_error *err) {
    return tare__save_floats("eps", 1, 1, &u->eps, save, io, err);
}

tare_status tare__load_floats(tare_state_load load, void *io, const char *name,
                              const tare_tensor **out, tare_error *err) {
    const tare_tensor *t = load(io, name);
    if (t == NULL)
        return tare__fail(err, TARE_MALFORMED_FILE, "the state lacks its tensor '%s'", name);
    if (t->dtype != TARE_FLOAT32 || t->data == NULL || t->ndim > 1)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "'%s' must be a float32 tensor of at most one dimension, found %s of %d",
                          name, tare_dtype_name(t->dtype), t->ndim);
    *out = t;
    return TARE_OK;
}

tare_status tare__load_eps(uniform *u, tare_state_load load, void *io, tare_error *err) {
    const tare_tensor *t = NULL;
    if (load(io, "eps") == NULL) return TARE_OK; // states older than torch's version 2 have no eps
    TARE_TRY(tare__load_floats(load, io, "eps", &t, err));
    if (t->count != 1)
        return tare__fail(err, TARE_MALFORMED_FILE, "'eps' must be one value, found %lld",
                          (long long)t->count);
    const float eps = tare__f32(t)[0];
    if (!(eps > 0) || !isfinite(eps))
        return tare__fail(err, TARE_MALFORMED_FILE, "'eps' must be positive and finite, found %g",
                          (double)eps);
    u->eps = eps;
    return TARE_OK;
}

// A range from inf to -inf means that no data was observed. A range of NaNs is accepted here,
// because a file holds whatever calibration left; convert refuses it with the node's name.
tare_status tare__range_check(const float *min, const float *max, int64_t count, bool keeps_nan,
                              tare_error *err) {
    for (int64_t c = 0; c < count; c++) {
        const bool is_fresh = min[c] == INFINITY && max[c] == -INFINITY;
        const bool is_nan = keeps_nan && isnan(min[c]) && isnan(max[c]);
        if (is_fresh || is_nan || min[c] <= max[c]) continue;
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "expected min_val <= max_val, found %g and %g at channel %lld",
                          (double)min[c], (double)max[c], (long long)c);
    }
    return TARE_OK;
}

tare_status tare__observed_floats(const tare_tensor *x, tare_tensor **out, tare_error *err) {
    if (x->dtype != TARE_FLOAT32 || x->data == NULL) return tare_tensor_to_float(x, out, err);
    // Casts away const only to change the reference count.
    *out = tare_tensor_retain((tare_tensor *)x);
    return TARE_OK;
}

tare_status tare__observe_floats(void *state, const tare_tensor *x, const float_scan *scan,
                                 scan_update observe, tare_error *err) {
    tare_tensor *floats = NULL;
    if (x->count == 0) return TARE_OK;
    TARE_TRY(tare__observed_floats(x, &floats, err));
    const tare_status status = observe(state, floats, scan, err);
    tare_tensor_release(floats);
    return status;
}
