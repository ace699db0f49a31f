// SPDX-License-Identifier: Apache-2.0
// Facts about the edges of a prepared graph, kept for explain.
// Private to flow.
#ifndef FLOW_EDGE_FACTS_H
#define FLOW_EDGE_FACTS_H

#include "core/text/text.h"
#include "model/pass.h"

/// One argument of a node.
typedef struct edge {
    const node *from, *to; // producer and consumer, looking through observers
    const node *argument;  // the node that `to` reads
    const node *observer;  // the last observer between them; NULL: none
    size_t observer_count;
} edge;

/// How a mode describes an edge.
typedef struct edge_teller {
    pass *p;
    void *user;
    /// "input", "weight" or "bias".
    const char *(*role)(void *user, const edge *e);
    /// Appends to `rule` why the edge has an observer or none.
    tare_status (*tell)(void *user, const edge *e, text *rule);
    text rule; // the caller releases it
} edge_teller;

/// Adds a fact for every argument of the node.
tare_status tare__add_edge_facts(edge_teller *teller, const node *to);

#endif
