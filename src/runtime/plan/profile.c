// SPDX-License-Identifier: Apache-2.0
// Profiles of plans: the time of each step and its description.
#include "runtime/plan/profile.h"

#include <stdlib.h>
#include <string.h>

#include "core/system/clock.h"
#include "runtime/plan/replicas.h"

enum { SAMPLES = 128 }; // number of latest runs that are kept

struct plan_profile {
    size_t run_count, slots; // slots: capacity in runs
    uint64_t nanoseconds[];  // [steps][slots], summed over the samples of a run
};

// --- running ---

static tare_status start(plan *p, size_t slots, tare_error *err) {
    const size_t bytes = p->step_count * slots * sizeof *p->profile->nanoseconds;
    plan_profile *profile = tare__alloc_zeroed(1, sizeof *profile + bytes);
    if (profile == NULL) return tare__out_of_memory(err);
    profile->slots = slots;
    tare__free(p->profile);
    p->profile = profile;
    return TARE_OK;
}

// Replicas keep only the current run.
tare_status tare__plan_start_profile(plan *p, tare_error *err) {
    tare_status status = start(p, SAMPLES, err);
    for (size_t i = 0; i < tare__plan_replica_count(p) && status == TARE_OK; i++)
        status = start(tare__plan_replica(p, i), 1, err);
    if (p->tail != NULL && status == TARE_OK) status = start(p->tail, SAMPLES, err);
    if (status != TARE_OK) tare__plan_stop_profile(p);
    return status;
}

void tare__plan_stop_profile(plan *p) {
    for (size_t i = 0; i < tare__plan_replica_count(p); i++)
        tare__plan_stop_profile(tare__plan_replica(p, i));
    if (p->tail != NULL) tare__plan_stop_profile(p->tail);
    tare__free(p->profile);
    p->profile = NULL;
}

static uint64_t *time_of(const plan *p, size_t step) {
    plan_profile *profile = p->profile;
    return &profile->nanoseconds[step * profile->slots + profile->run_count % profile->slots];
}

tare_status tare__plans_profile(plan *const *plans, size_t most, bool on, tare_error *err) {
    for (size_t i = 0; i < most && plans[i] != NULL; i++) {
        if (on)
            TARE_TRY(tare__plan_start_profile(plans[i], err));
        else
            tare__plan_stop_profile(plans[i]);
    }
    return TARE_OK;
}

void tare__plan_begin_timed(plan *p) {
    if (p->profile == NULL) return;
    for (size_t i = 0; i < p->step_count; i++) *time_of(p, i) = 0;
    for (size_t t = 0; t < tare__plan_replica_count(p); t++)
        tare__plan_begin_timed(tare__plan_replica(p, t));
    if (p->tail != NULL) tare__plan_begin_timed(p->tail);
}

tare_status tare__plan_run_timed(const plan_run_state *run) {
    const plan *p = run->plan;
    uint64_t before = tare__now_ns();
    for (size_t i = 0; i < p->step_count; i++) {
        TARE_TRY(p->steps[i].class->run(run, p->steps[i].state));
        const uint64_t after = tare__now_ns();
        *time_of(p, i) += after - before;
        before = after;
    }
    return TARE_OK;
}

// Threads that run samples concurrently: each counts with its share.
void tare__plan_end_timed(plan *p) {
    const size_t replicas = tare__plan_replica_count(p);
    if (p->profile == NULL) return;
    for (size_t i = 0; i < p->step_count && replicas > 0; i++) {
        uint64_t sum = 0;
        for (size_t t = 0; t < replicas; t++) sum += *time_of(tare__plan_replica(p, t), i);
        *time_of(p, i) += sum / replicas;
    }
    p->profile->run_count++;
    if (p->tail != NULL) tare__plan_end_timed(p->tail);
}

// --- telling ---

