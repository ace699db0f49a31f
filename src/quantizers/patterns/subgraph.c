// SPDX-License-Identifier: Apache-2.0
// Subgraph matching: backwards from the results, argument by argument, with every candidate for
// each result.
#include "quantizers/patterns/subgraph.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "ops/op.h"
#include "ops/signatures.h"

typedef struct matcher {
    const subgraph_pattern *p;
    const graph *g;
    subgraph_binding *now; // the match in progress
    arena *memory;
    subgraph_matches *out;
    tare_error *err;
} matcher;

static bool match_nodes(matcher *m, node *pn, node *gn);

// True if a node of the pattern has matched gn already. Parameters may share a node if the options
// allow it.
static bool is_taken(const matcher *m, const node *pn, const node *gn) {
    const bool may_share = m->p->options.shares_parameters && pn->op == NODE_PLACEHOLDER;
    for (const node *other = m->p->graph->first; other != NULL; other = other->next) {
        const subgraph_binding *b = &m->now[other->id];
        if (!b->is_bound || b->v.kind != VALUE_NODE || b->v.as.node != gn) continue;
        if (!may_share || other->op != NODE_PLACEHOLDER) return true;
    }
    return false;
}

static bool nodes_are_alike(const subgraph_pattern *p, const node *pn, const node *gn) {
    if (pn->op == NODE_PLACEHOLDER && !p->options.match_placeholder) return true;
    if (pn->op != gn->op) return false;
    if (pn->op == NODE_CALL_FUNCTION || pn->op == NODE_CALL_METHOD || pn->op == NODE_CALL_MODULE)
        return strcmp(pn->target, gn->target) == 0;
    return true; // placeholders, outputs, and tensors of the model
}

// --- arguments ---

static bool match_literal(matcher *m, const value *pv, const value *gv) {
    if (pv->kind != VALUE_NODE) return gv->kind != VALUE_NODE && tare__value_equal(pv, gv);
    if (pv->as.node->op != NODE_PLACEHOLDER) return false;
    subgraph_binding *b = &m->now[pv->as.node->id];
    if (b->is_bound) return tare__value_equal(&b->v, gv);
    *b = (subgraph_binding){.is_bound = true, .v = *gv};
    return true;
}

static bool is_sequence(const value *v) {
    return v->kind == VALUE_LIST || v->kind == VALUE_TUPLE;
}

static bool match_value(matcher *m, const value *pv, const value *gv) {
    if (pv->kind == VALUE_NODE && gv->kind == VALUE_NODE)
        return match_nodes(m, pv->as.node, gv->as.node);
    if (is_sequence(pv) && is_sequence(gv)) {
        bool is_match = pv->count == gv->count;
        for (uint32_t i = 0; i < pv->count && is_match; i++)
            is_match = match_value(m, &pv->as.items[i], &gv->as.items[i]);
        return is_match;
    }
    return match_literal(m, pv, gv) || m->p->options.ignore_literals;
}

static bool have_equal_forms(const node *a, const node *b) {
    if (a->arg_count != b->arg_count || a->kwarg_count != b->kwarg_count) return false;
    for (size_t i = 0; i < a->kwarg_count; i++)
        if (strcmp(a->kwargs[i].name, b->kwargs[i].name) != 0) return false;
    return true;
}

// The parameters of a call: from torch's signature, or from the operator table if there is none.
typedef struct callee {
    const op_info *op;
    signature overload;
    bool has_signature;
    size_t param_count;
} callee;

static callee callee_of(const node *n) {
    callee c = {.op = tare__op_function(n->target)};
    signature_param ignored;
    c.has_signature = tare__signature_of(n->target, &c.overload);
    while (c.has_signature && tare__signature_param(&c.overload, c.param_count, &ignored))
        c.param_count++;
    if (!c.has_signature && c.op != NULL) c.param_count = tare__op_param_count(c.op);
    return c;
}

static bool is_named(const callee *c, size_t i, const char *name) {
    size_t index;
    if (!c->has_signature) return c->op != NULL && tare__op_param_is(c->op, i, name);
    return tare__signature_find(&c->overload, name, &index) && index == i;
}

// The i-th argument, by position or by name; NULL: omitted.
static const value *argument(const node *n, const callee *c, size_t i) {
    if (i < n->arg_count) return &n->args[i];
    for (size_t k = 0; k < n->kwarg_count; k++)
        if (is_named(c, i, n->kwargs[k].name)) return &n->kwargs[k].value;
    return NULL;
}

// True if `v` equals the default. A list equals a number if all its items do.
static bool says_the_same(const value *v, const value *fallback) {
    if (is_sequence(v)) {
        if (fallback->kind == VALUE_LIST) return v->count == 0;
        for (size_t i = 0; i < v->count; i++)
            if (!says_the_same(&v->as.items[i], fallback)) return false;
        return true;
    }
    double a = 0, b = 0;
    const bool are_numbers = v->kind != VALUE_BOOL && fallback->kind != VALUE_BOOL &&
                             tare__value_number(v, &a) && tare__value_number(fallback, &b);
    return are_numbers ? a == b : tare__value_equal(v, fallback);
}

