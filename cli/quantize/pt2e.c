// SPDX-License-Identifier: Apache-2.0
// Quantization with a quantizer: programs of torch.export.
#include "quantize/quantize.h"
#include "support/configs.h"
#include "support/report.h"

static tare_status open(quantize_job *j) {
    const quantize_options *o = j->options;
    const tare_quantizer_open_options options = {.struct_size = sizeof options,
                                                 .settings_path = o->quantizer_config,
                                                 .is_qat = o->qat,
                                                 .is_lenient = o->lenient};
    if (o->quantizer == NULL) return TARE_OK; // the model must already be prepared
    return tare_quantizer_open(o->quantizer, &options, &j->quantizer, j->err);
}

static tare_status check_prepared(quantize_job *j) {
    if (!tare_model_is_prepared_pt2e(j->model))
        return fail_here(j->input, "it goes on with --backend",
                         "the model was prepared with a backend: --quantizer has no effect");
    if (j->options->quantizer != NULL)
        return fail_here(j->input, "leave it out",
                         "the model is prepared already: --quantizer has no effect");
    return TARE_OK;
}

static tare_status check_model(quantize_job *j) {
    if (j->was_prepared && (j->options->quantizer != NULL || tare_model_is_prepared_pt2e(j->model)))
        return check_prepared(j);
    if (j->options->quantizer == NULL) {
        j->is_wrong_usage = true;
        return fail_here("quantize", "see 'tare help quantize'",
                         "--backend NAME|FILE or --quantizer NAME|FILE is missing");
    }
    if (tare_model_is_exported(j->model)) return TARE_OK;
    return fail_here(j->input, "export it with torch.export.save, or quantize it with --backend",
                     "quantizers annotate aten operators, and the model calls none: it is made of "
                     "modules and functions");
}

static tare_status prepare(quantize_job *j) {
    tare_model *prepared = NULL;
    TRY(j->options->qat ? tare_prepare_qat_pt2e(j->model, j->quantizer, &prepared, j->err)
                        : tare_prepare_pt2e(j->model, j->quantizer, &prepared, j->err));
    quantize_advance(j, prepared);
    return TARE_OK;
}

static tare_status lower(quantize_job *j, const tare_model *converted, tare_model **out) {
    const char *engine = j->options->engine;
    const tare_lower_pt2e_options options = {
        .struct_size = sizeof options,
        .engine = engine != NULL ? tare_engine_from_name(engine) : TARE_ENGINE_DEFAULT};
    return tare_lower_pt2e(converted, &options, out, j->err);
}

static tare_status convert(quantize_job *j, const tare_model *prepared, stop_stage stop,
                           const tare_float_choice *choices, size_t count, tare_model **out) {
    const tare_convert_pt2e_options options = {.struct_size = sizeof options,
                                               .is_lenient = j->options->lenient,
                                               .float_choices = choices,
                                               .float_choice_count = count};
    tare_model *converted = NULL;
    TRY(tare_convert_pt2e(prepared, &options, &converted, j->err));
    if (stop != STOP_LOWER) {
        *out = converted;
        return TARE_OK;
    }
    const tare_status status = lower(j, converted, out);
    tare_model_destroy(converted);
    return status;
}

static tare_status open_up(quantize_job *j, const tare_model *prepared,
                           const tare_float_choice *choices, size_t count, tare_model **out) {
    const tare_convert_pt2e_options options = {.struct_size = sizeof options,
                                               .keeps_quantize = true,
                                               .is_lenient = true,
                                               .float_choices = choices,
                                               .float_choice_count = count};
    return tare_convert_pt2e(prepared, &options, out, j->err);
}

const quantize_flow pt2e_flow = {.open = open,
                                 .check_model = check_model,
                                 .prepare = prepare,
                                 .convert = convert,
                                 .open_up = open_up};
