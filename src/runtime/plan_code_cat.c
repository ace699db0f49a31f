// SPDX-License-Identifier: Apache-2.0
// Joined channels of codes that lie channels last. Codes of other parameters than the result's are
// looked up.
#include <string.h>

#include "ops/code_table.h"
#include "ops/quantized_layer.h"
#include "runtime/plan_steps.h"

enum { PIXELS_PER_PART = 256 };

typedef struct joined {
    size_t place, channels;
    bool is_looked_up;
    uint8_t table[CODE_COUNT];
} joined;

typedef struct code_cat_step {
    joined *parts;
    size_t count, y, channels, pixels; // y: a place; channels and pixels of the result
} code_cat_step;

// --- running ---

typedef struct code_cat_job {
    const code_cat_step *s;
    const plan_run_state *run;
} code_cat_job;

static void join_pixels(const code_cat_job *job, const joined *p, size_t first, size_t last,
                        uint8_t *y) {
    const uint8_t *x = tare__place_data(job->run, p->place);
    for (size_t i = first; i < last; i++) {
        const uint8_t *from = x + i * p->channels;
        uint8_t *to = y + i * job->s->channels;
        if (p->is_looked_up)
            job->run->fast->elementwise->look_up(p->table, from, p->channels, to);
        else
            memcpy(to, from, p->channels);
    }
}

static void run_part(void *user, size_t part, size_t worker) {
    const code_cat_job *job = user;
    const size_t first = part * PIXELS_PER_PART, left = job->s->pixels - first;
    const size_t last = first + (left < PIXELS_PER_PART ? left : PIXELS_PER_PART);
    uint8_t *y = tare__place_data(job->run, job->s->y);
    (void)worker;
    for (size_t i = 0; i < job->s->count; i++) {
        join_pixels(job, &job->s->parts[i], first, last, y);
        y += job->s->parts[i].channels;
    }
}

static tare_status run_cat(const plan_run_state *run, void *state) {
    code_cat_job job = {state, run};
    tare__thread_pool_run(tare__threads_for(run, (int64_t)(job.s->pixels * job.s->channels)),
                          tare__ceil_div(job.s->pixels, PIXELS_PER_PART), run_part, &job);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "integers: copied, or looked up where the parameters differ");
}

static const step_class cat_class = {"code cat", run_cat, NULL, describe};

// --- planning ---

typedef struct cat_call {
    const tare_tensor **x, *y;
    size_t count;
} cat_call;

// One input that lies channels last is enough: the others are moved, and what follows is layers.
static bool read_call(plan_builder *b, const plan_record *r, cat_call *c) {
    op_call call = r->call;
    int dim = 0;
    bool any = false;
    call.err = NULL;
    call.memory = &b->scratch;
    c->y = r->result != NOTHING ? b->values[r->result].tensor : NULL;
    if (b->setting->fast == NULL || c->y == NULL || !tare__is_byte_quantized(c->y) ||
        c->y->ndim < 3 || c->y->count == 0 ||
        tare__call_tensor_list(&call, 0, &c->x, &c->count) != TARE_OK ||
        tare__call_dim(&call, 1, 0, c->y->ndim, &dim) != TARE_OK || dim != 1)
        return false;
    for (size_t i = 0; i < c->count; i++) {
        const tare_tensor *x = c->x[i];
        const size_t v = tare__plan_find_value(b, x);
        if (v == NOTHING || x->count == 0 || x->dtype != c->y->dtype || !tare__is_byte_quantized(x))
            return false;
        any = any || tare__plan_layout(b, v) == LAYOUT_CHANNELS_LAST;
    }
    return any;
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

static tare_status add_part(plan_builder *b, const tare_tensor *x, const tare_tensor *y,
                            joined *out) {
    out->channels = (size_t)x->shape[1];
    out->is_looked_up = !tare__qparams_equal(x->q, y->q);
    if (out->is_looked_up) fill_table(x->q, y->q, y->dtype == TARE_QINT8, out->table);
    return tare__plan_read(b, tare__plan_find_value(b, x), LAYOUT_CHANNELS_LAST, &out->place);
}

tare_status tare__plan_code_cat(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    cat_call c = {0};
    if (!read_call(b, r, &c)) return TARE_OK;
    code_cat_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (code_cat_step){.count = c.count,
                         .parts = tare__arena_array(&b->plan->memory, c.count, sizeof *s->parts),
                         .channels = (size_t)c.y->shape[1],
                         .pixels = (size_t)(c.y->count / c.y->shape[1])};
    if (s->parts == NULL) return tare__out_of_memory(b->err);
    for (size_t i = 0; i < c.count; i++) TARE_TRY(add_part(b, c.x[i], c.y, &s->parts[i]));
    TARE_TRY(tare__plan_write(b, r->result, LAYOUT_CHANNELS_LAST, &s->y));
    *done = true;
    return tare__plan_add_step(b, &cat_class, s, r->node);
}
