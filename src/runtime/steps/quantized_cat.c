// SPDX-License-Identifier: Apache-2.0
// Joined channels of codes that lie channels last. Most are written where they are wanted, by the
// steps that make them; what stands elsewhere is copied, and codes of other parameters than the
// result's are looked up.
#include <string.h>

#include "ops/quantized/layer.h"
#include "ops/quantized/table.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

enum { PIXELS_PER_PART = 256 };

typedef struct joined {
    plan_pixels x;
    size_t at, channels; // in the result's lines
    bool is_looked_up;
    uint8_t table[CODE_COUNT];
} joined;

typedef struct code_cat_step {
    joined *parts; // that are copied
    size_t count, channels, pixels;
    plan_pixels y;
    size_t in_place; // inputs that are there already
} code_cat_step;

// --- running ---

typedef struct code_cat_job {
    const code_cat_step *s;
    const plan_run_state *run;
} code_cat_job;

static void join_pixels(const code_cat_job *job, const joined *p, size_t first, size_t last) {
    const uint8_t *x = tare__place_data(job->run, p->x.place);
    uint8_t *y = tare__place_data(job->run, job->s->y.place);
    for (size_t i = first; i < last; i++) {
        const uint8_t *from = x + i * p->x.pitch;
        uint8_t *to = y + i * job->s->y.pitch + p->at;
        if (p->is_looked_up)
            job->run->kernels->elementwise->look_up(p->table, from, p->channels, to);
        else
            memcpy(to, from, p->channels);
    }
}

static void run_part(void *user, size_t part, size_t worker) {
    const code_cat_job *job = user;
    const size_t first = part * PIXELS_PER_PART, left = job->s->pixels - first;
    const size_t last = first + (left < PIXELS_PER_PART ? left : PIXELS_PER_PART);
    (void)worker;
    for (size_t i = 0; i < job->s->count; i++) join_pixels(job, &job->s->parts[i], first, last);
}

static tare_status run_cat(const plan_run_state *run, void *state) {
    code_cat_job job = {state, run};
    tare__thread_pool_run(tare__threads_for(run, (int64_t)(job.s->pixels * job.s->channels)),
                          tare__ceil_div(job.s->pixels, PIXELS_PER_PART), run_part, &job);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const code_cat_step *s = state;
    (void)p;
    tare__step_say(out,
                   "integers: %zu copied, or looked up where the parameters differ, %zu in place",
                   s->count, s->in_place);
}

static size_t pixels_of(const tare_tensor *t) {
    return (size_t)(t->count / t->shape[1]);
}

// --- planning ---

typedef struct cat_call {
    const tare_tensor **x, *y;
    size_t count;
} cat_call;

static bool read_call(plan_builder *b, const plan_record *r, cat_call *c) {
    op_call call = r->call;
    int dim = 0;
    call.err = NULL;
    call.memory = &b->scratch;
    c->y = r->result != NOTHING ? b->values[r->result].tensor : NULL;
    if (b->setting->kernels == NULL || c->y == NULL || !tare__is_byte_quantized(c->y) ||
        c->y->ndim < 3 || c->y->count == 0 ||
        tare__call_tensor_list(&call, 0, &c->x, &c->count) != TARE_OK ||
        tare__call_dim(&call, 1, 0, c->y->ndim, &dim) != TARE_OK || dim != 1)
        return false;
    for (size_t i = 0; i < c->count; i++) {
        const tare_tensor *x = c->x[i];
        if (tare__plan_find_value(b, x) == NOTHING || x->count == 0 || x->dtype != c->y->dtype ||
            !tare__is_byte_quantized(x))
            return false;
    }
    return true;
}

// One input that lies channels last is enough: the others are moved, and what follows is layers.
static bool any_channels_last(const plan_builder *b, const cat_call *c) {
    for (size_t i = 0; i < c->count; i++)
        if (tare__plan_layout(b, tare__plan_find_value(b, c->x[i])) == LAYOUT_CHANNELS_LAST)
            return true;
    return false;
}

static void fill_table(const qparams *x, const qparams *y, bool is_signed,
                       uint8_t table[CODE_COUNT]) {
    const float inverse = tare__inverse_scale(y->scale[0]);
    for (int i = 0; i < CODE_COUNT; i++) {
        const int code = is_signed ? (int8_t)(uint8_t)i : i;
        const float real = tare__dequantize(code, (int64_t)x->zero_point[0], (float)x->scale[0]);
        table[i] = (uint8_t)tare__quantize(real, inverse, (int64_t)y->zero_point[0], y->quant_min,
                                           y->quant_max);
    }
}

// --- parts ---

static plan_placement *placement_of(const plan_builder *b, size_t v) {
    return &b->values[v].placement[LAYOUT_CHANNELS_LAST];
}

