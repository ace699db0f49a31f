// SPDX-License-Identifier: Apache-2.0
// The general rule, for functions of torch.ops.quantized and for quantized module classes. Both
// find the float operator's parameters by name.
#include "ops/quantized/rule.h"

#include <string.h>

#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/quantize.h"
#include "ops/quantized/quantized.h"
#include "ops/quantized/table.h"
#include "ops/rules.h"

// --- the float call ---

static tare_status begin(const op_call *call, const rule_call *rule, bool meta, float_call *f) {
    op_call bound = *call;
    bound.op = rule->op;
    bound.module = NULL;
    bound.param_count = tare__op_param_count(rule->op);
    memcpy(bound.param, rule->param, sizeof bound.param);
    return tare__float_call_begin(&bound, meta, f);
}

static tare_status need_tensor_result(op_call *call, const float_call *f) {
    if (f->call.result.kind == VALUE_TENSOR) return TARE_OK;
    return tare__call_fail(call, "its result is not a tensor");
}

tare_status tare__rule_shape(op_call *call, const rule_call *rule, const qparams *q) {
    float_call f;
    tare_status status = begin(call, rule, true, &f);
    if (status == TARE_OK) status = tare__op_run(&f.call, true);
    if (status == TARE_OK) status = need_tensor_result(call, &f);
    if (status == TARE_OK) {
        const tare_tensor *t = f.call.result.as.tensor;
        status = tare__call_result(call, q->dtype, t->ndim, t->shape, q);
    }
    tare__float_call_end(&f);
    return status;
}

static tare_status compute_each(op_call *call, const rule_call *rule) {
    float_call f;
    tare_status status = begin(call, rule, false, &f);
    if (status == TARE_OK) status = tare__op_run(&f.call, false);
    if (status == TARE_OK) status = need_tensor_result(call, &f);
    if (status == TARE_OK) {
        const tare_tensor *y = f.call.result.as.tensor, *out = tare__call_out(call);
        tare__quantize_into(y, tare__call_out(call));
        const int32_t least = (int32_t)out->q->zero_point[0]; // ReLU: rounding is monotone
        for (int64_t i = 0; rule->relu && i < out->count; i++)
            if (tare__load_quantized(out, i) < least) tare__store_quantized(out, i, least);
    }
    tare__float_call_end(&f);
    return status;
}

typedef struct rule_on_quantized {
    const op_call *call;
    const rule_call *rule;
} rule_on_quantized;

static tare_status compute_quantized(void *user, const value *in, value *out) {
    const rule_on_quantized *on = user;
    op_call call = *on->call;
    rule_call rule = *on->rule;
    rule.param[0] = in;
    call.result = *out;
    return compute_each(&call, &rule);
}

tare_status tare__rule_compute(op_call *call, const rule_call *rule) {
    rule_on_quantized on = {call, rule};
    if (!tare__quantized_table_fits(rule->op, rule->param, tare__op_param_count(rule->op),
                                    &call->result))
        return compute_each(call, rule);
    return tare__quantized_table_run(rule->param[0]->as.tensor, call->result.as.tensor,
                                     compute_quantized, &on, call->err);
}

// --- functions ---

// `training` of every quantized operator: False.
static const value not_training = {.kind = VALUE_BOOL};

// Prefix of tare's own functions, which are named after their float operator.
#define OURS "tare."

static tare_status function_reference(op_call *call);

// The float operator that a row of this file is named after, e.g. batch_norm for
// quantized.batch_norm2d_relu; *relu: a ReLU follows it. NULL: the row is not of this file.
static const op_info *find_float_op(const op_info *op, bool *relu) {
    char id[64];
    const char *dot = strchr(op->id, '.');
    *relu = false;
    if (op->reference != function_reference || dot == NULL || strlen(dot + 1) >= sizeof id)
        return NULL;
    memcpy(id, dot + 1, strlen(dot + 1) + 1);
    const op_info *found = tare__op_by_id(id, 0);
    if (found != NULL) return found;
    *relu = tare__ends_with(id, "_relu");
    if (*relu) *strrchr(id, '_') = '\0';
    if (tare__ends_with(id, "2d") || tare__ends_with(id, "3d")) id[strlen(id) - 2] = '\0';
    return tare__op_by_id(id, 0);
}

const op_info *tare__quantized_rule_op(const op_info *op) {
    bool relu = false;
    return find_float_op(op, &relu);
}

// Takes the float operator's parameters from this call's, by name.
static tare_status bind_row(op_call *call, const op_info *op, bool relu, rule_call *rule) {
    *rule = (rule_call){.op = op, .relu = relu};
    char name[64];
    for (size_t i = 0; tare__op_param_name(rule->op, i, name, sizeof name) > 0; i++) {
        const size_t from = tare__op_param_index(call->op, name);
        rule->param[i] = from < call->param_count ? call->param[from] : NULL;
        if (strcmp(name, "training") == 0) rule->param[i] = &not_training;
    }
    return TARE_OK;
}

