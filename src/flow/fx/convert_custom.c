// SPDX-License-Identifier: Apache-2.0
// Convert: quantized inputs and outputs, standalone modules, custom modules.
#include "flow/fx/convert_custom.h"

#include <string.h>

#include "flow/fx/quantizable.h"
#include "flow/lower/rewrite.h"
#include "model/custom_module.h"
#include "observe/dtype_roles.h"

// Inserts a dequantize node after `n`, which the users of `n` read.
static tare_status dequantize_result(convert_pass *c, node *n) {
    node *made = NULL;
    TARE_TRY(tare__insert_dequantize(c->base, n, n->next, &made));
    return tare__node_replace_uses(n, made, made, c->base->err);
}

// Makes the node read the quantized input of a dequantize among its arguments.
static tare_status bypass(convert_pass *c, node *n, node *arg) {
    node *quantized = tare__is_dequantize_node(arg) ? tare__node_arg(arg, 0) : NULL;
    if (quantized == NULL) return TARE_OK;
    TARE_TRY(tare__node_replace_input(n, arg, quantized, c->base->err));
    return arg->user_count == 0 ? tare__graph_erase(arg->owner, arg, c->base->err) : TARE_OK;
}

tare_status tare__convert_input(convert_pass *c, node *placeholder, int64_t index) {
    if (!tare__index_list_has(&c->prepared->input_quantized, index)) return TARE_OK;
    return dequantize_result(c, placeholder);
}

// --- outputs ---

// Handles one returned value: if it is dequantized, the quantized value is returned instead.
static tare_status keep_quantized(convert_pass *c, node *output, const value *v) {
    if (v->kind == VALUE_NODE) {
        node *arg = v->as.node;
        node *quantized = tare__is_dequantize_node(arg) ? tare__node_arg(arg, 0) : NULL;
        return quantized != NULL ? tare__node_replace_input(output, arg, quantized, c->base->err)
                                 : TARE_OK;
    }
    if (v->kind != VALUE_LIST && v->kind != VALUE_TUPLE && v->kind != VALUE_DICT) return TARE_OK;
    // The output's arguments are copied at each change, so the walk goes by position.
    value copy = {0};
    TARE_TRY(tare__value_copy(&c->base->scratch, v, NULL, NULL, &copy, c->base->err));
    for (uint32_t i = 0; i < copy.count; i++)
        TARE_TRY(keep_quantized(c, output, &copy.as.items[i]));
    return TARE_OK;
}

tare_status tare__convert_output(convert_pass *c, node *output) {
    const index_list *list = &c->prepared->output_quantized;
    if (list->count == 0 || output->arg_count == 0) return TARE_OK;
    value result = {0};
    TARE_TRY(
        tare__value_copy(&c->base->scratch, &output->args[0], NULL, NULL, &result, c->base->err));
    if (result.kind != VALUE_LIST && result.kind != VALUE_TUPLE)
        return tare__index_list_has(list, 0) ? keep_quantized(c, output, &result) : TARE_OK;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] >= result.count)
            return tare__fail(c->base->err, TARE_INVALID_ARGUMENT,
                              "output %lld is to stay quantized, the model returns %u values",
                              (long long)list->items[i], (unsigned)result.count);
        TARE_TRY(keep_quantized(c, output, &result.as.items[list->items[i]]));
    }
    return TARE_OK;
}

// --- standalone modules ---

static tare_status convert_child(convert_pass *c, const node *n, const prepared_state *state) {
    tare_error *err = c->base->err;
    const module *observed = tare__called_module(c->base->model, n);
    module *made = NULL;
    TARE_TRY(tare__at(err, tare__convert_standalone(c, observed, state, n->target, &made),
                      "standalone module '%s'", n->target));
    return tare__pass_put_module(c->base, n->target, made, TARE_OK);
}

static bool was_called_before(const node *n) {
    for (const node *m = n->prev; m != NULL; m = m->prev)
        if (m->op == NODE_CALL_MODULE && strcmp(m->target, n->target) == 0) return true;
    return false;
}

tare_status tare__convert_standalone_call(convert_pass *c, node *n, const prepared_state *state) {
    const index_list *outputs = &state->output_quantized;
    for (size_t i = 0; i < n->arg_count; i++)
        if (tare__index_list_has(&state->input_quantized, (int64_t)i) &&
            tare__node_arg(n, i) != NULL)
            TARE_TRY(bypass(c, n, tare__node_arg(n, i)));
    if (outputs->count > 0) {
        if (outputs->items[0] != 0)
            return tare__fail(c->base->err, TARE_UNSUPPORTED,
                              "node '%s': Currently only quantized output idxs = [0] is supported",
                              n->name);
        TARE_TRY(dequantize_result(c, n));
    }
    return was_called_before(n) ? TARE_OK : convert_child(c, n, state);
}

