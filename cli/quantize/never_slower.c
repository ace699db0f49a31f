// SPDX-License-Identifier: Apache-2.0
// tare quantize --never-slower: the inputs to time with.
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
