// SPDX-License-Identifier: Apache-2.0
// Custom modules: created from another module by a custom class.
#include "model/custom_module.h"

#include "model/user_class.h"

static tare_status create(const tare_context *context, const char *class_name, module **out,
                          tare_error *err) {
    const module_class *class = tare__class_find(&context->classes, class_name);
    if (class == NULL)
        return tare__suggest(
            err, tare__fail(err, TARE_NOT_FOUND, "no custom module class '%s'", class_name),
            class_name, tare__class_name_at, &context->classes);
    return tare__module_create(class, out, err);
}

static tare_status copy_all(module *to, const module *from, tare_error *err) {
    TARE_TRY(tare__module_copy_config(to, from, err));
    TARE_TRY(tare__module_copy_tensors(to, from, err));
    for (size_t i = 0; i < from->child_count; i++)
        TARE_TRY(tare__module_set_child(to, from->children[i].name, from->children[i].module, err));
    return TARE_OK;
}

static tare_status fill(module *made, const module *source, const qparams *output,
                        tare_error *err) {
    const tare_module_class *user = tare__user_class(made->class);
    made->training = source->training;
    if (user == NULL || user->from_float == NULL) return copy_all(made, source, err);
    const tare_weight_qparams q =
        tare__weight_qparams_view(output != NULL ? output->dtype : TARE_DTYPE_UNSET, output);
    return user->from_float(user->user, (const tare_module *)source, output != NULL ? &q : NULL,
                            (tare_module *)made, err);
}

static tare_status swap(const tare_context *context, const char *class_name, const module *source,
                        const qparams *output, module **out, tare_error *err) {
    module *made = NULL;
    TARE_TRY(create(context, class_name, &made, err));
    return tare__module_hand_out(made, fill(made, source, output, err), out);
}

tare_status tare__custom_module_observe(const tare_context *context, const char *observed_class,
                                        const module *float_module, module **out, tare_error *err) {
    return swap(context, observed_class, float_module, NULL, out, err);
}

// Stores the dtype and parameters of the results, which are needed to run the module.
static tare_status set_output(module *m, const qparams *output, tare_error *err) {
    tare_tensor *scale = NULL, *zero_point = NULL;
    const value dtype = tare__dtype_value(output->dtype);
    TARE_TRY(tare__module_set_config(m, CUSTOM_OUTPUT_DTYPE, &dtype, err));
    tare_status status = tare__tensor_scalar_float((float)output->scale[0], &scale, err);
    if (status == TARE_OK)
        status = tare__tensor_scalar_int((int64_t)output->zero_point[0], &zero_point, err);
    if (status == TARE_OK)
        status = tare__module_set_tensor(m, CUSTOM_OUTPUT_SCALE, scale, false, err);
    if (status == TARE_OK)
        status = tare__module_set_tensor(m, CUSTOM_OUTPUT_ZERO_POINT, zero_point, false, err);
    tare_tensor_release(scale);
    tare_tensor_release(zero_point);
    return status;
}

tare_status tare__custom_module_quantize(const tare_context *context, const char *quantized_class,
                                         const module *observed, const qparams *output,
                                         module **out, tare_error *err) {
    module *made = NULL;
    TARE_TRY(swap(context, quantized_class, observed, output, &made, err));
    return tare__module_hand_out(made, output != NULL ? set_output(made, output, err) : TARE_OK,
                                 out);
}
