// SPDX-License-Identifier: Apache-2.0
// Module classes of a user's own: a row whose functions call the user's.
#include "quant/user_class.h"

#include <string.h>

#include "core/alloc.h"
#include "core/struct_size.h"
#include "ops/call.h"

#define MAX_INPUTS 8

// The row and what it stands for, in one block.
typedef struct user_class {
    module_class class;
    tare_module_class user;
} user_class;

static const tare_module_class *user_of(const module *m) {
    return m->class->kind;
}

// The call's tensors, in order.
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
    return tare__call_result(call, TARE_FLOAT32, ndim, shape, NULL);
}

static tare_status user_forward(op_call *call) {
    const tare_tensor *inputs[MAX_INPUTS];
    size_t count = 0;
    TARE_TRY(collect(call, inputs, &count));
    const tare_module_class *user = user_of(call->module);
    return user->forward(user->user, (const tare_module *)call->module, inputs, count,
                         tare__call_out(call), call->err);
}

static tare_status user_describe(const module *m, text *out, tare_error *err) {
    const tare_module_class *user = user_of(m);
    return user->describe(user->user, (const tare_module *)m, tare__text_append_writer, out, err);
}

const tare_module_class *tare__user_class(const module_class *class) {
    return class->forward == user_forward ? class->kind : NULL;
}

static const module_role roles[] = {[TARE_MODULE_FLOAT] = ROLE_FLOAT,
                                    [TARE_MODULE_FUSED] = ROLE_FUSED,
                                    [TARE_MODULE_QAT] = ROLE_QAT,
                                    [TARE_MODULE_REFERENCE] = ROLE_REFERENCE};

static tare_status check(const tare_module_class *user, tare_error *err) {
    if (user == NULL || user->name == NULL || user->print_name == NULL || user->shape == NULL ||
        user->forward == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a module class needs a name, a print_name, a shape and a forward");
    if (user->role < TARE_MODULE_FLOAT || user->role > TARE_MODULE_REFERENCE)
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

void tare__user_class_destroy(module_class *class) {
    tare__free(class);
}
