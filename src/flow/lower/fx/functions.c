// SPDX-License-Identifier: Apache-2.0
// Lowering of binary functions, shape queries, and operators without a weight.
#include <string.h>

#include "config/qconfig.h"
#include "flow/lower/fx/lower.h"
#include "ops/text/python.h"

// torch lowers sums and products as torch.add and Python's `+`, matrix products only as
// torch.matmul.
static const op_info *quantized_binary(const node *n, bool wants_relu) {
    const op_info *op = tare__function_row(n);
    const python_operator *python = tare__python_operator(n->target);
    const bool is_python = python != NULL && python->form == PYTHON_BINARY;
    const bool is_sum = OP_IS_ANY(tare__op_id(op), TARE_OP_ADD, TARE_OP_MUL);
    const bool is_matmul = tare__op_id(op) == TARE_OP_MATMUL;
    if (tare__uses_first_name(n) ? !is_sum && !is_matmul : !is_sum || !is_python) return NULL;
    bool has_relu = false;
    return tare__quantized_form(op, wants_relu, &has_relu);
}

static bool find_operands(const convert_pass *c, const node *n, value out[2]) {
    function_call call;
    return tare__function_bind(&c->base->scratch, (node *)n, &call) && // NOLINT: it is only read
           tare__function_operands(&call, out);
}

static bool accepts_binary(const convert_pass *c, const node *n) {
    value operands[2];
    if (n->op != NODE_CALL_FUNCTION || quantized_binary(n, false) == NULL ||
        !find_operands(c, n, operands))
        return false;
    size_t tensor_count = 0;
    for (size_t i = 0; i < 2; i++) {
        if (operands[i].kind != VALUE_NODE) continue;
        if (!tare__is_dequantize_node(operands[i].as.node)) return false;
        tensor_count++;
    }
    return tensor_count > 0;
}

// Inserts the quantized function after the quantize node, under its own name; it replaces the
// operator.
static tare_status lower_binary(convert_pass *c, const static_match *m) {
    tare_error *err = c->base->err;
    graph *g = c->base->model->root->graph;
    value args[4];
    size_t count = 2, tensor_count = 0;
    if (!find_operands(c, m->reference, args))
        return TARE_OK; // the reason is recorded when it is accepted
    for (size_t i = 0; i < 2; i++) {
        if (args[i].kind != VALUE_NODE) continue;
        node *quantized = tare__node_arg(args[i].as.node, 0);
        if (quantized == NULL) return TARE_OK;
        args[i] = tare__node_value(quantized);
        tensor_count++;
    }
    if (tensor_count == 2) { // with a constant, the result's parameters follow from the input's
        args[count++] = tare__node_value(m->scale);
        args[count++] = tare__node_value(m->zero_point);
    }
    const op_name name = tare__op_function_name(quantized_binary(m->reference, m->relu != NULL));
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = name.text,
                            .args = args,
                            .arg_count = count,
                            .like = m->reference};
    node *made = NULL;
    TARE_TRY(tare__graph_insert(g, &spec, m->quantize->next, &made, err));
    TARE_TRY(TARE_DECIDE(c->base, m->reference, "lowered", spec.target,
                         "computed in integers by %s at '%s'", spec.target, made->name));
    TARE_TRY(tare__replace_quantize(c->base, m->quantize, made));
    if (m->relu != NULL) {
        TARE_TRY(TARE_DECIDE(c->base, m->relu, "lowered", spec.target,
                             "computed in integers by %s at '%s'", spec.target, made->name));
        TARE_TRY(tare__absorb_bound(c->base, m->relu, made));
    }
    return tare__graph_erase(g, m->reference, err);
}