tare_status tare__function_rule_bind(op_call *call, rule_call *out, bool *known) {
    bool relu = false;
    const op_info *op = find_float_op(call->op, &relu);
    *known = op != NULL;
    return *known ? bind_row(call, op, relu, out) : TARE_OK;
}

static tare_status bind_function(op_call *call, rule_call *rule) {
    bool known = false;
    TARE_TRY(tare__function_rule_bind(call, rule, &known));
    return known ? TARE_OK : tare__fail(call->err, TARE_INTERNAL, "no rule for %s", call->op->id);
}

static const tare_tensor *first_tensor(const value *v) {
    while (v != NULL && (v->kind == VALUE_LIST || v->kind == VALUE_TUPLE) && v->count > 0)
        v = v->as.items;
    return v != NULL && v->kind == VALUE_TENSOR ? v->as.tensor : NULL;
}

static tare_status function_shape(op_call *call) {
    const tare_tensor *x = first_tensor(call->param[0]);
    if (x == NULL || !tare__is_byte_quantized(x))
        return tare__call_fail(call, "expected a quint8 or qint8 tensor as its input");
    rule_call rule;
    const qparams *q;
    TARE_TRY(bind_function(call, &rule));
    TARE_TRY(tare__output_qparams(call, x->dtype, tare__op_param_index(call->op, "output_scale"),
                                  tare__op_param_index(call->op, "output_zero_point"), &q));
    const tare_status status = tare__rule_shape(call, &rule, q);
    tare__qparams_release(q);
    return status;
}

// True if the call concatenates 8-bit quantized tensors. Requantizing them before concatenation
// gives the same result as after it.
static bool joins_quantized(const op_call *call) {
    const value *list = call->param[0];
    if (strcmp(call->op->id, "quantized.cat") != 0 || !tare__value_has_items(list)) return false;
    for (uint32_t i = 0; i < list->count; i++) {
        const value *v = &list->as.items[i];
        if (v->kind != VALUE_TENSOR || !tare__is_byte_quantized(v->as.tensor) ||
            v->as.tensor->dtype != call->result.as.tensor->dtype)
            return false;
    }
    return true;
}

// True if the call multiplies two 8-bit quantized tensors, which is done with exact integer sums.
static bool multiplies_quantized(const op_call *call) {
    const value *a = call->param[0], *b = call->param[1];
    return tare__matmul_is_of_quantized(call) && a != NULL && b != NULL &&
           a->kind == VALUE_TENSOR && b->kind == VALUE_TENSOR &&
           tare__is_byte_quantized(a->as.tensor) && tare__is_byte_quantized(b->as.tensor);
}

static tare_status function_reference(op_call *call) {
    rule_call rule;
    if (joins_quantized(call)) return tare__join_quantized(call);
    if (multiplies_quantized(call)) return tare__quantized_matmul_compute(call);
    TARE_TRY(bind_function(call, &rule));
    return tare__rule_compute(call, &rule);
}

// --- modules ---

// The output's own parameters share names with parameters of some operators (elu's `scale`).
static bool is_output_parameter(const char *name) {
    return strcmp(name, "scale") == 0 || strcmp(name, "zero_point") == 0;
}

static const value *module_param(const module *m, const char *name, value *tensor) {
    if (strcmp(name, "training") == 0) return &not_training;
    if (is_output_parameter(name)) return NULL;
    tare_tensor *t = tare__module_tensor(m, name);
    if (t == NULL) return tare__module_config(m, name);
    *tensor = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    return tensor;
}

tare_status tare__module_rule_bind(op_call *call, module_rule *out) {
    const module *m = call->module;
    if (call->op == NULL) call->op = tare__op_by_id(m->class->op, m->class->dims);
    *out = (module_rule){.rule = {.op = call->op, .relu = m->class->fused == FUSED_RELU}};
    if (call->op == NULL)
        return tare__fail(call->err, TARE_UNSUPPORTED, "node '%s': no operator computes a %s",
                          call->node_name, m->class->name);
    if (call->arg_count < 1 || call->args[0].kind != VALUE_TENSOR ||
        !tare__is_byte_quantized(call->args[0].as.tensor))
        return tare__call_fail(call, "expected a quint8 or qint8 tensor as its input");
    out->rule.param[0] = &call->args[0];
    char name[64];
    for (size_t i = 1; tare__op_param_name(out->rule.op, i, name, sizeof name) > 0; i++)
        out->rule.param[i] = module_param(m, name, &out->tensors[i]);
    return TARE_OK;
}