static int by_size(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void tell_times(const plan_profile *profile, size_t index, tare_step *out) {
    uint64_t sorted[SAMPLES];
    const size_t count = profile->run_count < SAMPLES ? profile->run_count : SAMPLES;
    if (count == 0) return;
    memcpy(sorted, profile->nanoseconds + index * SAMPLES, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_size);
    out->run_count = profile->run_count;
    out->lower_ns = sorted[(count - 1) / 4];
    out->median_ns = sorted[(count - 1) / 2];
    out->upper_ns = sorted[(count - 1) * 3 / 4];
}

// The shape of all samples, which are dimension 0.
static void tell_shape(const plan *p, const tare_tensor *t, int *ndim, int64_t *shape) {
    if (t == NULL) return;
    *ndim = t->ndim;
    memcpy(shape, t->shape, (size_t)t->ndim * sizeof *shape);
    if (t->ndim > 0) shape[0] *= p->samples;
}

static void tell_note(const plan *p, const plan_step *step, tare_step *out) {
    const tare_tensor *x = step->facts.x;
    step_note note = {.kernel = step->class->name,
                      .macs = step->facts.macs,
                      .multiplies_quantized = x != NULL && x->q != NULL};
    if (step->class->describe != NULL) step->class->describe(p, step->state, &note);
    if (note.why[0] == '\0' && step->facts.declined != NULL)
        tare__step_say(&note, "%s", step->facts.declined);
    memcpy(out->why, note.why, sizeof out->why);
    out->kernel = note.kernel;
    out->macs = note.macs * p->samples;
    out->weight_bytes = (int64_t)note.weight_bytes;
    out->multiplies_codes = note.multiplies_quantized;
    out->bits_may_differ = note.bits_may_differ;
}

static const char *or_empty(const char *chars) {
    return chars != NULL ? chars : "";
}

bool tare__plan_step(const plan *p, size_t index, tare_step *out) {
    if (index >= p->step_count)
        return p->tail != NULL && tare__plan_step(p->tail, index - p->step_count, out);
    const plan_step *step = &p->steps[index];
    *out = (tare_step){.struct_size = sizeof *out,
                       .kind = step->class->name,
                       .node = or_empty(step->node_name),
                       .op = or_empty(step->facts.op),
                       .nodes = step->facts.nodes,
                       .node_count = step->facts.node_count,
                       .input_bytes = (int64_t)step->facts.bytes_in * p->samples,
                       .output_bytes = (int64_t)step->facts.bytes_out * p->samples};
    tell_shape(p, step->facts.x, &out->input_ndim, out->input_shape);
    tell_shape(p, step->facts.y, &out->output_ndim, out->output_shape);
    tell_note(p, step, out);
    if (p->profile != NULL) tell_times(p->profile, index, out);
    return true;
}

void tare__plan_memory(const plan *p, tare_plan_memory *out) {
    size_t least;
    const size_t bytes = tare__plan_bytes(p, &least);
    const size_t replicas = tare__plan_replica_count(p);
    *out = (tare_plan_memory){.struct_size = sizeof *out,
                              .block_bytes = (int64_t)bytes,
                              .least_bytes = (int64_t)least,
                              .block_count = replicas > 0 ? (int64_t)replicas : 1};
    for (size_t i = 0; i < p->step_count; i++) {
        tare_step step = {0};
        tell_note(p, &p->steps[i], &step);
        out->weight_bytes += step.weight_bytes;
    }
    if (p->tail == NULL) return;
    tare_plan_memory of_tail;
    tare__plan_memory(p->tail, &of_tail);
    out->weight_bytes += of_tail.weight_bytes;
    out->tail_bytes = of_tail.block_bytes;
    out->tail_step = p->step_count;
}

bool tare__plan_place(const plan *p, size_t index, tare_plan_place *out) {
    for (size_t i = 0; i < p->buffer_count; i++) {
        const plan_buffer *buffer = &p->buffers[i];
        if (!tare__plan_is_laid_out(buffer) || index-- > 0) continue;
        *out = (tare_plan_place){.struct_size = sizeof *out,
                                 .offset = (int64_t)buffer->offset,
                                 .bytes = (int64_t)buffer->bytes,
                                 .first_step = buffer->first,
                                 .last_step = buffer->last};
        return true;
    }
    if (p->tail == NULL || !tare__plan_place(p->tail, index, out)) return false;
    out->first_step += p->step_count;
    out->last_step += p->step_count;
    out->is_tail = true;
    return true;
}
