// SPDX-License-Identifier: Apache-2.0
// tare compare: how far a quantized model is from its float one, layer by layer and at the end.
#include <inttypes.h>
#include <stdio.h>

#include "commands/differences.h"
#include "options/common.h"
#include "support/gather.h"
#include "support/json.h"
#include "support/models.h"
#include "support/output.h"
#include "support/report.h"
#include "support/scores.h"

typedef struct compare_options {
    const char *data, *report;
    int64_t batch, limit, threads;
    bool layers, worst, as_json, quiet;
    size_options sizes;
} compare_options;

/// What the last outputs say.
typedef struct verdict {
    int64_t sample_count, agreeing_count, float_correct, quantized_correct;
    bool has_classes, has_labels;
    difference output;
} verdict;

typedef struct job {
    const compare_options *options;
    tare_model *float_model, *quantized_model;
    tare_debug_comparison *comparison;
    tare_data *data;
    verdict verdict;
    tare_error *err;
} job;

/// The outputs of one model for one batch, as float32.
typedef struct results {
    tare_tensor *tensors[GATHER_CAPACITY];
    size_t count;
} results;

static void release_results(results *r) {
    for (size_t i = 0; i < r->count; i++) tare_tensor_release(r->tensors[i]);
    r->count = 0;
}

static tare_status judge_classes(job *j, const tare_batch *batch, const tare_tensor *x,
                                 const tare_tensor *y) {
    verdict *v = &j->verdict;
    if (!is_scores(x, batch->size) || !is_scores(y, batch->size)) return TARE_OK;
    v->has_classes = true;
    for (int64_t i = 0; i < batch->size; i++)
        if (winning_class(x, i) == winning_class(y, i)) v->agreeing_count++;
    if (batch->labels == NULL) return TARE_OK;
    v->has_labels = true;
    TRY(count_correct(x, batch->labels, j->options->data, &v->float_correct, j->err));
    return count_correct(y, batch->labels, j->options->data, &v->quantized_correct, j->err);
}

static tare_status judge(job *j, const tare_batch *batch, const results *x, const results *y) {
    if (x->count != y->count)
        return fail_here("compare", "compare a model with what was made of it",
                         "one model has %zu outputs, the other %zu", x->count, y->count);
    for (size_t i = 0; i < x->count; i++)
        if (!difference_add(&j->verdict.output, x->tensors[i], y->tensors[i]))
            return fail_here("compare", "compare a model with what was made of it",
                             "the models' outputs differ in shape");
    j->verdict.sample_count += batch->size;
    return x->count > 0 ? judge_classes(j, batch, x->tensors[0], y->tensors[0]) : TARE_OK;
}

static tare_status compare_batch(job *j, const tare_batch *batch) {
    results x = {.count = 0}, y = {.count = 0};
    tare_debug_outputs of_float = {x.tensors, GATHER_CAPACITY, 0};
    tare_debug_outputs of_quantized = {y.tensors, GATHER_CAPACITY, 0};
    tare_status status = tare_debug_compare(j->comparison, batch->inputs, batch->input_count,
                                            &of_float, &of_quantized, j->err);
    x.count = of_float.count;
    y.count = of_quantized.count;
    if (status == TARE_OK) status = gather_plain(x.tensors, x.count, j->err);
    if (status == TARE_OK) status = gather_plain(y.tensors, y.count, j->err);
    if (status == TARE_OK) status = judge(j, batch, &x, &y);
    release_results(&x);
    release_results(&y);
    return status;
}

static tare_status compare_batches(job *j) {
    for (bool done = false;;) {
        tare_batch batch = {0};
        TRY(tare_data_next(j->data, &batch, &done, j->err));
        if (done) return TARE_OK;
        TRY(compare_batch(j, &batch));
        show_progress("comparing", j->verdict.sample_count, tare_data_sample_count(j->data));
    }
}

// --- what comes out ---

static void number_of_difference(json_out *json, const difference *d) {
    json_out_number(json, "sqnr_db", signal_to_noise_db(d)); // infinite: null
    json_out_number(json, "max_abs_error", d->largest_error);
}

static double part(int64_t count, int64_t whole) {
    return whole > 0 ? (double)count / (double)whole : 0.0;
}

static void write_layers(const job *j, FILE *stream) {
    json_out json = json_out_begin(stream);
    json_out_integer(&json, "samples", (uint64_t)j->verdict.sample_count);
    write_values(j->comparison, j->options->worst, &json);
    json_out_end(&json);
}

