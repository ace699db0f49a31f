// SPDX-License-Identifier: Apache-2.0
// Graphs inside a graph, seen as models.
#include "model/nested/nested.h"

#include "ops/flow_op.h"

bool tare__nested_has(const tare_model *model, const char *name) {
    for (const node *n = model->root->graph->first; n != NULL; n = n->next)
        if (name != NULL && n->op == NODE_GET_ATTR && tare__nested_name(name, n->target) != NULL &&
            tare__reads_inner_graph(model->root, n))
            return true;
    return false;
}

typedef struct visiting {
    nested_visitor visit;
    void *user;
    tare_error *err;
} visiting;

static tare_status visit_inside(const visiting *v, const tare_model *model, const char *prefix);

static tare_status visit_view(const visiting *v, const tare_model *model, const char *path,
                              const char *prefix, tare_model *view) {
    text inner = {0};
    tare__text_printf(&inner, "%s%s/", prefix, path);
    tare_status status = tare__text_status(&inner, v->err);
    if (status == TARE_OK)
        status = tare__record_copy_inner(&view->decisions, &model->decisions, path, v->err);
    if (status == TARE_OK)
        status =
            tare__annotations_copy_inner(&view->annotations, &model->annotations, path, v->err);
    if (status == TARE_OK) status = v->visit(v->user, view, tare__text_chars(&inner), v->err);
    if (status == TARE_OK) status = visit_inside(v, view, tare__text_chars(&inner));
    tare__text_release(&inner);
    return status;
}

// The view shares the model's operators and modules; it is never changed or destroyed as a model.
static tare_status visit_one(const visiting *v, const tare_model *model, const node *reader,
                             const char *prefix) {
    tare_model view = {.context = model->context,
                       .root = tare__read_graph(model->root, reader),
                       .stage = model->stage,
                       .engine = model->engine,
                       .prepared = model->prepared,
                       .op_names = model->op_names,
                       .ops = model->ops,
                       .op_count = model->op_count,
                       .is_inner = true};
    const tare_status status = visit_view(v, model, reader->target, prefix, &view);
    tare__record_release(&view.decisions);
    tare__annotations_release(&view.annotations);
    return status;
}

static tare_status visit_inside(const visiting *v, const tare_model *model, const char *prefix) {
    for (const node *n = model->root->graph->first; n != NULL; n = n->next)
        if (tare__reads_inner_graph(model->root, n)) TARE_TRY(visit_one(v, model, n, prefix));
    return TARE_OK;
}

tare_status tare__nested_visit(const tare_model *model, nested_visitor visit, void *user,
                               tare_error *err) {
    const visiting v = {visit, user, err};
    return visit_inside(&v, model, "");
}
