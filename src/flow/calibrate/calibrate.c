// SPDX-License-Identifier: Apache-2.0
// Calibration: runs a prepared model in float while its observers collect statistics.
#include "flow/calibrate/calibrate.h"

#include "dnnl/float_kernels.h"
#include "flow/calibrate/observer_list.h"
#include "model/coverage.h"
#include "model/pass.h"
#include "ops/interpret.h"
#include "ops/op.h"
#include "ops/rules.h"

typedef struct counting {
    tare_model *model;
    int64_t batch; // size of the first input's batch
    bool is_stateful;
} counting;

static void set_macs(const counting *c, const node *n, int64_t macs) {
    if (n->origin != NULL && macs > 0)
        tare__coverage_set_macs(c->model, n->origin, macs / (c->batch > 0 ? c->batch : 1));
}

// The multiply-accumulates of an operator, from its row, in all rounds of its graph.
static void count_row(const counting *c, const node *n, const op_call *call) {
    int64_t rounds = call->it != NULL ? call->it->rounds : 0;
    if (rounds < 0) return;
    if (rounds == 0) rounds = 1;
    if (call->op != NULL && call->op->macs != NULL)
        set_macs(c, n, tare__size_product(call->op->macs(call), rounds));
}

static tare_status count_call(void *user, const node *n, op_call *call, bool *handled) {
    *handled = false;
    count_row(user, n, call);
    return TARE_OK;
}

// Of a fused module: one per weight element of an output channel, for every output.
static tare_status count_fused(void *user, const node *n, const value *result, tare_error *err) {
    (void)err;
    counting *c = user;
    if (result->kind != VALUE_TENSOR) return TARE_OK;
    const tare_tensor *out = result->as.tensor;
    if (n->op == NODE_PLACEHOLDER && c->batch == 0 && out->ndim > 0) c->batch = out->shape[0];
    const module *m = tare__called_module(c->model, n);
    if (m == NULL || m->class->role != ROLE_FUSED || m->child_count == 0) return TARE_OK;
    const tare_tensor *weight = tare__module_tensor(m->children[0].module, "weight");
    if (weight == NULL || weight->ndim < 2 || weight->shape[0] == 0) return TARE_OK;
    set_macs(c, n, tare__size_product(out->count, weight->count / weight->shape[0]));
    return TARE_OK;
}

// Trailing inputs may be left out if the graph has defaults for them.
static size_t least_input_count(const tare_model *model) {
    size_t count = 0, least = 0;
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        if (!tare__node_is_input(n)) continue;
        count++;
        if (n->arg_count == 0) least = count;
    }
    return least;
}

tare_status tare__calibrate_check_inputs(const tare_model *model, const tare_tensor *const *inputs,
                                         size_t input_count, tare_error *err) {
    if (input_count > tare_model_input_count(model) || input_count < least_input_count(model))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "the model takes %zu inputs, found %zu",
                          tare_model_input_count(model), input_count);
    for (size_t i = 0; i < input_count; i++) {
        const char *name = tare_model_input_name(model, i);
        if (inputs == NULL || inputs[i] == NULL)
            return tare__fail(err, TARE_INVALID_ARGUMENT, "input '%s' is NULL", name);
        TARE_TRY(tare__tensor_refuse_nan(inputs[i], "input", name, err));
    }
    return TARE_OK;
}

// Graphs from FX do not state the shapes of their inputs, but calibration sees them. They are
// stored in the file as the placeholder's meta, for benchmarks and data without shapes.
static tare_status keep_shape(graph *g, node *placeholder, const tare_tensor *t, tare_error *err) {
    if (placeholder->meta_json != NULL || t->ndim == 0) return TARE_OK;
    text meta = {0};
    tare__text_append(&meta, "{\"example\": {\"shape\": [null");
    for (int d = 1; d < t->ndim; d++) tare__text_printf(&meta, ", %lld", (long long)t->shape[d]);
    tare__text_printf(&meta, "], \"dtype\": \"%s\"}}", tare_dtype_name(t->dtype));
    if (!meta.failed) // as it will be written after reading
        placeholder->meta_json = tare__arena_strdup(&g->memory, tare__text_chars(&meta));
    tare__text_release(&meta);
    return placeholder->meta_json != NULL ? TARE_OK : tare__out_of_memory(err);
}

