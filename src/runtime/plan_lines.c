// SPDX-License-Identifier: Apache-2.0
// Steps over lines of the last dimension: layer norm and softmax.
#include "ops/layer_call.h"
#include "runtime/plan_steps.h"

enum { FEW_ELEMENTS = 8 }; // shorter lines are left to the reference

typedef struct line_step {
    size_t x, y, weight, bias; // places; NOTHING: none
    int64_t lines;
    size_t count; // elements of a line
    float eps;
} line_step;

static float *data_or_null(const plan_run_state *run, size_t place) {
    return place != NOTHING ? tare__place_data(run, place) : NULL;
}

typedef struct line_run {
    const plan_run_state *run;
    const line_step *s;
} line_run;

enum { LINES_PER_PART = 32 };

static int64_t end_of_part(const line_step *s, size_t part) {
    const int64_t end = ((int64_t)part + 1) * LINES_PER_PART;
    return end < s->lines ? end : s->lines;
}

static void normalize_part(void *user, size_t part, size_t worker) {
    const line_run *r = user;
    const line_step *s = r->s;
    const float *weight = data_or_null(r->run, s->weight), *bias = data_or_null(r->run, s->bias);
    const float *x = tare__place_data(r->run, s->x);
    float *y = tare__place_data(r->run, s->y);
    (void)worker;
    for (int64_t i = (int64_t)part * LINES_PER_PART; i < end_of_part(s, part); i++) {
        const int64_t at = i * (int64_t)s->count;
        r->run->fast->lines->normalize(x + at, s->count, weight, bias, s->eps, y + at);
    }
}

static void softmax_part(void *user, size_t part, size_t worker) {
    const line_run *r = user;
    const line_step *s = r->s;
    const float *x = tare__place_data(r->run, s->x);
    float *y = tare__place_data(r->run, s->y);
    (void)worker;
    for (int64_t i = (int64_t)part * LINES_PER_PART; i < end_of_part(s, part); i++)
        r->run->fast->lines->softmax(x + i * (int64_t)s->count, s->count,
                                     y + i * (int64_t)s->count);
}

static tare_status run_lines(const plan_run_state *run, const line_step *s, thread_task task) {
    line_run r = {run, s};
    thread_pool *pool = tare__threads_for(run, s->lines * (int64_t)s->count);
    tare__thread_pool_run(pool, tare__ceil_div((size_t)s->lines, LINES_PER_PART), task, &r);
    return TARE_OK;
}

static tare_status run_layer_norm(const plan_run_state *run, void *state) {
    return run_lines(run, state, normalize_part);
}

static tare_status run_softmax(const plan_run_state *run, void *state) {
    return run_lines(run, state, softmax_part);
}

static void describe(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "float: sums in a fixed order");
}

static const step_class layer_norm_class = {"layer_norm", run_layer_norm, NULL, describe};
static const step_class softmax_class = {"softmax", run_softmax, NULL, describe};

static tare_status add_lines(plan_builder *b, const plan_record *r, size_t x,
                             const step_class *class, line_step like, bool *done) {
    line_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    bool unused;
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = like;
    s->lines = b->values[x].tensor->count / (int64_t)s->count;
    TARE_TRY(tare__plan_read(b, x, LAYOUT_PLAIN, &s->x));
    TARE_TRY(tare__plan_write_over(b, r->result, x, LAYOUT_PLAIN, &s->y, &unused));
    *done = true;
    return tare__plan_add_step(b, class, s, r->node);
}

// A place for a parameter that is a module's own tensor, which no record reads.
static tare_status place_parameter(plan_builder *b, const float *data, int64_t count,
                                   size_t *place) {
    *place = NOTHING;
    if (data == NULL) return TARE_OK;
    TARE_TRY(tare__plan_new_place(b, PLACE_CONSTANT, (size_t)count * sizeof *data, place));
    b->plan->places[*place].data = (void *)data;
    return TARE_OK;
}

tare_status tare__plan_layer_norm(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    op_call call = r->call;
    layer_norm_call c;
    line_step s = {0};
    call.err = b->err;
    TARE_TRY(tare__layer_norm_read(&call, &c));
    const bool is_constant = tare__call_given(&call, 2) == (c.weight != NULL) &&
                             tare__call_given(&call, 3) == (c.bias != NULL);
    const size_t x = tare__plan_find_value(b, c.x);
    if (!is_constant || x == NOTHING || c.inner < FEW_ELEMENTS) return TARE_OK;
    s.count = (size_t)c.inner;
    s.eps = (float)c.eps;
    TARE_TRY(place_parameter(b, c.weight, c.inner, &s.weight));
    TARE_TRY(place_parameter(b, c.bias, c.inner, &s.bias));
    return add_lines(b, r, x, &layer_norm_class, s, done);
}

tare_status tare__plan_softmax(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    const tare_tensor *x = b->values[r->inputs[0]].tensor;
    op_call call = r->call;
    int dim = 0;
    call.err = NULL;
    // Without a dimension the row has a rule of its own.
    if (x->ndim == 0 || !tare__call_given(&call, 1) || tare__call_given(&call, 3) ||
        tare__call_dim(&call, 1, 0, x->ndim, &dim) != TARE_OK || dim != x->ndim - 1 ||
        x->shape[dim] < FEW_ELEMENTS)
        return TARE_OK;
    const line_step s = {.count = (size_t)x->shape[dim], .weight = NOTHING, .bias = NOTHING};
    return add_lines(b, r, r->inputs[0], &softmax_class, s, done);
}
