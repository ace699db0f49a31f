// SPDX-License-Identifier: Apache-2.0
// Graphs that operators of control flow run: each is prepared, converted and lowered as a model of
// its own, whose values go in and out in float.
#include "flow/export/steps.h"
#include "model/nested/nested.h"
#include "ops/flow_op.h"

static tare_status run_branch(pass *p, const node *reader, tare_model_stage stage, branch_pass run,
                              void *user) {
    tare_model *branch = NULL, *made = NULL;
    module *root = tare__read_graph(p->model->root, reader);
    tare_status status = tare__nested_open(p->model, reader, root, stage, &branch, p->err);
    const size_t known = branch != NULL ? branch->decisions.count : 0;
    if (status == TARE_OK) status = run(user, branch, reader->target, &made, p->err);
    if (status != TARE_OK) tare__at(p->err, status, "%s", reader->target);
    if (status == TARE_OK) status = tare__nested_close(p->model, reader, made, known, p->err);
    tare_model_destroy(branch);
    tare_model_destroy(made);
    return status;
}

tare_status tare__pt2e_each_branch(pass *p, tare_model_stage stage, branch_pass run, void *user) {
    for (const node *n = p->model->root->graph->first; n != NULL; n = n->next)
        if (tare__reads_inner_graph(p->model->root, n))
            TARE_TRY(run_branch(p, n, stage, run, user));
    return TARE_OK;
}
