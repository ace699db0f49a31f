// SPDX-License-Identifier: Apache-2.0
// Batches sample by sample. What lies between the layers of a batch of pictures leaves the caches;
// that of one picture stays there, and threads that take whole pictures need not wait for each
// other at every layer. Where samples provably have nothing to do with each other, the plan of one
// runs for each, unless reading the weights again would cost more. The numbers were measured, on
// networks of 2 to 130 million weights, one thread and two.
#include "core/alloc.h"
#include "runtime/plan_build.h"
#include "runtime/plan_profile.h"
#include "runtime/plan_twins.h"
#include "runtime/samples.h"

enum {
    CACHED_BYTES = 8 << 20, // of results between steps: what caches hold, about
    // The same where threads take whole samples: they gain by seldom waiting, if there is work
    // enough.
    OWN_CACHED_BYTES = 512 << 10,
    // Reading the weights again costs the more, the less of them stays in caches from one sample to
    // the next: each byte must be worth one multiply-accumulate for so many of them, within bounds.
    WEIGHTS_PER_WORK = 256 << 10,
    LEAST_WORK_PER_BYTE = 4,
    MOST_WORK_PER_BYTE = 128,
    FLOAT_WORK = 4, // a multiply-accumulate of floats takes as long as so many of codes
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

static size_t threads_of(const plan *p) {
    return tare__thread_count(p->setting.fast->space.pool);
}

// Results between steps, beyond which samples may pay.
static size_t cached_bytes(bool has_twins) {
    return has_twins ? OWN_CACHED_BYTES : CACHED_BYTES;
}

static int64_t least_work(int64_t weight_bytes) {
    const int64_t per_byte = weight_bytes / WEIGHTS_PER_WORK;
    if (per_byte < LEAST_WORK_PER_BYTE) return weight_bytes * LEAST_WORK_PER_BYTE;
    return weight_bytes * (per_byte < MOST_WORK_PER_BYTE ? per_byte : MOST_WORK_PER_BYTE);
}

// Steps of one sample are short. Threads that share each of them wait more often, the more so where
// calls of references, which one thread runs, let the others fall asleep.
static bool suits_threads(const plan *one) {
    return threads_of(one) == 1 || tare__plan_may_have_twins(one);
}

static bool pays(const plan *whole, const plan *one, int64_t samples) {
    tare_plan_memory memory;
    tare__plan_memory(one, &memory);
    return whole->block_bytes > cached_bytes(tare__plan_twins_of(one, samples) > 0) &&
           work_of(one) >= least_work(memory.weight_bytes) && suits_threads(one);
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
    if (!pays(whole, one, samples) || !are_repeated(one, whole, samples)) return TARE_OK;
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
    if ((*whole)->observes || (*whole)->block_bytes <= cached_bytes(threads_of(*whole) > 1))
        return TARE_OK;
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
    if (status == TARE_OK && p->samples > 1) status = tare__plan_add_twins(p, err);
    if (status == TARE_OK)
        *out = p;
    else
        tare__plan_destroy(p);
    return status;
}
