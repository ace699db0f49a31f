// SPDX-License-Identifier: Apache-2.0
// Prepare: records the quantizer's decisions for every node and edge, for explain.
#include <string.h>

#include "flow/edge_facts.h"
#include "flow/export/observers.h"
#include "flow/export/steps.h"
#include "ops/flow_op.h"
#include "quantizers/patterns/node_source.h"
#include "quantizers/settings.h"

typedef struct noting {
    pass *p;
    const tare_observer_map *set;
    const tare_quantizer *quantizer;
    node_sources sources;
    text words;
} noting;

static tare_status text_done(noting *w) {
    return tare__text_status(&w->words, w->p->err);
}

// --- nodes ---

// The setting of a list that selects the node; settings of None select nothing.
static const setting *find_setting(const noting *w, const setting_list *list, const node *n,
                                   bool (*holds)(const node_sources *sources, const node *n,
                                                 const char *key)) {
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].is_none && holds(&w->sources, n, list->items[i].key))
            return &list->items[i];
    return NULL;
}

static bool is_operator(const node_sources *sources, const node *n, const char *key) {
    (void)sources;
    return n->op == NODE_CALL_FUNCTION && strcmp(n->target, key) == 0;
}

// Finds the setting that selects a node without annotation.
static void find_request(const noting *w, const tare_quantizer *q, const node *n,
                         annotation_origin *out) {
    for (size_t i = 0; i < q->member_count; i++) find_request(w, q->members[i], n, out);
    const tare_quantizer_settings *s = q->settings;
    const setting *found = NULL;
    if (s == NULL || out->section != NULL) return;
    if ((found = find_setting(w, &s->module_names, n, tare__node_is_in_module)) != NULL)
        out->section = "module_name";
    else if ((found = find_setting(w, &s->module_types, n, tare__node_is_in_class)) != NULL)
        out->section = "module_type";
    else if ((found = find_setting(w, &s->operators, n, is_operator)) != NULL)
        out->section = "operator";
    if (found != NULL) out->key = found->key;
}

static const char *state_of(const noting *w, const node *n, const tare_annotation *a) {
    if (a == NULL) return "";
    if (tare__annotation_has_specs(a)) return "annotated";
    return tare__annotation_takes(&w->p->model->annotations, n) ? "inside" : "left out";
}

static tare_status add_node(noting *w, const node *n) {
    const tare_model *model = w->p->model;
    const tare_annotation *a = tare__annotation_find(&model->annotations, n->name);
    annotation_origin by = {.quantizer = tare_quantizer_name(w->quantizer)};
    if (a != NULL)
        by = a->origin;
    else if (n->user_count > 0)
        find_request(w, w->quantizer, n, &by);
    tare__text_clear(&w->words);
    if (a != NULL && a->output != NULL) tare__qspec_text(a->output, &w->words);
    TARE_TRY(text_done(w));
    return TARE_FACT(&w->p->model->facts, FACT_NODE, w->p->err, n->name,
                     tare__node_subject(model, n), by.rule, state_of(w, n, a), "", by.section,
                     by.key, by.quantizer, tare__text_chars(&w->words));
}

static void tell_annotated(noting *w, const tare_annotation *a) {
    if (a->input_count > 0)
        tare__text_printf(&w->words, "%zu input%s", a->input_count, a->input_count == 1 ? "" : "s");
    if (a->input_count > 0 && a->output != NULL) tare__text_append(&w->words, " and ");
    if (a->output != NULL) tare__text_append(&w->words, "the output");
}

