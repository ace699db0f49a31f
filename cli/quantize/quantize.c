// SPDX-License-Identifier: Apache-2.0
// tare quantize: a float model in, an integer one out.
#include "quantize/quantize.h"

#include <stdio.h>
#include <string.h>

#include "support/configs.h"
#include "support/output.h"
#include "support/page.h"
#include "support/report.h"

static const char *const stop_names[] = {[STOP_FUSE] = "fuse",
                                         [STOP_PREPARE] = "prepare",
                                         [STOP_REFERENCE] = "reference",
                                         [STOP_LOWER] = "lower"};

void quantize_advance(quantize_job *j, tare_model *next) {
    tare_model_destroy(j->model);
    j->model = next;
}

static tare_status calibrate(quantize_job *j) {
    const tare_data_options options = {.batch_size =
                                           j->options->batch != 0 ? j->options->batch : 16,
                                       .sample_limit = j->options->limit,
                                       .is_finite = !j->options->lenient};
    tare_data *data = NULL;
    TRY(tare_data_open(j->options->calibrate, j->model, &options, &data, j->err));
    const tare_calibrate_options watched = {.progress = progress_callback,
                                            .progress_user = "calibrating",
                                            .thread_count = (int)j->options->threads,
                                            .is_lenient = j->options->lenient};
    const tare_status status = tare_calibrate_data(j->model, data, &watched, NULL, j->err);
    end_progress();
    tare_data_close(data);
    return status;
}

static tare_status take_state(quantize_job *j) {
    tare_calibration_info info = {.struct_size = sizeof info};
    TRY(tare_calibration_read(j->model, j->options->state, &info, j->err));
    if (info.done_shard_count == info.shard_count || j->options->lenient) return TARE_OK;
    return fail_here(j->options->state, "merge the other ones, or take it as it is with --lenient",
                     "only %lld of %lld shards are in it", (long long)info.done_shard_count,
                     (long long)info.shard_count);
}

/// A float model goes the whole way; one that was prepared earlier goes on from there.
static tare_status check_stage(quantize_job *j) {
    const tare_model_stage stage = tare_model_get_stage(j->model);
    j->was_prepared = stage == TARE_STAGE_PREPARED;
    if (stage != TARE_STAGE_FLOAT && !j->was_prepared)
        return fail_here(j->input, "begin with the float model", "the model is %s already",
                         stage == TARE_STAGE_FUSED ? "fused" : "quantized");
    TRY(j->flow->check_model(j));
    if (j->was_prepared && j->options->qat)
        return fail_here(j->input, "prepare the float model with it",
                         "the model is prepared already: --qat has no effect");
    if (j->was_prepared && j->options->debug_handles)
        return fail_here(j->input, "prepare with it",
                         "the model is prepared already: --debug-handles has no effect");
    if (j->was_prepared && j->stop == STOP_FUSE)
        return fail_here(j->input, "begin with the float model",
                         "the model is prepared already: --stop fuse is too late");
    return TARE_OK;
}

static tare_status quantize(quantize_job *j) {
    TRY(check_stage(j));
    if (j->options->debug_handles) TRY(tare_debug_handles_generate(j->model, j->err));
    if (j->stop == STOP_FUSE) return j->flow->fuse(j);
    if (!j->was_prepared) TRY(j->flow->prepare(j));
    if (j->options->calibrate != NULL) TRY(calibrate(j));
    if (j->options->state != NULL) TRY(take_state(j));
    if (j->stop == STOP_PREPARE) return TARE_OK;
    // What stays float runs as in evaluation from here on.
    TRY(tare_model_set_training(j->model, false, j->err));
    tare_model *converted = NULL;
    TRY(j->options->never_slower ? quantize_never_slower(j, &converted)
                                 : quantize_convert(j, NULL, 0, &converted));
    quantize_advance(j, converted);
    return TARE_OK;
}

// A default mapping asks for types that most networks have none of, by torch's list, not the
// user's.
static tare_status check_requests(const quantize_job *j) {
    const char *asked = j->options->qconfig;
    const bool is_own =
        j->flow == &pt2e_flow || j->was_prepared || (asked != NULL && !is_default_mapping(asked));
    return is_own ? tare_model_check_requests(j->model, j->err) : TARE_OK;
}

