// SPDX-License-Identifier: Apache-2.0
// Leaves nodes float by name in convert, for example if integers were measured to be slower.
#include "flow/fx/convert.h"

static tare_status find(const convert_pass *c, const tare_float_choice *choice, const node **out,
                        size_t *index) {
    tare_error *err = c->base->err;
    const char *name = choice->node != NULL ? choice->node : "";
    const node *n = tare__graph_find(c->base->model->root->graph, name);
    const prepared_node *known = tare__prepared_node(c->prepared, name);
    if (n == NULL || known == NULL)
        return tare__fail(err, TARE_NOT_FOUND, "the prepared model has no node '%s' to leave float",
                          name);
    *out = n;
    *index = (size_t)(known - c->prepared->nodes);
    if (known->is_observed && known->qconfig != NULL && !c->switched_off[*index]) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "node '%s' stays float anyway: choosing it has no effect", name);
}

// Inputs and outputs that a custom config keeps quantized.
static bool is_wanted(const convert_pass *c, const node *n) {
    if (n->op == NODE_PLACEHOLDER) return c->prepared->input_quantized.count > 0;
    return n->op == NODE_OUTPUT && c->prepared->output_quantized.count > 0;
}

// Switches off observers that no integer operator needs.
static void switch_off_others(const convert_pass *c) {
    for (const node *n = c->base->model->root->graph->first; n != NULL; n = n->next) {
        const prepared_node *known = tare__prepared_node(c->prepared, n->name);
        if (known != NULL && !known->is_observed && !is_wanted(c, n))
            c->switched_off[known - c->prepared->nodes] = true;
    }
}

tare_status tare__convert_apply_choices(convert_pass *c) {
    const tare_convert_options *o = c->options;
    if (o->float_choice_count == 0) return TARE_OK;
    if (c->switched_off == NULL)
        c->switched_off = tare__arena_array(&c->base->scratch, c->prepared->node_count + 1,
                                            sizeof *c->switched_off);
    if (c->switched_off == NULL) return tare__out_of_memory(c->base->err);
    for (size_t i = 0; i < o->float_choice_count; i++) {
        const tare_float_choice *choice = &o->float_choices[i];
        const node *n = NULL;
        size_t index = 0;
        TARE_TRY(find(c, choice, &n, &index));
        c->switched_off[index] = true;
        TARE_TRY(TARE_DECIDE(c->base, n, "left float", choice->rule != NULL ? choice->rule : "",
                             "%s", choice->reason != NULL ? choice->reason : ""));
    }
    switch_off_others(c);
    return TARE_OK;
}
