// SPDX-License-Identifier: Apache-2.0
// A match: nodes in the shape of the pattern that matched them. Passes create it, getters inspect
// it.
// Private to flow.
#ifndef FLOW_MATCH_H
#define FLOW_MATCH_H

#include "config/backend_config.h"
#include "ir/graph.h"

/// An item: a nested match, a node, or (both NULL) a constant that a wildcard or literal matched.
typedef struct match_item {
    const tare_match *nested;
    const tare_match_node *node;
    bool is_wildcard; // matched by a wildcard, so not covered by the pattern
} match_item;

struct tare_match {
    size_t count;
    const match_item *items;
};

/// A tare_match_node is a node; the public header does not expose graphs.
static inline const tare_match_node *tare__match_node_from(const node *n) {
    return (const tare_match_node *)n;
}
static inline const node *tare__match_node_get(const tare_match_node *n) {
    return (const node *)n;
}

/// A list of items under construction.
typedef struct match_list {
    match_item *items;
    size_t count;
} match_list;
/// An empty list with capacity for `capacity` items, allocated in `a`.
tare_status tare__match_list_create(arena *a, size_t capacity, match_list *out, tare_error *err);
/// An item for a value; if a literal or wildcard matched a constant, its node is NULL.
static inline match_item tare__match_leaf(const value *v) {
    return v->kind == VALUE_NODE ? (match_item){.node = tare__match_node_from(v->as.node)}
                                 : (match_item){0};
}

/// Makes the match of these items an item of another match. Fails only with TARE_OUT_OF_MEMORY.
tare_status tare__match_nest(arena *a, const match_list *items, match_item *out, tare_error *err);

/// The nodes of a match as a list, without those that wildcards matched.
typedef struct match_nodes {
    const node **items;
    size_t count;
} match_nodes;
tare_status tare__match_flatten(arena *a, const tare_match *match, match_nodes *out,
                                tare_error *err);

/// The root by the config's getter, or by default; NULL if it is no node.
const node *tare__match_root(const tare_pattern_config *config, const tare_match *match);
/// torch's default root: the last item, descending until it is a node; NULL if it is a constant.
const tare_match_node *tare__match_default_root(const tare_match *match);

#endif
