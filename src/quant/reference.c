// SPDX-License-Identifier: Apache-2.0
// Reference modules: a float module that keeps its float weight beside the weight's parameters.
#include <string.h>

#include "quant/convert.h"
#include "quant/user_class.h"

// Buffers weight_scale, weight_zero_point and weight_axis, as torch's reference modules have them.
static tare_status set_buffers(module *m, const qparams *q, tare_error *err) {
    tare_tensor *scale = NULL, *zero_point = NULL, *axis = NULL;
    const bool is_float = q->scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
    tare_status status = tare_tensor_create(TARE_FLOAT32, 1, &q->count, &scale, err);
    if (status == TARE_OK)
        status = tare_tensor_create(is_float ? TARE_FLOAT32 : TARE_INT64, 1, &q->count, &zero_point,
                                    err);
    if (status == TARE_OK) status = tare_tensor_create(TARE_INT32, 0, NULL, &axis, err);
    if (status == TARE_OK) {
        for (int64_t i = 0; i < q->count; i++) {
            tare__tensor_set(scale, i, q->scale[i]);
            tare__tensor_set(zero_point, i, q->zero_point[i]);
        }
        tare__tensor_set(axis, 0, q->axis);
        status = tare__module_set_tensor(m, "weight_scale", scale, false, err);
    }
    if (status == TARE_OK)
        status = tare__module_set_tensor(m, "weight_zero_point", zero_point, false, err);
    if (status == TARE_OK) status = tare__module_set_tensor(m, "weight_axis", axis, false, err);
    tare_tensor_release(scale);
    tare_tensor_release(zero_point);
    tare_tensor_release(axis);
    return status;
}

// A symmetric scheme is an affine one whose zero point happens to be fixed.
static tare_qscheme affine(tare_qscheme scheme) {
    if (scheme == TARE_PER_TENSOR_SYMMETRIC) return TARE_PER_TENSOR_AFFINE;
    return scheme == TARE_PER_CHANNEL_SYMMETRIC ? TARE_PER_CHANNEL_AFFINE : scheme;
}

static tare_status set_weight_config(module *m, const qparams *q, tare_error *err) {
    const value dtype = tare__dtype_value(q->dtype);
    const value scheme = {.kind = VALUE_QSCHEME, .as.qscheme = affine(q->scheme)};
    TARE_TRY(tare__module_set_config(m, "weight_dtype", &dtype, err));
    return tare__module_set_config(m, "weight_qscheme", &scheme, err);
}

static tare_status copy_float(module *to, const module *from, tare_error *err) {
    to->training = from->training;
    TARE_TRY(tare__module_copy_config(to, from, err));
    return tare__module_copy_tensors(to, from, err);
}

static tare_status fill(module *made, const module *float_module, const qparams *weight,
                        tare_error *err) {
    const tare_module_class *user = tare__user_class(made->class);
    if (user != NULL && user->from_float != NULL) {
        const tare_weight_qparams q = {.struct_size = sizeof q,
                                       .dtype = weight->dtype,
                                       .qscheme = weight->scheme,
                                       .channel_axis = weight->axis,
                                       .count = weight->count,
                                       .scale = weight->scale,
                                       .zero_point = weight->zero_point,
                                       .quant_min = weight->quant_min,
                                       .quant_max = weight->quant_max};
        made->training = float_module->training;
        return user->from_float(user->user, (const tare_module *)float_module, &q,
                                (tare_module *)made, err);
    }
    TARE_TRY(copy_float(made, float_module, err));
    TARE_TRY(set_weight_config(made, weight, err));
    return set_buffers(made, weight, err);
}

tare_status tare__reference_from_float(const tare_context *context, const char *class_name,
                                       const module *float_module, const qparams *weight,
                                       module **out, tare_error *err) {
    const module_class *class = tare__class_find(&context->classes, class_name);
    if (class == NULL)
        return tare__suggest(
            err, tare__fail(err, TARE_NOT_FOUND, "no reference module class '%s'", class_name),
            class_name, tare__class_name_at, &context->classes);
    module *made = NULL;
    TARE_TRY(tare__module_create(class, &made, err));
    const tare_status status = fill(made, float_module, weight, err);
    if (status == TARE_OK)
        *out = made;
    else
        tare__module_release(made);
    return status;
}
