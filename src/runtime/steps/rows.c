// SPDX-License-Identifier: Apache-2.0
// Steps over rows of the last dimension, norms and softmax.
#include "ops/layer_call.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

typedef struct row_step {
    // y may be x, but for the logarithm of softmax.
    void (*run)(const row_kernels *k, const struct row_step *s, const float *x, float *y);
    size_t x, y; // places
    int64_t rows;
    size_t count;               // elements of a row
    const float *weight, *bias; // NULL: none
    float eps;
} row_step;

static void normalize(const row_kernels *k, const row_step *s, const float *x, float *y) {
    k->normalize(x, s->count, s->weight, s->bias, s->eps, y);
}
static void rms_normalize(const row_kernels *k, const row_step *s, const float *x, float *y) {
    k->rms_normalize(x, s->count, s->weight, s->eps, y);
}
static void softmax(const row_kernels *k, const row_step *s, const float *x, float *y) {
    k->softmax(x, s->count, y);
}
static void log_softmax(const row_kernels *k, const row_step *s, const float *x, float *y) {
    k->log_softmax(x, s->count, y);
}

// --- running ---

enum { ELEMENTS_PER_PART = 1 << 14 };

typedef struct rows_run {
    const plan_run_state *run;
    const row_step *s;
} rows_run;

static void run_some(void *user, size_t first, size_t end, size_t worker) {
    const rows_run *r = user;
    const row_step *s = r->s;
    const float *x = tare__place_data(r->run, s->x);
    float *y = tare__place_data(r->run, s->y);
    (void)worker;
    for (size_t at = first * s->count; at < end * s->count; at += s->count)
        s->run(r->run->kernels->rows, s, x + at, y + at);
}

static tare_status run_rows(const plan_run_state *run, void *state) {
    const row_step *s = state;
    rows_run r = {run, s};
    tare__parallel(tare__threads_for(run, s->rows * (int64_t)s->count), (size_t)s->rows,
                   tare__grain_of(ELEMENTS_PER_PART, s->count), run_some, &r);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "float: sums in a fixed order");
}

// --- planning ---

static tare_status add_rows(plan_builder *b, const plan_record *r, size_t x,
                            const step_class *class, row_step like, bool *done) {
    row_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    bool unused;
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = like;
    s->rows = b->values[x].tensor->count / (int64_t)s->count;
    TARE_TRY(tare__plan_read(b, x, LAYOUT_PLAIN, &s->x));
    if (s->run == log_softmax)
        TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y));
    else
        TARE_TRY(tare__plan_write_over(b, r->result, x, LAYOUT_PLAIN, &s->y, &unused));
    *done = true;
    return tare__plan_add_step(b, class, s, r->node);
}

static tare_status add_norm(plan_builder *b, size_t head, const step_class *class, bool *done) {
    op_call call = b->records[head].call;
    norm_call c;
    call.err = b->err;
    TARE_TRY(tare__norm_read(&call, &c));
    const size_t x = tare__plan_find_value(b, c.x);
    const row_step s = {.run = class == &tare__rms_norm_step ? rms_normalize : normalize,
                        .count = (size_t)c.inner,
                        .weight = c.weight,
                        .bias = c.bias,
                        .eps = (float)c.eps};
    if (!tare__norm_is_known(&call, &c) || x == NOTHING || c.x->count == 0) return TARE_OK;
    return add_rows(b, &b->records[head], x, class, s, done);
}

static bool heads_layer_norm(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_LAYER_NORM, TARE_OP_NONE};
    return tare__plan_is_float_op(b, r, ids);
}

static tare_status plan_layer_norm(plan_builder *b, size_t head, bool *done) {
    return add_norm(b, head, &tare__layer_norm_step, done);
}

static bool heads_rms_norm(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_RMS_NORM, TARE_OP_NONE};
    return tare__plan_is_float_op(b, r, ids);
}

static tare_status plan_rms_norm(plan_builder *b, size_t head, bool *done) {
    return add_norm(b, head, &tare__rms_norm_step, done);
}

static tare_status add_softmax(plan_builder *b, size_t head, bool logarithm, bool *done) {
    const plan_record *r = &b->records[head];
    const tare_tensor *x = b->values[r->inputs[0]].tensor;
    op_call call = r->call;
    call.err = NULL;
    if (x->ndim == 0 || x->count == 0 || !tare__is_over_rows(&call, x)) return TARE_OK;
    const row_step s = {.run = logarithm ? log_softmax : softmax,
                        .count = (size_t)x->shape[x->ndim - 1]};
    return add_rows(b, r, r->inputs[0], logarithm ? &tare__log_softmax_step : &tare__softmax_step,
                    s, done);
}

static bool heads_softmax(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_SOFTMAX, TARE_OP_NONE};
    return tare__plan_is_float_op(b, r, ids);
}

static tare_status plan_softmax(plan_builder *b, size_t head, bool *done) {
    return add_softmax(b, head, false, done);
}
static bool heads_log_softmax(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_LOG_SOFTMAX, TARE_OP_NONE};
    return tare__plan_is_float_op(b, r, ids);
}

static tare_status plan_log_softmax(plan_builder *b, size_t head, bool *done) {
    return add_softmax(b, head, true, done);
}

const step_class tare__layer_norm_step = {
    .name = "layer_norm",
    .heads = heads_layer_norm,
    .plan = plan_layer_norm,
    .run = run_rows,
    .describe = describe,
    .replicate = tare__step_share,
};

const step_class tare__rms_norm_step = {
    .name = "rms_norm",
    .heads = heads_rms_norm,
    .plan = plan_rms_norm,
    .run = run_rows,
    .describe = describe,
    .replicate = tare__step_share,
};

const step_class tare__softmax_step = {
    .name = "softmax",
    .heads = heads_softmax,
    .plan = plan_softmax,
    .run = run_rows,
    .describe = describe,
    .replicate = tare__step_share,
};

const step_class tare__log_softmax_step = {
    .name = "log_softmax",
    .heads = heads_log_softmax,
    .plan = plan_log_softmax,
    .run = run_rows,
    .describe = describe,
    .replicate = tare__step_share,
};
