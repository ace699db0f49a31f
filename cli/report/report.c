// SPDX-License-Identifier: Apache-2.0
// tare report: a page about a quantized model.
#include <stdio.h>
#include <string.h>

#include "quantize/check.h"
#include "quantize/flow_options.h"
#include "report/report.h"
#include "support/output.h"
#include "support/report.h"

// --- the models ---

static tare_status lower(report_job *j) {
    const char *engine = j->options->quantize.engine;
    const tare_lower_options options = {.struct_size = sizeof options,
                                        .engine = engine != NULL ? tare_engine_from_name(engine)
                                                                 : TARE_ENGINE_DEFAULT};
    j->reference = j->quantized;
    j->quantized = NULL;
    return tare_lower(j->reference, &options, &j->quantized, j->err);
}

static bool has_flow(const quantize_options *o) {
    return o->backend != NULL || o->quantizer != NULL;
}

static tare_status read_models(report_job *j) {
    const size_options *sizes = &j->options->quantize.sizes;
    const size_options quantized = {.max_memory = sizes->max_memory};
    TRY(read_model(j->float_path, sizes, &j->float_model, j->err));
    TRY(read_model(j->quantized_path, &quantized, &j->quantized, j->err));
    if (tare_model_get_stage(j->quantized) == TARE_STAGE_REFERENCE) return lower(j);
    if (tare_model_get_stage(j->quantized) != TARE_STAGE_LOWERED)
        return fail_here(j->quantized_path,
                         "call tare report FLOAT QUANTIZED; tare quantize writes QUANTIZED",
                         "expected a quantized model, found one that is not");
    if (j->options->quantize.metric != NULL && !has_flow(&j->options->quantize))
        return fail_here(j->quantized_path,
                         "add --backend or --quantizer and --calibrate, as it was made",
                         "--metric needs the reference form of the quantized model");
    return TARE_OK;
}

// Operators that were left float for speed or accuracy stay float in it.
static tare_status open_up(report_job *j) {
    quantize_job *flow = &j->flow;
    choice_list choices = {.items = NULL};
    tare_status status = check_float_choices(j->quantized, flow->model, &choices, j->err);
    if (status == TARE_OK)
        status =
            flow->flow->open_up(flow, flow->model, choices.items, choices.count, &j->reference);
    tare_memory_release(choices.items);
    return status;
}

/// Makes the reference model again from the float model, as QUANTIZED was made.
static tare_status make_reference(report_job *j) {
    quantize_job *flow = &j->flow;
    if (j->reference != NULL || !has_flow(&j->options->quantize)) return TARE_OK;
    TRY(flow->flow->open(flow));
    TRY(read_model(j->float_path, &j->options->quantize.sizes, &flow->model, j->err));
    TRY(quantize_declare_preprocess(flow));
    TRY(quantize_prepare(flow));
    TRY(tare_model_set_training(flow->model, false, j->err));
    return open_up(j);
}

// --- what is measured ---

// Ranges are those of the analysis if there is one.
static tare_status compare(report_job *j) {
    const bool is_analyzed = j->reference != NULL || has_flow(&j->options->quantize);
    j->comparison = (comparison){.settings = {.data = j->options->data,
                                              .batch = 8,
                                              .limit = j->options->samples,
                                              .has_ranges = !is_analyzed,
                                              .threads = j->options->quantize.threads},
                                 .float_model = j->float_model,
                                 .quantized_model = j->quantized,
                                 .err = j->err};
    TRY(comparison_run(&j->comparison));
    j->verdict = j->comparison.verdict;
    return TARE_OK;
}

static tare_status run_analysis(report_job *j, tare_data *data) {
    const report_options *o = j->options;
    const tare_analyze_options options = {.struct_size = sizeof options,
                                          .quantized = j->quantized,
                                          .sample_limit = o->samples,
                                          .seconds = (double)o->seconds,
                                          .thread_count = (int)o->quantize.threads,
                                          .predictions =
                                              o->quantize.metric != NULL ? keep_predictions : NULL,
                                          .predictions_user = &j->predictions,
                                          .progress = progress_callback,
                                          .progress_user = "analyzing"};
    return tare_analyze(j->reference, data, &options, &j->analysis, j->err);
}

