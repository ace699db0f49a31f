// SPDX-License-Identifier: Apache-2.0
// tare run: runs a model on data.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/session.h"
#include "support/gather.h"
#include "support/json.h"
#include "support/models.h"
#include "support/output.h"
#include "support/report.h"
#include "support/scores.h"
#include "tare/tare.h"

typedef struct run_options {
    const char *input, *output;
    int64_t batch, limit;
    bool as_is, as_json, quiet;
    session_settings session;
    size_options sizes;
} run_options;

typedef struct job {
    const run_options *options;
    tare_session_options setting;
    tare_model *model;
    tare_session *session;
    tare_data *data;
    gathered outputs;
    int64_t sample_count, correct_count;
    bool has_accuracy;
    tare_error *err;
} job;

static tare_status score_batch(job *j, const tare_batch *batch, const tare_tensor *first) {
    if (batch->labels == NULL || !is_scores(first, batch->size)) return TARE_OK;
    j->has_accuracy = true;
    return count_correct(first, batch->labels, j->options->input, &j->correct_count, j->err);
}

static tare_status run_batch(job *j, const tare_batch *batch) {
    tare_tensor *outputs[GATHER_CAPACITY] = {NULL};
    size_t count = 0;
    TRY(tare_session_run(j->session, batch->inputs, batch->input_count, outputs, GATHER_CAPACITY,
                         &count, j->err));
    tare_status status = gather_plain(outputs, count, j->err);
    if (status == TARE_OK && count > 0) status = score_batch(j, batch, outputs[0]);
    if (status == TARE_OK && j->options->output != NULL)
        status = gather_add(&j->outputs, outputs, count, j->err);
    for (size_t i = 0; i < count; i++) tare_tensor_release(outputs[i]);
    return status;
}

static tare_status run_batches(job *j) {
    for (bool done = false;;) {
        tare_batch batch = {0};
        TRY(tare_data_next(j->data, &batch, &done, j->err));
        if (done) return TARE_OK;
        TRY(run_batch(j, &batch));
        j->sample_count += batch.size;
        show_progress("running", j->sample_count, tare_data_sample_count(j->data));
    }
}

static void list_outputs(const joined_outputs *outputs, json_out *json) {
    json_out_open(json, "outputs", '[');
    for (size_t i = 0; i < outputs->count; i++) {
        const tare_tensor *t = outputs->tensors[i];
        json_out_open(json, NULL, '{');
        json_out_string(json, "name", outputs->names[i]);
        json_out_string(json, "dtype", tare_dtype_name(tare_tensor_dtype(t)));
        json_out_open(json, "shape", '[');
        for (int d = 0; d < tare_tensor_ndim(t); d++)
            json_out_integer(json, NULL, (uint64_t)tare_tensor_shape(t)[d]);
        json_out_close(json, ']');
        json_out_close(json, '}');
    }
    json_out_close(json, ']');
}

static void print_result(const job *j, const joined_outputs *outputs, FILE *stream) {
    const double accuracy = (double)j->correct_count / (double)j->sample_count;
    if (j->options->as_json) {
        json_out json = json_out_begin(stream);
        json_out_integer(&json, "samples", (uint64_t)j->sample_count);
        if (j->has_accuracy) {
            json_out_integer(&json, "correct", (uint64_t)j->correct_count);
            json_out_number(&json, "accuracy", accuracy);
        }
        if (j->options->output != NULL) list_outputs(outputs, &json);
        json_out_end(&json);
        return;
    }
    (void)fprintf(stream, "%" PRId64 " sample%s", j->sample_count, j->sample_count == 1 ? "" : "s");
    if (j->has_accuracy)
        (void)fprintf(stream, ", %" PRId64 " right: accuracy %.2f %%", j->correct_count,
                      100 * accuracy);
    (void)fprintf(stream, "\n");
}

static tare_status write_result(const job *j) {
    const char *path = j->options->output;
    joined_outputs joined = {.count = 0};
    tare_status status = TARE_OK;
    if (path != NULL) status = gather_join(&j->outputs, j->session, &joined, j->err);
    if (path != NULL && status == TARE_OK)
        status = tare_arrays_write(path, joined.names, (const tare_tensor *const *)joined.tensors,
                                   joined.count, j->err);
    const bool output_is_stdout = path != NULL && strcmp(path, "-") == 0;
    if (status == TARE_OK) print_result(j, &joined, output_is_stdout ? stderr : stdout);
    joined_outputs_release(&joined);
    return status;
}

static tare_status run_job(job *j, const char *model) {
    const run_options *o = j->options;
    const tare_data_options data = {
        .batch_size = o->batch, .sample_limit = o->limit, .as_is = o->as_is};
    if (o->output != NULL) {
        TRY(tare_arrays_check_path(o->output, j->err));
        TRY(output_check(o->output));
    }
    TRY(read_model(model, &o->sizes, &j->model, j->err));
    TRY(tare_data_open(o->input, j->model, &data, &j->data, j->err));
    TRY(tare_session_create(j->model, &j->setting, &j->session, j->err));
    TRY(keep_thread(&o->session, j->err));
    TRY(run_batches(j));
    end_progress();
    return write_result(j);
}

static int run(const command *self, int argc, char **argv) {
    run_options o = {.session = SESSION_DEFAULTS};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (o.quiet || o.as_json) silence_progress();
    job j = {.options = &o};
    if (!read_session_settings(self->name, &o.session, &j.setting)) return EXIT_WRONG_USAGE;
    j.err = tare_error_create();
    const int exit_status = finish_job(self->name, run_job(&j, operands[0]), j.err);
    gather_release(&j.outputs);
    tare_session_destroy(j.session);
    tare_data_close(j.data);
    tare_model_destroy(j.model);
    tare_error_destroy(j.err);
    return exit_status;
}

#define FIELD(name) offsetof(run_options, name)
static const option options[] = {
    {.name = "input",
     .letter = 'i',
     .value = "DATA",
     .help = "data to run on",
     .kind = OPTION_FILE,
     .is_required = true,
     .offset = FIELD(input)},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "results: .npz, .npy or .safetensors; '-': .npz on standard output",
     .details = "Each array has the name of its output: the key in the mapping that the model "
                "returns, the path of a nested value ('both.0'), the name in an ONNX file; or "
                "output, or output.0, output.1, .. of a tuple. Quantized outputs are written as "
                "float32.",
     .kind = OPTION_FILE,
     .writes = "",
     .offset = FIELD(output)},
    {.name = "batch",
     .value = "N",
     .help = "samples per batch",
     .default_value = "32",
     .kind = OPTION_NUMBER,
     .offset = FIELD(batch)},
    {.name = "limit",
     .value = "N",
     .help = "run on the first N samples",
     .kind = OPTION_NUMBER,
     .offset = FIELD(limit)},
    {.name = "as-is",
     .help = "run each array file as a whole: any shapes, no batch",
     .details = "Dimension 0 is not a batch then.",
     .kind = OPTION_FLAG,
     .excludes = "batch",
     .offset = FIELD(as_is)},
    SESSION_OPTIONS(run_options, session),
    JSON_OPTION(run_options, as_json),
    QUIET_OPTION(run_options, quiet),
    SIZE_OPTIONS(run_options, sizes),
    {.name = NULL},
};

const command run_command = {
    .name = "run",
    .summary = "run a model on data",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .details = "If DATA has labels and the model's outputs are class scores, prints the accuracy "
               "(in JSON as a fraction).",
    .run = run,
};
