// SPDX-License-Identifier: Apache-2.0
// Modules as calls of operator rows.
#include "ops/classes/module_call.h"

#include <stdio.h>
#include <string.h>

#include "ops/classes/reference.h"
#include "ops/op.h"

// --- binding ---

static tare_status find_row(op_call *call) {
    const module_class *class = call->module->class;
    if (call->op != NULL) return TARE_OK; // bound before, by the shape rule or an earlier run
    call->op = class->op != NULL ? tare__op_by_id(class->op, class->dims) : NULL;
    if (call->op != NULL) return TARE_OK;
    return tare__fail(call->err, TARE_UNSUPPORTED, "node '%s': no operator computes a %s",
                      call->node_name, class->name);
}

static bool find_param(const op_info *op, const char *name, size_t *out) {
    *out = tare__op_param_index(op, name);
    return *out < tare__op_param_count(op);
}

// The i-th of "a|b|c" into out; false past the end.
static bool name_at(const char *names, size_t i, char *out, size_t size) {
    for (; i > 0 && names != NULL; i--) {
        names = strchr(names, '|');
        if (names != NULL) names++;
    }
    if (names == NULL || *names == '\0') return false;
    snprintf(out, size, "%.*s", (int)strcspn(names, "|"), names);
    return true;
}

static tare_status bind_inputs(op_call *call) {
    char name[64];
    size_t param = 0;
    if (call->op->module_inputs != NULL && *call->op->module_inputs == '*') return TARE_OK;
    for (size_t i = 0; i < call->arg_count; i++) {
        const bool known = call->op->module_inputs != NULL
                               ? name_at(call->op->module_inputs, i, name, sizeof name) &&
                                     find_param(call->op, name, &param)
                               : i == 0;
        if (!known)
            return tare__call_fail(call, "a %s takes fewer arguments", call->module->class->name);
        call->param[param] = &call->args[i];
    }
    for (size_t k = 0; k < call->kwarg_count; k++) {
        if (!find_param(call->op, call->kwargs[k].name, &param))
            return tare__call_fail(call, "unknown argument '%s'", call->kwargs[k].name);
        call->param[param] = &call->kwargs[k].value;
    }
    return TARE_OK;
}

static tare_status bind_value(op_call *call, size_t i, value v) {
    value *kept = tare__arena_alloc(call->memory, sizeof *kept);
    if (kept == NULL) return tare__out_of_memory(call->err);
    *kept = v;
    call->param[i] = kept;
    return TARE_OK;
}

// The module's tensor or constructor value of one of the parameter's names.
static tare_status bind_own(op_call *call, size_t i) {
    const module *m = call->module;
    for (size_t k = 0; k < m->tensor_count; k++)
        if (m->tensors[k].tensor != NULL && tare__op_param_is(call->op, i, m->tensors[k].name))
            return bind_value(call, i,
                              (value){.kind = VALUE_TENSOR, .as.tensor = m->tensors[k].tensor});
    for (size_t k = 0; k < m->config_count && call->param[i] == NULL; k++)
        if (tare__op_param_is(call->op, i, m->config[k].name)) call->param[i] = &m->config[k].value;
    return TARE_OK;
}

// A reference module passes no padding mode where it pads with zeros, as torch's never do.
static bool pads_zeros(const module *m) {
    const value *mode = tare__module_config(m, "padding_mode");
    return m->class->role == ROLE_REFERENCE &&
           (mode == NULL || mode->kind != VALUE_STRING || strcmp(mode->as.text, "zeros") == 0);
}

// `training` is the module's mode; instance norms also use the input's own statistics when they
// track none.
static tare_status bind_rest(op_call *call, size_t i) {
    const module *m = call->module;
    if (tare__op_param_is(call->op, i, "padding_mode") && pads_zeros(m)) return TARE_OK;
    if (!tare__op_param_is(call->op, i, "training")) return bind_own(call, i);
    const bool tracks = tare__module_tensor(m, "running_mean") != NULL;
    const bool uses_input = tare__op_param_is(call->op, i, "use_input_stats") && !tracks;
    return bind_value(call, i, tare__bool(m->training || uses_input));
}

tare_status tare__operator_module_bind(op_call *call) {
    const fused_with fused = call->module->class->fused;
    if (call->is_bound) return TARE_OK;
    TARE_TRY(find_row(call));
    const bool is_plain = fused == FUSED_NONE || fused == FUSED_RELU;
    if (!is_plain && call->module->class->role != ROLE_QAT)
        return tare__fail(call->err, TARE_UNSUPPORTED, "node '%s': a %s cannot be run",
                          call->node_name, call->module->class->name);
    memset(call->param, 0, sizeof call->param);
    call->param_count = tare__op_param_count(call->op);
    TARE_TRY(bind_inputs(call));
    for (size_t i = 0; i < call->param_count; i++)
        if (call->param[i] == NULL) TARE_TRY(bind_rest(call, i));
    call->is_bound = true;
    return TARE_OK;
}

// --- float and reference modules ---

tare_status tare__operator_module_shape(op_call *call) {
    TARE_TRY(tare__operator_module_bind(call));
    return tare__op_shape(call);
}

// Tensors that replace the module's weights in a call. They are released after it.
typedef struct stand_ins {
    value values[OP_MAX_PARAMS];
    size_t count;
} stand_ins;

// The shape rule used the module's own tensor, so a replacement must have its shape and dtype.
static bool is_alike(const value *made, const tare_tensor *own) {
    const tare_tensor *t = made->kind == VALUE_TENSOR ? made->as.tensor : NULL;
    return t != NULL && t->dtype == own->dtype && tare__same_shape(t, own);
}