// The node that joins n's value with others (cat, stack), reached through conversions and operators
// that keep the parameters of their input; NULL: there is none.
static const node *joined_by(const node *n, int depth) {
    enum { DEEPEST = 32 };
    for (size_t i = 0; depth < DEEPEST && i < n->user_count; i++) {
        const node *user = n->users[i];
        const value *first = user->arg_count > 0 ? &user->args[0] : NULL;
        if (first != NULL && (first->kind == VALUE_LIST || first->kind == VALUE_TUPLE) &&
            first->count > 1 && user->op != NODE_OUTPUT)
            return user;
        const bool keeps = tare__is_quantize_node(user) || tare__is_dequantize_node(user) ||
                           tare__op_has(tare__node_row(user), OP_KEEPS_QPARAMS);
        const node *found = keeps ? joined_by(user, depth + 1) : NULL;
        if (found != NULL) return found;
    }
    return NULL;
}

static bool has_number(const convert_pass *c, const node *reference) {
    value operands[2];
    return find_operands(c, reference, operands) &&
           (operands[0].kind != VALUE_NODE || operands[1].kind != VALUE_NODE);
}

tare_status tare__lower_binary(convert_pass *c) {
    for (node *n = c->base->model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        static_match m;
        if (!tare__match_static(c, n, accepts_binary, 0, &m)) continue;
        // torch has no fused matmul-relu, so the relu would be lost.
        if (m.relu != NULL && tare__function_op(m.reference) == TARE_OP_MATMUL) continue;
        // What is joined must have the parameters that were observed for all.
        const node *joined = has_number(c, m.reference) ? joined_by(m.quantize, 0) : NULL;
        if (joined != NULL) {
            TARE_TRY(TARE_DECIDE(c->base, m.reference, "left float", "parameters",
                                 "with a number its result has parameters of its own, but '%s' "
                                 "joins it with values of others",
                                 joined->name));
            continue;
        }
        TARE_TRY(lower_binary(c, &m));
    }
    return TARE_OK;
}

static bool is_shape_query(const node *n) {
    if (n->op == NODE_CALL_METHOD)
        return strcmp(n->target, "shape") == 0 || strcmp(n->target, "size") == 0;
    return tare__function_op(n) == TARE_OP_GETATTR && n->arg_count == 2 &&
           n->args[1].kind == VALUE_STRING && strcmp(n->args[1].as.text, "shape") == 0;
}

tare_status tare__lower_shapes(convert_pass *c) {
    for (node *n = c->base->model->root->graph->first; n != NULL; n = n->next) {
        if (is_shape_query(n)) TARE_TRY(tare__bypass_dequantize(c->base, n, NULL, NULL));
    }
    return TARE_OK;
}

static special_group group_by_name(const convert_pass *c, const node *n) {
    if (n->op == NODE_CALL_FUNCTION) return tare__special_function(n->target);
    if (n->op == NODE_CALL_METHOD) return tare__special_method(n->target);
    const module *m = tare__called_module(c->base->model, n);
    if (m == NULL) return SPECIAL_NONE;
    // A module that an earlier call replaced: all its calls are lowered.
    if (m->class->role == ROLE_QUANTIZED) return SPECIAL_DEFAULT;
    return tare__special_module(m->class);
}

// Under tare's own mapping: it was observed under another name than torch lowers it by.
static bool moves_values(const convert_pass *c, const node *n) {
    const prepared_node *known =
        c->prepared != NULL ? tare__prepared_node(c->prepared, n->name) : NULL;
    return known != NULL && known->is_observed && !tare__convert_has_no_qconfig(c, n) &&
           c->prepared->mapping != NULL && tare__qconfig_mapping_is_own(c->prepared->mapping) &&
           tare__moves_quantized(tare__called_row(c->base->model, n));
}

static special_group group_of(const convert_pass *c, const node *n) {
    const special_group group = group_by_name(c, n);
    return group == SPECIAL_NONE && moves_values(c, n) ? SPECIAL_SHAPE : group;
}

// True if the first argument is dequantized, or a list of dequantized values.
static bool reads_dequantized(const node *n) {
    const value *first = n->arg_count > 0     ? &n->args[0]
                         : n->kwarg_count > 0 ? &n->kwargs[0].value
                                              : NULL;
    if (first == NULL) return false;
    if (first->kind == VALUE_NODE) return tare__is_dequantize_node(first->as.node);
    if (first->kind != VALUE_LIST && first->kind != VALUE_TUPLE) return false;
    for (uint32_t i = 0; i < first->count; i++)
        if (first->as.items[i].kind != VALUE_NODE ||
            !tare__is_dequantize_node(first->as.items[i].as.node))
            return false;
    return first->count > 0;
}

