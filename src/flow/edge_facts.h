// SPDX-License-Identifier: Apache-2.0
// What became of every edge of a prepared graph, kept for explain.
// Private to flow.
#ifndef FLOW_EDGE_FACTS_H
#define FLOW_EDGE_FACTS_H

#include "core/text/text.h"
#include "model/pass.h"

/// One argument of a node.
typedef struct edge {
    const node *from, *to; // observers between them are no ends
    const node *argument;  // what `to` reads
    const node *observer;  // the last one between them; NULL: none
    size_t observer_count;
} edge;

/// How a mode speaks of an edge.
typedef struct edge_teller {
    pass *p;
    void *user;
    /// "input", "weight" or "bias".
    const char *(*role)(void *user, const edge *e);
    /// Writes into `rule` why the edge has an observer or none.
    tare_status (*tell)(void *user, const edge *e, text *rule);
    text rule; // tare__text_release it at last
} edge_teller;

/// A fact for every argument of the node.
tare_status tare__add_edge_facts(edge_teller *teller, const node *to);

#endif
