// SPDX-License-Identifier: Apache-2.0
// Resizing of channels-last floats and quantized values: a pixel of the result is a weighted sum of
// a few pixels, which are rows of channels.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/rules.h"
#include "runtime/kernels/schemes.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

typedef struct resize_step {
    resize_call call;
    resize_taps *along; // for each pixel of a row
    plan_pixels x, y;
    size_t channels;
    int64_t batch;
    bool is_of_quantized;
    quantized_blend blend; // for quantized values: the constants that all pixels share
} resize_step;

typedef struct resize_job {
    const resize_step *s;
    const kernel_context *kernels;
    const unsigned char *x;
    unsigned char *y;
} resize_job;

static void blend_quantized(const resize_job *job, const resize_plane_taps *plane_taps,
                            const uint8_t *image, uint8_t *y) {
    const size_t channels = job->s->channels;
    quantized_blend b = job->s->blend;
    if (plane_taps->count == 1 && plane_taps->weight[0] == 1) {
        memcpy(y, image + (size_t)plane_taps->at[0] * job->s->x.pitch, channels);
        return;
    }
    b.rows = plane_taps->count;
    for (size_t k = 0; k < b.rows; k++) {
        b.x[k] = image + (size_t)plane_taps->at[k] * job->s->x.pitch;
        b.weight[k] = plane_taps->weight[k];
    }
    job->kernels->elementwise->blend(&b, channels, y);
}

static void blend_floats(const resize_job *job, const resize_plane_taps *plane_taps,
                         const float *image, float *y) {
    const size_t channels = job->s->channels;
    const float *x[RESIZE_MOST_PLANE_TAPS] = {NULL};
    for (size_t k = 0; k < plane_taps->count; k++)
        x[k] = image + (size_t)plane_taps->at[k] * job->s->x.pitch;
    job->kernels->rows->functions.blend(x, plane_taps->weight, plane_taps->count, channels, y);
}

// Computes a row of the result.
static void resize_row(const resize_job *job, int64_t row) {
    const resize_step *s = job->s;
    const resize_call *r = &s->call;
    const int64_t in = r->in[0] * r->in[1] * r->in[2];
    const int64_t depth = row / r->out[1] % r->out[0], image = row / r->out[1] / r->out[0];
    const size_t from = (size_t)(image * in) * s->x.pitch;
    const resize_taps across[] = {tare__resize_taps_of(r, 0, depth),
                                  tare__resize_taps_of(r, 1, row % r->out[1])};
    for (int64_t w = 0; w < r->out[2]; w++) {
        const resize_plane_taps plane_taps = tare__resize_plane_taps_of(
            r, (const resize_taps *[]){&across[0], &across[1], &s->along[w]});
        const size_t to = (size_t)(row * r->out[2] + w) * s->y.pitch;
        if (s->is_of_quantized)
            blend_quantized(job, &plane_taps, job->x + from, job->y + to);
        else
            blend_floats(job, &plane_taps, (const float *)(const void *)job->x + from,
                         (float *)(void *)job->y + to);
    }
}

static void resize_rows(void *user, size_t first, size_t end, size_t worker) {
    (void)worker;
    for (size_t i = first; i < end; i++) resize_row(user, (int64_t)i);
}

static tare_status run_resize(const plan_run_state *run, void *state) {
    const resize_step *s = state;
    const resize_call *r = &s->call;
    resize_job job = {.s = s,
                      .kernels = run->kernels,
                      .x = tare__buffer_data(run, s->x.buffer),
                      .y = tare__buffer_data(run, s->y.buffer)};
    const int64_t rows = s->batch * r->out[0] * r->out[1];
    tare__parallel(tare__threads_for(run, rows * r->out[2] * (int64_t)s->channels), (size_t)rows, 1,
                   resize_rows, &job);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const resize_step *s = state;
    (void)p;
    tare__step_say(out, "%s: pixels as rows of channels",
                   s->is_of_quantized ? "integers" : "float");
    tare__step_say_slice(out, &s->y);
}

// --- planning ---

// `call` is a float call; x: its input.
static tare_status add_resize(plan_builder *b, size_t head, op_call *call, const tare_tensor *x,
                              resize_step like, bool *done) {
    const plan_record *r = &b->records[head];
    const size_t v = tare__plan_find_value(b, x);
    if (v == NOTHING || x->count == 0) return TARE_OK;
    resize_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = like;
    TARE_TRY(tare__resize_read(call, &s->call));
    if (s->call.mode == RESIZE_CUBIC && s->is_of_quantized)
        return TARE_OK; // more taps than the kernels support
    s->along = tare__arena_array(&b->plan->memory, (size_t)s->call.out[2], sizeof *s->along);
    if (s->along == NULL) return tare__out_of_memory(b->err);
    for (int64_t i = 0; i < s->call.out[2]; i++) s->along[i] = tare__resize_taps_of(&s->call, 2, i);
    s->call.x = x;
    s->batch = x->shape[0];
    s->channels = (size_t)x->shape[1];
    TARE_TRY(tare__plan_read_pixels(b, v, &s->x));
    TARE_TRY(tare__plan_write_pixels(b, r->result, &s->y));
    *done = true;
    return tare__plan_add_step(b, &tare__resize_step, s, r->node);
}

static tare_status plan_floats(plan_builder *b, size_t head, bool *done) {
    op_call call = b->records[head].call;
    const tare_tensor *x = tare__call_tensor(&call, 0);
    call.err = b->err;
    if (b->setting->kernels == NULL || x == NULL) return TARE_OK;
    return add_resize(b, head, &call, x, (resize_step){0}, done);
}

// Weights apply to quantized values minus the zero point, as in references.
static tare_status plan_quantized(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    const tare_tensor *x = tare__plan_quantized_input(r), *y = b->values[r->result].tensor;
    op_call call = r->call;
    value in = {.kind = VALUE_TENSOR};
    if (b->setting->kernels == NULL || x == NULL || !tare__is_byte_quantized(x) ||
        !tare__is_byte_quantized(y))
        return TARE_OK;
    call.err = b->err;
    call.param[0] = &in;
    TARE_TRY(tare__tensor_meta(TARE_FLOAT32, x->ndim, x->shape, NULL, &in.as.tensor, b->err));
    const quantized_scheme scheme = tare__quantized_scheme_of(y);
    const resize_step like = {.is_of_quantized = true,
                              .blend = {.zero_point = scheme.zero_point,
                                        .least = scheme.least,
                                        .most = scheme.most,
                                        .is_signed = scheme.is_signed}};
    const tare_status status = add_resize(b, head, &call, x, like, done);
    tare_tensor_release(in.as.tensor);
    return status;
}

static bool heads(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_INTERPOLATE, TARE_OP_NONE};
    return tare__plan_is_float_op(b, r, ids) || tare__plan_is_quantized_op(b, r, ids);
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    return tare__plan_is_float(b, &b->records[head]) ? plan_floats(b, head, done)
                                                     : plan_quantized(b, head, done);
}

const step_class tare__resize_step = {
    .name = "resize",
    .heads = heads,
    .plan = plan_chain,
    .run = run_resize,
    .describe = describe,
    .replicate = tare__step_share,
};
