// SPDX-License-Identifier: Apache-2.0
// Graphs inside a graph, seen as models.
#include "model/nested/nested.h"

#include "ops/flow_op.h"

typedef struct visiting {
    nested_visitor visit;
    void *user;
    tare_error *err;
} visiting;

static tare_status visit_inside(const visiting *v, const tare_model *model, const char *prefix);

static tare_status visit_view(const visiting *v, const tare_model *view, const char *path,
                              const char *prefix) {
    text inner = {0};
    tare__text_printf(&inner, "%s%s/", prefix, path);
    tare_status status = tare__text_status(&inner, v->err);
    if (status == TARE_OK) status = v->visit(v->user, view, tare__text_chars(&inner), v->err);
    if (status == TARE_OK) status = visit_inside(v, view, tare__text_chars(&inner));
    tare__text_release(&inner);
    return status;
}

// The view shares the model's operators and modules; it is never changed or destroyed as a model.
static tare_status visit_one(const visiting *v, const nested_graphs *g, size_t number,
                             const tare_model *model, const char *prefix) {
    const node *reader = g->readers[number];
    tare_model view = {.context = model->context,
                       .root = tare__read_graph(model->root, reader),
                       .stage = model->stage,
                       .engine = model->engine,
                       .prepared = model->prepared,
                       .op_names = model->op_names,
                       .ops = model->ops,
                       .op_count = model->op_count,
                       .is_inner = true};
    tare_status status = tare__nested_copy(g, NESTED_DECISIONS, number, model, &view, v->err);
    if (status == TARE_OK)
        status = tare__nested_copy(g, NESTED_ANNOTATIONS, number, model, &view, v->err);
    if (status == TARE_OK) status = visit_view(v, &view, reader->target, prefix);
    tare__record_release(&view.decisions);
    tare__annotations_release(&view.annotations);
    return status;
}

static tare_status visit_inside(const visiting *v, const tare_model *model, const char *prefix) {
    nested_graphs g = {0};
    tare_status status = tare__nested_list(model, &g, v->err);
    for (size_t i = 0; i < g.count && status == TARE_OK; i++)
        status = visit_one(v, &g, i, model, prefix);
    tare__nested_release(&g);
    return status;
}

tare_status tare__nested_visit(const tare_model *model, nested_visitor visit, void *user,
                               tare_error *err) {
    const visiting v = {visit, user, err};
    return visit_inside(&v, model, "");
}
