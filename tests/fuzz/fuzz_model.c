// SPDX-License-Identifier: Apache-2.0
// Any bytes as a model file of any format. What is accepted is in order; it is run on inputs of its
// own shapes, and quantized, and what that gives is run: whatever a file says, each ends in a
// result or in an error.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bounded_run.h"
#include "io/data/data.h"
#include "model/model.h"
#include "tare/tare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct fuzz_inputs {
    tare_tensor *items[MOST_INPUTS];
    size_t count;
} fuzz_inputs;

static void release(fuzz_inputs *in) {
    for (size_t i = 0; i < in->count; i++) tare_tensor_release(in->items[i]);
    in->count = 0;
}

// Of numbers that every observer takes.
static void fill_tamely(tare_tensor *t) {
    const bool is_float = tare__dtype(t->dtype)->is_float;
    for (int64_t i = 0; i < t->count; i++)
        tare__tensor_set(t, i, is_float ? (double)(i * 37 % 29 - 14) / 8 : (double)(i % 2));
}

// The shapes that the model says; a small picture where it says none.
static bool make_input(const node *n, tare_tensor **out) {
    const int64_t usual[] = {1, 3, 8, 8};
    data_input in;
    int64_t shape[TARE_MAX_DIMS], count = 0;
    if (tare__describe_input(n, &in, NULL) != TARE_OK) return false;
    const int ndim = in.ndim < 0 ? 4 : in.ndim;
    for (int d = 0; d < ndim; d++)
        shape[d] = in.ndim < 0 ? usual[d] : in.shape[d] < 0 ? 2 : in.shape[d];
    if (!tare__shape_count(ndim, shape, &count) || count > MOST_ELEMENTS) return false;
    const tare_dtype dtype = in.dtype != TARE_DTYPE_UNSET ? in.dtype : TARE_FLOAT32;
    if (tare_tensor_create(dtype, ndim, shape, out, NULL) != TARE_OK) return false;
    fill_tamely(*out);
    return true;
}

static bool make_inputs(const tare_model *model, fuzz_inputs *in) {
    in->count = 0;
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        if (!tare__node_is_input(n)) continue;
        if (in->count == MOST_INPUTS || !make_input(n, &in->items[in->count])) return false;
        in->count++;
    }
    return in->count > 0;
}

// By references within bounds, then by a plan.
static bool run(const tare_model *model, const fuzz_inputs *in) {
    value inputs[MOST_INPUTS];
    tare_status status;
    for (size_t i = 0; i < in->count; i++)
        inputs[i] = (value){.kind = VALUE_TENSOR, .as.tensor = in->items[i]};
    run_once(model->root, inputs, in->count, true, &status);
    if (status != TARE_OK) return false;
    tare_session *session = NULL;
    tare_tensor *outputs[16];
    size_t count = 0;
    const tare_session_options options = {.struct_size = sizeof options, .thread_count = 1};
    if (tare_session_create(model, &options, &session, NULL) != TARE_OK) return false;
    status = tare_session_run(session, (const tare_tensor *const *)in->items, in->count, outputs,
                              16, &count, NULL);
    for (size_t i = 0; status == TARE_OK && i < count; i++) tare_tensor_release(outputs[i]);
    tare_session_destroy(session);
    return status == TARE_OK;
}

static void run_and_drop(tare_status status, tare_model *made, const fuzz_inputs *in) {
    if (status == TARE_INTERNAL) abort();
    if (status == TARE_OK) (void)run(made, in);
    tare_model_destroy(made);
}

static void convert(const tare_model *prepared, bool is_program, const fuzz_inputs *in) {
    tare_model *made = NULL, *lower = NULL;
    if (is_program) {
        tare_status status = tare_convert_pt2e(prepared, NULL, &made, NULL);
        if (status == TARE_OK) run_and_drop(tare_lower_pt2e(made, NULL, &lower, NULL), lower, in);
        run_and_drop(status, made, in);
        return;
    }
    tare_status status = tare_convert_fx(prepared, NULL, &made, NULL);
    run_and_drop(status, made, in);
    made = NULL;
    status = tare_convert_to_reference_fx(prepared, NULL, &made, NULL);
    run_and_drop(status, made, in);
}

static tare_status prepare_program(const tare_model *model, tare_model **out) {
    tare_quantizer *quantizer = NULL;
    if (tare_quantizer_builtin("XNNPACKQuantizer", NULL, &quantizer, NULL) != TARE_OK) abort();
    const tare_status status = tare_prepare_pt2e(model, quantizer, out, NULL);
    tare_quantizer_destroy(quantizer);
    return status;
}

static tare_status prepare(const tare_model *model, tare_model **out) {
    tare_qconfig_mapping *mapping = NULL;
    if (tare_qconfig_mapping_default("x86", false, -1, &mapping, NULL) != TARE_OK) abort();
    const tare_prepare_options options = {
        .struct_size = sizeof options, .qconfig_mapping = mapping, .is_lenient = true};
    const tare_status status = tare_prepare_fx(model, &options, out, NULL);
    tare_qconfig_mapping_destroy(mapping);
    return status;
}

static void quantize(const tare_model *model, const fuzz_inputs *in) {
    tare_model *prepared = NULL;
    const bool is_program = tare_model_is_exported(model);
    const tare_status status =
        is_program ? prepare_program(model, &prepared) : prepare(model, &prepared);
    if (status == TARE_INTERNAL) abort();
    if (status != TARE_OK) return;
    if (tare_calibrate(prepared, (const tare_tensor *const *)in->items, in->count, NULL) == TARE_OK)
        convert(prepared, is_program, in);
    tare_model_destroy(prepared);
}

static void use(tare_model *model) {
    fuzz_inputs in;
    if (tare__graph_verify(model->root->graph, NULL) != TARE_OK) abort();
    const tare_model_stage stage = tare_model_get_stage(model);
    if (make_inputs(model, &in) && run(model, &in) && stage == TARE_STAGE_FLOAT)
        quantize(model, &in);
    release(&in);
}

static const char *file_of(const uint8_t *data, size_t size) {
    static char path[64];
    static int file = -1;
    if (file < 0) {
        strcpy(path, "/tmp/tare-fuzz-model-XXXXXX");
        file = mkstemp(path);
        if (file < 0) abort();
        (void)unlink(path);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size) abort();
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tare_model *model = NULL;
    const tare_model_read_options options = {.struct_size = sizeof options,
                                             .ignores_digests = true};
    const tare_status status =
        tare_model_read_with(file_of(data, size), NULL, &options, &model, NULL);
    if (status == TARE_INTERNAL) abort();
    if (status == TARE_OK) use(model);
    tare_model_destroy(model);
    return 0;
}
