// SPDX-License-Identifier: Apache-2.0
// Functions of rows over the last dimensions: norms, softmax, sums and other operators with such a
// form.
#include "ops/layer_call.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

typedef struct row_step {
    row_call call; // x's address is set in every run
    size_t x, y;   // buffers
    size_t rows;
} row_step;

// --- running ---

enum { GRAIN_ELEMENTS = 1 << 14 };

typedef struct rows_run {
    const plan_run_state *run;
    const row_step *s;
} rows_run;

static void run_some(void *user, size_t first, size_t end, size_t worker) {
    const rows_run *r = user;
    const row_step *s = r->s;
    const float *x = tare__buffer_data(r->run, s->x);
    float *y = tare__buffer_data(r->run, s->y);
    (void)worker;
    tare__row_call_run(&s->call, &r->run->kernels->rows->functions, end - first,
                       x + first * (size_t)s->call.count, y + first * (size_t)s->call.results);
}

static tare_status run_rows(const plan_run_state *run, void *state) {
    const row_step *s = state;
    rows_run r = {run, s};
    tare__parallel(tare__threads_for(run, (int64_t)s->rows * s->call.count), s->rows,
                   tare__grain_of(GRAIN_ELEMENTS, (size_t)s->call.count), run_some, &r);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "float: sums in a fixed order");
}

// --- planning ---

static bool heads(const plan_builder *b, const plan_record *r) {
    return r->call.op != NULL && r->call.op->row_function != NULL && tare__plan_is_float(b, r);
}

static tare_status plan_rows(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    op_call call = r->call;
    row_call c;
    bool unused;
    call.err = b->err;
    TARE_TRY(call.op->row_function(&call, &c));
    const size_t x = tare__plan_find_value(b, c.x);
    if (c.run == NULL || x == NOTHING || c.x->count == 0) return TARE_OK;
    row_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (row_step){.call = c, .rows = (size_t)(c.x->count / c.count)};
    TARE_TRY(tare__plan_read(b, x, LAYOUT_PLAIN, &s->x));
    if (tare__row_call_is_in_place(&c))
        TARE_TRY(tare__plan_write_over(b, r->result, x, LAYOUT_PLAIN, &s->y, &unused));
    else
        TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y));
    *done = true;
    return tare__plan_add_step(b, &tare__rows_step, s, r->node);
}

const step_class tare__rows_step = {
    .name = "rows",
    .heads = heads,
    .plan = plan_rows,
    .run = run_rows,
    .describe = describe,
    .replicate = tare__step_share,
};
