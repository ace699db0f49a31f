// SPDX-License-Identifier: Apache-2.0
// Batches sample by sample. What lies between the layers of a batch of pictures leaves the caches;
// that of one picture stays there. Where samples provably have nothing to do with each other, the
// plan of one runs for each in turn, unless reading the weights again would cost more.
#include "core/alloc.h"
#include "runtime/plan_build.h"
#include "runtime/plan_profile.h"
#include "runtime/samples.h"

enum {
    CACHED_BYTES = 2 << 20,   // of results between steps: what caches of a core hold, about
    LEAST_WORK_PER_BYTE = 32, // of weights, for which reading them is a small part of the work
    FLOAT_WORK = 4,           // a multiply-accumulate of floats takes as long as so many of codes
};

static bool is_batch(const tare_tensor *const *inputs, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (inputs[i]->ndim == 0 || inputs[i]->q != NULL ||
            inputs[i]->shape[0] != inputs[0]->shape[0])
            return false;
    return count > 0 && inputs[0]->shape[0] > 1;
}

static int64_t work_of(const plan *p) {
    int64_t sum = 0;
    for (size_t i = 0; i < p->step_count; i++) {
        tare_step step = {0};
        if (tare__plan_step(p, i, &step))
            sum += step.macs * (step.bits_may_differ ? FLOAT_WORK : 1);
    }
    return sum;
}

static bool pays(const plan *whole, const plan *one) {
    tare_plan_memory memory;
    tare__plan_memory(one, &memory);
    return whole->block_bytes > CACHED_BYTES &&
           work_of(one) >= LEAST_WORK_PER_BYTE * memory.weight_bytes;
}

// Is an output of all samples that of one, but for their number?
static bool is_repeated(const tare_tensor *one, const tare_tensor *whole, int64_t samples) {
    if (one->ndim == 0 || one->ndim != whole->ndim || one->dtype != whole->dtype ||
        one->shape[0] != 1 || whole->shape[0] != samples ||
        (one->q != NULL && one->q->axis >= 0 && one->q->count > 1))
        return false;
    for (int d = 1; d < one->ndim; d++)
        if (one->shape[d] != whole->shape[d]) return false;
    return true;
}

static bool are_repeated(const plan *one, const plan *whole, int64_t samples) {
    if (one->output_count != whole->output_count) return false;
    for (size_t i = 0; i < one->output_count; i++)
        if (!is_repeated(one->outputs[i].like, whole->outputs[i].like, samples)) return false;
    return true;
}

static tare_status plan_one(const plan_setting *setting, const tare_tensor *const *inputs,
                            size_t count, plan **out, tare_error *err) {
    tare_tensor **rows = tare__alloc_zeroed(count, sizeof(tare_tensor *));
    if (rows == NULL) return tare__out_of_memory(err);
    tare_status status = TARE_OK;
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        status = tare__tensor_rows(inputs[i], 0, 1, &rows[i], err);
    if (status == TARE_OK)
        status = tare__plan_create(setting, (const tare_tensor *const *)rows, count, out, NULL);
    for (size_t i = 0; i < count; i++) tare_tensor_release(rows[i]);
    tare__free(rows);
    return status;
}

static tare_status judge(const tare_model *model, const tare_tensor *const *inputs, size_t count,
                         const plan *whole, plan *one, bool *may, tare_error *err) {
    const int64_t samples = inputs[0]->shape[0];
    const tare_batch batch = {.inputs = inputs, .input_count = count, .size = samples};
    *may = false;
    if (!pays(whole, one) || !are_repeated(one, whole, samples)) return TARE_OK;
    TARE_TRY(tare__samples_by_rule(model, &batch, may, err));
    return *may ? tare__plan_repeat(one, samples, err) : TARE_OK;
}

// *whole is a plan for these inputs.
static tare_status choose(const plan_setting *setting, const tare_model *model,
                          const tare_tensor *const *inputs, size_t count, plan **whole,
                          tare_error *err) {
    plan *one = NULL;
    bool may = false;
    // Statistics of a batch may be others than those of its samples.
    if ((*whole)->observes || (*whole)->block_bytes <= CACHED_BYTES) return TARE_OK;
    tare_status status = plan_one(setting, inputs, count, &one, err);
    if (status == TARE_OK) status = judge(model, inputs, count, *whole, one, &may, err);
    plan *left = one;
    if (status == TARE_OK && may) {
        left = *whole;
        *whole = one;
    }
    tare__plan_destroy(left);
    return status == TARE_OUT_OF_MEMORY ? tare__out_of_memory(err) : TARE_OK;
}

// The same once more with a tuner, which times every layer that it does not know.
static tare_status tune(const plan_setting *setting, const tare_tensor *const *inputs, size_t count,
                        plan **p, tare_error *err) {
    const int64_t samples = (*p)->samples;
    tare__plan_destroy(*p);
    *p = NULL;
    if (samples == 1) return tare__plan_create(setting, inputs, count, p, err);
    TARE_TRY(plan_one(setting, inputs, count, p, err));
    return tare__plan_repeat(*p, samples, err);
}

tare_status tare__plan_make(const plan_setting *setting, const tare_model *model,
                            const tare_tensor *const *inputs, size_t count, plan **out,
                            tare_error *err) {
    const bool chooses = is_batch(inputs, count);
    plan_setting of_choice = *setting;
    plan *p = NULL;
    if (chooses) of_choice.tuner = NULL;
    TARE_TRY(tare__plan_create(&of_choice, inputs, count, &p, err));
    tare_status status = chooses ? choose(&of_choice, model, inputs, count, &p, err) : TARE_OK;
    if (status == TARE_OK && chooses && setting->tuner != NULL)
        status = tune(setting, inputs, count, &p, err);
    if (status == TARE_OK)
        *out = p;
    else
        tare__plan_destroy(p);
    return status;
}
