// SPDX-License-Identifier: Apache-2.0
// torch's _is_match: compares a pattern with a node and, recursively, with the nodes among its
// arguments.
#include "ir/pattern.h"

#include <stdint.h>
#include <string.h>

bool tare__pattern_equal(const pattern *a, const pattern *b) {
    if (a->kind != b->kind || a->item_count != b->item_count) return false;
    switch (a->kind) {
    case PATTERN_ANY:
        return true;
    case PATTERN_MODULE:
    case PATTERN_FUNCTION:
    case PATTERN_METHOD:
        return strcmp(a->name, b->name) == 0;
    case PATTERN_LITERAL:
        return tare__value_equal(&a->literal, &b->literal);
    case PATTERN_TUPLE:
        break;
    }
    for (size_t i = 0; i < a->item_count; i++)
        if (!tare__pattern_equal(&a->items[i], &b->items[i])) return false;
    return true;
}

bool tare__pattern_covers(const pattern *a, const pattern *b) {
    if (a->kind == PATTERN_ANY) return true;
    if (a->kind != PATTERN_TUPLE)
        return tare__pattern_equal(a, b->kind == PATTERN_TUPLE ? &b->items[0] : b);
    // A tuple matches only operators with as many arguments as it has patterns.
    if (b->kind != PATTERN_TUPLE || a->item_count != b->item_count) return false;
    for (size_t i = 0; i < a->item_count; i++)
        if (!tare__pattern_covers(&a->items[i], &b->items[i])) return false;
    return true;
}

size_t tare__pattern_leaf_count(const pattern *p) {
    if (p->kind != PATTERN_TUPLE) return 1;
    size_t count = 0;
    for (size_t i = 0; i < p->item_count; i++) count += tare__pattern_leaf_count(&p->items[i]);
    return count;
}

const char *tare__node_operator(const node *n, const module *root, pattern_kind *kind) {
    const module *called = NULL;
    switch (n->op) {
    case NODE_CALL_MODULE:
        *kind = PATTERN_MODULE;
        called = tare__module_find(root, n->target);
        return called ? called->class->name : NULL;
    case NODE_CALL_FUNCTION:
        *kind = PATTERN_FUNCTION;
        return n->target;
    case NODE_CALL_METHOD:
        *kind = PATTERN_METHOD;
        return n->target;
    case NODE_PLACEHOLDER:
    case NODE_GET_ATTR:
    case NODE_OUTPUT:
        return NULL;
    }
    return NULL;
}

// Compares like Python's ==: numbers of different types may be equal (0 == 0.0 == False).
static bool equals_constant(const value *literal, const value *v) {
    double a = 0, b = 0;
    if (tare__value_number(literal, &a) && tare__value_number(v, &b)) return a == b;
    return tare__value_equal(literal, v);
}

// A value that is not a node matches only an equal constant. A method name in a pattern is a
// string, so it also matches an equal string argument (interpolate's "nearest").
static bool matches_constant(const pattern *p, const value *v) {
    if (p->kind == PATTERN_LITERAL) return equals_constant(&p->literal, v);
    return p->kind == PATTERN_METHOD && v->kind == VALUE_STRING && strcmp(p->name, v->as.text) == 0;
}

bool tare__pattern_names_operator(const pattern *p, const node *n, const module *root) {
    pattern_kind kind = PATTERN_ANY;
    const char *name = tare__node_operator(n, root, &kind);
    return name != NULL && kind == p->kind && strcmp(name, p->name) == 0;
}

static bool is_getattr(const pattern *head) {
    return head->kind == PATTERN_FUNCTION && strcmp(head->name, "getattr") == 0;
}

// Matches (getattr, "shape"): the second element is the attribute's name, not a pattern for the
// first argument.
static bool matches_attribute(const pattern *p, const node *n, const module *root) {
    return p->item_count == 2 && tare__pattern_names_operator(&p->items[0], n, root) &&
           n->arg_count > 1 && matches_constant(&p->items[1], &n->args[1]);
}

static bool matches(const pattern *p, const value *v, const module *root, size_t most_users);

static bool matches_tuple(const pattern *p, const node *n, const module *root) {
    if (is_getattr(&p->items[0])) return matches_attribute(p, n, root);
    if (p->items[0].kind == PATTERN_ANY) return true;
    if (!tare__pattern_names_operator(&p->items[0], n, root)) return false;
    if (p->item_count == 1) return true;
    // As in torch, keyword arguments are not compared.
    if (p->item_count - 1 != n->arg_count) return false;
    for (size_t i = 0; i < n->arg_count; i++)
        if (!matches(&p->items[i + 1], &n->args[i], root, 1)) return false;
    return true;
}

static bool matches(const pattern *p, const value *v, const module *root, size_t most_users) {
    if (p->kind == PATTERN_ANY) return true;
    if (v->kind != VALUE_NODE) return matches_constant(p, v);
    const node *n = v->as.node;
    if (n->user_count > most_users) return false;
    return p->kind == PATTERN_TUPLE ? matches_tuple(p, n, root)
                                    : tare__pattern_names_operator(p, n, root);
}

bool tare__pattern_matches_at(const pattern *p, const value *v, const module *root,
                              bool outermost) {
    return matches(p, v, root, outermost ? SIZE_MAX : 1);
}

bool tare__pattern_matches(const pattern *p, const value *v, const module *root) {
    return matches(p, v, root, SIZE_MAX);
}
