// SPDX-License-Identifier: Apache-2.0
// Tests whether samples are independent: by the operators' shapes, or by a trial run.
#include "runtime/plan/samples.h"

#include <math.h>
#include <string.h>

#include "dnnl/float_kernels.h"
#include "flow/calibrate/calibrate.h"
#include "ops/op.h"

// --- by shapes ---

static bool have_batch(const tare_batch *batch) {
    for (size_t i = 0; i < batch->input_count; i++)
        if (batch->inputs[i]->ndim == 0 || batch->inputs[i]->shape[0] != batch->size) return false;
    return batch->input_count > 0;
}

static tare_status make_meta(const tare_batch *batch, int64_t size, tare_tensor **out,
                             tare_error *err) {
    for (size_t i = 0; i < batch->input_count; i++) {
        const tare_tensor *x = batch->inputs[i];
        int64_t shape[TARE_MAX_DIMS];
        memcpy(shape, x->shape, sizeof shape);
        shape[0] = size;
        TARE_TRY(tare__tensor_meta(x->dtype, x->ndim, shape, x->q, &out[i], err));
    }
    return TARE_OK;
}

static tare_status infer(tare_model *prepared, const tare_batch *batch, int64_t size, arena *memory,
                         value *out, bool *is_stateful) {
    const size_t count = batch->input_count;
    tare_tensor **meta = tare__arena_array(memory, count + 1, sizeof(tare_tensor *));
    if (meta == NULL) return TARE_OUT_OF_MEMORY;
    tare_status status = make_meta(batch, size, meta, NULL);
    if (status == TARE_OK)
        status = tare__calibrate_shapes(prepared, (const tare_tensor *const *)meta, count, memory,
                                        out, is_stateful, NULL);
    for (size_t i = 0; i < count; i++) tare_tensor_release(meta[i]);
    return status;
}

static bool follows_batch(const value *one, const value *two) {
    if (one->kind != two->kind) return false;
    if (one->kind == VALUE_TENSOR) {
        const tare_tensor *a = one->as.tensor, *b = two->as.tensor;
        return a->ndim == b->ndim && a->ndim > 0 && a->shape[0] == 1 && b->shape[0] == 2 &&
               memcmp(a->shape + 1, b->shape + 1, (size_t)(a->ndim - 1) * sizeof *a->shape) == 0;
    }
    if (!tare__value_has_items(one)) return true;
    if (one->count != two->count) return false;
    for (uint32_t i = 0; i < one->count; i++)
        if (!follows_batch(&one->as.items[i], &two->as.items[i])) return false;
    return true;
}

// The run with two samples comes first, because the model keeps what the last inference found.
tare_status tare__samples_by_shape(tare_model *prepared, const tare_batch *batch, bool *out,
                                   tare_error *err) {
    value one = tare__none(), two = tare__none();
    arena memory = {0};
    bool is_stateful = false;
    *out = false;
    if (!have_batch(batch)) return TARE_OK;
    tare_status status = infer(prepared, batch, 2, &memory, &two, &is_stateful);
    if (status == TARE_OK) status = infer(prepared, batch, 1, &memory, &one, &is_stateful);
    *out = status == TARE_OK && !is_stateful && follows_batch(&one, &two);
    tare__value_release_tensors(&one);
    tare__value_release_tensors(&two);
    tare__arena_release(&memory);
    return status == TARE_OUT_OF_MEMORY ? tare__out_of_memory(err) : TARE_OK;
}

bool tare__is_sample(const tare_tensor *one, const tare_tensor *all, int64_t samples) {
    if (one->ndim == 0 || one->ndim != all->ndim || one->dtype != all->dtype ||
        one->shape[0] != 1 || all->shape[0] != samples ||
        (one->q != NULL && one->q->axis >= 0 && one->q->count > 1))
        return false;
    for (int d = 1; d < one->ndim; d++)
        if (one->shape[d] != all->shape[d]) return false;
    return true;
}

// --- by numbers ---

static tare_status cut(const tare_batch *batch, int64_t first, int64_t count, tare_tensor **out) {
    for (size_t i = 0; i < batch->input_count; i++)
        TARE_TRY(tare__tensor_rows(batch->inputs[i], first, count, &out[i], NULL));
    return TARE_OK;
}

static tare_status run(tare_model *copy, const tare_batch *batch, int64_t first, int64_t count,
                       float_kernels *kernels, arena *memory, value *out) {
    const size_t inputs = batch->input_count;
    tare_tensor **slices = tare__arena_array(memory, inputs + 1, sizeof(tare_tensor *));
    value *values = tare__arena_array(memory, inputs + 1, sizeof *values);
    if (slices == NULL || values == NULL) return TARE_OUT_OF_MEMORY;
    const interpreter it = {.root = copy->root,
                            .own = copy->root,
                            .thread_count = 1,
                            .kernels = kernels,
                            .memory_limit = copy->memory_limit};
    tare_status status = cut(batch, first, count, slices);
    for (size_t i = 0; i < inputs; i++)
        values[i] = (value){.kind = VALUE_TENSOR, .as.tensor = slices[i]};
    if (status == TARE_OK) status = tare__interpret(&it, values, inputs, memory, out, NULL);
    for (size_t i = 0; i < inputs; i++) tare_tensor_release(slices[i]);
    return status;
}

// Rounding may depend on the batch size, but changes results far less than another sample would.
static bool is_close(const float *a, const float *b, int64_t count) {
    const float tolerance = 1e-3F;
    float most = 0;
    for (int64_t i = 0; i < count; i++) most = fabsf(a[i]) > most ? fabsf(a[i]) : most;
    for (int64_t i = 0; i < count; i++)
        if (a[i] != b[i] && !(fabsf(a[i] - b[i]) <= tolerance * most) &&
            !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

// both: the result for two samples; alone: the result for the second one. Integers are not
// compared: they may be ranks of floats.
static bool agree(const value *both, const value *alone) {
    if (both->kind != alone->kind) return false;
    if (both->kind == VALUE_TENSOR) {
        const tare_tensor *a = both->as.tensor, *b = alone->as.tensor;
        if (a->dtype != TARE_FLOAT32) return true;
        return a->count == 2 * b->count &&
               is_close(tare__f32(a) + b->count, tare__f32(b), b->count);
    }
    if (!tare__value_has_items(both)) return true;
    if (both->count != alone->count) return false;
    for (uint32_t i = 0; i < both->count; i++)
        if (!agree(&both->as.items[i], &alone->as.items[i])) return false;
    return true;
}

tare_status tare__samples_by_value(tare_model *copy, const tare_batch *batch, bool *out,
                                   tare_error *err) {
    value both = tare__none(), alone = tare__none();
    float_kernels *kernels = NULL;
    arena memory = {0};
    TARE_TRY(tare__float_kernels_create(NULL, &kernels, err));
    tare_status status = run(copy, batch, 0, 2, kernels, &memory, &both);
    if (status == TARE_OK) status = run(copy, batch, 1, 1, kernels, &memory, &alone);
    *out = status == TARE_OK && agree(&both, &alone);
    tare__value_release_tensors(&both);
    tare__value_release_tensors(&alone);
    tare__float_kernels_destroy(kernels);
    tare__arena_release(&memory);
    return status == TARE_OUT_OF_MEMORY ? tare__out_of_memory(err) : TARE_OK;
}
