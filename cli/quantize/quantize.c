// SPDX-License-Identifier: Apache-2.0
// tare quantize: quantizes a float model.
#include "quantize/quantize.h"

#include <stdio.h>
#include <string.h>

#include "quantize/check.h"
#include "quantize/improve.h"
#include "support/configs.h"
#include "support/models.h"
#include "support/output.h"
#include "support/page.h"
#include "support/report.h"

static const char *const stop_names[] = {[STOP_FUSE] = "fuse",
                                         [STOP_PREPARE] = "prepare",
                                         [STOP_REFERENCE] = "reference",
                                         [STOP_LOWER] = "lower"};

void quantize_advance(quantize_job *j, tare_model *next) {
    if (j->model != j->given) tare_model_destroy(j->model);
    j->model = next;
}

static tare_status calibrate(quantize_job *j) {
    const tare_data_options options = {.batch_size = j->options->batch,
                                       .sample_limit = j->options->limit,
                                       .is_finite = !j->options->lenient,
                                       .hold_out = check_sample_count(j->options)};
    tare_data *data = NULL;
    TRY(tare_data_open(j->options->calibrate, j->model, &options, &data, j->err));
    j->held_out_count = tare_data_held_out_count(data);
    const tare_calibrate_options watched = {.progress = progress_callback,
                                            .progress_user = "calibrating",
                                            .thread_count = (int)j->options->threads,
                                            .is_lenient = j->options->lenient,
                                            .keeps_histograms = j->options->automatic};
    const tare_status status = tare_calibrate_data(j->model, data, &watched, NULL, j->err);
    end_progress();
    if (j->held_out_count > 0)
        j->data = data;
    else
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

/// Refuses options that have no effect if the model's own quantize nodes are lowered.
static tare_status refuse_late_options(const quantize_job *j) {
    const quantize_options *o = j->options;
    const struct {
        const char *name;
        bool is_given;
    } late[] = {{"backend", o->backend != NULL},
                {"quantizer", o->quantizer != NULL},
                {"qat", o->qat},
                {"calibrate", o->calibrate != NULL},
                {"state", o->state != NULL},
                {"bias-correction", o->bias_correction},
                {"never-slower", o->never_slower},
                {"predict", o->predict},
                {"machine", o->machine != NULL},
                {"lenient", o->lenient},
                {"debug-handles", o->debug_handles},
                {"dry-run", o->dry_run}};
    for (size_t i = 0; i < sizeof late / sizeof *late; i++)
        if (late[i].is_given)
            return fail_here(j->input, "leave it out: its quantize nodes are lowered as they are",
                             "the model is quantized already: --%s has no effect", late[i].name);
    if (j->stop == STOP_LOWER) return TARE_OK;
    return fail_here(j->input, "leave it out: its quantize nodes are lowered as they are",
                     "the model is quantized already: --stop %s is too late", stop_names[j->stop]);
}

/// A model with quantize nodes is lowered, not quantized again.
static tare_status lower_as_it_is(quantize_job *j) {
    const char *engine = j->options->engine;
    const tare_lower_options options = {.struct_size = sizeof options,
                                        .engine = engine != NULL ? tare_engine_from_name(engine)
                                                                 : TARE_ENGINE_DEFAULT};
    tare_model *lowered = NULL;
    TRY(refuse_late_options(j));
    TRY(tare_lower(j->model, &options, &lowered, j->err));
    quantize_advance(j, lowered);
    j->was_quantized = true;
    return TARE_OK;
}

/// A float model goes through all stages; a prepared one continues from there.
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

static tare_status prepare(quantize_job *j) {
    if (j->keeps_given) j->given = j->model;
    TRY(j->flow->prepare(j));
    // Compared with in evaluation, as what stays float runs.
    return j->given != NULL ? tare_model_set_training(j->given, false, j->err) : TARE_OK;
}

tare_status quantize_prepare(quantize_job *j) {
    TRY(check_stage(j));
    if (j->options->debug_handles) TRY(tare_debug_handles_generate(j->model, j->err));
    if (!j->was_prepared) TRY(prepare(j));
    if (j->options->calibrate != NULL) TRY(calibrate(j));
    if (j->options->state != NULL) TRY(take_state(j));
    return TARE_OK;
}

static tare_status fuse_only(quantize_job *j) {
    TRY(check_stage(j));
    if (j->options->debug_handles) TRY(tare_debug_handles_generate(j->model, j->err));
    return j->flow->fuse(j);
}

static tare_status quantize(quantize_job *j) {
    if (tare_model_get_stage(j->model) == TARE_STAGE_REFERENCE) return lower_as_it_is(j);
    if (j->stop == STOP_FUSE) return fuse_only(j);
    TRY(quantize_prepare(j));
    if (j->stop == STOP_PREPARE) return TARE_OK;
    // Float layers run in evaluation mode from here on.
    TRY(tare_model_set_training(j->model, false, j->err));
    tare_model *converted = NULL;
    TRY(j->options->automatic      ? quantize_improve(j, &converted)
        : j->options->never_slower ? quantize_never_slower(j, &converted)
        : quantize_predicts(j)     ? quantize_predicted(j, &converted)
                                   : quantize_convert(j, NULL, 0, &converted));
    TRY(check_keep_prepared(j));
    if (j->check.prepared != NULL) j->model = NULL;
    if (j->check.prepared != NULL && j->improvement.prepared != NULL) {
        j->check.original = j->check.prepared; // compared with where the job began with it
        j->check.prepared = j->improvement.prepared;
        j->improvement.prepared = NULL;
    }
    quantize_advance(j, converted);
    return check_model_made(j);
}

// A default mapping contains types that most networks do not have, because torch's list does. It is
// a request for the whole model, not for each type.
static tare_status check_requests(const quantize_job *j) {
    const char *asked = j->options->qconfig;
    const bool is_own =
        j->flow == &pt2e_flow || j->was_prepared || (asked != NULL && !is_default_mapping(asked));
    tare_coverage c = {.struct_size = sizeof c};
    TRY(tare_model_coverage(j->model, &c, j->err));
    const bool is_float = tare_model_get_stage(j->model) >= TARE_STAGE_REFERENCE &&
                          c.quantized_op_count == 0 && c.quantized_weight_bytes == 0;
    if (is_float && j->was_quantized)
        return fail_here(j->input, "tare explain says why, of the model without --strict",
                         "no operator of the quantized model can be in integers");
    return is_own || is_float ? tare_model_check_requests(j->model, j->err) : TARE_OK;
}

/// Prints the result.
static tare_status tell(const quantize_job *j, FILE *stream) {
    const quantize_options *o = j->options;
    const job_findings found = {.race = o->never_slower ? &j->race : NULL,
                                .prediction = j->race.float_count > 0 ? &j->race : NULL,
                                .biases = find_bias_report(j->biases, j->model),
                                .check = &j->check,
                                .improvement = &j->improvement};
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
        if (is_all_float) next = STOP_REFERENCE; // explain says why; there is nothing to compare
        if (found.biases != NULL) print_biases(found.biases, stream);
        if (found.race != NULL) print_race(found.race, stream);
        if (found.race == NULL && found.prediction != NULL)
            print_prediction(found.prediction, stream);
        print_improvement(found.improvement, stream);
        print_check(found.check, stream);
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

/// The report is completed before the model and renamed after it: both exist, or neither.
static tare_status write_files(const quantize_job *j) {
    const char *folder = j->options->report;
    report_files report = {.files = {{.path = NULL}}};
    tare_status status = TARE_OK;
    if (folder != NULL) status = prepare_report(j->model, folder, &report, j->err);
    if (status == TARE_OK) status = write_model(j);
    return place_report(&report, status);
}

/// Everything that can fail precedes the model: if the model's file exists, all has succeeded.
static tare_status deliver(quantize_job *j) {
    const quantize_options *o = j->options;
    page said;
    TRY(page_open(&said));
    tare_status status = page_close(&said, tell(j, said.stream));
    if (status == TARE_OK) status = write_files(j);
    // If the model goes to standard output, messages go to standard error.
    if (status == TARE_OK)
        (void)fwrite(said.chars, 1, said.length, strcmp(o->output, "-") == 0 ? stderr : stdout);
    page_release(&said);
    if (status == TARE_OK && j->was_quantized)
        (void)fprintf(stderr,
                      "tare quantize: note: %s is quantized already; its quantize nodes were "
                      "lowered as they are\n",
                      j->input);
    if (status == TARE_OK) print_check_note(&j->check);
    return status == TARE_OK ? warn_of_calibration_data("quantize", j->model, j->err) : status;
}

tare_status quantize_declare_preprocess(quantize_job *j) {
    tare_preprocess *declared = NULL;
    if (j->options->preprocess == NULL) return TARE_OK;
    TRY(load_preprocess(j->options->preprocess, &declared, j->err));
    const tare_status status = tare_model_set_preprocess(j->model, declared, j->err);
    tare_preprocess_destroy(declared);
    return status;
}

static tare_status run_job(quantize_job *j) {
    const quantize_options *o = j->options;
    if (o->output != NULL) TRY(output_check_model(o->output));
    if (o->report != NULL) TRY(output_check_folder(o->report));
    TRY(j->flow->open(j));
    TRY(read_model(j->input, &o->sizes, &j->model, j->err));
    TRY(quantize_declare_preprocess(j));
    TRY(quantize(j));
    if (o->strict) TRY(check_requests(j));
    if (o->dry_run)
        return tare_model_preview(j->model, o->as_json, write_to_stream, stdout, j->err);
    return deliver(j);
}

const char *stop_choice_at(const void *user, size_t index) {
    (void)user;
    return index <= STOP_LOWER ? stop_names[index] : NULL;
}

static stop_stage find_stage(const char *name) {
    size_t stage = 0;
    while (strcmp(stop_names[stage], name) != 0) stage++;
    return (stop_stage)stage;
}

static int check_options(const command *self, const quantize_options *o) {
    const bool reads_again = o->bias_correction && o->bias_data == NULL;
    if (reads_again && strcmp(o->calibrate, "-") == 0)
        return wrong_usage(self->name, "--bias-data DATA names other data",
                           "--bias-correction reads the data once more, which standard input "
                           "cannot");
    return check_limits(self->name, &o->limits);
}

static const quantize_flow *flow_of(const quantize_options *o) {
    return o->backend != NULL ? &fx_flow : &pt2e_flow;
}

quantize_job quantize_to_reference(quantize_options *o, const char *input, tare_error *err) {
    o->no_check = true;
    o->lenient = true;
    o->stop = "reference";
    return (quantize_job){.options = o,
                          .flow = flow_of(o),
                          .input = input,
                          .stop = STOP_REFERENCE,
                          .keeps_given = true,
                          .err = err};
}

void quantize_release(quantize_job *j) {
    if (j->model != j->given) tare_model_destroy(j->model);
    tare_model_destroy(j->given);
    tare_data_close(j->data);
    release_bias_reports(j->biases);
    release_check(&j->check);
    release_improvement(&j->improvement);
    tare_model_destroy(j->improvement.prepared);
    tare_qconfig_mapping_destroy(j->mapping);
    tare_qconfig_mapping_destroy(j->equalization);
    tare_prepare_custom_config_destroy(j->prepare_config);
    tare_convert_custom_config_destroy(j->convert_config);
    tare_backend_config_destroy(j->backend);
    tare_quantizer_destroy(j->quantizer);
    tare_error_destroy(j->err);
}

int quantize_run(const char *command_name, const quantize_options *o, const char *input) {
    if (o->quiet || o->as_json) silence_progress();
    quantize_job j = {.options = o,
                      .flow = flow_of(o),
                      .input = input,
                      .stop = find_stage(o->stop),
                      .keeps_given = check_is_wanted(o),
                      .begin = seconds_now(),
                      .err = tare_error_create()};
    int exit_status = finish_job(command_name, run_job(&j), j.err);
    if (j.is_wrong_usage) exit_status = EXIT_WRONG_USAGE;
    quantize_release(&j);
    return exit_status;
}

static int run(const command *self, int argc, char **argv) {
    quantize_options o = {0};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (check_options(self, &o) != EXIT_JOB_DONE) return EXIT_WRONG_USAGE;
    return quantize_run(self->name, &o, operands[0]);
}

const command quantize_command = {
    .name = "quantize",
    .summary = "quantize a float model for a backend",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = quantize_option_rows,
    .details =
        "MODEL is a float model, quantized for a --backend; a program of torch.export (.pt2, or a "
        "file of tare's own that has one), quantized as a --quantizer annotates it; or a prepared "
        "one of either kind (--stop prepare).\n\nA MODEL that is quantized already (--stop "
        "reference, a converted program, an ONNX file with QuantizeLinear) is never quantized a "
        "second time: without --backend and --quantizer it is lowered to integers with its own "
        "parameters.\n\nDATA is .npz, .npy, .safetensors, a folder of "
        "those, .csv or .csv.gz of rows feature,..,label, random:N[:SEED[:SHAPE]]; or pictures: a "
        ".png or .jpg, a folder of them or of one folder per class, .txt or .csv lists. See DATA "
        "in man tare.\n\nAt the end, prints how many operators, multiply-accumulates and weight "
        "bytes are in integers, the number of float islands (connected groups of float operators) "
        "and of conversions between them, the accuracy on held-out samples with the worst layers, "
        "and a "
        "likely next command.\n\nWith --calibrate, the last samples of DATA (an eighth, at most 8; "
        "those after --limit if there are any) are not used for calibration: the model is checked "
        "with them.",
    .example =
        "tare quantize net.safetensors --backend x86 --calibrate train.npz -o int8.safetensors\n"
        "tare quantize net.pt2 --quantizer XNNPACKQuantizer --calibrate train.npz -o "
        "int8.safetensors\n"
        "tare quantize quantized.onnx -o int8.safetensors\n",
    .run = run,
};