tare_status tare__rule_bind(const op_call *call, module_rule *rule, op_call *bound, bool *known) {
    *bound = *call;
    *known = true;
    if (call->module != NULL)
        TARE_TRY(tare__module_rule_bind(bound, rule));
    else
        TARE_TRY(tare__function_rule_bind(bound, &rule->rule, known));
    if (!*known) return TARE_OK;
    bound->op = rule->rule.op;
    bound->module = NULL;
    bound->param_count = tare__op_param_count(bound->op);
    memcpy(bound->param, rule->rule.param, sizeof bound->param);
    return TARE_OK;
}

// torch's quantized Dropout has no output parameters and returns its input.
static bool keeps_its_input(const module *m) {
    return strcmp(m->class->op, "dropout") == 0 && tare__module_tensor(m, "scale") == NULL &&
           tare__module_tensor(m, "zero_point") == NULL;
}

tare_status tare__quantized_rule_check(const module *m, tare_error *err) {
    double scale, zero_point;
    if (keeps_its_input(m)) return TARE_OK;
    return tare__module_output(m, NULL, &scale, &zero_point, err);
}

tare_status tare__quantized_rule_shape(op_call *call) {
    module_rule rule;
    double scale, zero_point;
    const qparams *q;
    TARE_TRY(tare__module_rule_bind(call, &rule));
    if (keeps_its_input(call->module)) {
        tare__call_result_tensor(call, call->args[0].as.tensor);
        return TARE_OK;
    }
    TARE_TRY(tare__module_output(call->module, call->node_name, &scale, &zero_point, call->err));
    TARE_TRY(
        tare__make_output_qparams(call, call->args[0].as.tensor->dtype, scale, zero_point, &q));
    const tare_status status = tare__rule_shape(call, &rule.rule, q);
    tare__qparams_release(q);
    return status;
}

tare_status tare__quantized_rule_forward(op_call *call) {
    module_rule rule;
    TARE_TRY(tare__module_rule_bind(call, &rule));
    return tare__rule_compute(call, &rule.rule);
}

static bool has_rule(const op_call *call) {
    if (call->module != NULL) return tare__quantized_module_has_rule(call->module);
    return call->op != NULL && tare__quantized_rule_op(call->op) != NULL &&
           !joins_quantized(call) && !multiplies_quantized(call);
}

// Stores each parameter that is a quantized tensor (NULL for others). False if there is a list of
// tensors, or a quantized tensor that is not 8-bit per tensor.
static bool note_quantized(const op_call *call, const tare_tensor **quantized) {
    for (size_t i = 0; i < call->param_count; i++) {
        const value *v = call->param[i];
        quantized[i] = NULL;
        if (v != NULL && (v->kind == VALUE_LIST || v->kind == VALUE_TUPLE) && v->count > 0 &&
            first_tensor(v) != NULL)
            return false;
        if (v == NULL || v->kind != VALUE_TENSOR || v->as.tensor->q == NULL) continue;
        if (!tare__is_byte_quantized(v->as.tensor)) return false;
        quantized[i] = v->as.tensor;
    }
    return true;
}

tare_status tare__through_float_begin(const op_call *call, through_float *out, bool *known) {
    const bool is_quantized_module =
        call->module != NULL && call->module->class->role == ROLE_QUANTIZED;
    op_call bound = *call;
    module_rule rule;
    *known = false;
    if (call->op == NULL && !is_quantized_module) return TARE_OK;
    if (has_rule(call)) {
        TARE_TRY(tare__rule_bind(call, &rule, &bound, known));
        *known = *known && !rule.rule.relu;
    } else if (!is_quantized_module) {
        *known = tare__op_goes_through_float(call);
    }
    *known = *known && note_quantized(&bound, out->quantized);
    if (!*known) return TARE_OK;
    TARE_TRY(tare__float_call_begin(&bound, true, &out->f));
    return tare__op_shape(&out->f.call);
}

// --- rows ---

#define OUTPUT "|output_scale|output_zero_point"
#define RULED(name, parameters)                                                                    \
    {.id = "quantized." name,                                                                      \
     .functions = "torch.ops.quantized." name,                                                     \
     .params = parameters,                                                                         \
     .traits = OP_ANY_DTYPE,                                                                       \
     .shape = function_shape,                                                                      \
     .reference = function_reference},
// Operators that torch has no quantized function for: the parameters are the float operator's.
#define RULED_OWN(name, parameters)                                                                \
    {.id = OURS name,                                                                              \
     .functions = "torch.ops.tare." name,                                                          \
     .params = parameters OUTPUT,                                                                  \
     .traits = OP_ANY_DTYPE,                                                                       \
     .shape = function_shape,                                                                      \
     .reference = function_reference},
static const op_info rows[] = {
#include "ops/rows/rows.def"
};

const op_table tare__quantized_rule_ops = OP_TABLE(rows);
