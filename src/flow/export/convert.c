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
} convert_job;

static tare_status convert(const tare_model *prepared, const convert_job *job, tare_model **out,
                           tare_error *err);

// The choices of nodes PATH/NODE, as NODE. *out: count + 1 entries, for the caller to free.
static tare_status choices_in(const tare_convert_pt2e_options *options, const char *path,
                              tare_float_choice **out, size_t *count, tare_error *err) {
    *count = 0;
    *out = tare__alloc_zeroed(options->float_choice_count + 1, sizeof **out);
    if (*out == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < options->float_choice_count; i++) {
        tare_float_choice c = options->float_choices[i];
        const char *name = c.node != NULL ? tare__nested_name(c.node, path) : NULL;
        if (name == NULL) continue;
        c.node = name;
        (*out)[(*count)++] = c;
    }
    return TARE_OK;
}

static tare_status convert_branch(void *user, const tare_model *branch, const char *path,
                                  tare_model **out, tare_error *err) {
    const convert_job *whole = user;
    tare_convert_pt2e_options options = *whole->options;
    tare_float_choice *choices = NULL;
    TARE_TRY(choices_in(whole->options, path, &choices, &options.float_choice_count, err));
    options.float_choices = choices;
    const convert_job job = {&options, whole->is_calibrated};
    const tare_status status = convert(branch, &job, out, err);
    tare__free(choices);
    return status;
}

// The choices of nodes of the graph itself; the others were applied to graphs inside.
static tare_status apply_choices(pass *p, const tare_convert_pt2e_options *options) {
    size_t count = 0;
    tare_float_choice *own =
        tare__arena_array(&p->scratch, options->float_choice_count + 1, sizeof *own);
    if (own == NULL) return tare__out_of_memory(p->err);
    for (size_t i = 0; i < options->float_choice_count; i++)
        if (!tare__nested_has(p->model, options->float_choices[i].node))
            own[count++] = options->float_choices[i];
    return tare__pt2e_apply_choices(p, own, count);
}

static tare_status run(pass *p, convert_job *job) {
    const tare_convert_pt2e_options *options = job->options;
    TARE_TRY(tare__pt2e_each_branch(p, TARE_STAGE_PREPARED, convert_branch, job));
    // torch copies the prepared program first, and the copy knows only the names in use.
    TARE_TRY(tare__graph_refresh_names(p->model->root->graph, p->err));
    TARE_TRY(apply_choices(p, options));
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

static tare_status convert(const tare_model *prepared, const convert_job *job, tare_model **out,
                           tare_error *err) {
    pass p;
    convert_job own = *job;
    tare_status status = tare__pass_begin(&p, "convert", prepared, NULL, err);
    if (status == TARE_OK) status = tare__refuse_unsound_weights(prepared, err);
    if (status == TARE_OK && !prepared->is_inner)
        status = tare__pt2e_was_calibrated(p.model, &own.is_calibrated, err);
    if (status == TARE_OK) status = run(&p, &own);
    return tare__pass_end(&p, status, out);
}

tare_status tare_convert_pt2e(const tare_model *prepared, const tare_convert_pt2e_options *options,
                              tare_model **out, tare_error *err) {
    tare_convert_pt2e_options known = {0};
    if (options != NULL) tare__struct_copy(&known, sizeof known, options);
    if (prepared == NULL || prepared->stage != TARE_STAGE_PREPARED || prepared->prepared != NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "convert: expected a model that tare_prepare_pt2e made");
    const convert_job job = {.options = &known};
    return convert(prepared, &job, out, err);
}