// Do all inputs follow each other in some larger value, so that the result is a part of it, too?
static bool follow_each_other(const plan_builder *b, const cat_call *c) {
    const plan_placement *first = placement_of(b, tare__plan_find_value(b, c->x[0]));
    size_t at = first->slice_at;
    for (size_t i = 0; i < c->count; i++) {
        const plan_placement *x = placement_of(b, tare__plan_find_value(b, c->x[i]));
        if (x->slice_of == NOTHING || x->slice_of != first->slice_of || x->slice_at != at ||
            !tare__qparams_equal(c->x[i]->q, c->y->q))
            return false;
        at += (size_t)c->x[i]->shape[1];
    }
    return true;
}

// A value has one place: the last concatenation that reads it says where, and those before it take
// what they can of that.
static void join(plan_builder *b, size_t result, const cat_call *c) {
    plan_placement *y = placement_of(b, result);
    if (y->slice_of == NOTHING && follow_each_other(b, c)) {
        const plan_placement *first = placement_of(b, tare__plan_find_value(b, c->x[0]));
        y->slice_of = first->slice_of;
        y->slice_at = first->slice_at;
    }
    size_t at = y->slice_at;
    for (size_t i = 0; i < c->count; i++) {
        const size_t v = tare__plan_find_value(b, c->x[i]);
        const plan_value *x = &b->values[v];
        plan_placement *own = placement_of(b, v);
        if (own->slice_of == NOTHING && !x->is_constant && !x->is_input && x->base == v &&
            tare__qparams_equal(c->x[i]->q, c->y->q)) {
            own->slice_of = y->slice_of != NOTHING ? y->slice_of : result;
            own->slice_at = at;
        }
        at += (size_t)c->x[i]->shape[1];
    }
}

static bool heads(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_CAT, TARE_OP_QUANTIZED_CAT, TARE_OP_NONE};
    return tare__plan_is_quantized_op(b, r, ids);
}

// Finds the inputs whose steps can write them where the result wants them.
static void reserve(plan_builder *b, size_t record) {
    const plan_record *r = &b->records[record];
    cat_call c = {0};
    if (read_call(b, r, &c) && c.count > 0) join(b, r->result, &c);
}

// --- the step ---

// Where an input belongs that is not looked up: `at` channels behind the result's first.
static bool belongs_at(const plan_builder *b, size_t v, size_t result, size_t at) {
    const plan_placement *x = placement_of(b, v), *y = placement_of(b, result);
    return x->slice_of != NOTHING &&
           x->slice_of == (y->slice_of != NOTHING ? y->slice_of : result) &&
           x->slice_at == y->slice_at + at;
}

// Does an input that belongs there lie in the memory of what joins it?
static bool is_in_place(const plan_builder *b, size_t v) {
    const plan_placement *x = placement_of(b, v);
    const size_t whole = placement_of(b, x->slice_of)->whole;
    return x->place != NOTHING && whole != NOTHING && b->plan->places[x->place].whole == whole;
}

// What is copied where it belongs is found there from now on.
static tare_status add_part(plan_builder *b, const tare_tensor *x, const cat_call *c, bool belongs,
                            joined *out) {
    const size_t v = tare__plan_find_value(b, x);
    plan_pixels there;
    out->channels = (size_t)x->shape[1];
    out->is_looked_up = !tare__qparams_equal(x->q, c->y->q);
    if (out->is_looked_up) fill_table(x->q, c->y->q, c->y->dtype == TARE_QINT8, out->table);
    TARE_TRY(tare__plan_read_pixels(b, v, &out->x));
    if (!belongs) return TARE_OK;
    TARE_TRY(tare__plan_place_pixels(b, v, &there));
    return tare__plan_touch(b, there.place);
}

static tare_status add_parts(plan_builder *b, const cat_call *c, size_t result, code_cat_step *s) {
    size_t at = 0;
    for (size_t i = 0; i < c->count; i++) {
        const size_t v = tare__plan_find_value(b, c->x[i]);
        const bool belongs = belongs_at(b, v, result, at);
        if (belongs && is_in_place(b, v)) {
            s->in_place++;
        } else {
            s->parts[s->count].at = at;
            TARE_TRY(add_part(b, c->x[i], c, belongs, &s->parts[s->count++]));
        }
        at += (size_t)c->x[i]->shape[1];
    }
    return TARE_OK;
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    cat_call c = {0};
    if (!read_call(b, r, &c) || !any_channels_last(b, &c)) return TARE_OK;
    code_cat_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (code_cat_step){.parts = tare__arena_array(&b->plan->memory, c.count, sizeof *s->parts),
                         .channels = (size_t)c.y->shape[1],
                         .pixels = pixels_of(c.y)};
    if (s->parts == NULL) return tare__out_of_memory(b->err);
    TARE_TRY(add_parts(b, &c, r->result, s));
    *done = true;
    if (s->count == 0) return tare__plan_place_pixels(b, r->result, &s->y);
    TARE_TRY(tare__plan_write_pixels(b, r->result, &s->y));
    return tare__plan_add_step(b, &tare__quantized_cat_step, s, r->node);
}

const step_class tare__quantized_cat_step = {
    .name = "code cat",
    .heads = heads,
    .reserve = reserve,
    .plan = plan_chain,
    .run = run_cat,
    .describe = describe,
    .replicate = tare__step_share,
};
