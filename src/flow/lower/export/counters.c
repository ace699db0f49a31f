// SPDX-License-Identifier: Apache-2.0
// Removes counters without effect: a write to a tensor of the model that nothing else reads, whose
// result is not used. torch's export emits such calls for num_batches_tracked of every batch norm,
// and its passes keep them.
#include "core/memory/map.h"
#include "flow/lower/export/lower.h"

// Counts the readers of each tensor of the model, by path.
static tare_status count_readers(const pass *p, map *readers) {
    for (const node *n = p->model->root->graph->first; n != NULL; n = n->next) {
        if (n->op != NODE_GET_ATTR) continue;
        const size_t count = (size_t)tare__map_get(readers, n->target) + n->user_count;
        if (!tare__map_set(readers, n->target, tare__map_int(count)))
            return tare__out_of_memory(p->err);
    }
    return TARE_OK;
}

static bool is_dead_write(const node *n, const map *readers) {
    const node *written = tare__node_arg(n, 0);
    return n->user_count == 0 && tare__writes_first_argument(n) && written != NULL &&
           written->op == NODE_GET_ATTR && (size_t)tare__map_get(readers, written->target) == 1;
}

static tare_status drop(pass *p, const map *readers) {
    graph *g = p->model->root->graph;
    for (node *n = g->last, *before; n != NULL; n = before) {
        before = n->prev;
        if (!is_dead_write(n, readers)) continue;
        TARE_TRY(TARE_DECIDE(p, n, "dropped", "nobody reads it",
                             "it overwrites '%s', which no other node reads",
                             tare__node_arg(n, 0)->target));
        TARE_TRY(tare__graph_erase(g, n, p->err));
    }
    return TARE_OK;
}

tare_status tare__pt2e_drop_dead_counters(lowering *l) {
    map readers = {0};
    tare_status status = count_readers(l->p, &readers);
    if (status == TARE_OK) status = drop(l->p, &readers);
    tare__map_release(&readers);
    return status;
}
