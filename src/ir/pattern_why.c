// SPDX-License-Identifier: Apache-2.0
// Explains why a pattern does not match a node: the first difference, in a sentence. Checks the
// same conditions as pattern.c; a test compares both for every pattern and node.
#include <string.h>

#include "ir/pattern.h"

static const pattern *head_of(const pattern *p) {
    return p->kind == PATTERN_TUPLE ? &p->items[0] : p;
}

static const char *wanted(const pattern *p) {
    const pattern *head = head_of(p);
    return head->name != NULL ? head->name : "a constant";
}

static const char *operator_of(const node *n, const module *root) {
    pattern_kind kind = PATTERN_ANY;
    const char *name = tare__node_operator(n, root, &kind);
    return name != NULL ? name : tare__node_op_name(n->op);
}

// An element of a pattern that does not match, the value compared with it, and the node whose
// argument the value is (NULL for the outermost).
typedef struct difference {
    const pattern *pattern;
    const value *value;
    const node *parent;
    size_t argument;
} difference;

static bool differs(const pattern *p, const value *v, const module *root, const node *parent,
                    size_t argument, difference *out) {
    if (p->kind == PATTERN_ANY || tare__pattern_matches_at(p, v, root, parent == NULL))
        return false;
    *out = (difference){p, v, parent, argument};
    if (v->kind != VALUE_NODE || p->kind != PATTERN_TUPLE) return true;
    const node *n = v->as.node;
    if (!tare__pattern_names_operator(&p->items[0], n, root) || p->item_count - 1 != n->arg_count)
        return true;
    if (parent != NULL && n->user_count > 1) return true;
    for (size_t i = 0; i < n->arg_count; i++)
        if (differs(&p->items[i + 1], &n->args[i], root, n, i, out)) return true;
    return true;
}

static void say(const difference *at, const module *root, text *why) {
    if (at->value->kind != VALUE_NODE) {
        tare__text_printf(
            why, "argument %zu of '%s' is a constant that is not what the pattern wants (%s)",
            at->argument, at->parent != NULL ? at->parent->name : "", wanted(at->pattern));
        return;
    }
    const node *n = at->value->as.node;
    if (!tare__pattern_names_operator(head_of(at->pattern), n, root))
        tare__text_printf(why, "'%s' is %s, the pattern wants %s there", n->name,
                          operator_of(n, root), wanted(at->pattern));
    else if (at->parent != NULL && n->user_count > 1)
        tare__text_printf(why, "'%s' has %zu users, inside a pattern it may have one", n->name,
                          n->user_count);
    else
        tare__text_printf(why, "'%s' has %zu positional arguments, the pattern wants %zu", n->name,
                          n->arg_count, at->pattern->item_count - 1);
}

static bool holds(const pattern *p, const pattern *inner) {
    if (p == inner) return true;
    for (size_t i = 1; p->kind == PATTERN_TUPLE && i < p->item_count; i++)
        if (holds(&p->items[i], inner)) return true;
    return false;
}

// The node that p would match if its element `inner` matched n; NULL, with the reason in `why`, if
// a user on the way does not match.
static const node *climb(const pattern *p, const pattern *inner, const node *n, const module *root,
                         text *why) {
    if (p == inner) return n;
    size_t i = 1;
    while (!holds(&p->items[i], inner)) i++;
    const node *below = climb(&p->items[i], inner, n, root, why);
    if (below == NULL) return NULL;
    if (below->user_count != 1) {
        tare__text_printf(why, "'%s' has %zu users, inside a pattern it may have one", below->name,
                          below->user_count);
        return NULL;
    }
    const node *user = below->users[0];
    if (p->items[0].kind != PATTERN_ANY &&
        !tare__pattern_names_operator(&p->items[0], user, root)) {
        tare__text_printf(why, "it feeds '%s', which is %s, and the pattern wants %s there",
                          user->name, operator_of(user, root), wanted(p));
        return NULL;
    }
    if (tare__node_arg(user, i - 1) == below) return user;
    tare__text_printf(why, "it is not argument %zu of '%s', where the pattern wants it", i - 1,
                      user->name);
    return NULL;
}

// Tries all elements of `top`, from p on, that name n's operator; true if `why` was written for
// one.
static bool why_from(const pattern *top, const pattern *p, const node *n, const module *root,
                     text *why) {
    if (tare__pattern_names_operator(head_of(p), n, root)) {
        const node *anchor = climb(top, p, n, root, why);
        if (anchor == NULL) return true;
        const value v = {.kind = VALUE_NODE, .as.node = (node *)anchor}; // NOLINT: only read
        difference at = {0};
        if (differs(top, &v, root, NULL, 0, &at)) {
            say(&at, root, why);
            return true;
        }
    }
    for (size_t i = 1; p->kind == PATTERN_TUPLE && i < p->item_count; i++)
        if (why_from(top, &p->items[i], n, root, why)) return true;
    return false;
}

bool tare__pattern_why(const pattern *p, const node *n, const module *root, text *why) {
    return why_from(p, p, n, root, why);
}