// The quantized function of a function of the default group; NULL: there is none that takes its
// arguments.
static const op_info *default_form(const convert_pass *c, node *reference, function_call *call) {
    const op_info *form = tare__op_form(tare__function_row(reference), FORM_QUANTIZED);
    const bool fits = form != NULL && tare__function_bind(&c->base->scratch, reference, call) &&
                      tare__form_takes(call, form);
    return fits ? form : NULL;
}

// As the call gives them: by position as far as both functions agree on it, then by name.
static tare_status form_arguments(convert_pass *c, const function_call *call, const op_info *form,
                                  size_t *by_position, keyword *kwargs, size_t *kwarg_count) {
    const node *n = call->function;
    char name[64];
    *by_position = 0;
    while (*by_position < n->arg_count &&
           tare__form_keeps_place(call->bound.op, form, *by_position))
        *by_position += 1;
    for (size_t i = *by_position; tare__op_param_name(form, i, name, sizeof name) > 0; i++) {
        const value *v = tare__form_argument(call, form, i);
        bool is_positional = false;
        for (size_t j = *by_position; j < n->arg_count; j++) is_positional |= v == &n->args[j];
        if (!is_positional || v->kind == VALUE_NONE) continue;
        const char *copy = tare__arena_strdup(&c->base->scratch, name);
        if (copy == NULL) return tare__out_of_memory(c->base->err);
        kwargs[(*kwarg_count)++] = (keyword){copy, *v};
    }
    for (size_t i = 0; i < n->kwarg_count; i++)
        if (tare__op_param_index(form, n->kwargs[i].name) < tare__op_param_count(form))
            kwargs[(*kwarg_count)++] = n->kwargs[i];
    return TARE_OK;
}

// Replaces functions of the default group by quantized ones, which take their output's parameters
// by keyword.
static tare_status swap_function(convert_pass *c, node *reference, node *scale, node *zero_point) {
    function_call call;
    const op_info *form = default_form(c, reference, &call);
    if (form == NULL) return TARE_OK; // told when it was accepted
    const op_name target = tare__op_function_name(form);
    size_t arg_count, count = 0;
    keyword *kwargs = tare__arena_array(&c->base->scratch,
                                        OP_MAX_PARAMS + reference->kwarg_count + 2, sizeof *kwargs);
    if (kwargs == NULL) return tare__out_of_memory(c->base->err);
    TARE_TRY(form_arguments(c, &call, form, &arg_count, kwargs, &count));
    kwargs[count++] = (keyword){"output_scale", tare__node_value(scale)};
    kwargs[count++] = (keyword){"output_zero_point", tare__node_value(zero_point)};
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = target.text,
                            .args = reference->args,
                            .arg_count = arg_count,
                            .kwargs = kwargs,
                            .kwarg_count = count,
                            .like = reference};
    graph *g = c->base->model->root->graph;
    node *made = NULL;
    TARE_TRY(tare__graph_insert(g, &spec, zero_point->next, &made, c->base->err));
    TARE_TRY(tare__node_replace_uses(reference, made, made, c->base->err));
    return tare__graph_erase(g, reference, c->base->err);
}

static tare_status erase_buffers(convert_pass *c, node *const *nodes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (nodes[i] != NULL)
            TARE_TRY(tare__graph_erase(c->base->model->root->graph, nodes[i], c->base->err));
    return TARE_OK;
}