static bool match_left_out(matcher *m, const callee *c, size_t i, const value *pv,
                           const value *gv) {
    value fallback = tare__none();
    signature_param p;
    if (pv == NULL && gv == NULL) return true;
    const bool is_known = c->has_signature && tare__signature_param(&c->overload, i, &p) &&
                          tare__signature_default(&p, &fallback);
    if (pv != NULL && pv->kind == VALUE_NODE)
        return match_literal(m, pv, &fallback) || m->p->options.ignore_literals;
    return m->p->options.ignore_literals ||
           (is_known && says_the_same(pv != NULL ? pv : gv, &fallback));
}

static bool match_arguments(matcher *m, const node *pn, const node *gn) {
    bool is_match = true;
    if (have_equal_forms(pn, gn)) {
        for (size_t i = 0; i < pn->arg_count && is_match; i++)
            is_match = match_value(m, &pn->args[i], &gn->args[i]);
        for (size_t i = 0; i < pn->kwarg_count && is_match; i++)
            is_match = match_value(m, &pn->kwargs[i].value, &gn->kwargs[i].value);
        return is_match;
    }
    if (pn->op != NODE_CALL_FUNCTION) return false;
    const callee c = callee_of(pn);
    size_t count = pn->arg_count > gn->arg_count ? pn->arg_count : gn->arg_count;
    if (count < c.param_count) count = c.param_count;
    for (size_t i = 0; i < count && is_match; i++) {
        const value *pv = argument(pn, &c, i), *gv = argument(gn, &c, i);
        is_match =
            pv != NULL && gv != NULL ? match_value(m, pv, gv) : match_left_out(m, &c, i, pv, gv);
    }
    return is_match;
}

// After a failure the caller, which tries candidates, restores the bindings.
static bool match_nodes(matcher *m, node *pn, node *gn) {
    subgraph_binding *b = &m->now[pn->id];
    if (b->is_bound) return b->v.kind == VALUE_NODE && b->v.as.node == gn;
    if (is_taken(m, pn, gn) || !nodes_are_alike(m->p, pn, gn)) return false;
    *b = (subgraph_binding){.is_bound = true, .v = tare__node_value(gn)};
    return pn->op == NODE_PLACEHOLDER || match_arguments(m, pn, gn);
}

// --- conditions for a match ---

static bool is_returned(const subgraph_pattern *p, const node *pn) {
    for (size_t i = 0; i < p->returned_count; i++)
        if (p->returned[i] == pn) return true;
    return false;
}

// The node of the pattern, except placeholders, that `gn` matched; NULL if none.
static const node *computes(const subgraph_match *x, const node *gn) {
    for (const node *pn = x->pattern->graph->first; pn != NULL; pn = pn->next) {
        const subgraph_binding *b = &x->by_id[pn->id];
        if (pn->op != NODE_PLACEHOLDER && b->is_bound && b->v.kind == VALUE_NODE &&
            b->v.as.node == gn)
            return pn;
    }
    return NULL;
}

// True if no node of the match except results has users outside.
static bool is_contained(const subgraph_match *x) {
    for (const node *pn = x->pattern->graph->first; pn != NULL; pn = pn->next) {
        const subgraph_binding *b = &x->by_id[pn->id];
        if (pn->op == NODE_PLACEHOLDER || !b->is_bound || is_returned(x->pattern, pn)) continue;
        const node *gn = b->v.as.node;
        for (size_t u = 0; u < gn->user_count; u++)
            if (computes(x, gn->users[u]) == NULL) return false;
    }
    return true;
}

static bool in_match(const subgraph_match *x, const node *gn) {
    const node *pn = computes(x, gn);
    return pn != NULL && pn->op != NODE_OUTPUT;
}

// True in *out if fusing the match to one node would create a cycle: a node outside depends on the
// match, and the match on it. Nodes outside that depend on the match are collected in graph order.
static tare_status makes_cycle(matcher *m, const subgraph_match *x, bool *out) {
    *out = false;
    bool *depends = tare__alloc_zeroed(m->g->next_id + 1, sizeof *depends);
    if (depends == NULL) return tare__out_of_memory(m->err);
    for (const node *n = m->g->first; n != NULL && !*out; n = n->next) {
        const bool is_inside = in_match(x, n);
        for (size_t i = 0; i < n->input_count; i++) {
            const node *input = n->inputs[i];
            if (is_inside && depends[input->id]) *out = true;
            if (!is_inside && (depends[input->id] || in_match(x, input))) depends[n->id] = true;
        }
    }
    tare__free(depends);
    return TARE_OK;
}

