// SPDX-License-Identifier: Apache-2.0
// Records for each edge of a prepared graph whether it is observed, and why.
#include "flow/edge_facts.h"

#include "ir/argument_paths.h"

typedef struct edge_walk {
    edge_teller *teller;
    const node *to;
} edge_walk;

static tare_status add_edge(void *user, node *arg, const char *path) {
    const edge_walk *w = user;
    edge_teller *t = w->teller;
    tare_model *model = t->p->model;
    edge e = {.from = arg, .to = w->to, .argument = arg};
    if (tare__is_observer_node(model, arg)) e.observer = arg;
    for (; e.from != NULL && tare__is_observer_node(model, e.from); e.observer_count++)
        e.from = tare__node_arg(e.from, 0);
    if (e.from == NULL) return TARE_OK; // an observer without input is refused elsewhere
    tare__text_clear(&t->rule);
    TARE_TRY(t->tell(t->user, &e, &t->rule));
    TARE_TRY(tare__text_status(&t->rule, t->p->err));
    return TARE_FACT(&model->facts, FACT_EDGE, t->p->err, e.from->name, e.to->name, path,
                     t->role(t->user, &e), e.observer != NULL ? e.observer->target : "",
                     e.observer != NULL ? tare__called_module(model, e.observer)->class->name : "",
                     tare__text_chars(&t->rule));
}

tare_status tare__add_edge_facts(edge_teller *teller, const node *to) {
    edge_walk w = {teller, to};
    return tare__each_argument(to, add_edge, &w, teller->p->err);
}
