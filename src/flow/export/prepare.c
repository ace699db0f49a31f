// SPDX-License-Identifier: Apache-2.0
// Prepare of exported programs: a quantizer annotates the graph, then observers are inserted.
#include "flow/export/steps.h"
#include "flow/sound_weights.h"
#include "model/coverage.h"
#include "ops/text/print.h"

static tare_status print_annotated(pass *p, char **out) {
    text printed = {0};
    tare_status status = tare__print_model(p->model->root, &printed, p->err);
    if (status == TARE_OK) status = tare__text_status(&printed, p->err);
    if (status == TARE_OK) *out = tare__text_take(&printed);
    tare__text_release(&printed);
    return status;
}

static tare_status use_given(pass *p, const pt2e_given *given) {
    if (given == NULL) return TARE_OK;
    if (given->annotated_text != NULL) TARE_TRY(print_annotated(p, given->annotated_text));
    if (given->annotations != NULL)
        TARE_TRY(tare_model_annotations_to_json(p->model, given->annotations, p->err));
    if (given->json == NULL) return TARE_OK;
    return tare_model_annotations_from_json(p->model, given->json, given->size, given->rules,
                                            given->rule_count, p->err);
}

typedef struct branch_job {
    const tare_quantizer *quantizer;
    bool is_qat;
} branch_job;

static tare_status prepare_branch(void *user, const tare_model *branch, size_t number,
                                  tare_model **out, tare_error *err) {
    const branch_job *job = user;
    (void)number;
    return tare__pt2e_prepare(branch, job->quantizer, job->is_qat, NULL, out, err);
}

static tare_status run(pass *p, const tare_quantizer *quantizer, bool is_qat,
                       const pt2e_given *given) {
    TARE_TRY(tare__quantizer_check(quantizer, p->err));
    TARE_TRY(tare__pt2e_bind_constants(p, false));
    TARE_TRY(tare__coverage_begin(p->model, p->err));
    TARE_TRY(tare__pt2e_replace_writes(p));
    if (!is_qat) TARE_TRY(tare__pt2e_fuse(p));
    TARE_TRY(tare_quantizer_transform(quantizer, p->model, p->err));
    TARE_TRY(tare_quantizer_annotate(quantizer, p->model, p->err));
    if (is_qat) TARE_TRY(tare__pt2e_rewrite_for_training(p));
    TARE_TRY(use_given(p, given));
    TARE_TRY(tare__pt2e_insert_observers(p, quantizer, is_qat));
    p->model->stage = TARE_STAGE_PREPARED;
    TARE_TRY(tare__pass_rebuild(p, NULL));
    TARE_TRY(tare__refuse_unsound_weights(p->model, p->err));
    branch_job job = {quantizer, is_qat};
    return tare__pt2e_each_branch(p, TARE_STAGE_FLOAT, prepare_branch, &job);
}

tare_status tare__pt2e_prepare(const tare_model *model, const tare_quantizer *quantizer,
                               bool is_qat, const pt2e_given *given, tare_model **out,
                               tare_error *err) {
    if (model == NULL || quantizer == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "prepare: expected a model and a quantizer, found NULL");
    if (model->stage != TARE_STAGE_FLOAT)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "prepare: expected a float model, found one that was prepared already");
    pass p;
    tare_status status = tare__pass_begin(&p, "prepare", model, NULL, err);
    if (status == TARE_OK) status = run(&p, quantizer, is_qat, given);
    return tare__pass_end(&p, status, out);
}

tare_status tare_prepare_pt2e(const tare_model *model, const tare_quantizer *quantizer,
                              tare_model **out, tare_error *err) {
    return tare__pt2e_prepare(model, quantizer, false, NULL, out, err);
}

tare_status tare_prepare_qat_pt2e(const tare_model *model, const tare_quantizer *quantizer,
                                  tare_model **out, tare_error *err) {
    return tare__pt2e_prepare(model, quantizer, true, NULL, out, err);
}
