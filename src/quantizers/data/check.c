// SPDX-License-Identifier: Apache-2.0
// Checks that a rule is consistent with every form of its pattern.
#include <string.h>

#include "config/qspec.h"
#include "quantizers/data/quantizer.h"

static const node *named(const subgraph_pattern *p, const char *name) {
    for (size_t i = 0; i < p->name_count; i++)
        if (strcmp(p->names[i].name, name) == 0) return p->names[i].node;
    return NULL;
}

typedef struct checking {
    const data_rule *rule;
    const subgraph_pattern *form;
    size_t form_index;
    tare_error *err;
} checking;

static const char *name_at(const void *user, size_t i) {
    const subgraph_pattern *p = user;
    return i < p->name_count ? p->names[i].name : NULL;
}

static tare_status find_name(const checking *c, const char *name, const node **out) {
    *out = named(c->form, name);
    if (*out != NULL) return TARE_OK;
    return tare__suggest(c->err,
                         tare__fail(c->err, TARE_INVALID_ARGUMENT,
                                    "rule '%s': form %zu of the pattern names no '%s'",
                                    c->rule->name, c->form_index, name),
                         name, name_at, c->form);
}

static bool reads(const node *n, const node *input) {
    for (size_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] == input) return true;
    return false;
}

// The spec source of the edge from `from` to the node, or if from is NULL of the node's output.
static const spec_source *source_of(const data_rule *rule, const char *from, const char *name) {
    for (size_t r = 0; r < rule->node_count; r++) {
        const rule_node *n = &rule->nodes[r];
        if (strcmp(n->name, name) != 0) continue;
        for (size_t i = 0; from != NULL && i < n->input_count; i++)
            if (strcmp(n->inputs[i].input, from) == 0) return &n->inputs[i].source;
        if (from == NULL && n->has_output) return &n->output;
    }
    return NULL;
}

static tare_status refuse_target(const checking *c, const char *from, const char *name,
                                 const tare_edge_name *t, const char *why) {
    return tare__fail(c->err, TARE_INVALID_ARGUMENT,
                      "rule '%s': the spec of %s'%s' refers to %s%s%s'%s', which %s", c->rule->name,
                      from != NULL ? "an input of " : "", name,
                      t->from != NULL ? "what is read from '" : "", t->from != NULL ? t->from : "",
                      t->from != NULL ? "' by " : "", t->node, why);
}

// True if following shared specs from t does not end at a spec of its own but returns to `start`.
static bool comes_back(const data_rule *rule, const spec_source *start, const tare_edge_name *t) {
    const spec_source *at = source_of(rule, t->from, t->node);
    for (size_t steps = 0; at != NULL && at->otherwise == NULL && at->spec != NULL; steps++) {
        if (at == start || steps > 64) return true;
        if (at->spec->kind != TARE_QSPEC_SHARED) return false;
        at = source_of(rule, at->spec->targets[0].from, at->spec->targets[0].node);
    }
    return false;
}

static tare_status check_targets(const checking *c, const spec_source *source, const char *from,
                                 const char *name) {
    const tare_qspec *spec = source->spec;
    for (size_t i = 0; spec != NULL && i < spec->target_count; i++) {
        const tare_edge_name *t = &spec->targets[i];
        const node *input = NULL, *n = NULL;
        if (t->from != NULL) TARE_TRY(find_name(c, t->from, &input));
        TARE_TRY(find_name(c, t->node, &n));
        if (source->otherwise != NULL) continue; // used only if the target is annotated
        if (source_of(c->rule, t->from, t->node) == NULL)
            return refuse_target(c, from, name, t, "the rule does not annotate");
        if (comes_back(c->rule, source, t))
            return refuse_target(c, from, name, t, "refers back to it");
    }
    return source->otherwise != NULL ? check_targets(c, source->otherwise, from, name) : TARE_OK;
}

static tare_status check_node(const checking *c, const rule_node *r) {
    const node *n = NULL, *input = NULL;
    TARE_TRY(find_name(c, r->name, &n));
    for (size_t i = 0; i < r->input_count; i++) {
        TARE_TRY(find_name(c, r->inputs[i].input, &input));
        if (!reads(n, input))
            return tare__fail(c->err, TARE_INVALID_ARGUMENT,
                              "rule '%s': in form %zu of the pattern '%s' does not read '%s'",
                              c->rule->name, c->form_index, r->name, r->inputs[i].input);
        for (size_t k = 0; k < i; k++)
            if (strcmp(r->inputs[k].input, r->inputs[i].input) == 0)
                return tare__fail(c->err, TARE_INVALID_ARGUMENT,
                                  "rule '%s': a second entry of '%s'", c->rule->name,
                                  r->inputs[i].input);
        TARE_TRY(check_targets(c, &r->inputs[i].source, r->inputs[i].input, r->name));
    }
    return r->has_output ? check_targets(c, &r->output, NULL, r->name) : TARE_OK;
}

static tare_status check_names(const checking *c) {
    const node *ignored = NULL;
    for (size_t i = 0; c->rule->marks != NULL && c->rule->marks[i] != NULL; i++)
        TARE_TRY(find_name(c, c->rule->marks[i], &ignored));
    for (size_t i = 0; i < c->rule->origin_count; i++)
        TARE_TRY(find_name(c, c->rule->origins[i].name, &ignored));
    return TARE_OK;
}

tare_status tare__data_rule_check(const data_rule *rule, tare_error *err) {
    if (rule->node_count == 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "rule '%s' annotates nothing", rule->name);
    for (size_t f = 0; f < rule->forms.count; f++) {
        const checking c = {
            .rule = rule, .form = rule->forms.items[f], .form_index = f, .err = err};
        for (size_t i = 0; i < rule->node_count; i++) TARE_TRY(check_node(&c, &rule->nodes[i]));
        TARE_TRY(check_names(&c));
    }
    return TARE_OK;
}
