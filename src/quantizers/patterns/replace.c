// SPDX-License-Identifier: Apache-2.0
// Replaces matches of a pattern in torch's order, which determines the names of new nodes.
#include "quantizers/patterns/replace.h"

#include <string.h>

#include "ops/quantized/decomposed.h"
#include "ops/text/print.h"
#include "quantizers/patterns/subgraph.h"

typedef struct replacing {
    pass *p;
    const char *name, *rule;
    const subgraph_pattern *pattern;
    const graph *replacement;
    node **changed; // by id: the replacement of a replaced node
} replacing;

// --- replacing one match ---

typedef struct site {
    const replacing *r;
    const subgraph_match *match;
    node *before;     // new nodes are inserted before it
    node **made;      // by node id in the replacement graph: the new node
    const value **at; // by placeholder id in the replacement graph: the matched value
} site;

static graph *graph_of(const replacing *r) {
    return r->p->model->root->graph;
}

static value bound_value(const site *s, const node *placeholder) {
    value v = *s->at[placeholder->id];
    if (v.kind == VALUE_NODE && s->r->changed[v.as.node->id] != NULL)
        v.as.node = s->r->changed[v.as.node->id];
    return v;
}

static tare_status map_value(const site *s, const value *v, value *out) {
    *out = *v;
    if (v->kind == VALUE_NODE) {
        const node *n = v->as.node;
        *out = n->op == NODE_PLACEHOLDER ? bound_value(s, n) : tare__node_value(s->made[n->id]);
        return TARE_OK;
    }
    if (!tare__value_has_items(v)) return TARE_OK;
    *out = tare__value_sequence(&s->r->p->scratch, v->kind, v->count);
    if (out->as.items == NULL && v->count > 0) return tare__out_of_memory(s->r->p->err);
    for (uint32_t i = 0; i < v->count; i++)
        TARE_TRY(map_value(s, &v->as.items[i], &out->as.items[i]));
    return TARE_OK;
}

static tare_status copy_node(const site *s, const node *n) {
    tare_error *err = s->r->p->err;
    value *args = tare__arena_array(&s->r->p->scratch, n->arg_count + 1, sizeof *args);
    if (args == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < n->arg_count; i++) TARE_TRY(map_value(s, &n->args[i], &args[i]));
    const node_spec spec = {.op = n->op,
                            .target = n->target,
                            .candidate = n->name,
                            .args = args,
                            .arg_count = n->arg_count};
    return tare__graph_insert(graph_of(s->r), &spec, s->before, &s->made[n->id], err);
}

// The first user of the result; if it has none, the node after it.
static node *insertion_point(const node *returned) {
    for (node *n = returned->next; n != NULL; n = n->next)
        for (size_t i = 0; i < returned->user_count; i++)
            if (returned->users[i] == n) return n;
    return returned->next;
}

static void bind_parameters(const site *s) {
    const node *from = s->r->pattern->graph->first;
    for (const node *n = s->r->replacement->first; n != NULL && n->op == NODE_PLACEHOLDER;
         n = n->next, from = from->next)
        s->at[n->id] = &s->match->by_id[from->id].v;
}

static tare_status erase_match(const site *s) {
    for (const node *pn = s->r->pattern->graph->last; pn != NULL; pn = pn->prev)
        if (pn->op != NODE_PLACEHOLDER && pn->op != NODE_OUTPUT)
            TARE_TRY(
                tare__graph_erase(graph_of(s->r), s->match->by_id[pn->id].v.as.node, s->r->p->err));
    return TARE_OK;
}

static tare_status replace_one(const replacing *r, const subgraph_match *match) {
    node *returned = match->by_id[r->pattern->returned[0]->id].v.as.node;
    const size_t count = r->replacement->next_id;
    site s = {.r = r,
              .match = match,
              .before = insertion_point(returned),
              .made = tare__arena_array(&r->p->scratch, count, sizeof(node *)),
              .at = tare__arena_array(&r->p->scratch, count, sizeof(value *))};
    if (s.made == NULL || s.at == NULL) return tare__out_of_memory(r->p->err);
    bind_parameters(&s);
    for (const node *n = r->replacement->first; n != NULL; n = n->next)
        if (n->op != NODE_PLACEHOLDER && n->op != NODE_OUTPUT) TARE_TRY(copy_node(&s, n));
    node *result = s.made[tare__graph_output(r->replacement)->inputs[0]->id];
    // A quantization by plain arithmetic has no quantize node that could be recognized, so the
    // debug handle is not passed on.
    if (!tare__gives_bare_integers(returned)) result->debug_handle = returned->debug_handle;
    TARE_TRY(tare__node_replace_uses(returned, result, NULL, r->p->err));
    r->changed[returned->id] = result;
    TARE_TRY(erase_match(&s));
    return TARE_DECIDE(r->p, result, "rewritten", r->rule, "%s", r->name);
}

// --- replacing all matches ---

// False if a parameter is unbound or None: a layer without bias also matches a pattern with one,
// because None is the default.
static bool is_complete(const subgraph_match *m) {
    for (const node *pn = m->pattern->graph->first; pn != NULL; pn = pn->next) {
        const subgraph_binding *b = &m->by_id[pn->id];
        if (pn->op == NODE_PLACEHOLDER && (!b->is_bound || b->v.kind == VALUE_NONE)) return false;
    }
    return true;
}

static tare_status replace_all(replacing *r) {
    subgraph_matches found = {0};
    TARE_TRY(tare__subgraph_find(r->pattern, graph_of(r), &r->p->scratch, &found, r->p->err));
    const size_t most = graph_of(r)->next_id + 1;
    r->changed = tare__arena_array(&r->p->scratch, most, sizeof *r->changed);
    if (r->changed == NULL) return tare__out_of_memory(r->p->err);
    for (size_t i = 0; i < found.count; i++)
        if (is_complete(&found.items[i])) TARE_TRY(replace_one(r, &found.items[i]));
    return TARE_OK;
}

tare_status tare__replace_pattern(pass *p, const pattern_rewrite *rewrite, const char *rule) {
    const subgraph_options options = {0};
    const char *code = rewrite->replacement;
    subgraph_pattern *parsed = NULL;
    graph *replacement = NULL;
    TARE_TRY(tare__subgraph_parse(rewrite->pattern, strlen(rewrite->pattern), &options, &parsed,
                                  p->err));
    tare_status status = tare__parse_code(code, strlen(code), NULL, &replacement, p->err);
    replacing r = {
        .p = p, .name = rewrite->name, .rule = rule, .pattern = parsed, .replacement = replacement};
    if (status == TARE_OK) status = replace_all(&r);
    tare__graph_destroy(replacement);
    tare__subgraph_destroy(parsed);
    return status;
}
