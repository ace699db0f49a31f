// SPDX-License-Identifier: Apache-2.0
// Prepare: observers of input-weight equalization, one on each input of a linear layer or
// convolution.
#include "flow/fx/equalize.h"
#include "flow/fx/prepare.h"
#include "flow/insert.h"
#include "ops/op.h"

bool tare__prepare_is_branch(const prepare_pass *p, const node *n) {
    const node *input = tare__node_arg(n, 0);
    for (size_t i = 0; input != NULL && i < input->user_count; i++) {
        const node *user = input->users[i];
        const prepare_node *entry = tare__prepare_node(p, user);
        const bool is_quantized = entry != NULL ? entry->qconfig.qconfig != NULL
                                                : tare__is_observer_node(p->base->model, user);
        if (user != n && is_quantized) return true;
    }
    return false;
}

static tare_status check_qconfig(const prepare_pass *p, const node *n, const tare_qconfig *q) {
    const tare_observer_spec *specs[] = {q->activation, q->weight};
    for (size_t i = 0; i < 2; i++) {
        const tare_observer_class *class =
            specs[i] != NULL ? tare__observer_class_find(NULL, tare__observer_spec_class(specs[i]))
                             : NULL;
        bool is_input = false;
        if (class == NULL || !tare__observer_class_is_equalizer(class, &is_input) ||
            is_input != (i == 0))
            return tare__fail(p->base->err, TARE_INVALID_ARGUMENT,
                              "node '%s': an equalization qconfig needs an "
                              "_InputEqualizationObserver and a _WeightEqualizationObserver",
                              n->name);
    }
    return TARE_OK;
}

static tare_status insert_one(prepare_pass *p, const prepare_node *entry, const node *n,
                              value *arg) {
    node *watched = arg->kind == VALUE_NODE ? arg->as.node : NULL;
    if (watched == NULL || tare__is_bias_arg(entry, n, watched)) return TARE_OK;
    const tare_qconfig *q = entry->equalization.qconfig;
    const char *prefix =
        tare__arena_printf(&p->base->scratch, "%s_equalization_process_", watched->name);
    if (prefix == NULL) return tare__out_of_memory(p->base->err);
    const bool is_weight = tare__is_equalized_weight(entry->info.weight_index, n, watched);
    const observer_wish wish = {.spec = is_weight ? q->weight : q->activation};
    size_t number = 0;
    return tare__insert_observer(p->base, &wish, prefix, &number, watched, &arg->as.node);
}

tare_status tare__prepare_equalize(prepare_pass *p, const prepare_node *entry, node *n,
                                   bool is_branch) {
    if (entry->equalization.qconfig == NULL || !tare__can_equalize(p->base->model, n))
        return TARE_OK;
    TARE_TRY(check_qconfig(p, n, entry->equalization.qconfig));
    if (is_branch)
        return TARE_DECIDE(p->base, n, "warning", "equalization",
                           "Cannot equalize %s because it is part of a branch.", n->name);
    value *args = tare__arena_array(&p->base->scratch, n->arg_count + 1, sizeof *args);
    if (args == NULL) return tare__out_of_memory(p->base->err);
    for (size_t i = 0; i < n->arg_count; i++) {
        args[i] = n->args[i];
        TARE_TRY(insert_one(p, entry, n, &args[i]));
    }
    return tare__node_set_args(n, args, n->arg_count, n->kwargs, n->kwarg_count, p->base->err);
}
