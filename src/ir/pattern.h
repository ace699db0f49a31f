// SPDX-License-Identifier: Apache-2.0
// Patterns of operators, last executed first, and their matching against a graph (torch's
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

/// Does `v` (a node, usually) match? Inner nodes must have one user; the outermost may have any
/// number. root: the module tree that call_module targets refer to.
bool tare__pattern_matches(const pattern *p, const value *v, const module *root);
/// The same for an element of a pattern; outermost: as tare__pattern_matches.
bool tare__pattern_matches_at(const pattern *p, const value *v, const module *root, bool outermost);
/// Why no match of `p` holds n, in a sentence: the first difference. False, and nothing said, when
/// p has no operator like n's, or does match.
bool tare__pattern_why(const pattern *p, const node *n, const module *root, text *why);
/// Does `a` match whatever `b` matches? False where that cannot be told from the patterns alone.
bool tare__pattern_covers(const pattern *a, const pattern *b);
bool tare__pattern_equal(const pattern *a, const pattern *b);
size_t tare__pattern_leaf_count(const pattern *p);
/// The head operator of a node as a pattern name would spell it: class name, function or method;
/// NULL for others.
const char *tare__node_operator(const node *n, const module *root, pattern_kind *kind);
/// Is that the operator that the pattern, which is no tuple, names?
bool tare__pattern_names_operator(const pattern *p, const node *n, const module *root);

#endif