static tare_status lower_special(convert_pass *c, node *quantize, node *reference,
                                 special_group group) {
    const bool is_quantize = tare__is_quantize_node(quantize);
    if (is_quantize && (group == SPECIAL_DEFAULT || group == SPECIAL_FIXED))
        TARE_TRY(tare__swap_quantized(c, reference, tare__node_arg(quantize, 1),
                                      tare__node_arg(quantize, 2)));
    TARE_TRY(tare__bypass_dequantize(c->base, reference, NULL, NULL));
    node *buffers[2] = {is_quantize ? tare__node_arg(quantize, 1) : NULL,
                        is_quantize ? tare__node_arg(quantize, 2) : NULL};
    TARE_TRY(TARE_DECIDE(c->base, reference, "lowered",
                         tare__node_subject(c->base->model, reference), "computed on %s",
                         is_quantize ? "quantized tensors" : "float16 values"));
    TARE_TRY(tare__replace_quantize(c->base, quantize, reference));
    const bool has_buffers = buffers[0] != NULL && buffers[1] != NULL;
    if (group == SPECIAL_DEFAULT && reference->op == NODE_CALL_FUNCTION && has_buffers)
        return swap_function(c, reference, buffers[0], buffers[1]);
    return erase_buffers(c, buffers, 2);
}

// Transposed convolutions have their output channels on axis 1. With a scale per input channel, no
// integer sum has a single scale.
static bool scales_inputs(const convert_pass *c, const node *n) {
    const module *m = tare__called_module(c->base->model, n);
    if (m == NULL || m->class->role != ROLE_REFERENCE ||
        !tare__op_has(tare__class_row(m->class), OP_TRANSPOSED))
        return false;
    const value *scheme = tare__module_config(m, "weight_qscheme");
    const tare_tensor *axis = tare__module_tensor(m, "weight_axis");
    return scheme != NULL && scheme->kind == VALUE_QSCHEME &&
           tare__qscheme_is_per_channel(scheme->as.qscheme) && axis != NULL &&
           tare__tensor_get(axis, 0) != 1;
}

// A float reader of the operator's value, except of its shape, which is the same for integers.
static const node *float_reader(const node *reference, const node *quantize) {
    for (size_t i = 0; i < reference->user_count; i++) {
        const node *user = reference->users[i];
        if (user != quantize && !tare__is_quantize_node(user) && !is_shape_query(user)) return user;
    }
    return NULL;
}

tare_status tare__lower_special(convert_pass *c) {
    for (node *n = c->base->model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        const bool half = tare__is_half_node(n);
        if (!tare__is_quantize_node(n) && !half) continue;
        node *reference = tare__node_arg(n, 0);
        if (reference == NULL) continue;
        const special_group group = group_of(c, reference);
        if (group == SPECIAL_NONE || !reads_dequantized(reference)) continue;
        if (scales_inputs(c, reference)) {
            TARE_TRY(TARE_DECIDE(c->base, reference, "left float", "weight scales",
                                 "its weight has a scale per input channel, integers need one per "
                                 "output channel or a single one"));
            continue;
        }
        const node *reader = half ? NULL : float_reader(reference, n);
        if (reader != NULL) {
            TARE_TRY(TARE_DECIDE(c->base, reference, "left float", "readers",
                                 "'%s' reads its value as float", reader->name));
            continue;
        }
        if (half && (group == SPECIAL_FIXED || group == SPECIAL_DEFAULT)) continue;
        if (!half && group == SPECIAL_DEFAULT && !tare__calls_agree(c, reference)) {
            TARE_TRY(TARE_DECIDE(c->base, reference, "left float", "calls of one module",
                                 "another call of the module '%s' has a float input or output",
                                 reference->target));
            continue;
        }
        function_call call;
        if (!half && group == SPECIAL_DEFAULT && reference->op == NODE_CALL_FUNCTION &&
            default_form(c, reference, &call) == NULL) {
            TARE_TRY(TARE_DECIDE(c->base, reference, "left float", "arguments",
                                 "its quantized function does not take all of its arguments"));
            continue;
        }
        // A module's scale and zero point are buffers; literal parameters have no such nodes.
        if (!half && (tare__attribute(c, tare__node_arg(n, 1)) == NULL ||
                      tare__attribute(c, tare__node_arg(n, 2)) == NULL))
            continue;
        TARE_TRY(lower_special(c, n, reference, group));
    }
    return TARE_OK;
}
