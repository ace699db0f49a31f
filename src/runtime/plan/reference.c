// SPDX-License-Identifier: Apache-2.0
// Reference modules in a plan: replaced by calls of their functions with the dequantized weights,
// computed once, so that the steps of float layers compute them.
#include "ops/classes/reference.h"

#include <stdio.h>

#include "ops/classes/module_call.h"
#include "ops/op.h"
#include "runtime/plan/emit.h"

bool tare__plan_is_reference(const op_call *call, op_compute compute) {
    const module *m = call->module;
    return m != NULL && m->class->role == ROLE_REFERENCE && m->class->fused == FUSED_NONE &&
           compute == tare__operator_module_forward && call->is_bound && call->op != NULL &&
           call->op->functions != NULL && call->result.kind == VALUE_TENSOR;
}

// The dequantized form of argument i, a tensor of the module.
static tare_status stand_in(plan_builder *b, const op_call *call, size_t i, value *v) {
    char name[64], scale[80];
    tare_tensor *made = NULL;
    (void)tare__op_param_name(call->op, i, name, sizeof name);
    (void)snprintf(scale, sizeof scale, "%s_scale", name);
    if (v->kind != VALUE_TENSOR || v->as.tensor != tare__module_tensor(call->module, name) ||
        !tare__module_has_tensor(call->module, scale))
        return TARE_OK;
    TARE_TRY(tare__reference_values(call->module, name, &made, b->err));
    tare_status status = tare__plan_keep_tensor(b->plan, made, b->err);
    if (made->dtype != v->as.tensor->dtype || !tare__same_shape(made, v->as.tensor))
        status = tare__fail(b->err, TARE_INVALID_ARGUMENT,
                            "node '%s': what quantizes '%s' changes its shape or dtype",
                            call->node_name, name);
    v->as.tensor = made;
    tare_tensor_release(made); // the plan holds a reference
    return status;
}

tare_status tare__plan_reference_call(plan_builder *b, const op_call *call, op_call *out) {
    arena *memory = &b->plan->memory;
    value *args = tare__arena_array(memory, call->param_count + 1, sizeof *args);
    const char *function = tare__arena_strdup(memory, tare__op_function_name(call->op).text);
    if (args == NULL || function == NULL) return tare__out_of_memory(b->err);
    *out = *call;
    out->module = NULL;
    out->function = function;
    out->args = args;
    out->kwargs = NULL;
    out->arg_count = out->kwarg_count = 0;
    for (size_t i = 0; i < call->param_count; i++) {
        args[i] = call->param[i] != NULL ? *call->param[i] : tare__none();
        TARE_TRY(stand_in(b, call, i, &args[i]));
        out->param[i] = call->param[i] != NULL ? &args[i] : NULL;
        if (call->param[i] != NULL) out->arg_count = i + 1;
    }
    return TARE_OK;
}
