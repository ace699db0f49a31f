// SPDX-License-Identifier: Apache-2.0
// The summary that tare quantize prints at the end.
#ifndef CLI_QUANTIZE_REPORT_H
#define CLI_QUANTIZE_REPORT_H

#include <stdio.h>

#include "support/json.h"
#include "support/output.h"
#include "tare/tare.h"

typedef enum stop_stage { STOP_FUSE, STOP_PREPARE, STOP_REFERENCE, STOP_LOWER } stop_stage;

/// The bias correction of a layer.
typedef struct corrected_layer {
    char *node; // owned
    uint64_t channels;
    double largest_shift, rms_shift;
    bool is_new;
} corrected_layer;
/// The report of one conversion. --never-slower converts several times, and need not keep the last
/// model.
typedef struct bias_report {
    const tare_model *model; // the model, to identify it
    tare_bias_correction_result result;
    corrected_layer *layers;
    size_t count, capacity;
    struct bias_report *before; // owned
} bias_report;

/// Prints one line: operators, multiply-accumulates and bytes in integers, float islands. Also
/// tells whether no operator is computed with integers.
tare_status print_coverage(const tare_model *model, FILE *stream, bool *is_all_float,
                           tare_error *err);
/// The same figures, into an open object.
tare_status write_coverage_to(const tare_model *model, json_out *json, tare_error *err);
/// Suggests the next command. backend: NULL for models that a quantizer prepared.
void print_next_command(FILE *stream, stop_stage stop, const char *input, const char *output,
                        const char *backend, const char *calibrate);
/// explain.json, coverage.json and model.txt.
enum { REPORT_FILES = 3 };
typedef struct report_files {
    output_file files[REPORT_FILES];
} report_files;
/// Creates `folder` if necessary, and the files under temporary names; place_report, which must be
/// called in any case, renames them.
tare_status prepare_report(const tare_model *model, const char *folder, report_files *out,
                           tare_error *err);
/// Renames the files if `status` is TARE_OK, or removes them. Returns the resulting status.
tare_status place_report(report_files *r, tare_status status);
/// Prints the result of --never-slower in one line.
void print_race(const tare_never_slower_result *race, FILE *stream);
void print_prediction(const tare_never_slower_result *found, FILE *stream);
/// Prints the result of --bias-correction in one line.
void print_biases(const bias_report *biases, FILE *stream);
/// The latest report for this model: a later model may have the address of a released one.
const bias_report *find_bias_report(const bias_report *latest, const tare_model *model);
void release_bias_reports(bias_report *latest);

/// Results of options; NULL: not given.
typedef struct job_findings {
    const tare_never_slower_result *race, *prediction; // prediction: that leaves layers float
    const bias_report *biases;
    const struct quantize_check *check;
    const struct quantize_improvement *improvement;
} job_findings;
/// Prints the result as JSON: the file, its stage, the coverage of a converted model, and findings.
tare_status print_job_json(const tare_model *model, const char *stage, const char *output,
                           const job_findings *found, FILE *stream, tare_error *err);

#endif