/// What is said of the finished model.
static tare_status tell(const quantize_job *j, FILE *stream) {
    const quantize_options *o = j->options;
    const job_findings found = {.race = o->never_slower ? &j->race : NULL,
                                .biases = find_bias_report(j->biases, j->model)};
    if (o->as_json)
        return print_job_json(j->model, stop_names[j->stop], o->output, &found, stream, j->err);
    if (o->print) {
        TRY(tare_model_print(j->model, TARE_PRINT_MODEL, write_to_stream, stream, j->err));
        (void)fprintf(stream, "\n\n");
    }
    stop_stage next = j->stop;
    if (j->stop >= STOP_REFERENCE) {
        bool is_all_float = false;
        TRY(print_coverage(j->model, stream, &is_all_float, j->err));
        if (is_all_float) next = STOP_REFERENCE; // ask why, there is nothing to compare
        if (found.biases != NULL) print_biases(found.biases, stream);
        if (found.race != NULL) print_race(found.race, stream);
    }
    print_next_command(stream, next, j->was_prepared ? "FLOAT" : j->input, o->output, o->backend,
                       o->calibrate);
    return TARE_OK;
}

static tare_status write_model(const quantize_job *j) {
    const quantize_options *o = j->options;
    return o->packed ? tare_model_write_packed(j->model, o->output, j->err)
                     : tare_model_write(j->model, o->output, j->err);
}

/// The report is made before the model and lacks only its names then: both are there, or none.
static tare_status write_files(const quantize_job *j) {
    const char *folder = j->options->report;
    report_files report = {.files = {{.path = NULL}}};
    tare_status status = TARE_OK;
    if (folder != NULL) status = prepare_report(j->model, folder, &report, j->err);
    if (status == TARE_OK) status = write_model(j);
    return place_report(&report, status);
}

/// All that can fail comes before the model, so that the model, once it is there, means that all
/// went well.
static tare_status deliver(quantize_job *j) {
    const quantize_options *o = j->options;
    page said;
    TRY(page_open(&said));
    tare_status status = page_close(&said, tell(j, said.stream));
    if (status == TARE_OK) status = write_files(j);
    // With the model on standard output, what is said goes to standard error.
    if (status == TARE_OK)
        (void)fwrite(said.chars, 1, said.length, strcmp(o->output, "-") == 0 ? stderr : stdout);
    page_release(&said);
    return status;
}

static tare_status declare_preprocess(quantize_job *j) {
    tare_preprocess *declared = NULL;
    if (j->options->preprocess == NULL) return TARE_OK;
    TRY(load_preprocess(j->options->preprocess, &declared, j->err));
    const tare_status status = tare_model_set_preprocess(j->model, declared, j->err);
    tare_preprocess_destroy(declared);
    return status;
}

static tare_status run_job(quantize_job *j) {
    const quantize_options *o = j->options;
    const char *const inputs[] = {j->input, o->calibrate, o->state, o->bias_data};
    if (o->output != NULL) TRY(output_check_model(o->output));
    TRY(output_refuse_inputs(o->output, inputs, sizeof inputs / sizeof *inputs));
    if (o->report != NULL) TRY(output_check_folder(o->report));
    TRY(j->flow->open(j));
    TRY(read_model(j->input, &o->sizes, &j->model, j->err));
    TRY(declare_preprocess(j));
    TRY(quantize(j));
    if (o->strict) TRY(check_requests(j));
    if (o->dry_run)
        return tare_model_preview(j->model, o->as_json, write_to_stream, stdout, j->err);
    return deliver(j);
}

static const char *stop_name_at(const void *user, size_t index) {
    (void)user;
    return index <= STOP_LOWER ? stop_names[index] : NULL;
}

static bool find_name(const char *name, const char *(*name_at)(const void *user, size_t index),
                      size_t *out) {
    for (*out = 0; name_at(NULL, *out) != NULL; ++*out)
        if (strcmp(name_at(NULL, *out), name) == 0) return true;
    return false;
}

