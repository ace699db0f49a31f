// SPDX-License-Identifier: Apache-2.0
// Conversion between the plain layout and channels last: a transposition of [C][pixels] for every
// image. Also copies pixels with gaps between them to contiguous memory.
#include "runtime/steps/reorder.h"

#include "runtime/gemm/strided_copy.h"
#include "runtime/gemm/transpose.h"

typedef struct reorder {
    size_t from, to; // buffers
    transposition images;
} reorder;

enum { GRAIN = 1 << 14 }; // elements per task, roughly

typedef struct reorder_job {
    const reorder *r;
    const elementwise_kernels *kernels;
    const void *x;
    void *y;
} reorder_job;

static void move_columns(void *user, size_t image, size_t first, size_t end, size_t worker) {
    const reorder_job *job = user;
    (void)worker;
    tare__transpose_columns(job->kernels, &job->r->images, (int64_t)image, (int64_t)first,
                            (int64_t)end, job->x, job->y);
}

static tare_status run_reorder(const plan_run_state *run, void *state) {
    const reorder *r = state;
    const transposition *t = &r->images;
    reorder_job job = {.r = r,
                       .kernels = run->kernels->elementwise,
                       .x = tare__buffer_data(run, r->from),
                       .y = tare__buffer_data(run, r->to)};
    tare__parallel_nest(tare__threads_for(run, t->batch * t->rows * t->columns), (size_t)t->batch,
                        (size_t)t->columns, tare__grain_of(GRAIN, (size_t)t->rows), move_columns,
                        &job);
    return TARE_OK;
}

static void describe_reorder(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "the step behind it wants another layout");
}

const step_class tare__reorder_step = {
    .name = "reorder",
    .run = run_reorder,
    .describe = describe_reorder,
    .replicate = tare__step_share,
};

tare_status tare__reorder_state(plan_builder *b, const tare_tensor *t, plan_layout to, size_t from,
                                size_t buffer, void **out) {
    reorder *r = tare__arena_alloc(&b->plan->memory, sizeof *r);
    if (r == NULL) return tare__out_of_memory(b->err);
    *r = (reorder){
        .from = from, .to = buffer, .images = tare__channels_moved(t, true, to != LAYOUT_PLAIN)};
    *out = r;
    return TARE_OK;
}

// --- gathering ---

typedef struct gathering {
    size_t from, to; // buffers
    strided_copy copy;
} gathering;

static tare_status run_gather(const plan_run_state *run, void *state) {
    const gathering *g = state;
    tare__strided_copy_run(&g->copy, tare__threads_for(run, tare__strided_copy_elements(&g->copy)),
                           tare__buffer_data(run, g->from), tare__buffer_data(run, g->to));
    return TARE_OK;
}

static void describe_gather(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "the next step needs integers without gaps");
}

const step_class tare__gather_step = {
    .name = "gather",
    .run = run_gather,
    .describe = describe_gather,
    .replicate = tare__step_share,
};

tare_status tare__gather_state(plan_builder *b, const tare_tensor *t, size_t from, size_t buffer,
                               void **out) {
    gathering *g = tare__arena_alloc(&b->plan->memory, sizeof *g);
    if (g == NULL) return tare__out_of_memory(b->err);
    const int64_t channels = t->shape[1], pitch = (int64_t)b->plan->buffers[from].pitch;
    const copy_loop loops[] = {{t->count / channels, pitch, channels}, {channels, 1, 1}};
    *g = (gathering){from, buffer, tare__strided_copy_of(1, 0, loops, 2)};
    *out = g;
    return TARE_OK;
}