static void write_json(const job *j, FILE *stream) {
    if (j->options->layers) {
        write_layers(j, stream);
        return;
    }
    const verdict *v = &j->verdict;
    json_out json = json_out_begin(stream);
    json_out_integer(&json, "samples", (uint64_t)v->sample_count);
    json_out_open(&json, "layers", '[');
    tare_debug_row row;
    for (size_t i = 0; tare_debug_comparison_row(j->comparison, i, &row); i++) {
        const difference d = difference_of(&row);
        if (row.element_count == 0) continue;
        json_out_open(&json, NULL, '{');
        json_out_string(&json, "quantized_node", row.node);
        json_out_string(&json, "float_node", row.reference_node);
        number_of_difference(&json, &d);
        json_out_close(&json, '}');
    }
    json_out_close(&json, ']');
    json_out_open(&json, "output", '{');
    number_of_difference(&json, &v->output);
    json_out_close(&json, '}');
    if (v->has_classes)
        json_out_number(&json, "agreement", part(v->agreeing_count, v->sample_count));
    if (v->has_labels) {
        json_out_number(&json, "float_accuracy", part(v->float_correct, v->sample_count));
        json_out_number(&json, "quantized_accuracy", part(v->quantized_correct, v->sample_count));
    }
    json_out_end(&json);
}

static void print_row(const char *quantized, const char *original, const difference *d) {
    printf("%-24s  %-24s  %7s  %10.4g\n", quantized, original, decibels_text(signal_to_noise_db(d)),
           d->largest_error);
}

static void print_layers(const job *j) {
    tare_debug_row row;
    printf("%-24s  %-24s  %7s  %10s\n", "node", "float node", "SQNR dB", "max error");
    for (size_t i = 0; tare_debug_comparison_row(j->comparison, i, &row); i++) {
        const difference d = difference_of(&row);
        if (row.element_count > 0) print_row(row.node, row.reference_node, &d);
    }
    print_row("output", "output", &j->verdict.output);
}

static void print_text(const job *j) {
    const verdict *v = &j->verdict;
    if (j->options->layers)
        print_values(j->comparison, j->options->worst);
    else
        print_layers(j);
    printf("%" PRId64 " samples", v->sample_count);
    if (v->has_labels)
        printf(", accuracy %.2f %% float and %.2f %% quantized",
               100 * part(v->float_correct, v->sample_count),
               100 * part(v->quantized_correct, v->sample_count));
    if (v->has_classes)
        printf(", %.2f %% of predictions agree", 100 * part(v->agreeing_count, v->sample_count));
    printf("\n");
}

static tare_status write_report(const job *j) {
    output_file out = {0};
    TRY(output_make_folder(j->options->report));
    TRY(output_open(&out, j->options->report, "compare.json"));
    write_json(j, out.text.stream);
    return output_close(&out, TARE_OK);
}

static tare_status check_order(const job *j) {
    const tare_model_stage x = tare_model_get_stage(j->float_model);
    const tare_model_stage y = tare_model_get_stage(j->quantized_model);
    if (x < TARE_STAGE_REFERENCE || y >= TARE_STAGE_REFERENCE) return TARE_OK;
    return fail_here("compare", "swap them: tare compare FLOAT QUANTIZED",
                     "the first model is quantized and the second is not");
}

static tare_status open_models(job *j, const char *float_path, const char *quantized_path) {
    const tare_debug_options options = {.thread_count = (int)j->options->threads,
                                        .by_origin = !j->options->layers};
    const size_options quantized = {.max_memory = j->options->sizes.max_memory};
    TRY(read_model(float_path, &j->options->sizes, &j->float_model, j->err));
    TRY(read_model(quantized_path, &quantized, &j->quantized_model, j->err));
    TRY(check_order(j));
    // The same numbers that quantize --debug-handles gave; those of the file stay.
    if (j->options->layers && tare_model_has_debug_handles(j->quantized_model))
        TRY(tare_debug_handles_generate(j->float_model, j->err));
    return tare_debug_comparison_create(j->float_model, j->quantized_model, &options,
                                        &j->comparison, j->err);
}

/// Both models see the same tensors; often the quantized one alone says how they are made.
static tare_status choose_preprocess(const job *j, const tare_preprocess **out) {
    const tare_preprocess *x = tare_model_preprocess(j->float_model);
    const tare_preprocess *y = tare_model_preprocess(j->quantized_model);
    if (x != NULL && y != NULL && !tare_preprocess_equal(x, y))
        return fail_here("compare", "see tare preprocess",
                         "the models declare different preprocessing");
    *out = x != NULL ? x : y;
    return TARE_OK;
}

static tare_status run_job(job *j, const char *const *operands) {
    tare_data_options data = {.batch_size = j->options->batch, .sample_limit = j->options->limit};
    if (j->options->report != NULL) TRY(output_check_folder(j->options->report));
    TRY(open_models(j, operands[0], operands[1]));
    TRY(choose_preprocess(j, &data.preprocess));
    TRY(tare_data_open(j->options->data, j->float_model, &data, &j->data, j->err));
    TRY(compare_batches(j));
    end_progress();
    if (j->options->report != NULL) TRY(write_report(j));
    if (j->options->as_json)
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
    tare_data_close(j.data);
    tare_debug_comparison_destroy(j.comparison);
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
     .help = "samples of a batch",
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
