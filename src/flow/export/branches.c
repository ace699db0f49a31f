// SPDX-License-Identifier: Apache-2.0
// Graphs that operators of control flow run: each is prepared, converted and lowered as a model of
// its own, whose values go in and out in float.
#include "flow/export/steps.h"
#include "model/nested/nested.h"

static tare_status run_branch(pass *p, nested_graphs *g, size_t number, tare_model_stage stage,
                              branch_pass run, void *user) {
    tare_model *branch = NULL, *made = NULL;
    tare_status status = tare__nested_open(g, number, p->model, stage, &branch, p->err);
    if (status == TARE_OK) status = run(user, branch, number, &made, p->err);
    if (status != TARE_OK) tare__at(p->err, status, "%s", g->readers[number]->target);
    if (status == TARE_OK) status = tare__nested_close(g, number, p->model, made, p->err);
    tare_model_destroy(branch);
    if (status != TARE_OK) tare_model_destroy(made);
    return status;
}

tare_status tare__pt2e_each_branch(pass *p, tare_model_stage stage, branch_pass run, void *user) {
    nested_graphs g = {0};
    tare_status status = tare__nested_list(p->model, &g, p->err);
    for (size_t i = 0; i < g.count && status == TARE_OK; i++)
        status = run_branch(p, &g, i, stage, run, user);
    if (status == TARE_OK) status = tare__nested_join(&g, p->model, p->err);
    tare__nested_release(&g);
    return status;
}
