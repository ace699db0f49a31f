// SPDX-License-Identifier: Apache-2.0
// A job of tare quantize, and its two flows.
#ifndef CLI_QUANTIZE_H
#define CLI_QUANTIZE_H

#include "accuracy/verdict.h"
#include "options/command.h"
#include "quantize/report.h"
#include "support/models.h"
#include "tare/tare.h"

typedef struct quantize_options {
    const char *backend, *quantizer, *calibrate, *state, *preprocess, *stop, *report, *output;
    const char *qconfig, *engine, *prepare_config, *convert_config, *equalize; // with --backend
    const char *quantizer_config;                                              // with --quantizer
    const char *bias_data, *check_data, *metric;
    verdict_limits limits;
    int64_t batch, limit, threads, run_threads, bias_samples;
    const char *steps, *ladder;
    int64_t budget, max_slower, max_larger; // seconds, percent
    const char *machine;
    bool no_check, automatic, predict, no_predict;
    bool qat, bias_correction, never_slower, packed, print, debug_handles, lenient, strict, dry_run,
        quiet, as_json;
    size_options sizes;
} quantize_options;

typedef struct quantize_flow quantize_flow;

/// The result of --auto.
typedef struct quantize_improvement {
    bool is_done, is_quiet;
    tare_improve_result result;
    tare_improve_trial *trials; // each `what` is owned
    size_t count, capacity;
    tare_model *prepared; // from which the best model was made; NULL: the job's
} quantize_improvement;

/// The comparison of the final model with its float model, on samples not used for calibration.
typedef struct quantize_check {
    tare_model *prepared, *reference; // owned; reference: the model to analyze
    tare_model *original, *exact;     // owned; before improvement: prepared, and its reference;
                                      // NULL: none, or the float model is kept
    tare_analysis *analysis;          // NULL: not checked
    double preparation_db;            // as of tare_analysis_preparation_db
    bool is_improved;                 // steps may have changed float weights
    tare_verdict verdict;
    metric metric;
    double begin, seconds; // when it began, and what it took
    double job_seconds;    // of the whole job, to the end of the check
    const char *why_not;   // NULL: it was checked, or not requested
    char failure[512];     // the error that prevented the check, or empty
} quantize_check;

typedef struct quantize_job {
    const quantize_options *options;
    const quantize_flow *flow;
    const char *input;
    stop_stage stop;
    tare_model *model;             // at its present stage
    bool keeps_given;              // for the comparison at the end
    tare_model *given;             // the float model, if it is kept; may still be `model`
    bool was_prepared;             // it was prepared when it was read
    bool was_quantized;            // its own quantize nodes were lowered
    bool is_wrong_usage;           // the failure is wrong usage
    tare_never_slower_result race; // of --never-slower, or predicted
    bias_report *biases;           // of --bias-correction, latest first
    quantize_check check;
    quantize_improvement improvement;
    int64_t held_out_count; // samples not used for calibration
    tare_data *data;        // of calibration, kept for the check
    double begin;           // start of the job, in seconds
    tare_error *err;
    // For the flow with a backend config.
    tare_engine engine;
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping, *equalization;
    tare_prepare_custom_config *prepare_config; // NULL: none
    tare_convert_custom_config *convert_config; // the same
    // For the flow with a quantizer.
    tare_quantizer *quantizer;
} quantize_job;

struct quantize_flow {
    /// Loads the files that options name, before the model is read.
    tare_status (*open)(quantize_job *j);
    /// Refuses models of the other flow, and options that a prepared model cannot take.
    tare_status (*check_model)(quantize_job *j);
    tare_status (*fuse)(quantize_job *j); // NULL: this flow has no such stage
    tare_status (*prepare)(quantize_job *j);
    /// Converts to `stop`, with these nodes left float.
    tare_status (*convert)(quantize_job *j, const tare_model *prepared, stop_stage stop,
                           const tare_float_choice *choices, size_t count, tare_model **out);
    /// Makes the reference model with float weights, for tare_analyze. Observers without data are
    /// accepted.
    tare_status (*open_up)(quantize_job *j, const tare_model *prepared,
                           const tare_float_choice *choices, size_t count, tare_model **out);
};

/// Converts j->model to j->stop, after bias correction if requested.
tare_status quantize_convert(quantize_job *j, const tare_float_choice *choices, size_t count,
                             tare_model **out);
/// The same, leaving operators float that are slower with integers, by measured or predicted times.
tare_status quantize_never_slower(quantize_job *j, tare_model **out);
tare_status quantize_predicted(quantize_job *j, tare_model **out);
/// Whether times are to be predicted: by default with tare's own mapping.
bool quantize_predicts(const quantize_job *j);

extern const quantize_flow fx_flow, pt2e_flow;

extern const option quantize_option_rows[];
const char *engine_choice_at(const void *user, size_t index);
const char *stop_choice_at(const void *user, size_t index);

/// Initializes a job that ends with the reference model of a float model, for analysis: all data is
/// used for calibration, and observers without data are findings. Sets `o` accordingly.
quantize_job quantize_to_reference(quantize_options *o, const char *input, tare_error *err);
/// Prepares and calibrates a float model; a prepared one is only calibrated.
tare_status quantize_prepare(quantize_job *j);
/// Stores the preprocessing of --preprocess in the model.
tare_status quantize_declare_preprocess(quantize_job *j);
/// Releases everything except the job itself.
void quantize_release(quantize_job *j);
/// Runs tare quantize with these options; returns the exit status.
int quantize_run(const char *command_name, const quantize_options *o, const char *input);
/// A clock for differences.
double seconds_now(void);

/// Replaces the job's model by `next`; a float model that is kept lives on as `given`.
void quantize_advance(quantize_job *j, tare_model *next);

#endif
