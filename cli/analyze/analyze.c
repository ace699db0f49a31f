// SPDX-License-Identifier: Apache-2.0
// tare analyze: which layers lose accuracy, why, and what to do about it.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analysis_json.h"
#include "options/common.h"
#include "quantize/flow_options.h"
#include "support/report.h"

typedef struct analyze_options {
    quantize_options quantize;
    const char *data;
    int64_t samples, seconds, worst, cache_memory, cache_disk;
} analyze_options;

typedef struct analyze_job {
    const analyze_options *options;
    quantize_job flow; // up to the calibrated model
    tare_model *reference;
    tare_analysis *analysis;
    tare_verdict verdict;
    predictions predictions;
    metric metric;
} analyze_job;

// --- for people ---

static void print_findings(const tare_analysis *a, size_t most) {
    tare_finding f;
    for (size_t i = 0; i < most && tare_analysis_get_finding(a, i, &f); i++) {
        if (i == 0) printf("findings, causes before what follows from them:\n");
        printf("  %s at %s", f.kind, f.layer);
        if (isfinite(f.db)) printf(" (%.1f dB)", f.db);
        printf("\n      %s\n      remedy: %s", f.cause, f.remedy);
        if (f.step[0] != '\0') printf(" [tare improve --steps %s]", f.step);
        printf("\n");
    }
}

static const char *cell(double db, char out[16]) {
    if (isnan(db))
        (void)snprintf(out, 16, "-");
    else if (isinf(db))
        (void)snprintf(out, 16, db > 0 ? "equal" : "broken");
    else
        (void)snprintf(out, 16, "%.1f", db);
    return out;
}

static void print_layers(const tare_analysis *a, size_t most) {
    tare_layer_error l;
    printf("%-24s  %7s %7s %7s  %10s  %7s %7s  %s\n", "layer (dB)", "local", "weights", "reads",
           "cumulative", "alone", "without", "operator");
    for (size_t i = 0; i < most && tare_analysis_get_worst(a, i, &l); i++) {
        char t[6][16];
        printf("%-24s  %7s %7s %7s  %10s  %7s %7s  %s\n", l.float_node, cell(l.local_db, t[0]),
               cell(l.weights_db, t[1]), cell(l.activations_db, t[2]), cell(l.cumulative_db, t[3]),
               cell(l.alone_db, t[4]), cell(l.without_db, t[5]), l.op);
    }
}

// --- the job ---

static tare_status make_reference(analyze_job *j) {
    quantize_job *flow = &j->flow;
    if (tare_model_get_stage(flow->model) == TARE_STAGE_REFERENCE) {
        j->reference = flow->model;
        flow->model = NULL;
        return TARE_OK;
    }
    TRY(quantize_prepare(flow));
    TRY(tare_model_set_training(flow->model, false, flow->err));
    return flow->flow->open_up(flow, flow->model, NULL, 0, &j->reference);
}

static tare_status analyze(analyze_job *j) {
    const analyze_options *o = j->options;
    const char *spec = o->data != NULL ? o->data : o->quantize.calibrate;
    if (spec == NULL)
        return fail_here("analyze", "give --data DATA", "there is no data to analyze the model on");
    const tare_data_options data_options = {.batch_size = 8};
    tare_data *data = NULL;
    TRY(tare_data_open(spec, j->reference, &data_options, &data, j->flow.err));
    const tare_analyze_options options = {.struct_size = sizeof options,
                                          .sample_limit = o->samples,
                                          .seconds = (double)o->seconds,
                                          .memory_bytes = (uint64_t)o->cache_memory,
                                          .disk_bytes = (uint64_t)o->cache_disk,
                                          .thread_count = (int)o->quantize.threads,
                                          .predictions =
                                              o->quantize.metric != NULL ? keep_predictions : NULL,
                                          .predictions_user = &j->predictions,
                                          .progress = progress_callback,
                                          .progress_user = "analyzing",
                                          .exact = j->flow.given};
    const tare_status status =
        tare_analyze(j->reference, data, &options, &j->analysis, j->flow.err);
    end_progress();
    tare_data_close(data);
    TRY(status);
    tare_analysis_get_verdict(j->analysis, &j->verdict);
    return measure_metric(o->quantize.metric, &j->predictions, &j->metric, j->flow.err);
}

