// SPDX-License-Identifier: Apache-2.0
// Rules at work: level by level, rule by rule, match by match; what is marked is passed over.
#include "pt2e/data_quantizer.h"

#include <string.h>

#include "core/alloc.h"
#include "pt2e/annotate.h"
#include "quant/qspec.h"

// --- one match ---

typedef struct data_level {
    annotating *a;
    const data_quantizer *q;
    const setting *setting;
    config_specs specs;
    bool (*accepts)(const struct data_level *l, const node *n);
    const char *target; // settings by operator: a match needs it; NULL: any match
} data_level;

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

// The pattern's names become the graph's. check made sure that both are nodes wherever the spec is
// used, but for a literal in place of a node, whose name stays.
static tare_edge_name in_graph(void *user, tare_edge_name target) {
    const subgraph_match *m = user;
    const node *from = target.from != NULL ? tare__subgraph_node(m, target.from) : NULL;
    const node *to = tare__subgraph_node(m, target.node);
    return (tare_edge_name){.from = from != NULL ? from->name : target.from,
                            .node = to != NULL ? to->name : target.node};
}

// *out has a reference of its own.
static tare_status resolve(const data_level *l, const subgraph_match *m, const spec_source *source,
                           tare_qspec **out) {
    *out = NULL;
    if (source->origin == SPEC_OWN)
        return tare__qspec_map_targets(source->spec, in_graph, (void *)m, out, l->a->err);
    *out = tare_qspec_retain(config_spec(l, source->origin));
    return TARE_OK;
}

static tare_status annotate_node(const data_level *l, const subgraph_match *m, const rule_node *r) {
    const node *n = tare__subgraph_node(m, r->name);
    tare_annotation *annotation = NULL;
    tare_qspec *spec = NULL;
    if (n == NULL) return TARE_OK;
    TARE_TRY(tare__annotate_anew(l->a, n, &annotation));
    annotation->allows_sharing = !r->refuses_sharing;
    for (size_t i = 0; i < r->input_count; i++) {
        const node *input = tare__subgraph_node(m, r->inputs[i].input);
        if (input == NULL) continue; // None stands there
        TARE_TRY(resolve(l, m, &r->inputs[i].source, &spec));
        const tare_status status = tare__annotate_edge(l->a, annotation, input, spec);
        tare_qspec_release(spec);
        TARE_TRY(status);
    }
    if (!r->has_output) return TARE_OK;
    TARE_TRY(resolve(l, m, &r->output, &spec));
    tare__annotation_set_output(annotation, spec);
    tare_qspec_release(spec);
    return TARE_OK;
}

// The node that one of the pattern's calls was matched to; NULL for parameters, tensors, results.
static node *matched_call(const subgraph_match *m, const node *pn) {
    const bool is_call =
        pn->op == NODE_CALL_FUNCTION || pn->op == NODE_CALL_MODULE || pn->op == NODE_CALL_METHOD;
    return is_call && m->by_id[pn->id].v.kind == VALUE_NODE ? m->by_id[pn->id].v.as.node : NULL;
}

// Observers watch floats only.
static bool is_float(const annotating *a, const node *n) {
    const tare_value_info *info = tare__node_tensor_info(&a->sources, n);
    return info == NULL || tare__dtype(info->dtype)->is_float;
}

static bool takes(const data_level *l, const data_rule *rule, const subgraph_match *m) {
    bool has_target = l->target == NULL;
    for (const node *pn = m->pattern->graph->first; pn != NULL; pn = pn->next) {
        const node *n = matched_call(m, pn);
        if (n == NULL) continue;
        if (tare__is_marked(l->a, n) || !l->accepts(l, n)) return false;
        has_target = has_target || strcmp(n->target, l->target) == 0;
    }
    for (size_t r = 0; r < rule->node_count; r++)
        for (size_t i = 0; i < rule->nodes[r].input_count; i++) {
            const node *input = tare__subgraph_node(m, rule->nodes[r].inputs[i].input);
            if (input != NULL && !is_float(l->a, input)) return false;
        }
    return has_target;
}

static tare_status annotate_match(const data_level *l, const data_rule *rule,
                                  const subgraph_match *m) {
    if (!takes(l, rule, m)) return TARE_OK;
    for (size_t r = 0; r < rule->node_count && !l->setting->is_none; r++)
        TARE_TRY(annotate_node(l, m, &rule->nodes[r]));
    for (const node *pn = m->pattern->graph->first; pn != NULL; pn = pn->next) {
        const node *n = matched_call(m, pn);
        if (n != NULL) TARE_TRY(tare__mark(l->a, n));
    }
    return TARE_OK;
}

static tare_status run_rule(const data_level *l, const data_rule *rule) {
    l->a->rule = rule->name;
    for (size_t f = 0; f < rule->form_count; f++) {
        subgraph_matches matches = {0};
        TARE_TRY(tare__subgraph_find(rule->forms[f], l->a->g, &l->a->memory, &matches, l->a->err));
        for (size_t i = 0; i < matches.count; i++)
            TARE_TRY(annotate_match(l, rule, &matches.items[i]));
    }
    return TARE_OK;
}