static tare_status decide(noting *w, const node *n) {
    const tare_annotation *a = tare__annotation_find(&w->p->model->annotations, n->name);
    const char *quantizer = tare_quantizer_name(w->quantizer);
    if (tare__flow_op(n) != NULL)
        return TARE_DECIDE(w->p, n, "left float", "control flow", FLOW_REASON);
    if (a == NULL)
        return TARE_DECIDE(w->p, n, "left float", quantizer, "no rule of %s annotates it",
                           quantizer);
    if (a->origin.quantizer != NULL) quantizer = a->origin.quantizer;
    const char *rule = a->origin.rule != NULL ? a->origin.rule : quantizer;
    if (!tare__annotation_takes(&w->p->model->annotations, n))
        return TARE_DECIDE(w->p, n, "left float", rule, "%s is not to quantize it", quantizer);
    if (!tare__annotation_has_specs(a))
        return TARE_DECIDE(w->p, n, "annotated", rule, "%s takes it as a part of '%s'", quantizer,
                           rule);
    tare__text_clear(&w->words);
    tell_annotated(w, a);
    TARE_TRY(text_done(w));
    return TARE_DECIDE(w->p, n, "annotated", rule, "%s annotates %s as of '%s'", quantizer,
                       tare__text_chars(&w->words), rule);
}

// --- edges ---

static const char *role_of(void *user, const edge *e) {
    (void)user;
    if (tare__layer_call(e->to) == NULL) return "input";
    if (tare__node_arg(e->to, 1) == e->argument) return "weight";
    return tare__node_arg(e->to, 2) == e->argument ? "bias" : "input";
}

static void tell_sharing(const noting *w, const qspec_key *key, text *rule) {
    if (key->joined == 0) return;
    const qspec_key *other = &w->set->keys.items[key->joined - 1];
    tare__text_append(rule, "; shares the observer of ");
    tare__qspec_key_text(other, rule);
    tare__text_append(rule, key->joined_implicitly ? ", whose spec agrees" : ", as it says");
}

static void tell_key(const noting *w, const qspec_key *key, bool is_output, text *rule) {
    if (is_output) tare__text_printf(rule, "output of '%s': ", key->node->name);
    if (key->spec != NULL)
        tare__qspec_text(key->spec, rule);
    else
        tare__text_append(rule, "no observer: the spec is None");
    tell_sharing(w, key, rule);
}

// Tells the spec of the edge, or of the value that is read, or why there is none.
static tare_status tell_edge(void *user, const edge *e, text *rule) {
    const noting *w = user;
    const qspec_keys *keys = &w->set->keys;
    const size_t of_edge = tare__qspec_keys_find(keys, e->from->name, e->to->name);
    const size_t of_output = tare__qspec_keys_find(keys, NULL, e->from->name);
    const annotation_book *book = &w->p->model->annotations;
    if (of_edge < keys->count)
        tell_key(w, &keys->items[of_edge], false, rule);
    else if (e->observer != NULL && of_output < keys->count)
        tell_key(w, &keys->items[of_output], true, rule);
    else if (e->to->op == NODE_OUTPUT)
        tare__text_append(rule, "no observer: the value leaves the graph in float");
    else if (tare__annotation_find(book, e->to->name) != NULL &&
             tare__annotation_find(book, e->from->name) != NULL)
        tare__text_append(rule, "no observer: both ends are inside one pattern");
    else
        tare__text_printf(rule, "no observer: nothing annotates what '%s' reads here", e->to->name);
    return TARE_OK;
}

// --- both ---

static tare_status note_node(noting *w, edge_teller *edges, const node *n) {
    if (tare__is_observer_node(w->p->model, n)) return TARE_OK;
    if (tare__node_is_call(n)) TARE_TRY(add_node(w, n));
    // Nodes without users are no operators of the model.
    if (tare__node_is_call(n) && n->user_count > 0) TARE_TRY(decide(w, n));
    return tare__add_edge_facts(edges, n);
}

tare_status tare__pt2e_note_facts(pass *p, const tare_observer_map *set,
                                  const tare_quantizer *quantizer) {
    noting w = {.p = p, .set = set, .quantizer = quantizer};
    edge_teller edges = {.p = p, .user = &w, .role = role_of, .tell = tell_edge};
    tare_status status = tare__node_sources_read(p->model->root->graph, &w.sources, p->err);
    for (const node *n = p->model->root->graph->first; n != NULL && status == TARE_OK; n = n->next)
        status = note_node(&w, &edges, n);
    tare__node_sources_release(&w.sources);
    tare__text_release(&w.words);
    tare__text_release(&edges.rule);
    return status;
}