static bool overlaps(const matcher *m, size_t first, const subgraph_match *x) {
    for (size_t i = first; i < m->out->count; i++)
        for (const node *pn = x->pattern->graph->first; pn != NULL; pn = pn->next) {
            const subgraph_binding *b = &x->by_id[pn->id];
            const bool is_inner = pn->op != NODE_PLACEHOLDER && pn->op != NODE_OUTPUT;
            if (is_inner && b->is_bound && in_match(&m->out->items[i], b->v.as.node)) return true;
        }
    return false;
}

static tare_status keep_match(matcher *m) {
    const size_t count = m->p->graph->next_id;
    subgraph_binding *copy = tare__arena_array(m->memory, count, sizeof *copy);
    if (copy == NULL) return tare__out_of_memory(m->err);
    memcpy(copy, m->now, count * sizeof *copy);
    const subgraph_match x = {.pattern = m->p, .by_id = copy};
    subgraph_matches *out = m->out;
    if (out->count == out->capacity) {
        const size_t capacity = out->capacity == 0 ? 8 : 2 * out->capacity;
        subgraph_match *items = tare__arena_array(m->memory, capacity, sizeof *items);
        if (items == NULL) return tare__out_of_memory(m->err);
        if (out->count > 0) memcpy(items, out->items, out->count * sizeof *items);
        out->items = items;
        out->capacity = capacity;
    }
    out->items[out->count++] = x;
    return TARE_OK;
}

// --- search ---

static tare_status try_anchor(matcher *m, size_t anchor, size_t first_match) {
    if (anchor == m->p->anchor_count) {
        const subgraph_match x = {.pattern = m->p, .by_id = m->now};
        if (!is_contained(&x)) return TARE_OK;
        if (!m->p->options.keeps_overlapping && overlaps(m, first_match, &x)) return TARE_OK;
        bool is_cycle = false;
        TARE_TRY(makes_cycle(m, &x, &is_cycle));
        return is_cycle ? TARE_OK : keep_match(m);
    }
    const size_t count = m->p->graph->next_id;
    subgraph_binding *saved = tare__alloc_zeroed(count, sizeof *saved);
    if (saved == NULL) return tare__out_of_memory(m->err);
    memcpy(saved, m->now, count * sizeof *saved);
    tare_status status = TARE_OK;
    for (node *n = m->g->first; n != NULL && status == TARE_OK; n = n->next) {
        if (!nodes_are_alike(m->p, m->p->anchors[anchor], n)) continue;
        if (match_nodes(m, m->p->anchors[anchor], n))
            status = try_anchor(m, anchor + 1, first_match);
        memcpy(m->now, saved, count * sizeof *saved);
    }
    tare__free(saved);
    return status;
}

tare_status tare__subgraph_find(const subgraph_pattern *p, const graph *g, arena *memory,
                                subgraph_matches *out, tare_error *err) {
    matcher m = {.p = p, .g = g, .memory = memory, .out = out, .err = err};
    m.now = tare__alloc_zeroed(p->graph->next_id, sizeof *m.now);
    if (m.now == NULL) return tare__out_of_memory(err);
    const tare_status status = try_anchor(&m, 0, out->count);
    tare__free(m.now);
    return status;
}

// --- access to a match ---

static const node *named(const subgraph_match *m, const char *name) {
    for (size_t i = 0; i < m->pattern->name_count; i++)
        if (strcmp(m->pattern->names[i].name, name) == 0) return m->pattern->names[i].node;
    return NULL;
}

static node *bound_node(const subgraph_match *m, const node *pn) {
    if (pn == NULL || !m->by_id[pn->id].is_bound) return NULL;
    const value *v = &m->by_id[pn->id].v;
    return v->kind == VALUE_NODE ? v->as.node : NULL;
}

node *tare__subgraph_node(const subgraph_match *m, const char *name) {
    return bound_node(m, named(m, name));
}

const value *tare__subgraph_value(const subgraph_match *m, const char *name) {
    static const value none = {.kind = VALUE_NONE};
    for (size_t i = 0; i < m->pattern->name_count; i++) {
        if (strcmp(m->pattern->names[i].name, name) != 0) continue;
        const node *pn = m->pattern->names[i].node;
        return pn != NULL && m->by_id[pn->id].is_bound ? &m->by_id[pn->id].v : &none;
    }
    return NULL;
}

bool tare__subgraph_edge(const subgraph_match *m, const char *name, size_t index, node **from,
                         node **to) {
    const node *pn = named(m, name);
    node *source = bound_node(m, pn);
    if (source == NULL) return false;
    for (size_t u = 0; u < pn->user_count; u++) {
        if (pn->users[u]->op == NODE_OUTPUT || index-- > 0) continue;
        *from = source;
        *to = bound_node(m, pn->users[u]);
        return *to != NULL;
    }
    return false;
}
