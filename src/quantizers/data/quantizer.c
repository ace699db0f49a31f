// SPDX-License-Identifier: Apache-2.0
// Applies a rule file: settings in order of precedence, and for each the rules in order. Nodes that
// are already annotated are skipped.
#include <string.h>

#include "config/qspec.h"
#include "core/memory/alloc.h"
#include "quantizers/data/rule.h"

// For cat and similar operators: the first input gets the config's input spec; the other inputs and
// the output share its observer.
static tare_status join_inputs(const data_level *l, const node *n) {
    tare_annotation *annotation = NULL;
    tare_qspec *shared = NULL;
    for (size_t i = 0; i < n->input_count; i++)
        if (!tare__can_be_observed(l->a, n->inputs[i])) return TARE_OK;
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
    tare__annotating_by(l->a, l->settings, l->setting);
    TARE_TRY(tare__config_specs(l->setting, &l->specs, l->a->err));
    // In training, unused nodes would count as users of their inputs.
    if (l->specs.is_qat) TARE_TRY(tare__graph_drop_unread(l->a->g, l->a->err));
    for (size_t i = 0; i < l->q->rule_count; i++) TARE_TRY(tare__data_rule_run(l, &l->q->rules[i]));
    l->a->rule = "joins_inputs";
    for (const node *n = l->a->g->first; n != NULL; n = n->next) {
        if (!tare__calls(n, l->q->joins_inputs) || n->input_count == 0) continue;
        if (tare__is_marked(l->a, n) || !tare__data_level_accepts(l, n)) continue;
        const bool has_target =
            l->kind != LEVEL_OPERATOR || strcmp(l->setting->key, n->target) == 0;
        if (has_target) TARE_TRY(join_inputs(l, n));
    }
    return TARE_OK;
}

// --- levels ---

bool tare__data_level_accepts(const data_level *l, const node *n) {
    return tare__level_accepts(&l->a->sources, l->settings, l->kind, l->setting, n);
}

static tare_status run_list(annotating *a, const data_quantizer *q, const setting_list *list,
                            level_kind kind) {
    for (size_t i = 0; i < list->count; i++) {
        data_level l = {
            .a = a, .q = q, .settings = q->settings, .setting = &list->items[i], .kind = kind};
        TARE_TRY(run_level(&l));
    }
    return TARE_OK;
}

// True if a setting with config None applies to the node.
static bool is_left_float(const annotating *a, const tare_quantizer_settings *s, const node *n) {
    for (size_t i = 0; i < s->module_names.count; i++)
        if (s->module_names.items[i].is_none &&
            tare__node_is_in_module(&a->sources, n, s->module_names.items[i].key))
            return true;
    for (size_t i = 0; i < s->module_types.count; i++)
        if (s->module_types.items[i].is_none &&
            tare__node_is_in_class(&a->sources, n, s->module_types.items[i].key))
            return true;
    for (size_t i = 0; i < s->operators.count; i++)
        if (s->operators.items[i].is_none && strcmp(s->operators.items[i].key, n->target) == 0)
            return true;
    return false;
}

static tare_status keep_observers(annotating *a, const data_quantizer *q) {
    a->rule = "keeps_observer";
    a->section = a->key = NULL;
    for (const node *n = a->g->first; n != NULL; n = n->next) {
        const node *input = tare__calls(n, q->keeps_observer) ? tare__node_arg(n, 0) : NULL;
        const tare_annotation *before =
            input != NULL ? tare__annotation_find(&a->model->annotations, input->name) : NULL;
        if (before == NULL || before->output == NULL || tare__is_marked(a, n) ||
            is_left_float(a, q->settings, n))
            continue;
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
    TARE_TRY(run_list(a, q, &s->module_names, LEVEL_NAME));
    TARE_TRY(run_list(a, q, &s->module_types, LEVEL_TYPE));
    TARE_TRY(run_list(a, q, &s->operators, LEVEL_OPERATOR));
    data_level l = {.a = a, .q = q, .settings = s, .setting = &s->global, .kind = LEVEL_GLOBAL};
    if (s->has_global && !s->global.is_none) TARE_TRY(run_level(&l));
    return keep_observers(a, q);
}

tare_status tare__data_transform(void *self, tare_model *model, tare_error *err) {
    const data_quantizer *q = self;
    return tare_model_lift_scalars(model, q->lifts_scalars, err);
}

tare_status tare__data_annotate(void *self, tare_model *model, tare_error *err) {
    annotating a;
    tare_status status = tare__annotating_begin(&a, model, err);
    if (status == TARE_OK) status = run(&a, self);
    tare__annotating_end(&a);
    return status;
}

// --- creation and destruction ---

static void release_source(spec_source *source) {
    tare_qspec_release(source->spec);
    for (spec_source *s = source->otherwise, *next; s != NULL; s = next) {
        next = s->otherwise;
        tare_qspec_release(s->spec);
        tare__free(s);
    }
}

static void release_rule(data_rule *rule) {
    tare__subgraph_forms_release(&rule->forms);
    for (size_t i = 0; i < rule->node_count; i++) {
        rule_node *n = &rule->nodes[i];
        for (size_t k = 0; k < n->input_count; k++) {
            tare__free(n->inputs[k].input);
            release_source(&n->inputs[k].source);
        }
        tare__free(n->inputs);
        release_source(&n->output);
        tare__free(n->name);
    }
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
