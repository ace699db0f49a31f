// SPDX-License-Identifier: Apache-2.0
// tare report: collects the results of the other commands about a quantized model.
#ifndef CLI_REPORT_REPORT_H
#define CLI_REPORT_REPORT_H

#include "bench/measure.h"
#include "compare/comparison.h"
#include "quantize/quantize.h"

typedef struct report_options {
    quantize_options quantize; // the options that QUANTIZED was made with, for the analysis
    const char *data, *output;
    int64_t samples, seconds, bench_seconds;
    bool no_bench;
} report_options;

typedef struct report_job {
    const report_options *options;
    const char *float_path, *quantized_path;
    tare_model *float_model;
    tare_model *quantized; // the model that runs
    tare_model *reference; // the model to analyze; NULL: none
    comparison comparison;
    quantize_job flow;       // that made the reference; its error is the job's
    tare_analysis *analysis; // NULL: there is no reference
    tare_verdict verdict;
    predictions predictions;
    metric metric;
    session_settings session;
    bench_job bench;
    bool was_timed;
    tare_error *err; // lent by flow
} report_job;

/// The report as one JSON object (docs/schemas/report.json).
tare_status report_write(const report_job *j, FILE *stream);

/// Writes "graph": the nodes of the model that runs, with their islands and graphviz' positions.
tare_status report_write_graph(const tare_model *model, json_out *json, tare_error *err);

/// Writes "levels" and "advice": ratings of the results, and what to do next.
tare_status report_write_advice(const report_job *j, json_out *json);

/// Writes the page with this data.
void report_write_page(const char *title, const char *json, FILE *stream);

#endif
