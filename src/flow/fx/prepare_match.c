// SPDX-License-Identifier: Apache-2.0
// Prepare: matches backend patterns. Nodes are visited in reverse; the longest pattern wins.
#include "flow/fx/prepare.h"

#include "config/qconfig.h"
#include "flow/function_call.h"
#include "model/model.h"
#include "ops/classes/classes.h"
#include "ops/op.h"

// Appends the items of the pattern: the head, then for one argument its nested match, for several
// their items.
static tare_status record_items(prepare_pass *p, const pattern *pat, const value *v,
                                match_list *into) {
    if (pat->kind != PATTERN_TUPLE) {
        match_item leaf = tare__match_leaf(v);
        // A wildcard does not constrain its node, which may have a pattern of its own.
        leaf.is_wildcard = pat->kind == PATTERN_ANY;
        into->items[into->count++] = leaf;
        return TARE_OK;
    }
    TARE_TRY(record_items(p, &pat->items[0], v, into));
    match_list inner = {0};
    TARE_TRY(tare__match_list_create(&p->base->scratch, tare__pattern_leaf_count(pat), &inner,
                                     p->base->err));
    for (size_t i = 1; i < pat->item_count; i++)
        TARE_TRY(record_items(p, &pat->items[i], &v->as.node->args[i - 1], &inner));
    if (inner.count > 1 && pat->item_count == 2)
        return tare__match_nest(&p->base->scratch, &inner, &into->items[into->count++],
                                p->base->err);
    for (size_t i = 0; i < inner.count; i++) into->items[into->count++] = inner.items[i];
    return TARE_OK;
}

// Lets every node of the structure point to the match; replaces earlier entries.
static void spread(prepare_pass *p, prepare_match *match) {
    for (size_t i = 0; i < match->nodes.count; i++) {
        const node *n = match->nodes.items[i];
        prepare_node *entry = tare__prepare_node(p, n);
        if (entry->match == NULL) p->match_order[p->match_count++] = n->id;
        entry->match = match;
    }
}

tare_status tare__prepare_take(prepare_pass *p, prepare_match *match, const match_list *items) {
    match->structure = (tare_match){.count = items->count, .items = items->items};
    TARE_TRY(
        tare__match_flatten(&p->base->scratch, &match->structure, &match->nodes, p->base->err));
    spread(p, match);
    return TARE_OK;
}

static int64_t count_tensor_args(const prepare_pass *p, const node *root) {
    int64_t count = 0;
    for (size_t i = 0; i < root->arg_count; i++) {
        const node *arg = tare__node_arg(root, i);
        if (arg != NULL && !tare__has_no_tensor_args(p, arg)) count++;
    }
    return count;
}

static tare_status complete(prepare_pass *p, prepare_match *match) {
    match->root = tare__match_root(match->config, &match->structure);
    if (match->root == NULL)
        return tare__fail(p->base->err, TARE_INVALID_ARGUMENT,
                          "node '%s': the pattern's root node getter returned no node",
                          match->last->name);
    tare_observation_type type;
    const tare_status status = tare__pattern_config_observation(
        match->config, count_tensor_args(p, match->root), &type, p->base->err);
    if (status != TARE_OK) return tare__at(p->base->err, status, "node '%s'", match->last->name);
    match->shares = type == TARE_OUTPUT_SHARE_OBSERVER_WITH_INPUT;
    return TARE_OK;
}

// The match of a node by this config. items: those of the config's pattern.
static tare_status take(prepare_pass *p, const tare_pattern_config *config, node *n,
                        const match_list *items) {
    prepare_match *match = tare__arena_alloc(&p->base->scratch, sizeof *match);
    if (match == NULL) return tare__out_of_memory(p->base->err);
    *match = (prepare_match){.config = config, .last = n};
    TARE_TRY(tare__prepare_take(p, match, items));
    return complete(p, match);
}

static tare_status match_node(prepare_pass *p, const tare_pattern_config *const *configs, node *n) {
    const value v = tare__node_value(n);
    for (size_t i = 0; i < p->base->backend->count; i++) {
        const pattern *pat = configs[i]->complex;
        if (!tare__pattern_matches(pat, &v, p->base->model->root)) continue;
        match_list items = {0};
        TARE_TRY(tare__match_list_create(&p->base->scratch, tare__pattern_leaf_count(pat), &items,
                                         p->base->err));
        TARE_TRY(record_items(p, pat, &v, &items));
        return take(p, configs[i], n, &items);
    }
    return TARE_OK;
}

// --- other names of an operator ---

// The row of the operator that a pattern names; NULL: it names several, or none that is known.
static const op_info *named_row(const prepare_pass *p, const pattern *pat) {
    switch (pat->kind) {
    case PATTERN_FUNCTION:
        return tare__op_function(pat->name);
    case PATTERN_METHOD:
        return tare__op_method(pat->name);
    case PATTERN_MODULE: {
        const module_class *class = tare__class_find(
            &tare__context_or_builtin(p->base->model->context)->classes, pat->name);
        return class != NULL ? tare__class_row(class) : NULL;
    }
    default:
        return NULL;
    }
}

// The config for this operator under another name, if its values keep their observer.
static const tare_pattern_config *find_synonym(const prepare_pass *p,
                                               const tare_pattern_config *const *configs,
                                               const op_info *const *rows, const op_info *row) {
    for (size_t i = 0; i < p->base->backend->count; i++)
        if (rows[i] == row && configs[i]->observation_type == TARE_OUTPUT_SHARE_OBSERVER_WITH_INPUT)
            return configs[i];
    return NULL;
}

// Under tare's own mapping: an operator that only moves values is matched by a pattern for it under
// any name. torch has patterns for torch.flatten, but none for torch.nn.Flatten and x.flatten().
static tare_status match_synonyms(prepare_pass *p, const tare_pattern_config *const *configs) {
    if (!tare__qconfig_mapping_is_own(p->mapping)) return TARE_OK;
    const op_info **rows =
        tare__arena_array(&p->base->scratch, p->base->backend->count + 1, sizeof *rows);
    if (rows == NULL) return tare__out_of_memory(p->base->err);
    for (size_t i = 0; i < p->base->backend->count; i++)
        rows[i] = named_row(p, configs[i]->complex);
    for (node *n = p->base->model->root->graph->last; n != NULL; n = n->prev) {
        const op_info *row = tare__called_row(p->base->model, n);
        if (p->nodes[n->id].match != NULL || !tare__moves_quantized(row)) continue;
        const tare_pattern_config *config = find_synonym(p, configs, rows, row);
        if (config == NULL) continue;
        const value v = tare__node_value(n);
        match_list items = {0};
        TARE_TRY(tare__match_list_create(&p->base->scratch, 1, &items, p->base->err));
        items.items[items.count++] = tare__match_leaf(&v);
        TARE_TRY(take(p, config, n, &items));
    }
    return TARE_OK;
}

tare_status tare__prepare_match(prepare_pass *p) {
    const tare_pattern_config **configs = NULL;
    TARE_TRY(
        tare__backend_config_sorted(p->base->backend, &p->base->scratch, &configs, p->base->err));
    for (node *n = p->base->model->root->graph->last; n != NULL; n = n->prev)
        if (p->nodes[n->id].match == NULL) TARE_TRY(match_node(p, configs, n));
    return match_synonyms(p, configs);
}
