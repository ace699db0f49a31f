// SPDX-License-Identifier: Apache-2.0
// Steps on channels-last tensors, where a pixel is a row of channels. Other layouts are left to the
// reference.
#include <math.h>
#include <string.h>

#include "ops/layer_call.h"
#include "ops/rules.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

// The mean of each channel over the pixels of an image.
typedef struct mean_job {
    const row_functions *rows;
    const float *x;
    float *y;
    int64_t batch, pixels;
    size_t channels;
} mean_job;

enum { GRAIN_CHANNELS = 128 };

static void mean_of_channels(void *user, size_t image, size_t first, size_t end, size_t worker) {
    const mean_job *job = user;
    const size_t pixels = (size_t)job->pixels;
    const float *x = job->x + image * pixels * job->channels;
    float *y = job->y + image * job->channels + first;
    (void)worker;
    job->rows->columns(x + first, pixels, job->channels, end - first, y);
    for (size_t i = 0; i < end - first; i++) y[i] /= (float)job->pixels;
}

static tare_status mean_of_pixels(const plan_run_state *run, mean_job *job) {
    job->rows = &run->kernels->rows->functions;
    thread_pool *pool = tare__threads_for(run, job->batch * job->pixels * (int64_t)job->channels);
    tare__parallel_nest(pool, (size_t)job->batch, job->channels, GRAIN_CHANNELS, mean_of_channels,
                        job);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "float: pixels as rows of channels");
}

// --- pooling ---

typedef struct pool_step {
    pool_call call;
    size_t x, y; // buffers
    size_t channels;
    int64_t batch;
    bool is_mean; // one window over all pixels
} pool_step;

// Divides as the reference does.
static void divide(const pool_step *s, const pool_window *w, float *y) {
    const float all = (float)tare__pool_divisor(&s->call, w);
    for (int d = 0; d < (s->call.is_adaptive ? 3 : 1); d++) {
        const float divisor = s->call.is_adaptive ? (float)(w->end[d] - w->begin[d]) : all;
        for (size_t c = 0; c < s->channels; c++) y[c] /= divisor;
    }
}

static void pool_pixel(const pool_step *s, const row_functions *k, const float *image,
                       const int64_t at[3], float *y) {
    const pool_call *p = &s->call;
    const pool_window w = tare__pool_window_at(p, at);
    for (size_t c = 0; c < s->channels; c++) y[c] = p->is_max ? -INFINITY : 0.0F;
    for (int64_t i = w.begin[0]; i < w.end[0]; i += p->dilation[0])
        for (int64_t j = w.begin[1]; j < w.end[1]; j += p->dilation[1])
            for (int64_t l = w.begin[2]; l < w.end[2]; l += p->dilation[2]) {
                const float *pixel =
                    image + (size_t)((i * p->in[1] + j) * p->in[2] + l) * s->channels;
                if (p->is_max)
                    k->max_into(pixel, s->channels, y);
                else
                    k->add(pixel, s->channels, y);
            }
    if (!p->is_max) divide(s, &w, y);
}

typedef struct pool_run {
    const pool_step *step;
    const row_functions *rows;
    const float *x;
    float *y;
} pool_run;

static int64_t pixels_of(const int64_t size[3]) {
    return size[0] * size[1] * size[2];
}

// Pixels of the results of the whole batch.
static void pool_pixels(void *user, size_t first, size_t end, size_t worker) {
    const pool_run *run = user;
    const pool_step *s = run->step;
    const pool_call *p = &s->call;
    const int64_t in = pixels_of(p->in), out = pixels_of(p->out);
    (void)worker;
    for (int64_t i = (int64_t)first; i < (int64_t)end; i++) {
        const int64_t pixel = i % out, rest = pixel / p->out[2];
        const int64_t at[] = {rest / p->out[1], rest % p->out[1], pixel % p->out[2]};
        pool_pixel(s, run->rows, run->x + (size_t)(i / out * in) * s->channels, at,
                   run->y + (size_t)i * s->channels);
    }
}

