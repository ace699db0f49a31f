// SPDX-License-Identifier: Apache-2.0
// Batch norms with running statistics that are not folded into a layer: a scale and a shift per
// channel, for floats or quantized values. Rows are the channels of pixels; of small plain images,
// the pixels of a channel.
#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/rule.h"
#include "ops/rules.h"
#include "runtime/kernels/schemes.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

enum {
    GRAIN_ELEMENTS = 1 << 14,
    LEAST_ROW = 512,      // elements: with fewer channels the factors are repeated
    MOST_PLAIN = 1 << 13, // elements of an image that stays in the plain layout
};

typedef struct norm_step {
    plan_pixels x, y;     // rows of the tensors
    size_t row, count;    // row: elements of some pixels; count: all elements
    float *scale, *shift; // for each element of a row
    bool is_of_quantized;
    quantized_scheme from, to;
} norm_step;

typedef struct norm_job {
    const norm_step *s;
    const kernel_context *kernels;
    const void *x;
    void *y;
} norm_job;

static void run_some(void *user, size_t first, size_t end, size_t worker) {
    const norm_job *job = user;
    const norm_step *s = job->s;
    (void)worker;
    for (size_t i = first; i < end; i += s->row) {
        const size_t count = tare__least(s->row, end - i);
        const size_t x = i / s->row * s->x.pitch, y = i / s->row * s->y.pitch;
        if (s->is_of_quantized)
            job->kernels->elementwise->affine(&s->from, &s->to, (const uint8_t *)job->x + x,
                                              s->scale, s->shift, count, (uint8_t *)job->y + y);
        else
            job->kernels->rows->functions.affine((const float *)job->x + x, count, s->scale,
                                                 s->shift, (float *)job->y + y);
    }
}

static tare_status run_norm(const plan_run_state *run, void *state) {
    const norm_step *s = state;
    norm_job job = {.s = s,
                    .kernels = run->kernels,
                    .x = tare__buffer_data(run, s->x.buffer),
                    .y = tare__buffer_data(run, s->y.buffer)};
    tare__parallel(tare__threads_for(run, (int64_t)s->count), s->count,
                   tare__round_up(GRAIN_ELEMENTS, s->row), run_some, &job);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const norm_step *s = state;
    (void)p;
    tare__step_say(out, "%s",
                   s->is_of_quantized ? "integers: a factor and a summand for each channel"
                                      : "float: a factor and a summand for each channel");
    tare__step_say_slice(out, &s->y);
}

// --- planning ---

// Repeats the factors. each: consecutive elements of one channel. Pixels with gaps between them are
// rows of their own.
static tare_status repeat_factors(plan_builder *b, const batch_norm_call *n, size_t each,
                                  bool is_apart, norm_step *s) {
    const size_t channels = (size_t)n->x->shape[1], image = channels * each;
    s->row = is_apart ? image : image * tare__ceil_div(LEAST_ROW, image);
    s->scale = tare__arena_array(&b->plan->memory, s->row, sizeof *s->scale);
    s->shift = tare__arena_array(&b->plan->memory, s->row, sizeof *s->shift);
    if (s->scale == NULL || s->shift == NULL) return tare__out_of_memory(b->err);
    for (size_t i = 0; i < s->row; i++)
        tare__batch_norm_factors(n, (int64_t)(i / each % channels), &s->scale[i], &s->shift[i]);
    return TARE_OK;
}

static plan_layout layout_of(const plan_builder *b, size_t v, const tare_tensor *x) {
    const bool is_small = x->count / x->shape[0] <= MOST_PLAIN;
    return is_small ? tare__plan_layout(b, v) : LAYOUT_CHANNELS_LAST;
}

// A parameter that the graph computes has no data yet.
static bool is_constant(op_call *call) {
    for (size_t i = 1; i < call->param_count; i++) {
        const tare_tensor *t = tare__call_tensor(call, i);
        if (t != NULL && (t->dtype != TARE_FLOAT32 || t->data == NULL)) return false;
    }
    return true;
}

