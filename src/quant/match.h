// SPDX-License-Identifier: Apache-2.0
// A match: nodes in the shape of the pattern that they matched. Passes make it, getters look into
// it.
#ifndef QUANT_MATCH_H
#define QUANT_MATCH_H

#include "ir/graph.h"
#include "tare/backend_config.h"

/// One element: a nested match, a node, or (both NULL) a constant that a wildcard or literal
/// matched.
typedef struct match_item {
    const tare_match *nested;
    const tare_match_node *node;
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

/// torch's default root: the last element, descended until it is a node; NULL if it is a constant.
const tare_match_node *tare__match_default_root(const tare_match *match);

#endif