static tare_status run_pool(const plan_run_state *run, void *state) {
    const pool_step *s = state;
    const pool_call *p = &s->call;
    const int64_t in = pixels_of(p->in), out = pixels_of(p->out);
    pool_run r = {s, &run->kernels->rows->functions, tare__buffer_data(run, s->x),
                  tare__buffer_data(run, s->y)};
    if (s->is_mean) {
        mean_job job = {
            .x = r.x, .y = r.y, .batch = s->batch, .pixels = in, .channels = s->channels};
        return mean_of_pixels(run, &job);
    }
    thread_pool *threads = tare__threads_for(run, s->batch * in * (int64_t)s->channels);
    const size_t pixels = (size_t)(s->batch * out);
    tare__parallel(threads, pixels, tare__ceil_div(pixels, tare__thread_count(threads)),
                   pool_pixels, &r);
    return TARE_OK;
}

static bool is_channels_last(const plan_builder *b, size_t v) {
    return tare__plan_layout(b, v) == LAYOUT_CHANNELS_LAST;
}

static bool heads_pool(const plan_builder *b, const plan_record *r) {
    return tare__plan_is_pool(r) && tare__plan_is_float(b, r);
}

static tare_status plan_pool(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    op_call call = r->call;
    pool_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    bool known = false;
    if (s == NULL) return tare__out_of_memory(b->err);
    call.err = b->err;
    TARE_TRY(tare__pool_read(&call, &s->call, &known));
    const tare_tensor *x = s->call.x;
    if (!known || x->ndim != s->call.dims + 2) return TARE_OK;
    // In the plain layout the last dimension may stand for the channels of an image with one.
    const bool is_plain = tare__pool_keeps_last(&s->call) && !is_channels_last(b, r->inputs[0]);
    const plan_layout layout = is_plain ? LAYOUT_PLAIN : LAYOUT_CHANNELS_LAST;
    s->batch = is_plain ? s->call.planes : x->shape[0];
    s->channels = is_plain ? 1 : (size_t)x->shape[1];
    s->is_mean = s->call.is_adaptive && !s->call.is_max && pixels_of(s->call.out) == 1;
    tare__pool_join_channels(&s->call, &s->channels);
    TARE_TRY(tare__plan_read(b, r->inputs[0], layout, &s->x));
    TARE_TRY(tare__plan_write(b, r->result, layout, &s->y));
    *done = true;
    return tare__plan_add_step(b, &tare__pool_step, s, r->node);
}

// --- the mean over all pixels ---

typedef struct mean_step {
    size_t x, y; // buffers
    int64_t batch, pixels;
    size_t channels;
} mean_step;

static tare_status run_mean(const plan_run_state *run, void *state) {
    const mean_step *s = state;
    mean_job job = {.x = tare__buffer_data(run, s->x),
                    .y = tare__buffer_data(run, s->y),
                    .batch = s->batch,
                    .pixels = s->pixels,
                    .channels = s->channels};
    return mean_of_pixels(run, &job);
}

static bool heads_mean(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_MEAN, TARE_OP_NONE};
    return tare__plan_is_float_op(b, r, ids);
}

static tare_status plan_mean(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    const tare_tensor *x = b->values[r->inputs[0]].tensor;
    if (!is_channels_last(b, r->inputs[0]) || x->count == 0 || !tare__plan_is_over_pixels(r, x))
        return TARE_OK;
    mean_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (mean_step){
        .batch = x->shape[0], .pixels = tare__inner_count(x, 1), .channels = (size_t)x->shape[1]};
    TARE_TRY(tare__plan_read(b, r->inputs[0], LAYOUT_CHANNELS_LAST, &s->x));
    TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN,
                              &s->y)); // with one pixel both layouts are equal
    *done = true;
    return tare__plan_add_step(b, &tare__mean_step, s, r->node);
}

const step_class tare__pool_step = {
    .name = "pool",
    .heads = heads_pool,
    .plan = plan_pool,
    .run = run_pool,
    .describe = describe,
    .replicate = tare__step_share,
};

const step_class tare__mean_step = {
    .name = "mean",
    .heads = heads_mean,
    .plan = plan_mean,
    .run = run_mean,
    .describe = describe,
    .replicate = tare__step_share,
};
