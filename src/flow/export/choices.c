// SPDX-License-Identifier: Apache-2.0
// Leaves nodes float by name, for example if integers were measured to be slower: removes their
// observers before convert, and lowering leaves them unchanged.
#include <string.h>

#include "flow/export/convert.h"

// The record says that convert left it float.
bool tare__pt2e_stays_float(const pass *p, const node *n) {
    for (size_t i = 0; i < p->model->decisions.count; i++) {
        const tare_decision *d = &p->model->decisions.items[i];
        if (strcmp(d->pass, "convert") == 0 && strcmp(d->decision, "left float") == 0 &&
            strcmp(d->node, n->name) == 0)
            return true;
    }
    return false;
}

typedef struct choices {
    pass *p;
    bool *stay; // by id
} choices;

static bool wants_quantized(const choices *c, const node *n) {
    return tare__annotation_takes(&c->p->model->annotations, n) && !c->stay[n->id];
}

static tare_status note(const choices *c, const tare_float_choice *choice) {
    pass *p = c->p;
    const char *name = choice->node != NULL ? choice->node : "";
    const node *n = tare__graph_find(p->model->root->graph, name);
    if (n == NULL)
        return tare__fail(p->err, TARE_NOT_FOUND,
                          "the prepared program has no node '%s' to leave float", name);
    if (!tare__node_is_call(n) || !wants_quantized(c, n))
        return tare__fail(p->err, TARE_INVALID_ARGUMENT,
                          "node '%s' stays float anyway: choosing it has no effect", name);
    c->stay[n->id] = true;
    return TARE_DECIDE(p, n, "left float", choice->rule != NULL ? choice->rule : "", "%s",
                       choice->reason != NULL ? choice->reason : "");
}

// True if a reader other than an observer takes the observed value quantized.
static bool has_reader_of_quantized(const choices *c, const node *observer) {
    for (size_t i = 0; i < observer->user_count; i++) {
        const node *user = observer->users[i];
        if (tare__is_observer_node(c->p->model, user) ? has_reader_of_quantized(c, user)
                                                      : wants_quantized(c, user))
            return true;
    }
    return false;
}

static bool is_unwanted(const choices *c, const node *observer) {
    const node *watched = tare__behind_observers(c->p->model, tare__node_arg(observer, 0));
    return watched != NULL && !wants_quantized(c, watched) && !has_reader_of_quantized(c, observer);
}

static tare_status remove_unwanted(const choices *c) {
    const graph *g = c->p->model->root->graph;
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        if (!tare__is_observer_node(c->p->model, n) || !is_unwanted(c, n)) continue;
        const observer_site site = {.p = c->p, .observer = n, .watched = tare__node_arg(n, 0)};
        TARE_TRY(tare__site_finish(&site, site.watched));
    }
    return TARE_OK;
}

tare_status tare__pt2e_apply_choices(pass *p, const tare_float_choice *list, size_t count) {
    choices c = {.p = p};
    if (count == 0) return TARE_OK;
    c.stay = tare__arena_array(&p->scratch, p->model->root->graph->next_id + 1, sizeof *c.stay);
    if (c.stay == NULL) return tare__out_of_memory(p->err);
    for (size_t i = 0; i < count; i++) TARE_TRY(note(&c, &list[i]));
    return remove_unwanted(&c);
}
