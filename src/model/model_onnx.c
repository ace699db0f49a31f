// SPDX-License-Identifier: Apache-2.0
// Reads and writes models as ONNX files, with the description of the model's inputs.
#include "tare/onnx.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "core/tensor/map.h"
#include "io/native/model_file.h"
#include "model/model.h"
#include "model/model_io.h"
#include "tare/version.h"
#ifdef TARE_HAVE_ONNX
#include "io/onnx/write/file.h"
#endif

#ifdef TARE_HAVE_ONNX

typedef struct onnx_job {
    const tare_model *model;
    tare_onnx_options options;
    data_input *inputs;
    size_t input_count;
    text json;
    map tensors;
    tare_error *err;
} onnx_job;

// --- inputs ---

static tare_status take_shape(const onnx_job *job, const tare_input_shape *given) {
    for (size_t i = 0; i < job->input_count; i++) {
        data_input *in = &job->inputs[i];
        if (!tare__data_input_is(in, given->input)) continue;
        if (in->ndim >= 0 && !in->is_example)
            return tare__fail(job->err, TARE_INVALID_ARGUMENT,
                              "input '%s': the model says its shape", in->name);
        if (given->ndim < 0 || given->ndim > TARE_MAX_DIMS)
            return tare__fail(job->err, TARE_INVALID_ARGUMENT,
                              "input '%s': %d dimensions, at most %d fit", in->name, given->ndim,
                              TARE_MAX_DIMS);
        in->ndim = given->ndim;
        in->is_example = false;
        for (int d = 0; d < given->ndim; d++) in->shape[d] = given->shape[d];
        return TARE_OK;
    }
    return tare__fail(job->err, TARE_INVALID_ARGUMENT, "the model has no input '%s'", given->input);
}

static tare_status describe_inputs(onnx_job *job) {
    size_t i = 0;
    job->input_count = tare_model_input_count(job->model);
    job->inputs = tare__alloc_zeroed(job->input_count + 1, sizeof *job->inputs);
    if (job->inputs == NULL) return tare__out_of_memory(job->err);
    for (const node *n = job->model->root->graph->first; n != NULL; n = n->next) {
        if (!tare__node_is_input(n)) continue;
        data_input *in = &job->inputs[i++];
        TARE_TRY(tare__describe_input(n, in, job->err));
        // An observed shape has the example's batch size; any other is accepted, too.
        if (in->is_example && in->ndim > 0) in->shape[0] = -1;
    }
    for (size_t k = 0; k < job->options.shape_count; k++)
        TARE_TRY(take_shape(job, &job->options.shapes[k]));
    return TARE_OK;
}

// --- writing ---

static tare_status make_json_and_tensors(onnx_job *job) {
    json_t *extra = NULL;
    tare_status status = tare__model_extra(job->model, &extra, job->err);
    if (status == TARE_OK)
        status = tare__model_to_json_and_tensors(job->model->root, &tare__observer_state_io, extra,
                                                 &job->json, &job->tensors, job->err);
    json_decref(extra);
    return status;
}

static tare_status hand_out(const onnx_job *job, onnx_image *made) {
    const tare_onnx_options *o = &job->options;
    if (o->report == NULL || made->report.length == 0) return TARE_OK;
    return tare__text_write(&made->report, TARE_OK, o->report, o->report_user, NULL);
}

static tare_status write_image(onnx_job *job, const char *path) {
    const onnx_write_spec spec = {.root = job->model->root,
                                  .inputs = job->inputs,
                                  .input_count = job->input_count,
                                  .opset = job->options.opset,
                                  .json = tare__text_chars(&job->json),
                                  .tensors = &job->tensors,
                                  .producer_version = tare_version()};
    onnx_image made;
    tare_status status = tare__onnx_image(&spec, &made, job->err);
    // The report comes first: if it failed after writing, a model file would remain.
    const tare_status told = hand_out(job, &made);
    if (status == TARE_OK && told != TARE_OK)
        status = tare__fail(job->err, told, "the report cannot be written");
    if (status == TARE_OK)
        status = tare__onnx_image_write(&made, path, job->options.external_data, job->err);
    tare__onnx_image_release(&made);
    return status;
}

tare_status tare_model_write_onnx(const tare_model *model, const char *path,
                                  const tare_onnx_options *options, tare_error *err) {
    onnx_job job = {.model = model, .err = err};
    if (options != NULL) tare__struct_copy(&job.options, sizeof job.options, options);
    tare_status status = describe_inputs(&job);
    if (status == TARE_OK) status = make_json_and_tensors(&job);
    if (status == TARE_OK) status = write_image(&job, path);
    tare__tensor_map_release(&job.tensors);
    tare__text_release(&job.json);
    tare__free(job.inputs);
    return status;
}

#else

tare_status tare_model_write_onnx(const tare_model *model, const char *path,
                                  const tare_onnx_options *options, tare_error *err) {
    (void)model, (void)path, (void)options;
    tare__fail(err, TARE_UNSUPPORTED, "this build of tare cannot write ONNX files");
    return tare__hint(err, TARE_UNSUPPORTED,
                      "build it with protobuf-c and the ONNX schema (Debian: protobuf-c-compiler "
                      "libprotobuf-c-dev libonnx-dev)");
}

#endif