/// Options that have no effect beside others are wrong usage: nothing is ignored silently.
static int check_options(const command *self, const quantize_options *o, quantize_job *j) {
    size_t index = 0;
    if (o->stop != NULL && !find_name(o->stop, stop_name_at, &index))
        return wrong_usage(self->name, suggest(o->stop, stop_name_at, NULL),
                           "--stop: no stage '%s'", o->stop);
    j->flow = o->backend != NULL && o->quantizer == NULL ? &fx_flow : &pt2e_flow;
    j->stop = o->stop != NULL ? (stop_stage)index : STOP_LOWER;
    if (j->flow->check_options(self, o) != EXIT_JOB_DONE) return EXIT_WRONG_USAGE;
    if (j->stop == STOP_FUSE && j->flow->fuse == NULL)
        return wrong_usage(self->name, "prepare is its first stage",
                           "--stop fuse has no meaning with a quantizer");
    if (o->output == NULL && !o->dry_run)
        return wrong_usage(self->name, NULL, "-o OUT is missing, or --dry-run");
    if (o->dry_run && j->stop != STOP_PREPARE)
        return wrong_usage(self->name, NULL, "--dry-run goes with --stop prepare");
    if (o->dry_run && (o->output != NULL || o->report != NULL || o->print || o->calibrate != NULL ||
                       o->state != NULL))
        return wrong_usage(self->name, NULL,
                           "--dry-run writes no model and watches no data: -o, --report, --print, "
                           "--calibrate and --state have no effect");
    if (o->dry_run && o->debug_handles)
        return wrong_usage(self->name, NULL, "--debug-handles has no effect with --dry-run");
    if (o->strict && o->lenient)
        return wrong_usage(self->name, NULL, "--strict and --lenient exclude each other");
    if (j->stop == STOP_FUSE && o->strict)
        return wrong_usage(self->name, NULL, "--strict has no effect with --stop fuse");
    if (o->print && o->as_json)
        return wrong_usage(self->name, NULL, "--print and --json exclude each other");
    if (o->calibrate != NULL && o->state != NULL)
        return wrong_usage(self->name, NULL, "--calibrate and --state exclude each other");
    if (o->calibrate == NULL && (o->batch != 0 || o->limit != 0))
        return wrong_usage(self->name, NULL,
                           "--batch and --limit have no effect without --calibrate");
    if (o->calibrate == NULL && !o->bias_correction && o->threads != 0)
        return wrong_usage(self->name, NULL, "--threads has no effect without --calibrate");
    if (!o->bias_correction && (o->bias_data != NULL || o->bias_samples != 0))
        return wrong_usage(self->name, NULL,
                           "--bias-data and --bias-samples have no effect without "
                           "--bias-correction");
    if (o->bias_correction && j->stop < STOP_REFERENCE)
        return wrong_usage(self->name, "biases are corrected when the model is converted",
                           "--bias-correction has no effect with --stop %s", o->stop);
    if (o->bias_correction && o->calibrate == NULL && o->bias_data == NULL)
        return wrong_usage(self->name, "--bias-data DATA says with which",
                           "--bias-correction needs data");
    if (o->bias_correction && o->bias_data == NULL && strcmp(o->calibrate, "-") == 0)
        return wrong_usage(self->name, "--bias-data DATA names other data",
                           "--bias-correction reads the data once more, which standard input "
                           "cannot");
    if (o->bias_correction && o->qat)
        return wrong_usage(self->name, "training corrects the biases",
                           "--bias-correction and --qat exclude each other");
    if (o->bias_correction && o->equalize != NULL)
        return wrong_usage(self->name, NULL, "--bias-correction and --equalize exclude each other");
    if (o->threads > 1024)
        return wrong_usage(self->name, NULL, "--threads: at most 1024, found %lld",
                           (long long)o->threads);
    if (j->stop == STOP_FUSE && o->state != NULL)
        return wrong_usage(self->name, NULL, "--state has no effect with --stop fuse");
    if (j->stop == STOP_FUSE && (o->calibrate != NULL || o->qconfig != NULL || o->lenient))
        return wrong_usage(self->name, NULL,
                           "--calibrate, --qconfig and --lenient have no effect with --stop fuse");
    if (j->stop == STOP_FUSE && o->qat)
        return wrong_usage(self->name, NULL, "--qat has no effect with --stop fuse");
    if (o->qat && o->equalize != NULL)
        return wrong_usage(self->name, NULL,
                           "--equalize and --qat exclude each other, as in torch");
    if (j->stop == STOP_FUSE && (o->prepare_config != NULL || o->equalize != NULL))
        return wrong_usage(self->name, NULL,
                           "--prepare-config and --equalize have no effect with --stop fuse");
    if (j->stop < STOP_REFERENCE && o->convert_config != NULL)
        return wrong_usage(self->name, NULL, "--convert-config has no effect with --stop %s",
                           o->stop);
    if (j->stop != STOP_LOWER && o->never_slower)
        return wrong_usage(self->name, NULL, "--never-slower has an effect with --stop lower only");
    if (j->stop != STOP_LOWER && o->packed)
        return wrong_usage(self->name, NULL, "--packed has an effect with --stop lower only");
    if (!o->never_slower && o->run_threads != 0)
        return wrong_usage(self->name, NULL, "--run-threads has no effect without --never-slower");
    if (o->run_threads > 1024)
        return wrong_usage(self->name, NULL, "--run-threads: at most 1024, found %lld",
                           (long long)o->run_threads);
    if (j->stop != STOP_LOWER && o->engine != NULL)
        return wrong_usage(self->name, NULL, "--engine has an effect with --stop lower only");
    return EXIT_JOB_DONE;
}

