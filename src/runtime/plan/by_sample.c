// SPDX-License-Identifier: Apache-2.0
// Runs batches sample by sample. The intermediate values of a batch of images do not fit the
// caches, those of one image do; and threads that run whole images need not wait for each other
// after every layer. If samples are provably independent, the plan of one sample runs for each of
// them, unless reading the weights again would cost more. The last steps may still run once for all
// samples (plan/batched_tail.h). The constants were measured on networks of 2 to 130 million
// weights, with one and two threads.
#include "core/memory/alloc.h"
#include "runtime/plan/batched_tail.h"
#include "runtime/plan/build.h"
#include "runtime/plan/profile.h"
#include "runtime/plan/replicas.h"
#include "runtime/plan/samples.h"

enum {
    CACHED_BYTES = 8 << 20, // of results between steps: roughly what caches hold
    // The same if threads run whole samples: they rarely wait for each other, which pays if there
    // is enough work.
    OWN_CACHED_BYTES = 512 << 10,
    // Reading the weights again costs more, the less of them stays in caches between samples.
    // Required: one multiply-accumulate per byte and this many bytes of weights, within bounds.
    WEIGHTS_PER_WORK = 256 << 10,
    LEAST_WORK_PER_BYTE = 4,
    MOST_WORK_PER_BYTE = 128,
    FLOAT_WORK = 4, // a float multiply-accumulate takes as long as this many quantized ones
};

static bool is_batch(const tare_tensor *const *inputs, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (inputs[i]->ndim == 0 || inputs[i]->q != NULL ||
            inputs[i]->shape[0] != inputs[0]->shape[0])
            return false;
    return count > 0 && inputs[0]->shape[0] > 1;
}

// The cost of the first steps of a plan.
typedef struct plan_cost {
    int64_t work, weight_bytes;
} plan_cost;

static plan_cost cost_of(const plan *p, size_t steps) {
    plan_cost sum = {0};
    for (size_t i = 0; i < steps; i++) {
        tare_step step = {0};
        if (!tare__plan_step(p, i, &step)) continue;
        sum.work += step.macs * (step.bits_may_differ ? FLOAT_WORK : 1);
        sum.weight_bytes += step.weight_bytes;
    }
    return sum;
}

static size_t threads_of(const plan *p) {
    return tare__thread_count(p->setting.kernels->space.pool);
}

// The bytes of results between steps above which running sample by sample may be faster.
static size_t cached_bytes(bool has_replicas) {
    return has_replicas ? OWN_CACHED_BYTES : CACHED_BYTES;
}

static int64_t least_work(int64_t weight_bytes) {
    const int64_t per_byte = weight_bytes / WEIGHTS_PER_WORK;
    if (per_byte < LEAST_WORK_PER_BYTE) return weight_bytes * LEAST_WORK_PER_BYTE;
    return weight_bytes * (per_byte < MOST_WORK_PER_BYTE ? per_byte : MOST_WORK_PER_BYTE);
}

// Steps of one sample are short, so threads that divide each step wait more often, in particular if
// calls of references, which run on one thread, let the others go to sleep.
static bool suits_threads(const plan *one) {
    return threads_of(one) == 1 || tare__plan_may_have_replicas(one);
}

// A tail reads its weights only once.
static bool pays(const plan *whole, const plan *one, int64_t samples) {
    const plan_cost cost =
        cost_of(one, one->step_count - tare__plan_find_tail(one, whole, samples).one);
    return whole->block_bytes > cached_bytes(tare__plan_replicas_of(one, samples) > 0) &&
           cost.work >= least_work(cost.weight_bytes) && suits_threads(one);
}

