// SPDX-License-Identifier: Apache-2.0
// A match: nodes in the shape of the pattern that they matched. Passes make it, getters look into
// it.
// Private to flow.
#ifndef FLOW_MATCH_H
#define FLOW_MATCH_H

#include "config/backend_config.h"
#include "ir/graph.h"

/// One element: a nested match, a node, or (both NULL) a constant that a wildcard or literal
/// matched.
typedef struct match_item {
    const tare_match *nested;
    const tare_match_node *node;
    bool is_wildcard; // a wildcard stands for the node, which is no part of the pattern
} match_item;

struct tare_match {
    size_t count;
    const match_item *items;
};

/// A tare_match_node is a node under another name, so that the public header needs no graph.
static inline const tare_match_node *tare__match_node_from(const node *n) {
    return (const tare_match_node *)n;
}
static inline const node *tare__match_node_get(const tare_match_node *n) {
    return (const node *)n;
}

/// Items of a match in the making.
typedef struct match_list {
    match_item *items;
    size_t count;
} match_list;
/// An empty list with room for `capacity` items, in `a`.
tare_status tare__match_list_create(arena *a, size_t capacity, match_list *out, tare_error *err);
/// A literal or wildcard may stand for a constant: an item without node.
static inline match_item tare__match_leaf(const value *v) {
    return v->kind == VALUE_NODE ? (match_item){.node = tare__match_node_from(v->as.node)}
                                 : (match_item){0};
}

/// The match of these items, as one item of another; TARE_OUT_OF_MEMORY only.
tare_status tare__match_nest(arena *a, const match_list *items, match_item *out, tare_error *err);

/// The nodes of a match, without its shape and without those that are marked as a wildcard's.
typedef struct match_nodes {
    const node **items;
    size_t count;
} match_nodes;
tare_status tare__match_flatten(arena *a, const tare_match *match, match_nodes *out,
                                tare_error *err);

/// What the config's getter says, or the default root; NULL where they find no node.
const node *tare__match_root(const tare_pattern_config *config, const tare_match *match);
/// torch's default root: the last element, descended until it is a node; NULL if it is a constant.
const tare_match_node *tare__match_default_root(const tare_match *match);

#endif