static tare_status analyze(report_job *j) {
    tare_data_options options = {.batch_size = 8};
    tare_data *data = NULL;
    if (j->reference == NULL) return TARE_OK;
    TRY(common_preprocess(j->float_model, j->quantized, &options.preprocess));
    TRY(tare_data_open(j->options->data, j->reference, &options, &data, j->err));
    const tare_status status = run_analysis(j, data);
    end_progress();
    tare_data_close(data);
    TRY(status);
    tare_analysis_get_verdict(j->analysis, &j->verdict);
    return measure_metric(j->options->quantize.metric, &j->predictions, &j->metric, j->err);
}

static tare_status bench(report_job *j) {
    const report_options *o = j->options;
    if (o->no_bench) return TARE_OK;
    j->bench = (bench_job){.settings = {.input = o->data,
                                        .batch = 1,
                                        .seconds = o->bench_seconds,
                                        .layers = true,
                                        .memory = true,
                                        .session = &j->session,
                                        .sizes = &o->quantize.sizes},
                           .subjects = {{.path = j->quantized_path, .model = j->quantized},
                                        {.path = j->float_path, .model = j->float_model}},
                           .subject_count = 2,
                           .setting = {.thread_count = (int)o->quantize.threads},
                           .err = j->err};
    j->was_timed = true;
    return bench_run(&j->bench);
}

// --- what is written ---

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static tare_status write_page(const report_job *j, const char *json) {
    output_file out = {0};
    TRY(output_open(&out, NULL, j->options->output));
    report_write_page(file_name(j->quantized_path), json, out.text.stream);
    return output_close(&out, TARE_OK);
}

static void print_page_note(const report_job *j) {
    if (strcmp(j->options->output, "-") == 0) return;
    print_verdict(&j->verdict, &j->metric, "", stdout);
    if (j->was_timed)
        printf("speed ratio to the float model: %.2f\n", bench_speed_ratio(&j->bench));
    if (j->analysis == NULL)
        printf("single layers were not analyzed: add --backend or --quantizer and --calibrate as "
               "for QUANTIZED\n");
    printf("next: open %s in a browser\n", j->options->output);
}

static tare_status write_all(const report_job *j) {
    const bool has_page = j->options->output != NULL, as_json = j->options->quantize.as_json;
    page json = {.stream = NULL};
    TRY(page_open(&json));
    tare_status status = page_close(&json, report_write(j, json.stream));
    if (status == TARE_OK && has_page) status = write_page(j, json.chars);
    if (status == TARE_OK && as_json) (void)fputs(json.chars, stdout);
    if (status == TARE_OK && has_page && !as_json) print_page_note(j);
    page_release(&json);
    return status;
}

static tare_status run_job(report_job *j) {
    if (j->options->output != NULL) TRY(output_check(j->options->output));
    TRY(read_models(j));
    TRY(compare(j));
    TRY(make_reference(j));
    TRY(analyze(j));
    TRY(bench(j));
    return write_all(j);
}

static int check_options(const command *self, const report_options *o) {
    const quantize_options *q = &o->quantize;
    if (o->output == NULL && !q->as_json)
        return wrong_usage(self->name, NULL, "-o OUT.html is missing (or --json)");
    if (o->output != NULL && q->as_json && strcmp(o->output, "-") == 0)
        return wrong_usage(self->name, "name a file, or leave out one of them",
                           "-o - and --json both go to standard output");
    if (has_flow(q) && q->calibrate == NULL && q->state == NULL)
        return wrong_usage(self->name,
                           "give the data or the state that QUANTIZED was calibrated with",
                           "--calibrate DATA or --state STATE is missing");
    return EXIT_JOB_DONE;
}

