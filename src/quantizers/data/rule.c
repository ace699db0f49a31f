// SPDX-License-Identifier: Apache-2.0
// Applies a rule to all matches of its pattern.
#include "quantizers/data/rule.h"

#include <string.h>

#include "config/qspec.h"

// --- specs ---

static tare_qspec *config_spec(const data_level *l, spec_origin origin) {
    switch (origin) {
    case SPEC_INPUT:
        return l->specs.input;
    case SPEC_OUTPUT:
        return l->specs.output;
    case SPEC_WEIGHT:
        return l->specs.weight;
    case SPEC_BIAS:
        return l->specs.bias;
    case SPEC_NONE:
    case SPEC_OWN:
        break;
    }
    return NULL;
}

// Maps the pattern's node names in a target to the graph's. The check guarantees that both are
// nodes wherever the spec is used, except a literal in place of a node, whose name is kept.
static tare_edge_name in_graph(void *user, tare_edge_name target) {
    const subgraph_match *m = user;
    const node *from = target.from != NULL ? tare__subgraph_node(m, target.from) : NULL;
    const node *to = tare__subgraph_node(m, target.node);
    return (tare_edge_name){.from = from != NULL ? from->name : target.from,
                            .node = to != NULL ? to->name : target.node};
}

// True if all targets of the spec are annotated already.
static bool is_possible(const data_level *l, const subgraph_match *m, const tare_qspec *spec) {
    for (size_t i = 0; i < spec->target_count; i++) {
        const tare_edge_name t = in_graph((void *)m, spec->targets[i]);
        const tare_annotation *a = tare__annotation_find(&l->a->model->annotations, t.node);
        if (a == NULL || (t.from == NULL && (a->output == NULL || !a->is_marked))) return false;
        bool has_entry = t.from == NULL;
        for (size_t k = 0; k < a->input_count && !has_entry; k++)
            has_entry = strcmp(a->inputs[k].input, t.from) == 0;
        if (!has_entry) return false;
    }
    return true;
}

// Chooses the spec; *out is a new reference.
static tare_status resolve(const data_level *l, const subgraph_match *m, const spec_source *source,
                           tare_qspec **out) {
    *out = NULL;
    while (source->otherwise != NULL && !is_possible(l, m, source->spec))
        source = source->otherwise;
    if (source->origin == SPEC_OWN)
        return tare__qspec_map_targets(source->spec, in_graph, (void *)m, out, l->a->err);
    *out = tare_qspec_retain(config_spec(l, source->origin));
    return TARE_OK;
}

// --- nodes ---

static bool has_entry(const tare_annotation *a, const node *input) {
    for (size_t i = 0; i < a->input_count; i++)
        if (strcmp(a->inputs[i].input, input->name) == 0) return true;
    return false;
}

// If a node matched two names (x + x), the first name's spec is used.
static tare_status annotate_inputs(const data_level *l, const subgraph_match *m, const rule_node *r,
                                   tare_annotation *annotation) {
    tare_qspec *spec = NULL;
    for (size_t i = 0; i < r->input_count; i++) {
        const node *input = tare__subgraph_node(m, r->inputs[i].input);
        if (input == NULL || has_entry(annotation, input)) continue; // NULL: the argument is None
        TARE_TRY(resolve(l, m, &r->inputs[i].source, &spec));
        const tare_status status = tare__annotate_edge(l->a, annotation, input, spec);
        tare_qspec_release(spec);
        TARE_TRY(status);
    }
    return TARE_OK;
}

// True if an earlier entry of the rule matched the same node, so that the annotations are combined.
static bool is_said(const data_rule *rule, const subgraph_match *m, size_t index, const node *n) {
    for (size_t i = 0; i < index; i++)
        if (tare__subgraph_node(m, rule->nodes[i].name) == n) return true;
    return false;
}

