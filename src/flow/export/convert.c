// SPDX-License-Identifier: Apache-2.0
// Convert of exported programs: replaces observers by quantize and dequantize operators.
#include "flow/export/convert.h"

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "flow/export/steps.h"
#include "flow/sound_weights.h"
#include "model/coverage.h"
#include "model/nested/nested.h"

// What the graphs inside need to know of the whole.
typedef struct convert_job {
    const tare_convert_pt2e_options *options;
    bool is_calibrated; // an observer of the whole model has seen data
    nested_graphs graphs;
    nested_rows choices; // options->float_choices by graph
} convert_job;

static tare_status convert(const tare_model *prepared, convert_job *job, tare_model **out,
                           tare_error *err);

static const char *choice_name(const void *list, size_t row) {
    return ((const tare_float_choice *)list)[row].node;
}

// The choices of a graph inside, by the names of its own nodes; those of the graph around them come
// last. *out: for the caller to free.
static tare_status choices_of(const convert_job *job, size_t number, tare_float_choice **out,
                              size_t *count, tare_error *err) {
    const size_t first = job->choices.first[number];
    *count = job->choices.first[number + 1] - first;
    *out = tare__alloc_zeroed(*count + 1, sizeof **out);
    if (*out == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < *count; i++) {
        (*out)[i] = job->options->float_choices[job->choices.items[first + i]];
        if (number < job->graphs.count)
            (*out)[i].node = tare__nested_name((*out)[i].node, job->graphs.readers[number]->target);
    }
    return TARE_OK;
}

static tare_status convert_branch(void *user, const tare_model *branch, size_t number,
                                  tare_model **out, tare_error *err) {
    const convert_job *whole = user;
    tare_convert_pt2e_options options = *whole->options;
    tare_float_choice *choices = NULL;
    TARE_TRY(choices_of(whole, number, &choices, &options.float_choice_count, err));
    options.float_choices = choices;
    convert_job job = {.options = &options, .is_calibrated = whole->is_calibrated};
    const tare_status status = convert(branch, &job, out, err);
    tare__free(choices);
    return status;
}

static tare_status sort_choices(convert_job *job, const tare_model *model, tare_error *err) {
    TARE_TRY(tare__nested_list(model, &job->graphs, err));
    return tare__nested_sort(&job->graphs, job->options->float_choices,
                             job->options->float_choice_count, choice_name, &job->choices, err);
}

static tare_status apply_own_choices(pass *p, const convert_job *job) {
    tare_float_choice *own = NULL;
    size_t count = 0;
    TARE_TRY(choices_of(job, job->graphs.count, &own, &count, p->err));
    const tare_status status = tare__pt2e_apply_choices(p, own, count);
    tare__free(own);
    return status;
}

static tare_status run(pass *p, convert_job *job) {
    const tare_convert_pt2e_options *options = job->options;
    TARE_TRY(sort_choices(job, p->model, p->err));
    TARE_TRY(tare__pt2e_each_branch(p, TARE_STAGE_PREPARED, convert_branch, job));
    // torch copies the prepared program first, and the copy knows only the names in use.
    TARE_TRY(tare__graph_refresh_names(p->model->root->graph, p->err));
    TARE_TRY(apply_own_choices(p, job));
    if (p->model->is_inner && job->is_calibrated) TARE_TRY(tare__pt2e_leave_unseen(p));
    TARE_TRY(tare__pt2e_replace_observers(p, options->is_lenient));
    TARE_TRY(tare__remove_unused_modules(p));
    TARE_TRY(tare__pt2e_fold_training(p));
    TARE_TRY(tare__pt2e_duplicate_dequantize(p));
    if (!options->keeps_quantize) TARE_TRY(tare__pt2e_fold_quantize(p));
    p->model->stage = TARE_STAGE_REFERENCE;
    // Coverage is determined from quantize and dequantize, before they become arithmetic.
    TARE_TRY(tare__coverage_finish(p->model, NULL, p->err));
    return options->use_reference_representation ? tare__pt2e_reference_representation(p) : TARE_OK;
}

static tare_status convert(const tare_model *prepared, convert_job *job, tare_model **out,
                           tare_error *err) {
    pass p;
    tare_status status = tare__pass_begin(&p, "convert", prepared, NULL, err);
    if (status == TARE_OK) status = tare__refuse_unsound_weights(prepared, err);
    if (status == TARE_OK && !prepared->is_inner)
        status = tare__pt2e_was_calibrated(p.model, &job->is_calibrated, err);
    if (status == TARE_OK) status = run(&p, job);
    tare__nested_release(&job->graphs);
    return tare__pass_end(&p, status, out);
}

tare_status tare_convert_pt2e(const tare_model *prepared, const tare_convert_pt2e_options *options,
                              tare_model **out, tare_error *err) {
    tare_convert_pt2e_options known = {0};
    if (options != NULL) tare__struct_copy(&known, sizeof known, options);
    if (prepared == NULL || prepared->stage != TARE_STAGE_PREPARED || prepared->prepared != NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "convert: expected a model that tare_prepare_pt2e made");
    convert_job job = {.options = &known};
    return convert(prepared, &job, out, err);
}
