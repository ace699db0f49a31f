// SPDX-License-Identifier: Apache-2.0
// The float outputs that a quantized model is held against.
#include "debug/analyze/exact.h"

#include "core/memory/alloc.h"
#include "ops/run_changes.h"

bool tare__exact_takes(const tare_model *model) {
    return model->stage == TARE_STAGE_FLOAT || model->stage == TARE_STAGE_REFERENCE;
}

// True if a run may write to the model, of which only a session makes a copy.
static tare_status changes_in_runs(const module *root, bool *out, tare_error *err) {
    TARE_TRY(tare__run_changes_modules(root, out, err));
    if (*out || root->graph == NULL) return TARE_OK;
    const char **paths = tare__alloc_zeroed(root->graph->node_count + 1, sizeof *paths);
    if (paths == NULL) return tare__out_of_memory(err);
    *out = tare__run_written_tensors(root, paths) > 0;
    tare__free(paths);
    return TARE_OK;
}

tare_status tare__exact_begin(exact_model *e, const tare_model *model, float_kernels *kernels,
                              int thread_count, tare_error *err) {
    *e = (exact_model){.session = NULL};
    bool changes = false;
    if (kernels != NULL) TARE_TRY(changes_in_runs(model->root, &changes, err));
    if (model->stage == TARE_STAGE_REFERENCE || (kernels != NULL && !changes))
        return tare__probe_begin(&e->probe, model, kernels, thread_count, err);
    const tare_session_options options = {.struct_size = sizeof options,
                                          .thread_count = thread_count};
    return tare_session_create(model, &options, &e->session, err);
}

tare_status tare__session_outputs(tare_session *session, const tare_batch *batch,
                                  probe_outputs *out, tare_error *err) {
    tare_tensor *given[PROBE_MOST_OUTPUTS];
    size_t count = 0;
    TARE_TRY(tare_session_run(session, batch->inputs, batch->input_count, given, PROBE_MOST_OUTPUTS,
                              &count, err));
    tare_status status = TARE_OK;
    for (size_t i = 0; i < count; i++) {
        const bool is_value =
            given[i]->dtype == TARE_FLOAT32 || tare__tensor_is_quantized(given[i]);
        if (status == TARE_OK && is_value)
            status = tare_tensor_to_float(given[i], &out->tensors[out->count++], err);
        if (status != TARE_OK && is_value) out->count--;
        tare_tensor_release(given[i]);
    }
    return status;
}

tare_status tare__exact_run(const exact_model *e, const tare_batch *batch, probe_outputs *out,
                            tare_error *err) {
    if (e->session != NULL) return tare__session_outputs(e->session, batch, out, err);
    probe_run r = {.probe = &e->probe, .mode = PROBE_FLOATS};
    return tare__probe_run(&r, batch->inputs, batch->input_count, out, err);
}

void tare__exact_end(exact_model *e) {
    tare__probe_end(&e->probe);
    tare_session_destroy(e->session);
    e->session = NULL;
}