static tare_status run_job(analyze_job *j) {
    const analyze_options *o = j->options;
    TRY(j->flow.flow->open(&j->flow));
    TRY(read_model(j->flow.input, &o->quantize.sizes, &j->flow.model, j->flow.err));
    TRY(quantize_declare_preprocess(&j->flow));
    TRY(make_reference(j));
    TRY(analyze(j));
    if (o->quantize.as_json) {
        json_out json = json_out_begin(stdout);
        analysis_write(j->analysis, &j->verdict, &j->metric, &json);
        json_out_end(&json);
        return TARE_OK;
    }
    print_verdict(&j->verdict, &j->metric, "", stdout);
    print_preparation(tare_analysis_preparation_db(j->analysis), "fusing and preparing", stdout);
    print_findings(j->analysis, (size_t)o->worst);
    print_layers(j->analysis, (size_t)o->worst);
    return TARE_OK;
}

static int run(const command *self, int argc, char **argv) {
    analyze_options o = {.data = NULL};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (o.quantize.quiet || o.quantize.as_json) silence_progress();
    analyze_job j = {.options = &o,
                     .flow = quantize_to_reference(&o.quantize, operands[0], tare_error_create())};
    int exit_status = finish_job(self->name, run_job(&j), j.flow.err);
    if (j.flow.is_wrong_usage) exit_status = EXIT_WRONG_USAGE;
    tare_analysis_destroy(j.analysis);
    tare_model_destroy(j.reference);
    predictions_release(&j.predictions);
    quantize_release(&j.flow);
    return exit_status;
}

#define FIELD(name) offsetof(analyze_options, name)
static const option options[] = {
    FLOW_OPTIONS(analyze_options, quantize, NULL),
    CALIBRATION_OPTIONS(analyze_options, quantize, NULL, "state"),
    {.name = "data",
     .letter = 'd',
     .value = "DATA",
     .help = "data to analyze on",
     .library_default = "the data of --calibrate",
     .kind = OPTION_FILE,
     .offset = FIELD(data)},
    {.name = "samples",
     .value = "N",
     .help = "analyze on the first N samples",
     .default_value = "32",
     .kind = OPTION_NUMBER,
     .offset = FIELD(samples)},
    {.name = "seconds",
     .value = "S",
     .help = "seconds to spend on tests of single layers",
     .details = "The worst layers are tested first, on the first batch of 8 samples.",
     .default_value = "60",
     .kind = OPTION_NUMBER,
     .offset = FIELD(seconds)},
    {.name = "worst",
     .value = "N",
     .help = "print the N worst layers and findings",
     .default_value = "10",
     .kind = OPTION_NUMBER,
     .offset = FIELD(worst)},
    {.name = "metric",
     .value = "COMMAND",
     .help = "command that prints a metric, the greater the better",
     .details = "As for tare quantize.",
     .kind = OPTION_TEXT,
     .offset = FIELD(quantize.metric)},
    {.name = "cache-memory",
     .value = "SIZE",
     .help = "memory for intermediate values",
     .library_default = "256M",
     .kind = OPTION_BYTES,
     .offset = FIELD(cache_memory)},
    {.name = "cache-disk",
     .value = "SIZE",
     .help = "space in TMPDIR for intermediate values",
     .details = "Values that fit neither in memory nor on disk are computed again.",
     .library_default = "4G",
     .kind = OPTION_BYTES,
     .offset = FIELD(cache_disk)},
    THREADS_OPTION(analyze_options, quantize.threads),
    JSON_OPTION(analyze_options, quantize.as_json),
    QUIET_OPTION(analyze_options, quantize.quiet),
    SIZE_OPTIONS(analyze_options, quantize.sizes),
    {.name = NULL},
};

const command analyze_command = {
    .name = "analyze",
    .summary = "find out which layers lose accuracy, why, and what to do",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .details =
        "MODEL is a float or prepared model, which is quantized as tare quantize would with these "
        "options, or a reference model that tare quantize --stop reference wrote. Observers "
        "without data are no error here, but findings.\n\nFor each layer, prints "
        "signal-to-noise ratios in dB: of its output with only this layer quantized and exact "
        "inputs (local), the same with only its weight or only its inputs quantized (weights, "
        "reads), and of its output in the quantized model (cumulative); then of the model's "
        "outputs with only this layer quantized (alone), and with all layers but this one "
        "(without).\n\nWith --json also prints the range, the channels and the histogram of "
        "every quantized tensor. docs/accuracy.md explains the findings.",
    .example = "tare analyze net.safetensors --backend x86 --calibrate train.npz --data test.npz\n",
    .run = run,
};
