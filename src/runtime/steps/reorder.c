// SPDX-License-Identifier: Apache-2.0
// Between the plain layout and channels last: a transposition of [C][pixels] for every image.
#include "runtime/gemm/transpose.h"
#include "runtime/plan/steps.h"

typedef struct reorder {
    size_t from, to; // places
    transposition images;
} reorder;

enum { PART = 1 << 14 }; // elements, about

typedef struct reorder_job {
    const reorder *r;
    const elementwise_kernels *kernels;
    const void *x;
    void *y;
    int64_t step, parts; // columns of a part; parts of an image
} reorder_job;

static void run_part(void *user, size_t part, size_t worker) {
    const reorder_job *job = user;
    const transposition *t = &job->r->images;
    const int64_t image = (int64_t)part / job->parts;
    const int64_t first = (int64_t)part % job->parts * job->step;
    const int64_t last = first + job->step < t->columns ? first + job->step : t->columns;
    (void)worker;
    tare__transpose_columns(job->kernels, t, image, first, last, job->x, job->y);
}

static tare_status run_reorder(const plan_run_state *run, void *state) {
    const reorder *r = state;
    const transposition *t = &r->images;
    reorder_job job = {.r = r,
                       .kernels = run->fast->elementwise,
                       .x = tare__place_data(run, r->from),
                       .y = tare__place_data(run, r->to),
                       .step = t->rows < PART ? PART / t->rows : 1};
    job.parts = (t->columns + job.step - 1) / job.step;
    thread_pool *pool = tare__threads_for(run, t->batch * t->rows * t->columns);
    tare__thread_pool_run(pool, (size_t)(t->batch * job.parts), run_part, &job);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "the step behind it wants another layout");
}

const step_class tare__reorder_class = {"reorder", run_reorder, NULL, describe, tare__step_share};

tare_status tare__reorder_state(plan_builder *b, const tare_tensor *t, plan_layout to, size_t from,
                                size_t place, void **out) {
    reorder *r = tare__arena_alloc(&b->plan->memory, sizeof *r);
    if (r == NULL) return tare__out_of_memory(b->err);
    *r = (reorder){
        .from = from, .to = place, .images = tare__channels_moved(t, true, to != LAYOUT_PLAIN)};
    *out = r;
    return TARE_OK;
}
