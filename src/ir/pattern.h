// SPDX-License-Identifier: Apache-2.0
// Operator patterns, in reverse order of execution, and matching them with a graph (torch's
// _is_match).
#ifndef IR_PATTERN_H
#define IR_PATTERN_H

#include "core/text/text.h"
#include "ir/graph.h"
#include "ir/module.h"

typedef enum pattern_kind {
    PATTERN_ANY,      // MatchAllNode: any argument, constants too
    PATTERN_MODULE,   // name: the exact class of a called module
    PATTERN_FUNCTION, // name: a function's canonical name
    PATTERN_METHOD,   // name: a bare method name
    PATTERN_LITERAL,  // literal: an equal constant
    PATTERN_TUPLE,    // items[0] is the head, items[i] the pattern of positional argument i - 1
} pattern_kind;

typedef struct pattern {
    pattern_kind kind;
    const char *name;
    value literal;
    const struct pattern *items;
    size_t item_count;
} pattern;

/// True if `v` (usually a node) matches. Inner nodes must have exactly one user; the outermost may
/// have several. root: the module tree of call_module targets.
bool tare__pattern_matches(const pattern *p, const value *v, const module *root);
/// The same for an element of a pattern; outermost: it may have several users.
bool tare__pattern_matches_at(const pattern *p, const value *v, const module *root, bool outermost);
/// Writes into `why`, in a sentence, the first difference that prevents a match of `p` that
/// contains n. False, without text, if p does not contain n's operator or if it matches.
bool tare__pattern_why(const pattern *p, const node *n, const module *root, text *why);
/// True if `a` matches everything that `b` matches; false if the patterns alone do not tell.
bool tare__pattern_covers(const pattern *a, const pattern *b);
bool tare__pattern_equal(const pattern *a, const pattern *b);
size_t tare__pattern_leaf_count(const pattern *p);
/// The operator of a node as it is named in patterns: class name, function or method; NULL for
/// other nodes.
const char *tare__node_operator(const node *n, const module *root, pattern_kind *kind);
/// True if the node's operator is the one that the pattern, which must not be a tuple, names.
bool tare__pattern_names_operator(const pattern *p, const node *n, const module *root);

#endif
