// SPDX-License-Identifier: Apache-2.0
// tare quantize --bias-correction: its data and its report.
#include <stdlib.h>
#include <string.h>

#include "quantize/quantize.h"
#include "support/memory.h"
#include "support/report.h"

static tare_status note_layer(void *user, const tare_corrected_bias *bias, tare_error *err) {
    bias_report *r = user;
    (void)err;
    if (r->count == r->capacity) {
        const size_t capacity = r->capacity > 0 ? 2 * r->capacity : 64;
        corrected_layer *grown = tare_memory_reallocate(r->layers, capacity, sizeof *grown);
        if (grown == NULL) return TARE_OUT_OF_MEMORY;
        r->layers = grown;
        r->capacity = capacity;
    }
    corrected_layer *layer = &r->layers[r->count];
    *layer = (corrected_layer){.channels = (uint64_t)bias->channel_count,
                               .largest_shift = bias->largest_shift,
                               .rms_shift = bias->rms_shift,
                               .is_new = bias->is_new,
                               .node = copy_text(bias->node)};
    if (layer->node == NULL) return TARE_OUT_OF_MEMORY;
    r->count++;
    return TARE_OK;
}

static tare_status add_report(bias_report **latest) {
    bias_report *r = tare_memory_allocate(1, sizeof *r);
    if (r == NULL) return TARE_OUT_OF_MEMORY;
    r->before = *latest;
    *latest = r;
    return TARE_OK;
}

const bias_report *find_bias_report(const bias_report *latest, const tare_model *model) {
    while (latest != NULL && latest->model != model) latest = latest->before;
    return latest;
}

void release_bias_reports(bias_report *latest) {
    while (latest != NULL) {
        bias_report *r = latest;
        latest = r->before;
        for (size_t i = 0; i < r->count; i++) tare_memory_release(r->layers[i].node);
        tare_memory_release(r->layers);
        tare_memory_release(r);
    }
}

// The inputs of a conversion: the job, and the nodes that stay float.
typedef struct conversion {
    quantize_job *job;
    const tare_float_choice *choices;
    size_t count;
} conversion;

static tare_status convert_reference(void *user, const tare_model *prepared, tare_model **out,
                                     tare_error *err) {
    const conversion *c = user;
    (void)err; // the job's own
    return c->job->flow->convert(c->job, prepared, STOP_REFERENCE, c->choices, c->count, out);
}

static tare_status correct_with(conversion *c, tare_data *data, tare_model **out) {
    quantize_job *j = c->job;
    const tare_bias_correction_options options = {.struct_size = sizeof options,
                                                  .sample_limit = j->options->bias_samples,
                                                  .thread_count = (int)j->options->threads,
                                                  .watcher = note_layer,
                                                  .watcher_user = j->biases,
                                                  .progress = progress_callback,
                                                  .progress_user = "correcting biases"};
    const tare_status status = tare_correct_biases(j->model, data, convert_reference, c, &options,
                                                   &j->biases->result, out, j->err);
    end_progress();
    if (status != TARE_OK || c->count > 0) return status;
    const tare_bias_correction_result *r = &j->biases->result;
    return r->layer_count + r->skipped_count > 0
               ? TARE_OK
               : fail_here(j->input, "quantize without it",
                           "--bias-correction has no effect: no layer has a quantized weight");
}

tare_status quantize_convert(quantize_job *j, const tare_float_choice *choices, size_t count,
                             tare_model **out) {
    const quantize_options *o = j->options;
    if (!o->bias_correction) return j->flow->convert(j, j->model, j->stop, choices, count, out);
    const bool is_own = o->bias_data != NULL; // otherwise calibration's, as many samples as it used
    const tare_data_options options = {
        .batch_size = 16, .sample_limit = is_own ? 0 : o->limit, .is_finite = !o->lenient};
    conversion c = {j, choices, count};
    tare_data *data = NULL;
    tare_model *corrected = NULL;
    TRY(add_report(&j->biases));
    TRY(tare_data_open(is_own ? o->bias_data : o->calibrate, j->model, &options, &data, j->err));
    tare_status status = correct_with(&c, data, &corrected);
    tare_data_close(data);
    if (status == TARE_OK) status = j->flow->convert(j, corrected, j->stop, choices, count, out);
    if (status == TARE_OK) j->biases->model = *out;
    tare_model_destroy(corrected);
    return status;
}
