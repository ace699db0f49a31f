// SPDX-License-Identifier: Apache-2.0
// Reference modules: a float module with its float weight and the weight's quantization parameters.
#include "flow/fx/convert.h"
#include "model/user_class.h"

static tare_status copy_float(module *to, const module *from, tare_error *err) {
    to->training = from->training;
    TARE_TRY(tare__module_copy_config(to, from, err));
    return tare__module_copy_tensors(to, from, err);
}

static tare_status fill_user(module *made, const tare_module_class *user,
                             const module *float_module, const weight_qparams *w, tare_error *err) {
    const tare_weight_qparams lent = tare__weight_qparams_view(w->dtype, w->q);
    made->training = float_module->training;
    return user->from_float(user->user, (const tare_module *)float_module, &lent,
                            (tare_module *)made, err);
}

static tare_status fill(module *made, const module *float_module, const weight_qparams *weights,
                        size_t count, tare_error *err) {
    const tare_module_class *user = tare__user_class(made->class);
    if (user != NULL && user->from_float != NULL)
        return fill_user(made, user, float_module, &weights[0], err);
    TARE_TRY(copy_float(made, float_module, err));
    for (size_t i = 0; i < count; i++) TARE_TRY(tare__reference_set_weight(made, &weights[i], err));
    return TARE_OK;
}

tare_status tare__reference_from_float(const tare_context *context, const char *class_name,
                                       const module *float_module, const weight_qparams *weights,
                                       size_t count, module **out, tare_error *err) {
    const module_class *class = tare__class_find(&context->classes, class_name);
    if (class == NULL)
        return tare__suggest(
            err, tare__fail(err, TARE_NOT_FOUND, "no reference module class '%s'", class_name),
            class_name, tare__class_name_at, &context->classes);
    module *made = NULL;
    TARE_TRY(tare__module_create(class, &made, err));
    return tare__module_hand_out(made, fill(made, float_module, weights, count, err), out);
}