// --- custom modules ---

static node *find_observer(const convert_pass *c, const node *n) {
    for (size_t i = 0; i < n->user_count; i++)
        if (tare__is_observer_node(c->base->model, n->users[i])) return n->users[i];
    return NULL;
}

static tare_status is_static(const convert_pass *c, const node *n, bool *out) {
    bool is_listed = false;
    const tare_qconfig *q = tare__convert_qconfig(c, n, &is_listed);
    tare_observer_info info = {0};
    if (q != NULL) TARE_TRY(tare__pass_spec_info(c->base, q->activation, &info));
    *out = q != NULL && !info.is_dynamic && tare__dtype_has_role(info.dtype, DTYPE_OBSERVED);
    return TARE_OK;
}

static tare_status swap_custom(convert_pass *c, const node *n, const char *class_name,
                               const node *observer) {
    const module *observed = tare__called_module(c->base->model, n);
    const qparams *output = NULL;
    module *made = NULL;
    bool is_calibrated = false;
    if (strcmp(observed->class->name, class_name) == 0)
        return TARE_OK; // converted by an earlier call
    if (observer != NULL)
        TARE_TRY(tare__observer_qparams(tare__called_module(c->base->model, observer), &output,
                                        &is_calibrated, c->base->err));
    const tare_status status = tare__custom_module_quantize(c->base->model->context, class_name,
                                                            observed, output, &made, c->base->err);
    tare__qparams_release(output);
    return tare__pass_put_module(c->base, n->target, made, status);
}

// A custom module of torch's: all its inputs are quantized, and stubs dequantize its results.
static tare_status convert_quantizable(convert_pass *c, node *n, const char *quantized_class) {
    tare_error *err = c->base->err;
    const module *observed = tare__called_module(c->base->model, n);
    const module_class *class =
        tare__class_find(&c->base->model->context->classes, quantized_class);
    bool is_listed = false;
    module *made = NULL;
    if (class == NULL || class->op == NULL || class->role != ROLE_QUANTIZED ||
        strcmp(class->op, observed->class->op) != 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "'%s' is not a quantized form of %s",
                          quantized_class, observed->class->name);
    for (size_t i = 0; i < n->input_count; i++) // starts again after each bypass
        if (tare__is_dequantize_node(n->inputs[i])) {
            TARE_TRY(bypass(c, n, n->inputs[i]));
            i = (size_t)-1;
        }
    TARE_TRY(tare__quantizable_quantize(c, class, observed, tare__convert_qconfig(c, n, &is_listed),
                                        &made));
    return tare__pass_put_module(c->base, n->target, made, TARE_OK);
}

tare_status tare__convert_custom_call(convert_pass *c, node *n, const char *quantized_class) {
    const module *observed = tare__called_module(c->base->model, n);
    if (tare__is_quantizable(observed->class))
        return tare__at(c->base->err, convert_quantizable(c, n, quantized_class), "node '%s'",
                        n->name);
    bool quantizes = false;
    node *observer = NULL;
    TARE_TRY(is_static(c, n, &quantizes));
    if (quantizes) {
        if (tare__node_arg(n, 0) == NULL)
            return tare__fail(c->base->err, TARE_INVALID_ARGUMENT,
                              "node '%s': a custom module takes a node as its first input",
                              n->name);
        TARE_TRY(bypass(c, n, tare__node_arg(n, 0)));
        observer = find_observer(c, n);
        if (observer == NULL)
            return tare__fail(c->base->err, TARE_INVALID_ARGUMENT,
                              "node '%s': Expected activation_post_process to be present for "
                              "observed custom module",
                              n->name);
    }
    TARE_TRY(
        tare__at(c->base->err, swap_custom(c, n, quantized_class, observer), "node '%s'", n->name));
    c->gives_quantized[n->id] = observer != NULL;
    return TARE_OK;
}

tare_status tare__convert_custom_result(convert_pass *c, node *observer, node *n) {
    TARE_TRY(tare__node_replace_uses(observer, n, NULL, c->base->err));
    TARE_TRY(tare__graph_erase(n->owner, observer, c->base->err));
    return dequantize_result(c, n);
}
