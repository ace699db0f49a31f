// SPDX-License-Identifier: Apache-2.0
// Lowering of averages whose result has its own parameters, as under tare's own mapping: dequantize
// - average - quantize becomes one function. If the parameters are the input's, as in torch, the
// average works on the quantized values (functions.c).
#include <string.h>

#include "config/qconfig.h"
#include "flow/lower/fx/lower.h"

typedef struct average {
    node *n, *quantize, *source; // source: the input of n's dequantize
    const op_info *op, *form;
    const module *module; // NULL: n calls a function or method
} average;

static bool is_average(op_id id) {
    return OP_IS_ANY(id, TARE_OP_MEAN, TARE_OP_ADAPTIVE_AVG_POOL1D, TARE_OP_ADAPTIVE_AVG_POOL2D,
                     TARE_OP_ADAPTIVE_AVG_POOL3D, TARE_OP_AVG_POOL1D, TARE_OP_AVG_POOL2D,
                     TARE_OP_AVG_POOL3D);
}

static bool has_equal(const convert_pass *c, const node *a, const node *b) {
    const tare_tensor *x = tare__attribute(c, a), *y = tare__attribute(c, b);
    return x != NULL && y != NULL && x->count == 1 && y->count == 1 &&
           tare__tensor_get(x, 0) == tare__tensor_get(y, 0);
}

// Only under tare's own mapping a source that is no quantize node may have other parameters.
static bool has_own_parameters(const convert_pass *c, const average *a) {
    if (!tare__is_quantize_node(a->source))
        return c->prepared != NULL && c->prepared->mapping != NULL &&
               tare__qconfig_mapping_is_own(c->prepared->mapping);
    return !has_equal(c, tare__node_arg(a->source, 1), tare__node_arg(a->quantize, 1)) ||
           !has_equal(c, tare__node_arg(a->source, 2), tare__node_arg(a->quantize, 2));
}

static bool find_average(const convert_pass *c, node *quantize, average *a) {
    node *n = tare__is_quantize_node(quantize) ? tare__node_arg(quantize, 0) : NULL;
    if (n == NULL || !tare__node_is_call(n) || n->user_count != 1) return false;
    *a = (average){.n = n,
                   .quantize = quantize,
                   .op = tare__called_row(c->base->model, n),
                   .module = tare__called_module(c->base->model, n)};
    if (!is_average(tare__op_id(a->op)) || tare__convert_has_no_qconfig(c, n)) return false;
    a->form = tare__op_form(a->op, FORM_BY_RULE);
    const node *dequantize = tare__node_arg(n, 0);
    if (a->form == NULL || dequantize == NULL || !tare__is_dequantize_node(dequantize) ||
        tare__attribute(c, tare__node_arg(quantize, 1)) == NULL ||
        tare__attribute(c, tare__node_arg(quantize, 2)) == NULL)
        return false;
    a->source = tare__node_arg(dequantize, 0);
    return a->source != NULL && has_own_parameters(c, a);
}

// Argument i: a module's constructor argument, or the call's, under any of the parameter's names.
static const value *argument(const average *a, size_t i, const char *name) {
    if (a->module != NULL) return tare__module_config(a->module, name);
    for (size_t k = 0; k < a->n->kwarg_count; k++)
        if (tare__op_param_index(a->op, a->n->kwargs[k].name) == i) return &a->n->kwargs[k].value;
    return i < a->n->arg_count ? &a->n->args[i] : NULL;
}

static tare_status list_arguments(convert_pass *c, const average *a, keyword *kwargs,
                                  size_t *count) {
    char name[64];
    for (size_t i = 1; tare__op_param_name(a->op, i, name, sizeof name) > 0; i++) {
        const value *v = argument(a, i, name);
        if (v == NULL || v->kind == VALUE_NONE ||
            tare__op_param_index(a->form, name) >= tare__op_param_count(a->form))
            continue;
        const char *copy = tare__arena_strdup(&c->base->scratch, name);
        if (copy == NULL) return tare__out_of_memory(c->base->err);
        kwargs[(*count)++] = (keyword){copy, *v};
    }
    kwargs[(*count)++] =
        (keyword){"output_scale", tare__node_value(tare__node_arg(a->quantize, 1))};
    kwargs[(*count)++] =
        (keyword){"output_zero_point", tare__node_value(tare__node_arg(a->quantize, 2))};
    return TARE_OK;
}

// The function is inserted after the quantize node, whose parameters it reads.
static tare_status lower_average(convert_pass *c, const average *a) {
    keyword kwargs[OP_MAX_PARAMS + 2];
    size_t count = 0;
    node *made = NULL;
    TARE_TRY(list_arguments(c, a, kwargs, &count));
    const value x = tare__node_value(a->source);
    const op_name name = tare__op_function_name(a->form);
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = name.text,
                            .args = &x,
                            .arg_count = 1,
                            .kwargs = kwargs,
                            .kwarg_count = count,
                            .like = a->n};
    graph *g = c->base->model->root->graph;
    TARE_TRY(tare__graph_insert(g, &spec, a->quantize->next, &made, c->base->err));
    TARE_TRY(TARE_DECIDE(c->base, a->n, "lowered", spec.target,
                         "computed in integers by %s at '%s', with a scale of its own", spec.target,
                         made->name));
    node *average_call = a->n;
    TARE_TRY(tare__replace_quantize(c->base, a->quantize, made));
    return tare__graph_erase(g, average_call, c->base->err);
}

tare_status tare__lower_averages(convert_pass *c) {
    for (node *n = c->base->model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        average a;
        if (find_average(c, n, &a)) TARE_TRY(lower_average(c, &a));
    }
    return TARE_OK;
}
