// SPDX-License-Identifier: Apache-2.0
// A graph inside that calibration did not run (the branch of a condition that never held, a loop
// without rounds) has no ranges to quantize with: it stays float.
#include "core/memory/alloc.h"
#include "flow/calibrate/observer_list.h"
#include "flow/export/convert.h"
#include "flow/export/observers.h"
#include "observe/classes/builtin.h"

static tare_status has_seen(const module *root, const module *observer, bool *out,
                            tare_error *err) {
    const qparams *q = NULL;
    *out = false;
    if (!tare__observer_watches(observer) || tare__observer_info(observer)->is_dynamic ||
        tare__observer_class_of(observer) == &tare__derived_observer)
        return TARE_OK;
    const tare_status status = tare__pt2e_qparams(root, observer, &q, out, err);
    tare__qparams_release(q);
    return status;
}

tare_status tare__pt2e_was_calibrated(const tare_model *model, bool *out, tare_error *err) {
    observer_list list = {0};
    tare_status status = tare__observers_list(model, &list, err);
    *out = false;
    for (size_t i = 0; i < list.count && status == TARE_OK && !*out; i++)
        status = has_seen(model->root, list.items[i], out, err);
    tare__free(list.items);
    return status;
}

// Without observers that would have seen something there is nothing to be known.
static bool needs_data(const pass *p) {
    for (const node *n = p->model->root->graph->first; n != NULL; n = n->next) {
        const module *m =
            tare__is_observer_node(p->model, n) ? tare__called_module(p->model, n) : NULL;
        if (m != NULL && tare__observer_watches(m) && !tare__observer_info(m)->is_dynamic)
            return true;
    }
    return false;
}

static tare_status was_run(const pass *p, bool *out) {
    *out = false;
    for (const node *n = p->model->root->graph->first; n != NULL && !*out; n = n->next)
        if (tare__is_observer_node(p->model, n))
            TARE_TRY(has_seen(p->model->root, tare__called_module(p->model, n), out, p->err));
    return TARE_OK;
}

tare_status tare__pt2e_leave_unseen(pass *p) {
    bool is_run = false;
    if (!needs_data(p)) return TARE_OK;
    TARE_TRY(was_run(p, &is_run));
    if (is_run) return TARE_OK;
    for (node *n = p->model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        if (tare__is_observer_node(p->model, n)) {
            const observer_site site = {.p = p, .observer = n, .watched = tare__node_arg(n, 0)};
            TARE_TRY(tare__site_finish(&site, site.watched));
        } else if (tare__annotation_takes(&p->model->annotations, n)) {
            TARE_TRY(TARE_DECIDE(p, n, "left float", "calibration",
                                 "calibration never ran this graph, so that no range is known"));
        }
    }
    return TARE_DECIDE(p, tare__graph_output(p->model->root->graph), "warning", "calibration",
                       "calibration never ran this graph: it stays float");
}
