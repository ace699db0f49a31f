// SPDX-License-Identifier: Apache-2.0
// Convert of exported programs: replaces observers by quantize and dequantize operators.
#include "flow/export/convert.h"

#include "core/struct_size.h"
#include "flow/export/steps.h"
#include "flow/sound_weights.h"
#include "model/coverage.h"

static tare_status convert_branch(void *user, const tare_model *branch, tare_model **out,
                                  tare_error *err) {
    return tare_convert_pt2e(branch, user, out, err);
}

static tare_status run(pass *p, const tare_convert_pt2e_options *options) {
    tare_convert_pt2e_options of_branch = *options;
    of_branch.struct_size = sizeof of_branch;
    of_branch.float_choice_count = 0;
    TARE_TRY(tare__pt2e_each_branch(p, TARE_STAGE_PREPARED, convert_branch, &of_branch));
    // torch copies the prepared program first, and the copy knows only the names in use.
    TARE_TRY(tare__graph_refresh_names(p->model->root->graph, p->err));
    TARE_TRY(tare__pt2e_apply_choices(p, options->float_choices, options->float_choice_count));
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

tare_status tare_convert_pt2e(const tare_model *prepared, const tare_convert_pt2e_options *options,
                              tare_model **out, tare_error *err) {
    tare_convert_pt2e_options known = {0};
    if (options != NULL) tare__struct_copy(&known, sizeof known, options);
    if (prepared == NULL || prepared->stage != TARE_STAGE_PREPARED || prepared->prepared != NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "convert: expected a model that tare_prepare_pt2e made");
    pass p;
    tare_status status = tare__pass_begin(&p, "convert", prepared, NULL, err);
    if (status == TARE_OK) status = tare__refuse_unsound_weights(prepared, err);
    if (status == TARE_OK) status = run(&p, &known);
    return tare__pass_end(&p, status, out);
}
