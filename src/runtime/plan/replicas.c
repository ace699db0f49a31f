// SPDX-License-Identifier: Apache-2.0
// Replicas of a plan: state that a run changes is copied for each thread, everything else is
// shared.
#include "runtime/plan/replicas.h"

#include <assert.h>
#include <string.h>

#include "dnnl/float_layers.h"
#include "runtime/plan/profile.h"

// In the last round, so many samples (in quarters of the number of threads) are still run one per
// thread. Fewer are faster one after the other, with all threads on each.
enum { LEAST_ROUND_QUARTERS = 3 };

typedef struct plan_replica {
    plan copy;              // the first replica uses the plan's block
    kernel_context kernels; // kernels for one thread
    float_layers *layers;   // NULL: the session has none
    tare_status status;     // of the present run
    tare_error *err;
} plan_replica;

struct plan_replicas {
    size_t count; // number of threads
    plan_replica of[];
};

// --- how many ---

// Whole rounds of one sample per thread, and the remainder if it nearly fills a round.
static int64_t samples_of_rounds(int64_t samples, size_t threads) {
    assert(threads > 0);
    const int64_t all = (int64_t)threads, rest = samples % all;
    return 4 * rest > LEAST_ROUND_QUARTERS * all ? samples : samples - rest;
}

bool tare__plan_may_have_replicas(const plan *p) {
    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i].class->replicate == NULL) return false;
    return true;
}

int64_t tare__plan_replicas_of(const plan *p, int64_t samples) {
    const size_t threads = tare__thread_count(p->setting.kernels->space.pool);
    return threads > 1 && tare__plan_may_have_replicas(p) ? samples_of_rounds(samples, threads) : 0;
}

int64_t tare__plan_replica_samples(const plan *p) {
    return p->replicas != NULL ? samples_of_rounds(p->samples, p->replicas->count) : 0;
}

size_t tare__plan_replica_count(const plan *p) {
    return p->replicas != NULL ? p->replicas->count : 0;
}

plan *tare__plan_replica(const plan *p, size_t index) {
    return &p->replicas->of[index].copy;
}

// --- making ---

// Copies the buffers, with addresses in the replica's block.
static tare_status copy_buffers(const plan *p, bool shares_block, plan *copy, tare_error *err) {
    copy->block = shares_block ? p->block : tare__alloc_large(p->block_bytes);
    copy->buffers = tare__alloc_zeroed(p->buffer_count + 1, sizeof *copy->buffers);
    if (copy->block == NULL || copy->buffers == NULL) return tare__out_of_memory(err);
    if (p->buffer_count > 0)
        memcpy(copy->buffers, p->buffers, p->buffer_count * sizeof *copy->buffers);
    for (size_t i = 0; i < p->buffer_count; i++)
        if (copy->buffers[i].kind == BUFFER_ARENA)
            copy->buffers[i].data = (unsigned char *)copy->block + copy->buffers[i].offset;
    return TARE_OK;
}

// *done is false if a step has no replica.
static tare_status copy_steps(const plan *p, plan *copy, bool *done, tare_error *err) {
    *done = true;
    copy->steps = tare__alloc_zeroed(p->step_count + 1, sizeof *copy->steps);
    if (copy->steps == NULL) return tare__out_of_memory(err);
    for (; copy->step_count < p->step_count && *done; copy->step_count++) {
        const plan_step *step = &p->steps[copy->step_count];
        void *state = NULL;
        TARE_TRY(step->class->replicate(copy, step->state, &state, err));
        *done = state != NULL;
        if (!*done) break;
        copy->steps[copy->step_count] = *step;
        copy->steps[copy->step_count].state = state;
    }
    return TARE_OK;
}

static void fill_context(const plan *p, size_t number, kernel_context *out) {
    const kernel_context *given = p->setting.kernels;
    *out = *given;
    out->space = (workspace){.number = number, .least_shared_macs = given->space.least_shared_macs};
}