static int run(const command *self, int argc, char **argv) {
    quantize_options o = {0};
    const char *operands[4];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (o.quiet || o.as_json) silence_progress();
    quantize_job j = {.options = &o, .input = operands[0], .err = NULL};
    const int usage = check_options(self, &o, &j);
    if (usage != EXIT_JOB_DONE) return usage;
    j.err = tare_error_create();
    int exit_status = finish_job(self->name, run_job(&j), j.err);
    if (j.is_wrong_usage) exit_status = EXIT_WRONG_USAGE;
    tare_model_destroy(j.model);
    release_bias_reports(j.biases);
    tare_qconfig_mapping_destroy(j.mapping);
    tare_qconfig_mapping_destroy(j.equalization);
    tare_prepare_custom_config_destroy(j.prepare_config);
    tare_convert_custom_config_destroy(j.convert_config);
    tare_backend_config_destroy(j.backend);
    tare_quantizer_destroy(j.quantizer);
    tare_error_destroy(j.err);
    return exit_status;
}

#define FIELD(name) offsetof(quantize_options, name)
static const option options[] = {
    {"output", "OUT", "the model to write; '-': standard output", FIELD(output), OPTION_TEXT, 'o',
     false},
    {"backend", "NAME|FILE", "what to quantize for", FIELD(backend), OPTION_TEXT, 0, false,
     backend_choice_at},
    {"quantizer", "NAME|FILE", "what to quantize an exported program for", FIELD(quantizer),
     OPTION_TEXT, 0, false, quantizer_choice_at},
    {"quantizer-config", "FILE", "what to ask of the quantizer, of which modules",
     FIELD(quantizer_config), OPTION_TEXT, 0, false},
    {"qconfig", "NAME|FILE", "which observers where (default: tare, or what the backend needs)",
     FIELD(qconfig), OPTION_TEXT, 0, false, mapping_choice_at},
    {"prepare-config", "FILE", "standalone and custom modules, quantized inputs and outputs",
     FIELD(prepare_config), OPTION_TEXT, 0, false},
    {"convert-config", "FILE", "what custom modules become", FIELD(convert_config), OPTION_TEXT, 0,
     false},
    {"equalize", "FILE", "a mapping of equalization qconfigs", FIELD(equalize), OPTION_TEXT, 0,
     false},
    {"qat", NULL, "in the form of quantization-aware training", FIELD(qat), OPTION_FLAG, 0, false},
    {"calibrate", "DATA", "inputs to watch", FIELD(calibrate), OPTION_TEXT, 0, false},
    {"state", "STATE", "what tare calibrate has seen, instead", FIELD(state), OPTION_TEXT, 0,
     false},
    {"preprocess", "STEPS", "how pictures become inputs; kept in OUT", FIELD(preprocess),
     OPTION_TEXT, 0, false, preprocess_choice_at},
    {"batch", "N", "samples of a calibration batch (default 16)", FIELD(batch), OPTION_NUMBER, 0,
     false},
    {"limit", "N", "calibrate on the first N samples", FIELD(limit), OPTION_NUMBER, 0, false},
    {"threads", "N", "threads that calibrate and correct (default 1)", FIELD(threads),
     OPTION_NUMBER, 0, false},
    {"stop", "STAGE", "fuse, prepare, reference or lower (default)", FIELD(stop), OPTION_TEXT, 0,
     false, stop_name_at},
    {"engine", "NAME", "whose rounding: x86, fbgemm, qnnpack, onednn", FIELD(engine), OPTION_TEXT,
     0, false, engine_choice_at},
    {"bias-correction", NULL, "take what rounding adds on average off the biases",
     FIELD(bias_correction), OPTION_FLAG, 0, false},
    {"bias-data", "DATA", "inputs to correct biases with (default: those of --calibrate)",
     FIELD(bias_data), OPTION_TEXT, 0, false},
    {"bias-samples", "N", "correct biases with the first N samples (default 32)",
     FIELD(bias_samples), OPTION_NUMBER, 0, false},
    {"never-slower", NULL, "leave float what is slower in integers on this machine",
     FIELD(never_slower), OPTION_FLAG, 0, false},
    {"run-threads", "N", "threads of the runs that --never-slower times (default 1)",
     FIELD(run_threads), OPTION_NUMBER, 0, false},
    {"packed", NULL, "integer weights in the order of the kernels, too: a faster start",
     FIELD(packed), OPTION_FLAG, 0, false},
    {"lenient", NULL, "warn in the record where it would be an error", FIELD(lenient), OPTION_FLAG,
     0, false},
    {"strict", NULL, "fail where a selector asks for what stays float", FIELD(strict), OPTION_FLAG,
     0, false},
    {"dry-run", NULL, "with --stop prepare: say what would become of it", FIELD(dry_run),
     OPTION_FLAG, 0, false},
    {"debug-handles", NULL, "number the float model's values, for tare compare --layers",
     FIELD(debug_handles), OPTION_FLAG, 0, false},
    {"print", NULL, "print the model that was made", FIELD(print), OPTION_FLAG, 0, false},
    {"report", "DIR", "write explain.json, coverage.json, model.txt", FIELD(report), OPTION_TEXT, 0,
     false},
    {"json", NULL, "print the result as JSON", FIELD(as_json), OPTION_FLAG, 0, false},
    {"quiet", NULL, "show no progress", FIELD(quiet), OPTION_FLAG, 'q', false},
    SIZE_OPTIONS(quantize_options, sizes),
    {.name = NULL},
};

