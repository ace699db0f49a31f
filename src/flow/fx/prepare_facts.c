// SPDX-License-Identifier: Apache-2.0
// Prepare: facts about every node and edge, kept for explain.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/pattern_form.h"
#include "flow/edge_facts.h"
#include "flow/fx/prepare.h"

static fact_book *facts_of(const prepare_pass *p) {
    return &p->base->model->facts;
}

static tare_status add_try(prepare_pass *p, const node *n, const tare_pattern_config *config,
                           const text *why) {
    text name = {0};
    tare__pattern_to_text(tare__pattern_config_given(config), &name);
    tare_status status = tare__text_status(&name, p->base->err);
    if (status == TARE_OK) status = tare__text_status(why, p->base->err);
    if (status == TARE_OK)
        status = TARE_FACT(facts_of(p), FACT_PATTERN, p->base->err, n->name,
                           tare__text_chars(&name), tare__text_chars(why));
    tare__text_release(&name);
    return status;
}

// Adds every pattern with this operator that was tried before the one that matched.
static tare_status add_tries(prepare_pass *p, const tare_pattern_config *const *sorted,
                             const node *n, const prepare_node *entry) {
    text why = {0};
    tare_status status = TARE_OK;
    const tare_pattern_config *taken = entry->match != NULL ? entry->match->config : NULL;
    for (size_t i = 0; i < p->base->backend->count && status == TARE_OK; i++) {
        if (sorted[i] == taken) break;
        tare__text_clear(&why);
        if (tare__pattern_why(sorted[i]->complex, n, p->base->model->root, &why))
            status = add_try(p, n, sorted[i], &why);
    }
    tare__text_release(&why);
    return status;
}

static tare_status add_dtypes(prepare_pass *p, const node *n, const prepare_node *entry) {
    for (size_t i = 0; i < entry->try_count; i++) {
        const dtypes_try *t = &entry->tries[i];
        char index[24];
        (void)snprintf(index, sizeof index, "%zu", t->index);
        TARE_TRY(TARE_FACT(facts_of(p), FACT_DTYPES, p->base->err, n->name, index,
                           t->is_accepted ? "accepted" : "refused", t->constraint, t->wanted,
                           t->found, t->why));
    }
    return TARE_OK;
}

static const char *position_in_match(const prepare_match *match, const node *n) {
    if (match == NULL) return "";
    if (match->standalone != NULL) return "standalone module";
    if (match->observed_class != NULL) return "custom module";
    return match->last == n ? "last" : "inside";
}

static tare_status add_node(prepare_pass *p, const node *n, const prepare_node *entry) {
    text matched = {0}, qconfig = {0};
    if (entry->match != NULL && entry->match->config != NULL)
        tare__pattern_to_text(tare__pattern_config_given(entry->match->config), &matched);
    if (entry->qconfig.qconfig != NULL) tare__qconfig_text(entry->qconfig.qconfig, &qconfig);
    tare_status status = tare__text_status(&matched, p->base->err);
    if (status == TARE_OK) status = tare__text_status(&qconfig, p->base->err);
    if (status == TARE_OK)
        status = TARE_FACT(facts_of(p), FACT_NODE, p->base->err, n->name,
                           tare__node_subject(p->base->model, n), tare__text_chars(&matched),
                           position_in_match(entry->match, n), tare__text_chars(&qconfig),
                           entry->qconfig.section, entry->qconfig.key);
    tare__text_release(&matched);
    tare__text_release(&qconfig);
    return status;
}

tare_status tare__prepare_find_facts(prepare_pass *p) {
    const tare_pattern_config **sorted = NULL;
    TARE_TRY(
        tare__backend_config_sorted(p->base->backend, &p->base->scratch, &sorted, p->base->err));
    for (const node *n = p->base->model->root->graph->first; n != NULL; n = n->next) {
        const prepare_node *entry = tare__prepare_node(p, n);
        if (!tare__node_is_call(n)) continue;
        TARE_TRY(add_node(p, n, entry));
        TARE_TRY(add_tries(p, sorted, n, entry));
        TARE_TRY(add_dtypes(p, n, entry));
    }
    return TARE_OK;
}