// `call` is a float call of the row batch_norm; x: its input.
static tare_status add_norm(plan_builder *b, size_t head, op_call *call, const tare_tensor *x,
                            norm_step like, bool *done) {
    const plan_record *r = &b->records[head];
    batch_norm_call n;
    bool known = false, unused;
    const size_t v = tare__plan_find_value(b, x);
    if (v == NOTHING || x->count == 0 || !is_constant(call)) return TARE_OK;
    TARE_TRY(tare__batch_norm_read(call, &n, &known));
    if (!known) return TARE_OK;
    norm_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = like;
    s->count = (size_t)x->count;
    const plan_layout layout = layout_of(b, v, x);
    const int64_t each = layout == LAYOUT_PLAIN ? tare__inner_count(x, 1) : 1;
    const bool joins = tare__plan_is_slice(b, r->result, LAYOUT_CHANNELS_LAST);
    const bool is_apart = layout == LAYOUT_CHANNELS_LAST && (joins || tare__plan_lies_apart(b, v));
    TARE_TRY(repeat_factors(b, &n, (size_t)each, is_apart, s));
    s->x.pitch = s->y.pitch = s->row;
    TARE_TRY(is_apart ? tare__plan_read_pixels(b, v, &s->x)
                      : tare__plan_read(b, v, layout, &s->x.buffer));
    TARE_TRY(is_apart && joins
                 ? tare__plan_write_pixels(b, r->result, &s->y)
                 : tare__plan_write_over(b, r->result, v, layout, &s->y.buffer, &unused));
    *done = true;
    return tare__plan_add_step(b, &tare__batch_norm_step, s, r->node);
}

static tare_status plan_floats(plan_builder *b, size_t head, bool *done) {
    op_call call = b->records[head].call;
    const tare_tensor *x = tare__call_tensor(&call, 0);
    call.err = b->err;
    if (b->setting->kernels == NULL || x == NULL) return TARE_OK;
    return add_norm(b, head, &call, x, (norm_step){0}, done);
}

static tare_status plan_quantized(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    const tare_tensor *x = tare__plan_quantized_input(r), *y = b->values[r->result].tensor;
    module_rule rule;
    op_call call = r->call, bound;
    bool known = false;
    float_call f;
    call.err = b->err;
    call.memory = &b->scratch;
    if (b->setting->kernels == NULL || x == NULL || !tare__is_byte_quantized(x) ||
        !tare__is_byte_quantized(y))
        return TARE_OK;
    TARE_TRY(tare__rule_bind(&call, &rule, &bound, &known));
    if (!known) return TARE_OK;
    norm_step like = {.is_of_quantized = true,
                      .from = tare__quantized_scheme_of(x),
                      .to = tare__quantized_scheme_of(y)};
    if (rule.rule.relu) like.to.least = like.to.zero_point; // rounding is monotone
    tare_status status = tare__float_call_begin(&bound, true, &f);
    if (status == TARE_OK) status = add_norm(b, head, &f.call, x, like, done);
    tare__float_call_end(&f);
    return status;
}

static bool is_quantized(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_BATCH_NORM,
                                TARE_OP_QUANTIZED_BATCH_NORM2D,
                                TARE_OP_QUANTIZED_BATCH_NORM2D_RELU,
                                TARE_OP_QUANTIZED_BATCH_NORM3D,
                                TARE_OP_QUANTIZED_BATCH_NORM3D_RELU,
                                TARE_OP_NONE};
    return tare__plan_is_quantized_op(b, r, ids);
}

static bool heads(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_BATCH_NORM, TARE_OP_NONE};
    return tare__plan_is_float_op(b, r, ids) || is_quantized(b, r);
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    return is_quantized(b, &b->records[head]) ? plan_quantized(b, head, done)
                                              : plan_floats(b, head, done);
}

const step_class tare__batch_norm_step = {
    .name = "batch_norm",
    .heads = heads,
    .plan = plan_chain,
    .run = run_norm,
    .describe = describe,
    .replicate = tare__step_share,
};
