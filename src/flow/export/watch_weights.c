// SPDX-License-Identifier: Apache-2.0
// Runs weight observers in convert if calibration did not, so that dynamic and weight-only models
// need no calibration data. torch converts such models with a scale of 1.
#include "flow/export/convert.h"
#include "observe/classes/builtin.h"
#include "observe/fake_quantize.h"

// The tensor that is read, if it is a tensor of the model that is never written; else NULL.
static const tare_tensor *weight_of(const pass *p, const node *n) {
    if (n == NULL || n->op != NODE_GET_ATTR) return NULL;
    for (size_t i = 0; i < n->user_count; i++)
        if (tare__writes_first_argument(n->users[i]) && tare__node_arg(n->users[i], 0) == n)
            return NULL;
    return tare__module_find_tensor(p->model->root, n->target);
}

// True if the observer only observes weights.
static bool watches_weights(const pass *p, const module *observer) {
    for (const node *n = p->model->root->graph->first; n != NULL; n = n->next)
        if (tare__called_module(p->model, n) == observer &&
            weight_of(p, tare__node_arg(n, 0)) == NULL)
            return false;
    return true;
}

tare_status tare__pt2e_watch_weights(const pass *p, module *observer, bool *done) {
    *done = tare__observer_class_of(observer) != &tare__derived_observer &&
            tare__fake_quantize_kind_of(observer) == NULL && watches_weights(p, observer);
    for (const node *n = p->model->root->graph->first; n != NULL && *done; n = n->next)
        if (tare__called_module(p->model, n) == observer)
            TARE_TRY(tare__observer_update(observer, weight_of(p, tare__node_arg(n, 0)), p->err));
    return TARE_OK;
}
