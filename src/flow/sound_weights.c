// SPDX-License-Identifier: Apache-2.0
// Refuses weights that cannot be quantized, before an observer includes a NaN in its range.
#include "flow/sound_weights.h"

#include <stdio.h>

#include "config/qconfig.h"
#include "model/pass.h"

static tare_status refuse(const named_tensor *t, const char *path, tare_error *err) {
    if (t == NULL || t->tensor == NULL) return TARE_OK;
    const tare_status status = t->is_parameter
                                   ? tare__tensor_refuse_infinite(t->tensor, "weight", path, err)
                                   : tare__tensor_refuse_nan(t->tensor, "constant", path, err);
    if (status == TARE_OK) return TARE_OK;
    return tare__hint(
        err, status, "train or export the model again, or leave the operator float by its qconfig");
}

// --- modules ---

typedef struct module_walk {
    const char *target; // target of the node that calls the outermost module
} module_walk;

static tare_status check_module(void *user, const char *path, module *m, tare_error *err) {
    const module_walk *w = user;
    for (size_t i = 0; i < m->tensor_count; i++) {
        char name[512];
        if (!m->tensors[i].is_parameter) continue; // statistics and masks are not quantized
        (void)snprintf(name, sizeof name, "%s%s%s.%s", w->target, path[0] != '\0' ? "." : "", path,
                       m->tensors[i].name);
        TARE_TRY(refuse(&m->tensors[i], name, err));
    }
    return TARE_OK;
}

static tare_status check_called(const tare_model *model, const node *n, tare_error *err) {
    module *m = tare__called_module(model, n);
    const prepared_node *known =
        model->prepared != NULL ? tare__prepared_node(model->prepared, n->name) : NULL;
    if (m == NULL || known == NULL || !known->is_observed || known->qconfig == NULL ||
        known->qconfig->weight == NULL)
        return TARE_OK;
    module_walk w = {.target = n->target};
    return tare__module_walk(m, check_module, &w, err);
}

// --- tensors of the graph ---

static const named_tensor *tensor_of(const tare_model *model, const node *n) {
    return n != NULL && n->op == NODE_GET_ATTR
               ? tare__module_find_named_tensor(model->root, n->target)
               : NULL;
}

// A bias has no observer, but is quantized together with the weight.
static tare_status check_beside(const tare_model *model, const node *reader, tare_error *err) {
    for (size_t i = 0; i < reader->input_count; i++) {
        const named_tensor *t = tensor_of(model, reader->inputs[i]);
        if (t != NULL && t->is_parameter) TARE_TRY(refuse(t, reader->inputs[i]->target, err));
    }
    return TARE_OK;
}

static tare_status check_watched(const tare_model *model, const node *observer, tare_error *err) {
    const node *watched = tare__node_arg(observer, 0);
    const named_tensor *t = tensor_of(model, watched);
    if (t == NULL) return TARE_OK;
    TARE_TRY(refuse(t, watched->target, err));
    for (size_t i = 0; t->is_parameter && i < observer->user_count; i++)
        TARE_TRY(check_beside(model, observer->users[i], err));
    return TARE_OK;
}

tare_status tare__refuse_unsound_weights(const tare_model *prepared, tare_error *err) {
    for (const node *n = prepared->root->graph->first; n != NULL; n = n->next) {
        const tare_status status = tare__is_observer_node(prepared, n)
                                       ? check_watched(prepared, n, err)
                                       : check_called(prepared, n, err);
        if (status != TARE_OK) return tare__at(err, status, "node '%s'", n->name);
    }
    return TARE_OK;
}