const command quantize_command = {
    .name = "quantize",
    .summary = "quantize a float model for a backend",
    .usage =
        "MODEL --backend NAME|FILE [--qconfig NAME|FILE] [--prepare-config FILE]\n"
        "       [--convert-config FILE] [--equalize FILE] [--engine NAME] OPTIONS -o OUT\n"
        "       tare quantize PROGRAM --quantizer NAME|FILE[,..] [--quantizer-config FILE]\n"
        "       OPTIONS -o OUT\n"
        "OPTIONS: [--qat] [--calibrate DATA | --state STATE] [--batch N] [--limit N]\n"
        "       [--threads N] [--preprocess STEPS] [--stop STAGE]\n"
        "       [--bias-correction [--bias-data DATA] [--bias-samples N]]\n"
        "       [--never-slower [--run-threads N]] [--packed] [--lenient | --strict]\n"
        "       [--dry-run] [--debug-handles] [--print] [--report DIR] [--dim NAME=N,..] [--shape "
        "INPUT=NxN..,..]\n"
        "       [--json] [--quiet]",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .notes =
        "DATA is .npz, .npy, .safetensors, a folder of those, .csv or .csv.gz of rows\n"
        "`feature,..,label`, random:N[:SEED[:SHAPE]]; or pictures: a .png or .jpg, a folder\n"
        "of them or of one folder per class, .txt or .csv lists. man tare says more.\n\n"
        "A PROGRAM is a .pt2 file of torch.export, or one in our format. It needs no\n"
        "--quantizer once it is prepared.\n\n"
        "tare quantize net.safetensors --backend x86 --calibrate train.npz -o int8.safetensors\n"
        "tare quantize net.pt2 --quantizer XNNPACKQuantizer --calibrate train.npz "
        "-o int8.safetensors\n",
    .run = run,
};
