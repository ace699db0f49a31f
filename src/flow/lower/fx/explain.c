// SPDX-License-Identifier: Apache-2.0
// Records for each observed operator that stays float why it does.
#include "flow/lower/fx/lower.h"
#include "model/coverage.h"

static void find_float(void *user, node *input) {
    const node **found = user;
    const bool is_value = input->op != NODE_GET_ATTR && !tare__is_dequantize_node(input);
    if (*found == NULL && is_value) *found = input;
}

static const node *find_float_reader(const node *n) {
    for (size_t i = 0; i < n->user_count; i++)
        if (!tare__is_quantize_node(n->users[i])) return n->users[i];
    return NULL;
}

static tare_status explain(convert_pass *c, const node *n, const tare_qconfig *qconfig) {
    tare_observer_info activation = {0};
    if (qconfig != NULL) TARE_TRY(tare__pass_spec_info(c->base, qconfig->activation, &activation));
    if (activation.dtype == TARE_FLOAT16)
        return TARE_DECIDE(c->base, n, "left float", "float16",
                           "its qconfig asks for torch.float16, whose values are floats");
    const node *input = NULL, *reader = find_float_reader(n);
    tare__node_each_input(n, find_float, &input);
    if (input != NULL)
        return TARE_DECIDE(c->base, n, "left float", "inputs", "its input '%s' is float",
                           input->name);
    if (reader != NULL && !activation.is_dynamic)
        return TARE_DECIDE(c->base, n, "left float", "readers", "'%s' reads its value as float",
                           reader->name);
    return TARE_DECIDE(c->base, n, "left float", "operator",
                       "there is no integer form of %s with these arguments and parameters",
                       tare__node_subject(c->base->model, n));
}

tare_status tare__lower_explain_floats(convert_pass *c) {
    const tare_model *model = c->base->model;
    map known = {0};
    tare_status status =
        tare__record_decided(&model->decisions, "left float", &known, c->base->err);
    for (const node *n = model->root->graph->first; n != NULL && status == TARE_OK; n = n->next) {
        const prepared_node *prepared = tare__prepared_node(c->prepared, n->name);
        const traced_op *op = tare__traced_op(model, n->origin);
        const bool was_observed =
            c->prepared == NULL || (prepared != NULL && prepared->is_observed);
        const module *called = tare__called_module(model, n);
        const bool has_groups = called != NULL && called->class->role == ROLE_GROUPED;
        if (!was_observed || op == NULL || op->is_quantized || has_groups ||
            tare__map_get(&known, n->name) != NULL)
            continue;
        status = explain(c, n, prepared != NULL ? prepared->qconfig : NULL);
    }
    tare__map_release(&known);
    return status;
}
