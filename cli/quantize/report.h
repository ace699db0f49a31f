// SPDX-License-Identifier: Apache-2.0
// What tare quantize tells when it is done.
#ifndef CLI_QUANTIZE_REPORT_H
#define CLI_QUANTIZE_REPORT_H

#include <stdio.h>

#include "support/json.h"
#include "support/output.h"
#include "tare/tare.h"

typedef enum stop_stage { STOP_FUSE, STOP_PREPARE, STOP_REFERENCE, STOP_LOWER } stop_stage;

/// What --bias-correction did to a layer.
typedef struct corrected_layer {
    char *node; // owned
    uint64_t channels;
    double largest_shift, rms_shift;
    bool is_new;
} corrected_layer;
/// Of one conversion. --never-slower converts several times, and what it tried last need not be
/// what it keeps.
typedef struct bias_report {
    const tare_model *model; // that was made, to know it by
    tare_bias_correction_result result;
    corrected_layer *layers;
    size_t count, capacity;
    struct bias_report *before; // owned
} bias_report;

/// One line: operators, multiply-accumulates and bytes in integers, float islands. Says whether no
/// operator is in integers.
tare_status print_coverage(const tare_model *model, FILE *stream, bool *is_all_float,
                           tare_error *err);
/// The same figures, into an open object.
tare_status write_coverage_to(const tare_model *model, json_out *json, tare_error *err);
/// The command that one would type now. backend: NULL for models that a quantizer prepared.
void print_next_command(FILE *stream, stop_stage stop, const char *input, const char *output,
                        const char *backend, const char *calibrate);
/// explain.json, coverage.json and model.txt.
enum { REPORT_FILES = 3 };
typedef struct report_files {
    output_file files[REPORT_FILES];
} report_files;
/// Makes `folder` if need be, and the files up to their names, which place_report gives them. That
/// must be called in any case.
tare_status prepare_report(const tare_model *model, const char *folder, report_files *out,
                           tare_error *err);
/// If `status` is well; else they are dropped. Returns what came of it.
tare_status place_report(report_files *r, tare_status status);
/// What --never-slower found, in a line.
void print_race(const tare_never_slower_result *race, FILE *stream);
/// What --bias-correction did, in a line.
void print_biases(const bias_report *biases, FILE *stream);
/// The latest report of this model: addresses of models that were dropped may come again.
const bias_report *find_bias_report(const bias_report *latest, const tare_model *model);
void release_bias_reports(bias_report *latest);

/// What options of the job found; NULL: they were not given.
typedef struct job_findings {
    const tare_never_slower_result *race;
    const bias_report *biases;
    const struct quantize_check *check;
    const struct quantize_improvement *improvement;
} job_findings;
/// What was made, as JSON: the file, its stage, the coverage of a converted model, and findings.
tare_status print_job_json(const tare_model *model, const char *stage, const char *output,
                           const job_findings *found, FILE *stream, tare_error *err);

#endif
