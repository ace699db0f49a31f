// SPDX-License-Identifier: Apache-2.0
// Quantization with a backend config: FX graph mode.
#include <stdio.h>
#include <string.h>

#include "quantize/quantize.h"
#include "support/configs.h"
#include "support/report.h"

static tare_status choose_mapping(quantize_job *j) {
    if (j->options->qconfig == NULL)
        return tare_qconfig_mapping_for_backend(j->backend, j->options->qat, &j->mapping, j->err);
    return load_mapping(j->options->qconfig, j->options->qat, &j->mapping, j->err);
}

static tare_status warn_of_finding(void *user, const tare_backend_finding *finding,
                                   tare_error *err) {
    (void)err;
    if (!finding->is_error)
        (void)fprintf(stderr, "tare quantize: warning: %s: %s: pattern %s: %s (%s)\n",
                      (const char *)user, finding->path, finding->pattern, finding->problem,
                      finding->remedy);
    return TARE_OK;
}

// torch's own configs name methods that tensors do not have; users of built-in configs need not be
// warned.
static tare_status warn_of_backend(quantize_job *j) {
    const char *name = j->options->backend;
    size_t count = 0;
    if (is_builtin_backend(name)) return TARE_OK;
    return tare_backend_config_lint(j->backend, NULL, warn_of_finding, (void *)name, &count,
                                    j->err);
}

static tare_status open(quantize_job *j) {
    const char *name = j->options->engine;
    TRY(load_backend(j->options->backend, &j->backend, j->err));
    TRY(tare_backend_config_check(j->backend, j->err));
    TRY(warn_of_backend(j));
    j->engine = tare_engine_from_name(name != NULL ? name : tare_backend_config_name(j->backend));
    return TARE_OK;
}

static bool has_prepare_options(const quantize_options *o) {
    return o->prepare_config != NULL || o->equalize != NULL;
}

/// Only patterns with aten operators match an exported program.
static void note_exported(const quantize_job *j) {
    const char *qconfig = j->options->qconfig;
    const bool is_of_weights =
        qconfig != NULL && tare_qconfig_mapping_default_backend(qconfig) != NULL;
    if (!j->was_prepared && !is_of_weights && tare_model_is_exported(j->model))
        (void)fprintf(
            stderr,
            "tare quantize: note: %s is an exported program, whose operators the built-in backends "
            "do not have;\n--quantizer quantizes it (tare quantizer list)\n",
            j->input);
}

static tare_status check_model(quantize_job *j) {
    note_exported(j);
    if (tare_model_is_prepared_pt2e(j->model))
        return fail_here(j->input, "leave out --backend",
                         "the model was prepared by a quantizer: --backend has no effect");
    if (!j->was_prepared) return TARE_OK;
    if (j->options->qconfig != NULL)
        return fail_here(j->input, "prepare the float model with it",
                         "the model is prepared already: --qconfig has no effect");
    if (has_prepare_options(j->options))
        return fail_here(j->input, "prepare the float model with them",
                         "the model is prepared already: --prepare-config and --equalize have no "
                         "effect");
    return TARE_OK;
}

static tare_status fuse(quantize_job *j) {
    tare_model *fused = NULL;
    TRY(tare_fuse_fx(j->model, j->backend, &fused, j->err));
    quantize_advance(j, fused);
    return TARE_OK;
}

/// For training, batch norms are kept.
static void note_folded_norms(const quantize_job *j) {
    if (tare_model_norms_are_folded(j->model))
        (void)fprintf(stderr,
                      "tare quantize: note: %s was exported with its batch norms folded into its "
                      "convolutions,\nso that --qat trains without them; tools/tare_export.py "
                      "writes models that keep them\n",
                      j->input);
}

static tare_status prepare_with(quantize_job *j, const tare_prepare_options *options,
                                tare_model **out) {
    if (!j->options->qat) return tare_prepare_fx(j->model, options, out, j->err);
    note_folded_norms(j);
    TRY(tare_prepare_qat_fx(j->model, options, out, j->err));
    // QAT modules start in training mode; a model that was read in evaluation mode is set back to
    // it.
    return tare_model_set_training(*out, tare_model_is_training(j->model), j->err);
}

static tare_status prepare(quantize_job *j) {
    const quantize_options *o = j->options;
    TRY(choose_mapping(j));
    if (o->prepare_config != NULL)
        TRY(tare_prepare_custom_config_read(o->prepare_config, &j->prepare_config, j->err));
    if (o->equalize != NULL) TRY(tare_qconfig_mapping_read(o->equalize, &j->equalization, j->err));
    const tare_prepare_options options = {.backend = j->backend,
                                          .qconfig_mapping = j->mapping,
                                          .is_lenient = o->lenient,
                                          .custom_config = j->prepare_config,
                                          .equalization = j->equalization};
    tare_model *prepared = NULL;
    const tare_status status = prepare_with(j, &options, &prepared);
    if (status != TARE_OK) {
        tare_model_destroy(prepared);
        return status;
    }
    quantize_advance(j, prepared);
    return TARE_OK;
}

static tare_status convert_in_two(quantize_job *j, const tare_model *prepared,
                                  const tare_convert_options *options, tare_model **out) {
    const tare_lower_options lowered = {.struct_size = sizeof lowered, .engine = j->engine};
    tare_model *reference = NULL;
    TRY(tare_convert_to_reference_fx(prepared, options, &reference, j->err));
    tare_model_destroy(j->check.reference);
    j->check.reference = reference;
    return tare_lower(reference, &lowered, out, j->err);
}

static tare_status convert(quantize_job *j, const tare_model *prepared, stop_stage stop,
                           const tare_float_choice *choices, size_t count, tare_model **out) {
    if (j->options->convert_config != NULL && j->convert_config == NULL)
        TRY(tare_convert_custom_config_read(j->options->convert_config, &j->convert_config,
                                            j->err));
    const tare_convert_options options = {.backend = j->backend,
                                          .engine = j->engine,
                                          .is_lenient = j->options->lenient,
                                          .custom_config = j->convert_config,
                                          .float_choices = choices,
                                          .float_choice_count = count};
    if (stop == STOP_REFERENCE)
        return tare_convert_to_reference_fx(prepared, &options, out, j->err);
    // Converting in one pass gives the same model; in two the check has its reference form as well.
    const bool is_shared = j->keeps_given && prepared == j->model && count == 0 &&
                           j->convert_config == NULL && !j->options->lenient;
    return is_shared ? convert_in_two(j, prepared, &options, out)
                     : tare_convert_fx(prepared, &options, out, j->err);
}

static tare_status open_up(quantize_job *j, const tare_model *prepared,
                           const tare_float_choice *choices, size_t count, tare_model **out) {
    const tare_convert_options options = {.backend = j->backend,
                                          .engine = j->engine,
                                          .is_lenient = true,
                                          .custom_config = j->convert_config,
                                          .float_choices = choices,
                                          .float_choice_count = count};
    return tare_convert_to_reference_fx(prepared, &options, out, j->err);
}

const char *engine_choice_at(const void *user, size_t index) {
    (void)user;
    const size_t engine = index + TARE_ENGINE_X86;
    return engine <= TARE_ENGINE_ONEDNN ? tare_engine_name((tare_engine)engine) : NULL;
}

const quantize_flow fx_flow = {.open = open,
                               .check_model = check_model,
                               .fuse = fuse,
                               .prepare = prepare,
                               .convert = convert,
                               .open_up = open_up};