// --- edges ---

typedef struct edge_note {
    const struct edge_note *next;
    size_t from; // id of the producer
    const char *rule;
} edge_note;

tare_status tare__prepare_note_edge(prepare_pass *p, const node *from, const node *to,
                                    const char *rule, ...) {
    char sentence[256];
    va_list args;
    va_start(args, rule);
    (void)vsnprintf(sentence, sizeof sentence, rule, args);
    va_end(args);
    prepare_node *entry = tare__prepare_node(p, to);
    edge_note *made = tare__arena_alloc(&p->base->scratch, sizeof *made);
    if (made == NULL) return tare__out_of_memory(p->base->err);
    *made = (edge_note){entry->notes, from->id, tare__arena_strdup(&p->base->scratch, sentence)};
    if (made->rule == NULL) return tare__out_of_memory(p->base->err);
    entry->notes = made;
    return TARE_OK;
}

typedef struct edge_rules {
    prepare_pass *pass;
    map first_paths; // address of an observer module -> its first path
} edge_rules;

static const char *find_note(const prepare_node *entry, const node *from) {
    for (const edge_note *note = entry->notes; note != NULL; note = note->next)
        if (note->from == from->id) return note->rule;
    return NULL;
}

// An observer shared between edges is one module with several paths.
static tare_status tell_sharing(edge_rules *w, const node *observer, text *rule) {
    char key[32];
    (void)snprintf(key, sizeof key, "%p",
                   (const void *)tare__called_module(w->pass->base->model, observer));
    const char *first = tare__map_get(&w->first_paths, key);
    if (first == NULL && !tare__map_set(&w->first_paths, key, (void *)observer->target))
        return tare__out_of_memory(w->pass->base->err);
    if (first != NULL && strcmp(first, observer->target) != 0)
        tare__text_printf(rule, "; its observer is the one of '%s'", first);
    return TARE_OK;
}

static tare_status tell_edge(void *user, const edge *e, text *rule) {
    edge_rules *w = user;
    const prepare_node *entry = tare__prepare_node(w->pass, e->to);
    const prepare_node *source = tare__prepare_node(w->pass, e->from);
    const char *note = find_note(entry, e->from);
    if (e->observer_count == 1 && source != NULL && source->output_rule != NULL)
        tare__text_append(rule, source->output_rule);
    else if (note != NULL)
        tare__text_append(rule, note);
    else if (e->observer != NULL)
        tare__text_printf(rule, "observed for other readers of '%s'", e->from->name);
    else if (source != NULL && source->match != NULL && source->match == entry->match)
        tare__text_append(rule, "no observer: both ends are inside one pattern");
    else if (e->to->op == NODE_OUTPUT)
        tare__text_append(rule, "no observer: the value leaves the graph in float");
    else
        tare__text_printf(rule, "no observer: '%s' stays float or only passes values on",
                          e->to->name);
    return e->observer != NULL ? tell_sharing(w, e->observer, rule) : TARE_OK;
}

static const char *role_of(void *user, const edge *e) {
    const edge_rules *w = user;
    const prepare_node *entry = tare__prepare_node(w->pass, e->to);
    if (tare__is_weight_arg(entry, e->to, e->argument)) return "weight";
    return tare__is_bias_arg(entry, e->to, e->argument) ? "bias" : "input";
}

tare_status tare__prepare_edge_facts(prepare_pass *p) {
    edge_rules rules = {.pass = p};
    edge_teller teller = {.p = p->base, .user = &rules, .role = role_of, .tell = tell_edge};
    tare_status status = TARE_OK;
    for (const node *n = p->base->model->root->graph->first; n != NULL && status == TARE_OK;
         n = n->next)
        if (tare__prepare_node(p, n) != NULL) status = tare__add_edge_facts(&teller, n);
    tare__text_release(&teller.rule);
    tare__map_release(&rules.first_paths);
    return status;
}
