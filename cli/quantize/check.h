// SPDX-License-Identifier: Apache-2.0
// The accuracy check at the end of tare quantize, on samples that were not used for calibration.
#ifndef CLI_QUANTIZE_CHECK_H
#define CLI_QUANTIZE_CHECK_H

#include "quantize/quantize.h"

#define CHECK_TIME_SHARE 0.08 // of the whole job's time, for the whole check: under a tenth

/// Is the model that is made going to be checked?
bool check_is_wanted(const quantize_options *o);
/// The number of samples held back from calibration for the check; 0: none.
int64_t check_sample_count(const quantize_options *o);
/// Keeps the calibrated model, from which the check makes the reference model to analyze.
tare_status check_keep_prepared(quantize_job *j);
/// Checks j->model. Fails if a given limit is violated. If the check is impossible, records why;
/// that is a failure only if the quantized model does not run, a limit was given, or memory or a
/// file failed.
tare_status check_model_made(quantize_job *j);

/// The operators that --never-slower and --auto left float, which stay float in the reference
/// model.
typedef struct choice_list {
    tare_float_choice *items; // for tare_memory_release; its texts are lent by the model
    size_t count;
} choice_list;
/// Reads the choices from the record of the final model, without nodes that `prepared` does not
/// have.
tare_status check_float_choices(const tare_model *made, const tare_model *prepared,
                                choice_list *out, tare_error *err);

/// Prints to standard error why the check was not possible, for a job that succeeded nevertheless.
void print_check_note(const quantize_check *c);
void print_check(const quantize_check *c, FILE *stream);
void write_check(const quantize_check *c, json_out *json);
void release_check(quantize_check *c);

#endif
