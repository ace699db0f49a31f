// SPDX-License-Identifier: Apache-2.0
// Convert under tare's own mapping: the input of a bound (relu6, clamp) is not observed, because
// only the values within the bounds matter. It is quantized with the parameters of the bound's
// result, which saturate where the bound clips.
#include "config/qconfig.h"
#include "flow/function_call.h"
#include "flow/fx/convert.h"
#include "flow/insert.h"
#include "ops/op.h"

static bool is_observed(const convert_pass *c, const node *n) {
    const prepared_node *known = tare__prepared_node(c->prepared, n->name);
    return known != NULL && known->is_observed && !tare__convert_has_no_qconfig(c, n);
}

// The input of an observed operator if there is no observer in between; else NULL.
static node *find_unobserved(const convert_pass *c, const node *n) {
    node *input = n->input_count == 1 && is_observed(c, n) ? tare__node_arg(n, 0) : NULL;
    const bool is_plain = input != NULL && tare__node_is_call(input) &&
                          !tare__is_observer_node(c->base->model, input) && is_observed(c, input);
    return is_plain && input->user_count == 1 ? input : NULL;
}

// Layers, sums and products are fused with a following relu, as in torch's patterns.
static bool takes_relu(const convert_pass *c, const node *n, const node *bound) {
    const op_info *op = tare__called_row(c->base->model, n);
    return tare__op_id(tare__called_row(c->base->model, bound)) == TARE_OP_RELU &&
           (tare__op_has(op, OP_WEIGHTED) || OP_IS_ANY(tare__op_id(op), TARE_OP_ADD, TARE_OP_MUL));
}

// Operators that return their input unchanged may be between the layer and the bound.
static tare_status quantize_inputs(convert_pass *c, node *bound, module *observer, size_t *number) {
    const observer_wish same = {.observer = observer};
    for (node *n = bound, *input; (input = find_unobserved(c, n)) != NULL; n = input) {
        node *made = NULL;
        if (takes_relu(c, input, n)) break;
        TARE_TRY(tare__insert_observer(c->base, &same, "activation_post_process_", number, input,
                                       &made));
        TARE_TRY(tare__node_replace_uses(input, made, made, c->base->err));
        if (!tare__passes_on(tare__called_row(c->base->model, input))) break;
    }
    return TARE_OK;
}

tare_status tare__convert_bounds(convert_pass *c) {
    size_t number = 0;
    if (c->prepared->mapping == NULL || !tare__qconfig_mapping_is_own(c->prepared->mapping))
        return TARE_OK;
    for (node *n = c->base->model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        node *bound = tare__is_observer_node(c->base->model, n) ? tare__node_arg(n, 0) : NULL;
        if (bound != NULL && tare__node_is_call(bound) &&
            tare__op_has(tare__called_row(c->base->model, bound), OP_BOUNDS))
            TARE_TRY(quantize_inputs(c, bound, tare__called_module(c->base->model, n), &number));
    }
    return TARE_OK;
}
