// SPDX-License-Identifier: Apache-2.0
// Custom module classes: built-in functions that call the user's.
#include "model/user_class.h"

#include <string.h>

#include "core/math/float_to_int.h"
#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "ops/call.h"
#include "ops/quantized/quantize.h"

#define MAX_INPUTS 8

// The module class and the user's description in one block.
typedef struct user_class {
    module_class class;
    tare_module_class user;
} user_class;

static const tare_module_class *user_of(const module *m) {
    return m->class->kind;
}

// Collects the tensor arguments in order.
static tare_status collect(op_call *call, const tare_tensor **inputs, size_t *count) {
    *count = 0;
    for (size_t i = 0; i < call->arg_count; i++) {
        if (call->args[i].kind != VALUE_TENSOR)
            return tare__call_fail(call, "expected a tensor as input %zu", i);
        if (*count == MAX_INPUTS) return tare__call_fail(call, "more than %d inputs", MAX_INPUTS);
        inputs[(*count)++] = call->args[i].as.tensor;
    }
    return TARE_OK;
}

// The result of a quantized custom module has the parameters that convert stored in the module.
static tare_status give_result(op_call *call, int ndim, const int64_t *shape) {
    const module *m = call->module;
    const value *dtype = tare__module_config(m, CUSTOM_OUTPUT_DTYPE);
    if (m->class->role != ROLE_QUANTIZED || dtype == NULL)
        return tare__call_result(call, TARE_FLOAT32, ndim, shape, NULL);
    const tare_tensor *scale = tare__module_tensor(m, CUSTOM_OUTPUT_SCALE);
    const tare_tensor *zero_point = tare__module_tensor(m, CUSTOM_OUTPUT_ZERO_POINT);
    if (dtype->kind != VALUE_DTYPE || !tare__dtype(dtype->as.dtype)->is_quantized ||
        scale == NULL || scale->count != 1 || zero_point == NULL || zero_point->count != 1)
        return tare__call_fail(call, "expected a quantized dtype, one scale and one zero point");
    qparams *q = tare__qparams_per_tensor(dtype->as.dtype, tare__tensor_get(scale, 0),
                                          tare__cut_int64(tare__tensor_get(zero_point, 0)));
    if (q == NULL) return tare__out_of_memory(call->err);
    tare_status status = tare__qparams_check(q, call->err);
    if (status == TARE_OK) status = tare__call_result(call, dtype->as.dtype, ndim, shape, q);
    tare__qparams_release(q);
    return status;
}

static tare_status user_shape(op_call *call) {
    const tare_tensor *inputs[MAX_INPUTS];
    size_t count = 0;
    TARE_TRY(collect(call, inputs, &count));
    const tare_module_class *user = user_of(call->module);
    int ndim = 0;
    int64_t shape[TARE_MAX_DIMS] = {0};
    TARE_TRY(user->shape(user->user, (const tare_module *)call->module, inputs, count, &ndim, shape,
                         call->err));
    if (ndim < 0 || ndim > TARE_MAX_DIMS)
        return tare__call_fail(call, "'%s' returned %d dimensions, at most %d fit", user->name,
                               ndim, TARE_MAX_DIMS);
    return give_result(call, ndim, shape);
}

static tare_status user_forward(op_call *call) {
    const tare_tensor *inputs[MAX_INPUTS];
    size_t count = 0;
    TARE_TRY(collect(call, inputs, &count));
    const tare_module_class *user = user_of(call->module);
    tare_tensor *out = NULL;
    // The results of a session share a block that only the session may write, so the user's
    // function gets another tensor for the same memory.
    TARE_TRY(tare__tensor_writable(tare__call_out(call), &out, call->err));
    const tare_status status =
        user->forward(user->user, (const tare_module *)call->module, inputs, count, out, call->err);
    tare_tensor_release(out);
    return status;
}

static tare_status user_describe(const module *m, text *out, tare_error *err) {
    const tare_module_class *user = user_of(m);
    return user->describe(user->user, (const tare_module *)m, tare__text_append_writer, out, err);
}

const tare_module_class *tare__user_class(const module_class *class) {
    return class->forward == user_forward ? class->kind : NULL;
}

static const module_role roles[] = {
    [TARE_MODULE_FLOAT] = ROLE_FLOAT,    [TARE_MODULE_FUSED] = ROLE_FUSED,
    [TARE_MODULE_QAT] = ROLE_QAT,        [TARE_MODULE_REFERENCE] = ROLE_REFERENCE,
    [TARE_MODULE_OBSERVED] = ROLE_FLOAT, [TARE_MODULE_QUANTIZED] = ROLE_QUANTIZED};

static tare_status check(const tare_module_class *user, tare_error *err) {
    if (user == NULL || user->name == NULL || user->print_name == NULL || user->shape == NULL ||
        user->forward == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a module class needs a name, a print_name, a shape and a forward");
    if (user->role < TARE_MODULE_FLOAT || user->role > TARE_MODULE_QUANTIZED)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "module class '%s': unknown role %d",
                          user->name, (int)user->role);
    return TARE_OK;
}

tare_status tare__user_class_create(const tare_module_class *user, module_class **out,
                                    tare_error *err) {
    TARE_TRY(check(user, err));
    user_class *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    tare__struct_copy(&made->user, sizeof made->user, user);
    made->class = (module_class){.name = made->user.name,
                                 .print_name = made->user.print_name,
                                 .role = roles[user->role],
                                 .hides_children = true,
                                 .describe = made->user.describe != NULL ? user_describe : NULL,
                                 .shape = user_shape,
                                 .forward = user_forward,
                                 .kind = &made->user};
    *out = &made->class;
    return TARE_OK;
}

tare_weight_qparams tare__weight_qparams_view(tare_dtype dtype, const qparams *q) {
    return (tare_weight_qparams){.struct_size = sizeof(tare_weight_qparams),
                                 .dtype = dtype,
                                 .qscheme = q != NULL ? q->scheme : TARE_QSCHEME_UNSET,
                                 .channel_axis = q != NULL ? q->axis : 0,
                                 .count = q != NULL ? q->count : 0,
                                 .scale = q != NULL ? q->scale : NULL,
                                 .zero_point = q != NULL ? q->zero_point : NULL,
                                 .quant_min = q != NULL ? q->quant_min : 0,
                                 .quant_max = q != NULL ? q->quant_max : 0};
}

void tare__user_class_destroy(module_class *class) {
    tare__free(class);
}