// True if every output of `whole` is the output of `one` for each sample.
static bool are_repeated(const plan *one, const plan *whole, int64_t samples) {
    if (one->output_count != whole->output_count) return false;
    for (size_t i = 0; i < one->output_count; i++)
        if (!tare__is_sample(one->outputs[i].like, whole->outputs[i].like, samples)) return false;
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

// The plan that runs a batch: `one` for each sample if there is such a plan, else `whole`.
typedef struct choice {
    plan *whole, *one;
} choice;

static tare_status choose(const plan_setting *setting, const tare_model *model,
                          const tare_tensor *const *inputs, size_t count, choice *c,
                          tare_error *err) {
    bool may = false;
    // Statistics of a batch may differ from those of its samples.
    if (c->whole->observes || c->whole->block_bytes <= cached_bytes(threads_of(c->whole) > 1))
        return TARE_OK;
    tare_status status = plan_one(setting, inputs, count, &c->one, err);
    if (status == TARE_OK) status = judge(model, inputs, count, c->whole, c->one, &may, err);
    if (status != TARE_OK || !may) {
        tare__plan_destroy(c->one);
        c->one = NULL;
    }
    return status == TARE_OUT_OF_MEMORY ? tare__out_of_memory(err) : TARE_OK;
}

// Plans once more with a tuner, which times every layer that it does not know. The tail comes from
// the untuned plan and keeps its default kernels: the tuner only handles convolutions, few of which
// have vectors as input, and it would time all convolutions of the whole batch, too.
static tare_status tune(const plan_setting *setting, const tare_tensor *const *inputs, size_t count,
                        choice *c, tare_error *err) {
    plan **chosen = c->one != NULL ? &c->one : &c->whole;
    const int64_t samples = (*chosen)->samples;
    tare__plan_destroy(*chosen);
    *chosen = NULL;
    if (samples == 1) return tare__plan_create(setting, inputs, count, chosen, err);
    TARE_TRY(plan_one(setting, inputs, count, chosen, err));
    return tare__plan_repeat(*chosen, samples, err);
}

// Splits off the batched tail and adds replicas.
static tare_status finish(choice *c, tare_error *err) {
    const tail_steps tail = tare__plan_find_tail(c->one, c->whole, c->one->samples);
    plan *whole = c->whole;
    if (tail.one > 0) {
        c->whole = NULL;
        TARE_TRY(tare__plan_take_tail(c->one, whole, tail, err));
    }
    return tare__plan_add_replicas(c->one, err);
}

// A plan that runs as a whole need not compute layers as for single samples. If memory is short,
// the run fails: the first plan has other bits.
static tare_status divide_rows(const plan_setting *setting, const tare_tensor *const *inputs,
                               size_t count, choice *c, tare_error *err) {
    plan *joined = c->whole;
    c->whole = NULL; // lends its packed weights until the other one has them
    const tare_status status = tare__plan_create(setting, inputs, count, &c->whole, err);
    tare__plan_destroy(joined);
    return status;
}

static tare_status make(const plan_setting *setting, const tare_model *model,
                        const tare_tensor *const *inputs, size_t count, choice *c,
                        tare_error *err) {
    plan_setting of_choice = *setting;
    // With state, a sample would see the state that the sample before it left.
    if (!is_batch(inputs, count) || setting->state_count > 0)
        return tare__plan_create(setting, inputs, count, &c->whole, err);
    of_choice.tuner = NULL;
    of_choice.samples = inputs[0]->shape[0];
    TARE_TRY(tare__plan_create(&of_choice, inputs, count, &c->whole, err));
    of_choice.samples = 0;
    TARE_TRY(choose(&of_choice, model, inputs, count, c, err));
    if (setting->tuner != NULL) TARE_TRY(tune(setting, inputs, count, c, err));
    if (c->one != NULL) return finish(c, err);
    const bool joins_rows = setting->tuner == NULL && c->whole->joins_rows;
    return joins_rows ? divide_rows(setting, inputs, count, c, err) : TARE_OK;
}

tare_status tare__plan_make(const plan_setting *setting, const tare_model *model,
                            const tare_tensor *const *inputs, size_t count, plan **out,
                            tare_error *err) {
    choice c = {0};
    const tare_status status = make(setting, model, inputs, count, &c, err);
    plan *chosen = status != TARE_OK ? NULL : c.one != NULL ? c.one : c.whole;
    if (chosen != c.one) tare__plan_destroy(c.one);
    if (chosen != c.whole) tare__plan_destroy(c.whole);
    if (chosen != NULL) *out = chosen;
    return status;
}
