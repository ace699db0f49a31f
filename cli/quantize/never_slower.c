// SPDX-License-Identifier: Apache-2.0
// tare quantize: which layers stay float, by measured times (--never-slower) or by predicted ones.
#include <stdlib.h>
#include <string.h>

#include "options/files.h"
#include "quantize/check.h"
#include "quantize/quantize.h"
#include "support/report.h"

static tare_status convert_without(void *user, const tare_float_choice *choices, size_t count,
                                   tare_model **out, tare_error *err) {
    quantize_job *j = user;
    (void)err; // the job's own
    return quantize_convert(j, choices, count, out);
}

static tare_status race(quantize_job *j, const tare_batch *batch, tare_model **out) {
    const tare_never_slower_options options = {.struct_size = sizeof options,
                                               .inputs = batch->inputs,
                                               .input_count = batch->input_count,
                                               .thread_count = (int)j->options->run_threads,
                                               .progress = progress_callback,
                                               .progress_user = "timing"};
    const tare_status status =
        tare_never_slower(j->model, convert_without, j, &options, &j->race, out, j->err);
    end_progress();
    return status;
}

// Uses the first calibration sample, or a random one.
tare_status quantize_never_slower(quantize_job *j, tare_model **out) {
    const tare_data_options options = {.batch_size = 1};
    const char *spec = j->options->calibrate != NULL ? j->options->calibrate : "random:1";
    tare_data *data = NULL;
    tare_batch batch = {.struct_size = sizeof batch};
    bool done = false;
    TRY(tare_data_open(spec, j->model, &options, &data, j->err));
    tare_status status = tare_data_next(data, &batch, &done, j->err);
    if (status == TARE_OK && done)
        status = fail_here(spec, "name data that has samples", "no data");
    if (status == TARE_OK) status = race(j, &batch, out);
    tare_data_close(data);
    return status;
}

// --- predicted times ---

bool quantize_predicts(const quantize_job *j) {
    const quantize_options *o = j->options;
    if (j->stop != STOP_LOWER || o->never_slower || o->automatic || o->no_predict) return false;
    return o->predict || o->machine != NULL || tare_model_is_prepared_own(j->model);
}

static const char *machine_file(const quantize_options *o) {
    const char *path = o->machine != NULL ? o->machine : getenv("TARE_MACHINE");
    return path != NULL && path[0] != '\0' ? path : NULL;
}

// Measures the machine once and keeps its peaks.
static tare_status read_machine(const char *path, tare_machine_peak *out, tare_error *err) {
    if (path_exists(path)) return tare_machine_read(path, out, err);
    TRY(tare_machine_measure(1, out, err));
    return tare_machine_write(out, path, err);
}

// Biases are corrected after the choice: they change no time.
static tare_status convert_plainly(void *user, const tare_float_choice *choices, size_t count,
                                   tare_model **out, tare_error *err) {
    quantize_job *j = user;
    (void)err; // the job's own
    return j->flow->convert(j, j->model, j->stop, choices, count, out);
}

// Calibration has noted the inputs' shapes in the model.
static tare_status predict(quantize_job *j, tare_model **out) {
    const char *path = machine_file(j->options);
    tare_machine_peak machine = {.struct_size = sizeof machine};
    tare_never_slower_options options = {.struct_size = sizeof options, .predicts = true};
    if (path != NULL) {
        TRY(read_machine(path, &machine, j->err));
        options.machine = &machine;
    }
    return tare_never_slower(j->model, convert_plainly, j, &options, &j->race, out, j->err);
}

static tare_status correct_biases(quantize_job *j, tare_model **out) {
    choice_list choices = {.items = NULL};
    tare_model *predicted = *out;
    *out = NULL;
    tare_status status = check_float_choices(predicted, j->model, &choices, j->err);
    if (status == TARE_OK) status = quantize_convert(j, choices.items, choices.count, out);
    tare_memory_release(choices.items);
    tare_model_destroy(predicted);
    return status;
}

tare_status quantize_predicted(quantize_job *j, tare_model **out) {
    TRY(predict(j, out));
    return j->options->bias_correction ? correct_biases(j, out) : TARE_OK;
}
