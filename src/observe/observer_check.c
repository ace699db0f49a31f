// SPDX-License-Identifier: Apache-2.0
// Checks that apply to all observers: the range must not be empty, scales must be positive.
#include <math.h>

#include "observe/observer.h"

static tare_status check_range(const tare_observer_info *info, tare_error *err) {
    const dtype_info *dtype = tare__dtype(info->dtype);
    const bool is_integer = dtype->min < dtype->max;
    if (!info->has_range) return TARE_OK;
    if (info->quant_min > info->quant_max) {
        const tare_status status =
            tare__fail(err, TARE_INVALID_ARGUMENT, "quant_min %lld is above quant_max %lld",
                       (long long)info->quant_min, (long long)info->quant_max);
        return tare__hint(err, status, "swap or widen the bounds");
    }
    if (!is_integer || (info->quant_min >= dtype->min && info->quant_max <= dtype->max))
        return TARE_OK;
    const tare_status status =
        tare__fail(err, TARE_INVALID_ARGUMENT, "%lld..%lld does not fit %s, which holds %lld..%lld",
                   (long long)info->quant_min, (long long)info->quant_max,
                   tare_dtype_name(info->dtype), (long long)dtype->min, (long long)dtype->max);
    return tare__hint(err, status, "stay within the dtype");
}

static tare_status check_scale(const char *name, float scale, const char *hint, tare_error *err) {
    if (scale > 0 && isfinite(scale)) return TARE_OK;
    const tare_status status =
        tare__fail(err, TARE_INVALID_ARGUMENT,
                   "%s must be positive and finite in float32, found %g", name, (double)scale);
    return tare__hint(err, status, "%s", hint);
}

static tare_status check_fixed(const tare_observer_info *info, tare_error *err) {
    if (!info->has_fixed_qparams) return TARE_OK;
    TARE_TRY(check_scale("scale", info->fixed_scale, "give a positive one", err));
    if (!info->has_range ||
        (info->fixed_zero_point >= info->quant_min && info->fixed_zero_point <= info->quant_max))
        return TARE_OK;
    const tare_status status = tare__fail(
        err, TARE_INVALID_ARGUMENT, "zero_point %lld lies outside of %lld..%lld",
        (long long)info->fixed_zero_point, (long long)info->quant_min, (long long)info->quant_max);
    return tare__hint(err, status, "move it into the range");
}

static tare_status check_group(const tare_observer_info *info, tare_error *err) {
    if (info->group_size == 0) return TARE_OK;
    if (!tare__qscheme_is_per_group(info->qscheme))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "only a scheme per group has a group size");
    if (info->group_size > 0) return TARE_OK;
    const tare_status status =
        tare__fail(err, TARE_INVALID_ARGUMENT, "group_size is %lld", (long long)info->group_size);
    return tare__hint(err, status, "give a positive one, or 0 for whole rows");
}

tare_status tare__observer_info_check(const tare_observer_info *info, tare_error *err) {
    TARE_TRY(check_group(info, err));
    TARE_TRY(check_range(info, err));
    if (info->has_eps)
        TARE_TRY(check_scale("eps", info->eps, "leave it out, and it is 2^-23 as in torch", err));
    return check_fixed(info, err);
}