static tare_status annotate_node(const data_level *l, const data_rule *rule,
                                 const subgraph_match *m, size_t index) {
    const rule_node *r = &rule->nodes[index];
    const node *n = tare__subgraph_node(m, r->name);
    tare_annotation *annotation = NULL;
    tare_qspec *spec = NULL;
    if (n == NULL) return TARE_OK;
    if (r->input_count == 0 && !r->has_output) return tare__mark(l->a, n);
    if (is_said(rule, m, index, n))
        TARE_TRY(tare__annotation_get(&l->a->model->annotations, n->name, &annotation, l->a->err));
    else
        TARE_TRY(tare__annotate_anew(l->a, n, &annotation));
    annotation->allows_sharing = annotation->allows_sharing && !r->refuses_sharing;
    TARE_TRY(annotate_inputs(l, m, r, annotation));
    if (!r->has_output) return TARE_OK;
    TARE_TRY(resolve(l, m, &r->output, &spec));
    tare__annotation_set_output(annotation, spec);
    tare_qspec_release(spec);
    return TARE_OK;
}

// --- matches ---

// The node that a call of the pattern matched; NULL for parameters, tensors and results.
static node *matched_call(const subgraph_match *m, const node *pn) {
    return tare__node_is_call(pn) && m->by_id[pn->id].v.kind == VALUE_NODE
               ? m->by_id[pn->id].v.as.node
               : NULL;
}

static bool comes_from(const data_level *l, const data_rule *rule, const subgraph_match *m) {
    for (size_t i = 0; i < rule->origin_count; i++) {
        const node *n = tare__subgraph_node(m, rule->origins[i].name);
        if (n == NULL || !tare__node_is_from(&l->a->sources, n, rule->origins[i].sources))
            return false;
    }
    return true;
}

static bool can_be_annotated(const data_level *l, const data_rule *rule, const subgraph_match *m) {
    for (size_t r = 0; r < rule->node_count; r++) {
        const node *n = tare__subgraph_node(m, rule->nodes[r].name);
        if (n != NULL && tare__is_marked(l->a, n)) return false;
        for (size_t i = 0; i < rule->nodes[r].input_count; i++) {
            const node *input = tare__subgraph_node(m, rule->nodes[r].inputs[i].input);
            if (input != NULL && !tare__can_be_observed(l->a, input)) return false;
        }
    }
    return true;
}

static bool takes(const data_level *l, const data_rule *rule, const subgraph_match *m) {
    bool has_target = l->kind != LEVEL_OPERATOR;
    for (const node *pn = m->pattern->graph->first; pn != NULL; pn = pn->next) {
        const node *n = matched_call(m, pn);
        if (n == NULL) continue;
        if (tare__is_marked(l->a, n) || !tare__data_level_accepts(l, n)) return false;
        has_target = has_target || strcmp(n->target, l->setting->key) == 0;
    }
    return has_target && comes_from(l, rule, m) && can_be_annotated(l, rule, m);
}

static tare_status mark_match(const data_level *l, const data_rule *rule, const subgraph_match *m) {
    for (size_t i = 0; rule->marks != NULL && rule->marks[i] != NULL; i++) {
        const node *n = tare__subgraph_node(m, rule->marks[i]);
        if (n != NULL) TARE_TRY(tare__mark(l->a, n));
    }
    if (rule->marks != NULL && !l->setting->is_none) return TARE_OK;
    for (const node *pn = m->pattern->graph->first; pn != NULL; pn = pn->next) {
        const node *n = matched_call(m, pn);
        if (n != NULL) TARE_TRY(tare__mark(l->a, n));
    }
    return TARE_OK;
}

static tare_status annotate_match(const data_level *l, const data_rule *rule,
                                  const subgraph_match *m) {
    if (!takes(l, rule, m)) return TARE_OK;
    for (size_t r = 0; r < rule->node_count && !l->setting->is_none; r++)
        TARE_TRY(annotate_node(l, rule, m, r));
    return mark_match(l, rule, m);
}

tare_status tare__data_rule_run(const data_level *l, const data_rule *rule) {
    if (rule->is_for_training && !l->specs.is_qat && !l->setting->is_none) return TARE_OK;
    l->a->rule = rule->name;
    for (size_t f = 0; f < rule->forms.count; f++) {
        subgraph_matches matches = {0};
        TARE_TRY(
            tare__subgraph_find(rule->forms.items[f], l->a->g, &l->a->memory, &matches, l->a->err));
        for (size_t i = 0; i < matches.count; i++)
            TARE_TRY(annotate_match(l, rule, &matches.items[i]));
    }
    return TARE_OK;
}