// cat: the first input like a layer's, the others and the output share its observer.
static tare_status join_inputs(const data_level *l, const node *n) {
    tare_annotation *annotation = NULL;
    tare_qspec *shared = NULL;
    for (size_t i = 0; i < n->input_count; i++)
        if (!is_float(l->a, n->inputs[i])) return TARE_OK;
    TARE_TRY(tare__annotate_anew(l->a, n, &annotation));
    if (l->setting->is_none) return TARE_OK;
    TARE_TRY(tare__annotate_edge(l->a, annotation, n->inputs[0], l->specs.input));
    TARE_TRY(tare__share_with(l->a, n->inputs[0], n, &shared));
    tare_status status = TARE_OK;
    for (size_t i = 1; i < n->input_count && status == TARE_OK; i++)
        status = tare__annotate_edge(l->a, annotation, n->inputs[i], shared);
    tare__annotation_set_output(annotation, shared);
    tare_qspec_release(shared);
    return status;
}

static tare_status run_level(data_level *l) {
    tare__annotating_by(l->a, l->q->settings, l->setting);
    TARE_TRY(tare__config_specs(l->setting, &l->specs, l->a->err));
    for (size_t i = 0; i < l->q->rule_count; i++) TARE_TRY(run_rule(l, &l->q->rules[i]));
    l->a->rule = "joins_inputs";
    for (const node *n = l->a->g->first; n != NULL; n = n->next) {
        if (!tare__calls(n, l->q->joins_inputs) || n->input_count == 0) continue;
        if (tare__is_marked(l->a, n) || !l->accepts(l, n)) continue;
        if (l->target == NULL || strcmp(l->target, n->target) == 0) TARE_TRY(join_inputs(l, n));
    }
    return TARE_OK;
}

// --- levels ---

static bool is_in_module(const data_level *l, const node *n) {
    return tare__node_is_in_module(&l->a->sources, n, l->setting->key);
}
static bool is_in_class(const data_level *l, const node *n) {
    return tare__node_is_in_class(&l->a->sources, n, l->setting->key);
}
static bool is_anywhere(const data_level *l, const node *n) {
    (void)l, (void)n;
    return true;
}

static tare_status run_list(annotating *a, const data_quantizer *q, const setting_list *list,
                            bool (*accepts)(const data_level *l, const node *n),
                            bool is_by_operator) {
    for (size_t i = 0; i < list->count; i++) {
        data_level l = {.a = a, .q = q, .setting = &list->items[i], .accepts = accepts};
        if (is_by_operator) l.target = list->items[i].key;
        TARE_TRY(run_level(&l));
    }
    return TARE_OK;
}

static tare_status keep_observers(annotating *a, const data_quantizer *q) {
    a->rule = "keeps_observer";
    a->section = a->key = NULL;
    for (const node *n = a->g->first; n != NULL; n = n->next) {
        const node *input = tare__calls(n, q->keeps_observer) ? tare__node_arg(n, 0) : NULL;
        const tare_annotation *before =
            input != NULL ? tare__annotation_find(&a->model->annotations, input->name) : NULL;
        if (before == NULL || before->output == NULL || tare__is_marked(a, n)) continue;
        tare_annotation *annotation = NULL;
        tare_qspec *shared = NULL;
        TARE_TRY(tare__annotate_anew(a, n, &annotation));
        TARE_TRY(tare__share_with(a, NULL, input, &shared));
        const tare_status status = tare__annotate_edge(a, annotation, input, shared);
        tare__annotation_set_output(annotation, shared);
        tare_qspec_release(shared);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static tare_status run(annotating *a, const data_quantizer *q) {
    const tare_quantizer_settings *s = q->settings;
    TARE_TRY(tare__check_modules(a, s));
    for (size_t i = 0; i < s->operators.count; i++)
        TARE_TRY(tare__check_operator(a, s, s->operators.items[i].key));
    TARE_TRY(run_list(a, q, &s->module_names, is_in_module, false));
    TARE_TRY(run_list(a, q, &s->module_types, is_in_class, false));
    TARE_TRY(run_list(a, q, &s->operators, is_anywhere, true));
    data_level l = {.a = a, .q = q, .setting = &s->global, .accepts = is_anywhere};
    if (s->has_global && !s->global.is_none) TARE_TRY(run_level(&l));
    return keep_observers(a, q);
}

tare_status tare__data_annotate(void *self, tare_model *model, tare_error *err) {
    annotating a;
    tare_status status = tare__annotating_begin(&a, model, err);
    if (status == TARE_OK) status = run(&a, self);
    tare__annotating_end(&a);
    return status;
}

// --- life ---

static void release_rule(data_rule *rule) {
    for (size_t i = 0; i < rule->form_count; i++) tare__subgraph_destroy(rule->forms[i]);
    for (size_t i = 0; i < rule->node_count; i++) {
        rule_node *n = &rule->nodes[i];
        for (size_t k = 0; k < n->input_count; k++) {
            tare__free(n->inputs[k].input);
            tare_qspec_release(n->inputs[k].source.spec);
        }
        tare__free(n->inputs);
        tare_qspec_release(n->output.spec);
        tare__free(n->name);
    }
    tare__free(rule->forms);
    tare__free(rule->nodes);
    tare__free(rule->name);
}

void tare__data_quantizer_destroy(void *self) {
    data_quantizer *q = self;
    if (q == NULL) return;
    for (size_t i = 0; i < q->rule_count; i++) release_rule(&q->rules[i]);
    for (size_t i = 0; i < q->specs.count; i++) tare_qspec_release(q->specs.entries[i].value);
    tare__map_release(&q->specs);
    tare_quantizer_settings_destroy(q->settings);
    tare__arena_release(&q->memory);
    tare__free(q->rules);
    tare__free(q->name);
    tare__free(q);
}