tare_status tare__calibrate_keep_shapes(tare_model *prepared, const tare_tensor *const *inputs,
                                        size_t input_count, tare_error *err) {
    graph *g = prepared->root->graph;
    size_t i = 0;
    for (node *n = g->first; n != NULL && i < input_count; n = n->next)
        if (tare__node_is_input(n)) TARE_TRY(keep_shape(g, n, inputs[i++], err));
    return TARE_OK;
}

// --- by shapes ---

static tare_status note_call(void *user, const node *n, const op_call *call, op_compute compute) {
    counting *c = user;
    const module *m = call->module;
    (void)compute;
    count_row(c, n, call);
    if (m != NULL && m->training && m->class->role != ROLE_OBSERVER) c->is_stateful = true;
    return TARE_OK;
}

static tare_status note_write(void *user, const node *n, tare_tensor *now, tare_error *err) {
    (void)n, (void)now, (void)err;
    counting *c = user;
    c->is_stateful = true;
    return TARE_OK;
}

static value *share_inputs(const tare_tensor *const *inputs, size_t count, arena *memory) {
    value *out = tare__arena_array(memory, count + 1, sizeof *out);
    for (size_t i = 0; out != NULL && i < count; i++)
        out[i] = (value){.kind = VALUE_TENSOR, .as.tensor = (tare_tensor *)inputs[i]};
    return out;
}

tare_status tare__calibrate_shapes(tare_model *prepared, const tare_tensor *const *inputs,
                                   size_t input_count, arena *memory, value *out, bool *is_stateful,
                                   tare_error *err) {
    counting count = {.model = prepared};
    const interpreter it = {.root = prepared->root,
                            .thread_count = 1,
                            .shapes_only = true,
                            .after = count_fused,
                            .shaped = note_call,
                            .sees_inside = true,
                            .writes = note_write,
                            .user = &count};
    value *values = share_inputs(inputs, input_count, memory);
    if (values == NULL) return tare__out_of_memory(err);
    const tare_status status = tare__interpret(&it, values, input_count, memory, out, err);
    *is_stateful = count.is_stateful;
    return status;
}

// --- one batch ---

tare_status tare__calibrate_check_model(const tare_model *prepared, tare_error *err) {
    if (prepared != NULL && prepared->stage == TARE_STAGE_PREPARED) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "calibrate: expected a prepared model (see tare_prepare_fx)");
}

static tare_status watch(tare_model *prepared, const tare_tensor *const *inputs, size_t input_count,
                         arena *memory, tare_error *err) {
    counting count = {.model = prepared};
    const interpreter it = {.root = prepared->root,
                            .own = prepared->root,
                            .thread_count = 1,
                            .after = count_fused,
                            .execute = count_call,
                            .sees_inside = true,
                            .kernels = prepared->floats,
                            .memory_limit = prepared->memory_limit,
                            .user = &count};
    value *values = share_inputs(inputs, input_count, memory), result = {0};
    if (values == NULL) return tare__out_of_memory(err);
    TARE_TRY(tare__interpret(&it, values, input_count, memory, &result, err));
    tare__value_release_tensors(&result);
    return tare__calibrate_keep_shapes(prepared, inputs, input_count, err);
}

tare_status tare__calibrate_batch(tare_model *prepared, const tare_tensor *const *inputs,
                                  size_t input_count, tare_error *err) {
    arena memory = {0};
    TARE_TRY(tare__calibrate_check_model(prepared, err));
    TARE_TRY(tare__calibrate_check_inputs(prepared, inputs, input_count, err));
    if (prepared->floats == NULL)
        TARE_TRY(tare__float_kernels_create(NULL, &prepared->floats, err));
    const tare_status status = watch(prepared, inputs, input_count, &memory, err);
    tare__arena_release(&memory);
    return status;
}

tare_status tare_calibrate(tare_model *prepared, const tare_tensor *const *inputs,
                           size_t input_count, tare_error *err) {
    TARE_TRY(tare__calibrate_batch(prepared, inputs, input_count, err));
    tare__observers_forget_data(prepared);
    prepared->seen.is_partial = true;
    return TARE_OK;
}