static tare_status make(const plan *p, size_t number, plan_replica *replica, bool *done,
                        tare_error *err) {
    plan *copy = &replica->copy;
    fill_context(p, number, &replica->kernels);
    replica->err = tare_error_create();
    if (replica->err == NULL) return tare__out_of_memory(err);
    if (p->setting.layers != NULL)
        TARE_TRY(tare__float_layers_replica(p->setting.layers, &replica->layers, err));
    // Members that only planning needs, or that own memory, are not copied.
    *copy = (plan){.setting = p->setting,
                   .buffer_count = p->buffer_count,
                   .samples = p->samples,
                   .inputs = p->inputs,
                   .input_buffers = p->input_buffers,
                   .input_count = p->input_count,
                   .outputs = p->outputs,
                   .output_count = p->output_count,
                   .handover = p->handover};
    copy->setting.kernels = &replica->kernels;
    copy->setting.layers = replica->layers;
    copy->setting.tuner = NULL;
    TARE_TRY(copy_buffers(p, number == 0, copy, err));
    return copy_steps(p, copy, done, err);
}

static void release(const plan *p, plan_replica *replica) {
    plan *copy = &replica->copy;
    for (size_t i = 0; i < copy->step_count; i++) {
        const plan_step *step = &copy->steps[i];
        if (step->state != p->steps[i].state && step->class->destroy != NULL)
            step->class->destroy(step->state);
    }
    if (copy->block != p->block) tare__free_aligned(copy->block);
    tare__plan_stop_profile(copy);
    tare__free(copy->steps);
    tare__free(copy->buffers);
    tare__float_layers_destroy(replica->layers);
    tare_error_destroy(replica->err);
}

tare_status tare__plan_add_replicas(plan *p, tare_error *err) {
    const size_t threads = tare__thread_count(p->setting.kernels->space.pool);
    bool done = true;
    if (tare__plan_replicas_of(p, p->samples) == 0) return TARE_OK;
    p->replicas = tare__alloc_zeroed(1, sizeof *p->replicas + threads * sizeof *p->replicas->of);
    if (p->replicas == NULL) return tare__out_of_memory(err);
    p->replicas->count = threads;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < threads && done && status == TARE_OK; i++)
        status = make(p, i, &p->replicas->of[i], &done, err);
    if (status != TARE_OK || !done) tare__plan_drop_replicas(p);
    return status;
}

void tare__plan_drop_replicas(plan *p) {
    if (p->replicas == NULL) return;
    for (size_t i = 0; i < p->replicas->count; i++) release(p, &p->replicas->of[i]);
    tare__free(p->replicas);
    p->replicas = NULL;
}

// --- running ---

typedef struct replicas_run {
    plan_replicas *replicas;
    const tare_tensor *const *inputs;
    tare_tensor *const *outputs;
} replicas_run;

// A thread that failed stops.
static void run_samples(void *user, size_t first, size_t end, size_t worker) {
    const replicas_run *r = user;
    plan_replica *replica = &r->replicas->of[worker];
    for (size_t i = first; i < end && replica->status == TARE_OK; i++)
        replica->status =
            tare__plan_run_sample(&replica->copy, r->inputs, r->outputs, (int64_t)i, replica->err);
}

tare_status tare__plan_run_replicas(plan *p, const tare_tensor *const *inputs,
                                    tare_tensor *const *outputs, tare_error *err) {
    replicas_run run = {p->replicas, inputs, outputs};
    const size_t count = p->replicas->count;
    for (size_t i = 0; i < count; i++) p->replicas->of[i].status = TARE_OK;
    tare__parallel(p->setting.kernels->space.pool, (size_t)tare__plan_replica_samples(p), 1,
                   run_samples, &run);
    for (size_t i = 0; i < count; i++) {
        const plan_replica *replica = &p->replicas->of[i];
        if (replica->status == TARE_OK) continue;
        tare__error_copy(err, replica->err);
        return replica->status;
    }
    return TARE_OK;
}
