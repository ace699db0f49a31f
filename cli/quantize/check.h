// SPDX-License-Identifier: Apache-2.0
// The check at the end of tare quantize: the model that was made, on samples that calibrated
// nothing.
#ifndef CLI_QUANTIZE_CHECK_H
#define CLI_QUANTIZE_CHECK_H

#include "quantize/quantize.h"

/// Samples held back from calibration for the check; 0: there is none.
int64_t check_sample_count(const quantize_options *o);
/// Keeps the calibrated model, from which the check makes the form that it looks into.
tare_status check_keep_prepared(quantize_job *j);
/// Checks j->model. Fails where it does not keep a limit that was given; where the check itself is
/// not possible, notes why and fails only if a limit was given, or memory or a file failed.
tare_status check_model_made(quantize_job *j);

/// What --never-slower and --auto left float stays float in the form that is looked into.
typedef struct choice_list {
    tare_float_choice *items; // for tare_memory_release; its texts are lent by the model
    size_t count;
} choice_list;
/// By the record of the model that was made; nodes that `prepared` does not have are left out.
tare_status check_float_choices(const tare_model *made, const tare_model *prepared,
                                choice_list *out, tare_error *err);

/// Why the check was not possible, to standard error: for a job that succeeded all the same.
void print_check_note(const quantize_check *c);
void print_check(const quantize_check *c, FILE *stream);
void write_check(const quantize_check *c, json_out *json);
void release_check(quantize_check *c);

#endif