static int run(const command *self, int argc, char **argv) {
    report_options o = {.data = NULL};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (check_options(self, &o) != EXIT_JOB_DONE) return EXIT_WRONG_USAGE;
    if (o.quantize.quiet || o.quantize.as_json) silence_progress();
    tare_error *err = tare_error_create();
    report_job j = {.options = &o,
                    .float_path = operands[0],
                    .quantized_path = operands[1],
                    .flow = quantize_to_reference(&o.quantize, operands[0], err),
                    .session = SESSION_DEFAULTS,
                    .err = err};
    int exit_status = finish_job(self->name, run_job(&j), err);
    if (j.flow.is_wrong_usage) exit_status = EXIT_WRONG_USAGE;
    bench_release(&j.bench);
    comparison_release(&j.comparison);
    tare_analysis_destroy(j.analysis);
    predictions_release(&j.predictions);
    tare_model_destroy(j.reference);
    tare_model_destroy(j.quantized);
    tare_model_destroy(j.float_model);
    quantize_release(&j.flow);
    return exit_status;
}

#define FIELD(name) offsetof(report_options, name)
static const option options[] = {
    {.name = "data",
     .letter = 'd',
     .value = "DATA",
     .help = "data to run both models on",
     .kind = OPTION_FILE,
     .is_required = true,
     .offset = FIELD(data)},
    {.name = "output",
     .letter = 'o',
     .value = "OUT.html",
     .help = "the page to write; '-': standard output",
     .kind = OPTION_FILE,
     .writes = "",
     .offset = FIELD(output)},
    FLOW_OPTIONS(report_options, quantize, NULL),
    CALIBRATION_OPTIONS(report_options, quantize, NULL, "state"),
    {.name = "samples",
     .value = "N",
     .help = "compare and analyze on the first N samples",
     .default_value = "64",
     .kind = OPTION_NUMBER,
     .offset = FIELD(samples)},
    {.name = "seconds",
     .value = "S",
     .help = "seconds to spend on tests of single layers",
     .details = "As for tare analyze.",
     .default_value = "30",
     .kind = OPTION_NUMBER,
     .offset = FIELD(seconds)},
    {.name = "bench-seconds",
     .value = "S",
     .help = "seconds to spend on timing",
     .default_value = "2",
     .kind = OPTION_NUMBER,
     .excludes = "no-bench",
     .offset = FIELD(bench_seconds)},
    {.name = "no-bench",
     .help = "skip timing",
     .details = "The page then lacks times, the roofline and the memory of plans.",
     .kind = OPTION_FLAG,
     .offset = FIELD(no_bench)},
    {.name = "metric",
     .value = "COMMAND",
     .help = "command that prints a metric, the greater the better",
     .details = "As for tare quantize.",
     .kind = OPTION_TEXT,
     .offset = FIELD(quantize.metric)},
    THREADS_OPTION(report_options, quantize.threads),
    JSON_OPTION(report_options, quantize.as_json),
    QUIET_OPTION(report_options, quantize.quiet),
    SIZE_OPTIONS(report_options, quantize.sizes),
    {.name = NULL},
};

const command report_command = {
    .name = "report",
    .summary = "write a page about a quantized model: accuracy, speed, memory and decisions",
    .operands = {"FLOAT", "QUANTIZED"},
    .least_operands = 2,
    .options = options,
    .details =
        "QUANTIZED is a model that tare quantize made from FLOAT. OUT.html is a single file that "
        "loads nothing. It shows the verdict and what to do next, the graph with float islands "
        "and errors, the error of each layer, histograms with the chosen ranges, the time of each "
        "layer in floats and in integers, a roofline, the memory of a run, and the decision "
        "record.\n\nErrors of single layers, findings and details of weights require the "
        "reference model: add --backend or --quantizer and --calibrate as for tare quantize, or "
        "pass a QUANTIZED that tare quantize --stop reference wrote.\n\nGraphviz' program dot "
        "lays out the graph if it is installed. With --json prints the data of the page.",
    .example = "tare report net.safetensors int8.safetensors --data test.npz -o report.html\n"
               "tare report net.safetensors int8.safetensors --data test.npz --backend x86 "
               "--calibrate train.npz \\\n    -o report.html\n",
    .run = run,
};
