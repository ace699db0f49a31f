// SPDX-License-Identifier: Apache-2.0
// Bodies of loops, which are prepared and converted as models of their own.
#include <string.h>

#include "flow/export/steps.h"

// As in torch, branches of cond, the graph of map and the condition of a loop are not quantized.
static const node *body_of(const node *n) {
    const op_id id = tare__function_op(n);
    if (id == TARE_OP_HIGHER_ORDER_SCAN) return tare__node_arg(n, 0);
    return id == TARE_OP_HIGHER_ORDER_WHILE_LOOP ? tare__node_arg(n, 1) : NULL;
}

// Makes a model of this stage from the body, with the annotations of its nodes.
static tare_status open_branch(pass *p, const char *path, module *body, tare_model_stage stage,
                               tare_model **out) {
    module *root = tare__module_retain(body);
    const tare_status status =
        tare__model_create(p->model->context, root, stage, NULL, out, p->err);
    if (status != TARE_OK) {
        tare__module_release(root);
        return status;
    }
    return tare__annotations_move_out(&p->model->annotations, path, &(*out)->annotations, p->err);
}

static tare_status close_branch(pass *p, const char *path, tare_model *made) {
    TARE_TRY(
        tare__module_set_path(p->model->root, path, made->root, &tare__class_container, p->err));
    return tare__annotations_move_in(&p->model->annotations, path, &made->annotations, p->err);
}

static tare_status run_branch(pass *p, const char *path, module *body, tare_model_stage stage,
                              branch_pass run, void *user) {
    tare_model *branch = NULL, *made = NULL;
    tare_status status = open_branch(p, path, body, stage, &branch);
    if (status == TARE_OK) status = run(user, branch, &made, p->err);
    if (status != TARE_OK) tare__at(p->err, status, "%s", path);
    if (status == TARE_OK) status = close_branch(p, path, made);
    tare_model_destroy(branch);
    tare_model_destroy(made);
    return status;
}

tare_status tare__pt2e_each_branch(pass *p, tare_model_stage stage, branch_pass run, void *user) {
    map done = {0};
    tare_status status = TARE_OK;
    for (const node *n = p->model->root->graph->first; n != NULL && status == TARE_OK;
         n = n->next) {
        const node *reader = body_of(n);
        module *body = reader != NULL && reader->op == NODE_GET_ATTR
                           ? tare__module_find(p->model->root, reader->target)
                           : NULL;
        // Two loops can share one body.
        if (body == NULL || body->graph == NULL || tare__map_has(&done, reader->target)) continue;
        status = tare__map_set(&done, reader->target, body)
                     ? run_branch(p, reader->target, body, stage, run, user)
                     : tare__out_of_memory(p->err);
    }
    tare__map_release(&done);
    return status;
}