static tare_status stand_in(op_call *call, size_t i, const char *name, stand_ins *s) {
    const module *m = call->module;
    char key[128];
    value *made = &s->values[s->count];
    tare_tensor *t = NULL;
    snprintf(key, sizeof key, "%s_scale", name);
    if (m->class->role != ROLE_REFERENCE || !tare__module_has_tensor(m, key)) return TARE_OK;
    TARE_TRY(tare__reference_values(m, name, &t, call->err));
    *made = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    s->count++;
    if (!is_alike(made, call->param[i]->as.tensor))
        return tare__call_fail(call, "the quantization of '%s' changes its shape or dtype", name);
    call->param[i] = made;
    return TARE_OK;
}

static tare_status compute_with(op_call *call, stand_ins *s) {
    char name[64];
    for (size_t i = 0; i < call->param_count; i++) {
        const value *v = call->param[i];
        if (v == NULL || v->kind != VALUE_TENSOR ||
            !tare__op_param_name(call->op, i, name, sizeof name))
            continue;
        if (v->as.tensor == tare__module_tensor(call->module, name))
            TARE_TRY(stand_in(call, i, name, s));
    }
    return tare__op_compute(call);
}

tare_status tare__operator_module_forward(op_call *call) {
    stand_ins s = {.count = 0};
    TARE_TRY(tare__operator_module_bind(call));
    const tare_status status = compute_with(call, &s);
    for (size_t i = 0; i < s.count; i++) tare__value_release_tensors(&s.values[i]);
    return status;
}

// --- sequences ---

op_call tare__module_call_of(const op_call *like, const module *m, const value *input) {
    op_call call = *like;
    call.op = NULL;
    call.is_bound = false;
    call.module = m;
    memset(call.param, 0, sizeof call.param);
    call.args = input;
    call.arg_count = 1;
    call.kwarg_count = 0;
    call.result = tare__none();
    return call;
}

tare_status tare__module_run_on(const op_call *like, const module *m, const value *input,
                                bool shapes_only, value *out) {
    op_call call = tare__module_call_of(like, m, input);
    TARE_TRY(tare__module_run(&call, shapes_only));
    *out = call.result;
    return TARE_OK;
}

// Runs an operator as a call of its own: the fused add and relu.
static tare_status run_row(const op_call *like, const char *id, const value *args, size_t count,
                           bool shapes_only, value *out) {
    op_call call = *like;
    call.args = args;
    call.arg_count = count;
    call.kwarg_count = 0;
    call.result = tare__none();
    TARE_TRY(tare__call_bind(&call, tare__op_by_id(id, 0)));
    TARE_TRY(tare__op_run(&call, shapes_only));
    *out = call.result;
    return TARE_OK;
}

// Replaces *at by the next step's result, and releases the old value.
static void advance(value *at, value next) {
    tare__value_release_tensors(at);
    *at = next;
}

static tare_status run_children(op_call *call, bool shapes_only, value *at) {
    const module *m = call->module;
    for (size_t i = 0; i < m->child_count; i++) {
        value next;
        TARE_TRY(tare__module_run_on(call, m->children[i].module, at, shapes_only, &next));
        advance(at, next);
        const bool adds = m->class->fused == FUSED_ADD || m->class->fused == FUSED_ADD_RELU;
        if (i > 0 || !adds) continue;
        const value args[] = {*at, call->args[1]};
        TARE_TRY(run_row(call, "add", args, 2, shapes_only, &next));
        advance(at, next);
        if (m->class->fused == FUSED_ADD) break;
        TARE_TRY(run_row(call, "relu", at, 1, shapes_only, &next));
        advance(at, next);
        break;
    }
    return TARE_OK;
}

static tare_status run_sequence(op_call *call, bool shapes_only, value *out) {
    const fused_with fused = call->module->class->fused;
    const size_t needed = fused == FUSED_ADD || fused == FUSED_ADD_RELU ? 2 : 1;
    if (call->arg_count != needed || call->kwarg_count > 0)
        return tare__call_fail(call, "takes %zu positional arguments, found %zu", needed,
                               call->arg_count);
    value at;
    TARE_TRY(tare__value_share(call->memory, &call->args[0], &at, call->err));
    const tare_status status = run_children(call, shapes_only, &at);
    if (status == TARE_OK)
        *out = at;
    else
        tare__value_release_tensors(&at);
    return status;
}

tare_status tare__sequence_module_shape(op_call *call) {
    return run_sequence(call, true, &call->result);
}

// The last step's tensors replace the meta tensors of the shape rule.
tare_status tare__sequence_module_forward(op_call *call) {
    value made;
    TARE_TRY(run_sequence(call, false, &made));
    tare__value_release_tensors(&call->result);
    call->result = made;
    return TARE_OK;
}

// --- any module ---

tare_status tare__module_run(op_call *call, bool shapes_only) {
    const module_class *class = call->module->class;
    if (class->shape == NULL || class->forward == NULL)
        return tare__fail(call->err, TARE_UNSUPPORTED, "node '%s': a %s cannot be run",
                          call->node_name, class->name);
    tare_status status = class->shape(call);
    if (status == TARE_OK && !shapes_only && !tare__call_is_done(call)) {
        status = tare__call_allocate(call);
        if (status == TARE_OK) status = class->forward(call);
    }
    if (status != TARE_OK) tare__value_release_tensors(&call->result);
    return status;
}
