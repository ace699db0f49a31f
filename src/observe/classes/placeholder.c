// SPDX-License-Identifier: Apache-2.0
// A placeholder for edges that are not observed: in dynamic quantization, which computes parameters
// at run time, and in float16 quantization.
#include "core/error.h"
#include "core/memory/alloc.h"
#include "observe/classes/builtin.h"
#include "observe/classes/uniform.h"

typedef struct placeholder {
    tare_dtype dtype;
    bool is_dynamic;
} placeholder;

static void read_info(const tare_observer_args *args, tare_observer_info *info) {
    double eps = 0x1p-23;
    tare_dtype ignored = TARE_DTYPE_UNSET;
    info->dtype = TARE_FLOAT32;
    info->qscheme = TARE_PER_TENSOR_AFFINE;
    tare_observer_args_dtype(args, "dtype", &info->dtype);
    tare_observer_args_qscheme(args, "qscheme", &info->qscheme);
    tare_observer_args_bool(args, "is_dynamic", &info->is_dynamic);
    tare_observer_args_double(args, "eps", &eps);
    // torch documents that compute_dtype implies is_dynamic, but does not set it.
    tare_observer_args_dtype(args, "compute_dtype", &ignored);
    const bool has_min = tare_observer_args_int(args, "quant_min", &info->quant_min);
    const bool has_max = tare_observer_args_int(args, "quant_max", &info->quant_max);
    info->has_range = has_min && has_max;
    info->has_eps = true;
    info->eps = (float)eps;
}

static tare_status create(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err) {
    (void)user;
    placeholder *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    read_info(args, info);
    *made = (placeholder){info->dtype, info->is_dynamic};
    *state = made;
    return TARE_OK;
}

static tare_status clone(const void *state, void **out, tare_error *err) {
    placeholder *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    *made = *(const placeholder *)state;
    *out = made;
    return TARE_OK;
}

static tare_status describe(const void *state, tare_writer write, void *write_user,
                            tare_error *err) {
    const placeholder *s = state;
    text t = {0};
    tare__text_printf(&t, "dtype=%s, is_dynamic=%s", tare_dtype_name(s->dtype),
                      s->is_dynamic ? "True" : "False");
    return tare__text_write(&t, TARE_OK, write, write_user, err);
}

static const char *const arguments[] = {"dtype",   "compute_dtype", "quant_min",  "quant_max",
                                        "qscheme", "eps",           "is_dynamic", NULL};
const tare_observer_class tare__placeholder_observer = {
    .struct_size = sizeof(tare_observer_class),
    .name = "PlaceholderObserver",
    .arguments = arguments,
    .create = create,
    .destroy = tare__free,
    .clone = clone,
    .describe = describe,
};
