// SPDX-License-Identifier: Apache-2.0
// tare compare: differences between a quantized model and its float model, for each layer and at
// the outputs.
#include <inttypes.h>
#include <stdio.h>

#include "compare/comparison.h"
#include "options/common.h"
#include "support/json.h"
#include "support/models.h"
#include "support/output.h"
#include "support/report.h"

typedef struct compare_options {
    const char *data, *report;
    int64_t batch, limit, threads;
    bool layers, worst, as_json, quiet;
    size_options sizes;
} compare_options;

typedef struct job {
    const compare_options *options;
    tare_model *float_model, *quantized_model;
    comparison comparison;
    tare_error *err;
} job;

// --- what comes out ---

static void write_json(const job *j, FILE *stream) {
    json_out json = json_out_begin(stream);
    if (j->options->layers) {
        json_out_integer(&json, "samples", (uint64_t)j->comparison.verdict.sample_count);
        write_values(j->comparison.values, j->options->worst, &json);
    } else {
        comparison_write(&j->comparison, &json);
    }
    json_out_end(&json);
}

static double percent(int64_t count, int64_t whole) {
    return whole > 0 ? 100 * (double)count / (double)whole : 0.0;
}

static void print_row(const char *quantized, const char *original, const difference *d) {
    printf("%-24s  %-24s  %7s  %10.4g\n", quantized, original, decibels_text(signal_to_noise_db(d)),
           d->largest_error);
}

static void print_layers(const job *j) {
    tare_debug_row row;
    printf("%-24s  %-24s  %7s  %10s\n", "node", "float node", "SQNR dB", "max error");
    for (size_t i = 0; tare_debug_comparison_row(j->comparison.values, i, &row); i++) {
        const difference d = difference_of(&row);
        if (row.element_count > 0) print_row(row.node, row.reference_node, &d);
    }
    print_row("output", "output", &j->comparison.output);
}

static void print_text(const job *j) {
    const tare_verdict *v = &j->comparison.verdict;
    if (j->options->layers)
        print_values(j->comparison.values, j->options->worst);
    else
        print_layers(j);
    printf("%" PRId64 " samples", v->sample_count);
    if (v->has_labels)
        printf(", accuracy %.2f %% float and %.2f %% quantized",
               percent(v->float_correct, v->sample_count),
               percent(v->quantized_correct, v->sample_count));
    if (v->has_classes)
        printf(", %.2f %% of predictions agree", percent(v->agreeing_count, v->sample_count));
    printf("\n");
}

static tare_status write_report(const job *j) {
    output_file out = {0};
    TRY(output_make_folder(j->options->report));
    TRY(output_open(&out, j->options->report, "compare.json"));
    write_json(j, out.text.stream);
    return output_close(&out, TARE_OK);
}

static tare_status open_models(job *j, const char *float_path, const char *quantized_path) {
    const size_options quantized = {.max_memory = j->options->sizes.max_memory};
    TRY(read_model(float_path, &j->options->sizes, &j->float_model, j->err));
    TRY(read_model(quantized_path, &quantized, &j->quantized_model, j->err));
    // Numbers values as quantize --debug-handles does; numbers in the file are kept.
    if (j->options->layers && tare_model_has_debug_handles(j->quantized_model))
        TRY(tare_debug_handles_generate(j->float_model, j->err));
    return TARE_OK;
}

static tare_status run_job(job *j, const char *const *operands) {
    const compare_options *o = j->options;
    if (o->report != NULL) TRY(output_check_folder(o->report));
    TRY(open_models(j, operands[0], operands[1]));
    j->comparison = (comparison){.settings = {.data = o->data,
                                              .batch = o->batch,
                                              .limit = o->limit,
                                              .threads = o->threads,
                                              .by_handles = o->layers},
                                 .float_model = j->float_model,
                                 .quantized_model = j->quantized_model,
                                 .err = j->err};
    TRY(comparison_run(&j->comparison));
    if (o->report != NULL) TRY(write_report(j));
    if (o->as_json)
        write_json(j, stdout);
    else
        print_text(j);
    return TARE_OK;
}

static int run(const command *self, int argc, char **argv) {
    compare_options o = {0};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (o.quiet || o.as_json) silence_progress();
    job j = {.options = &o, .err = tare_error_create()};
    const int exit_status = finish_job(self->name, run_job(&j, operands), j.err);
    comparison_release(&j.comparison);
    tare_model_destroy(j.float_model);
    tare_model_destroy(j.quantized_model);
    tare_error_destroy(j.err);
    return exit_status;
}

#define FIELD(name) offsetof(compare_options, name)
static const option options[] = {
    {.name = "data",
     .letter = 'd',
     .value = "DATA",
     .help = "data to run both models on",
     .kind = OPTION_FILE,
     .is_required = true,
     .offset = FIELD(data)},
    {.name = "batch",
     .value = "N",
     .help = "samples per batch",
     .default_value = "32",
     .kind = OPTION_NUMBER,
     .offset = FIELD(batch)},
    {.name = "limit",
     .value = "N",
     .help = "compare on the first N samples",
     .kind = OPTION_NUMBER,
     .offset = FIELD(limit)},
    THREADS_OPTION(compare_options, threads),
    {.name = "layers",
     .help = "print each value that both models have",
     .details = "Each row has SQNR, mean squared error (the mean of (x - y)^2) and the largest "
                "error. Values are matched by debug handles (tare quantize --debug-handles; the "
                "last node with a handle counts), or, without handles, by the node names of the "
                "float model.",
     .kind = OPTION_FLAG,
     .offset = FIELD(layers)},
    {.name = "worst",
     .help = "print the worst layers first",
     .kind = OPTION_FLAG,
     .requires = "layers",
     .offset = FIELD(worst)},
    {.name = "report",
     .value = "DIR",
     .help = "write compare.json into DIR",
     .kind = OPTION_FOLDER,
     .writes = "compare.json",
     .offset = FIELD(report)},
    JSON_OPTION(compare_options, as_json),
    QUIET_OPTION(compare_options, quiet),
    SIZE_OPTIONS(compare_options, sizes),
    {.name = NULL},
};

const command compare_command = {
    .name = "compare",
    .summary = "compare a quantized model with its float one, layer by layer",
    .operands = {"FLOAT", "QUANTIZED"},
    .least_operands = 2,
    .options = options,
    .details = "SQNR: signal-to-quantization-noise ratio, 20 log10(|x| / |x - y|) in dB over all "
               "samples, where x is the float output and y the quantized one. A layer is compared "
               "with the last float operator that was fused into it.\n\nFor classifiers, prints "
               "the accuracy of both models (with labels) and the share of equal predictions, in "
               "JSON as fractions; sqnr_db is null if nothing differs.",
    .run = run,
};
