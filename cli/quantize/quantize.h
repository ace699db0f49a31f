// SPDX-License-Identifier: Apache-2.0
// tare quantize: one job, and the two flows that it may take.
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
    int64_t budget;
    bool no_check, automatic;
    bool qat, bias_correction, never_slower, packed, print, debug_handles, lenient, strict, dry_run,
        quiet, as_json;
    size_options sizes;
} quantize_options;

typedef struct quantize_flow quantize_flow;

/// What the ladder of --auto did.
typedef struct quantize_improvement {
    bool is_done, is_quiet;
    tare_improve_result result;
    tare_improve_trial *trials; // each `what` is owned
    size_t count, capacity;
    tare_model *prepared; // that the best model was made from; NULL: the job's
} quantize_improvement;

/// The model that was made, held against its float model on samples that calibrated nothing.
typedef struct quantize_check {
    tare_model *prepared, *reference; // owned; reference: what the analysis looks into
    tare_model *original, *exact; // owned; before steps of improvement: prepared, and its reference
                                  // form; NULL: there were none
    tare_analysis *analysis;      // NULL: it was not checked
    tare_verdict verdict;
    metric metric;
    double begin, seconds; // when it began, and what it took
    double job_seconds;    // of the whole job, to the end of the check
    const char *why_not;   // NULL: it was checked, or nobody wants that
    char failure[512];     // the error that kept it from being checked, or empty
} quantize_check;

typedef struct quantize_job {
    const quantize_options *options;
    const quantize_flow *flow;
    const char *input;
    stop_stage stop;
    tare_model *model;             // as far as it has come
    bool was_prepared;             // when it was read
    bool was_quantized;            // its quantize nodes were lowered as they are
    bool is_wrong_usage;           // what failed was the command line
    tare_never_slower_result race; // of --never-slower
    bias_report *biases;           // of --bias-correction, the latest one first
    quantize_check check;
    quantize_improvement improvement;
    int64_t held_out_count; // samples that calibration was not given
    double begin;           // of the job, in seconds
    tare_error *err;
    // of the flow with a backend
    tare_engine engine;
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping, *equalization;
    tare_prepare_custom_config *prepare_config; // NULL: none
    tare_convert_custom_config *convert_config; // idem
    // of the flow with a quantizer
    tare_quantizer *quantizer;
} quantize_job;

struct quantize_flow {
    /// Loads what the options name, before the model is read.
    tare_status (*open)(quantize_job *j);
    /// Refuses models of the other flow, and options that come too late for a prepared one.
    tare_status (*check_model)(quantize_job *j);
    tare_status (*fuse)(quantize_job *j); // NULL: not a stage of this flow
    tare_status (*prepare)(quantize_job *j);
    /// To `stop`, with these nodes left float.
    tare_status (*convert)(quantize_job *j, const tare_model *prepared, stop_stage stop,
                           const tare_float_choice *choices, size_t count, tare_model **out);
    /// The reference form with float weights in it, for tare_analyze. Observers that saw no data
    /// are taken as they are.
    tare_status (*open_up)(quantize_job *j, const tare_model *prepared,
                           const tare_float_choice *choices, size_t count, tare_model **out);
};

/// The flow's conversion of j->model to j->stop, with its biases corrected first if asked for.
tare_status quantize_convert(quantize_job *j, const tare_float_choice *choices, size_t count,
                             tare_model **out);
/// The same, with what is slower in integers left float.
tare_status quantize_never_slower(quantize_job *j, tare_model **out);

extern const quantize_flow fx_flow, pt2e_flow;

extern const option quantize_option_rows[];
const char *engine_choice_at(const void *user, size_t index);
const char *stop_choice_at(const void *user, size_t index);

/// A job that ends with the reference form of a float model, to look into it: everything that data
/// is given for calibrates, and what it did not reach is a finding. Sets `o` so.
quantize_job quantize_to_reference(quantize_options *o, const char *input, tare_error *err);
/// From a float model, or one that was prepared before, to a calibrated one.
tare_status quantize_prepare(quantize_job *j);
/// What --preprocess says goes into the model.
tare_status quantize_declare_preprocess(quantize_job *j);
/// All but the job itself.
void quantize_release(quantize_job *j);
/// The job of tare quantize with these options; the exit status.
int quantize_run(const char *command_name, const quantize_options *o, const char *input);
/// Of a clock, for differences.
double seconds_now(void);

/// Replaces the job's model by `next`.
void quantize_advance(quantize_job *j, tare_model *next);

#endif
