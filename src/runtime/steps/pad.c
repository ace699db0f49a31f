// SPDX-License-Identifier: Apache-2.0
// Padding and cropping in the layout of the input: copies rows and fills their ends.
#include "ops/layer_call.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

enum { GRAIN = 1 << 15 }; // bytes of the result per task, roughly

typedef struct pad_step {
    pad_box box;
    size_t x, y; // buffers
    size_t rows, row_bytes;
} pad_step;

typedef struct pad_job {
    const pad_step *s;
    const void *x;
    void *y;
} pad_job;

static void pad_some(void *user, size_t first, size_t end, size_t worker) {
    const pad_job *job = user;
    (void)worker;
    tare__pad_rows(&job->s->box, job->x, (int64_t)first, (int64_t)end, job->y);
}

static tare_status run_pad(const plan_run_state *run, void *state) {
    const pad_step *s = state;
    pad_job job = {s, tare__buffer_data(run, s->x), tare__buffer_data(run, s->y)};
    tare__parallel(tare__threads_for(run, (int64_t)(s->rows * s->row_bytes)), s->rows,
                   tare__grain_of(GRAIN, s->row_bytes), pad_some, &job);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "rows are copied, their ends filled");
}

static bool heads(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_PAD, TARE_OP_NONE};
    return tare__record_is_one_of(r, ids) && r->result != NOTHING && !r->is_view &&
           !r->is_observer && b->values[r->result].tensor->q == NULL;
}

static void order_of(int ndim, plan_layout layout, int order[TARE_MAX_DIMS]) {
    for (int d = 0; d < ndim; d++) order[d] = d;
    if (layout != LAYOUT_CHANNELS_LAST) return;
    for (int d = 1; d + 1 < ndim; d++) order[d] = d + 1;
    order[ndim - 1] = 1;
}

static tare_status plan_pad(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    const tare_tensor *y = b->values[r->result].tensor;
    op_call call = r->call;
    pad_call read;
    int order[TARE_MAX_DIMS];
    call.err = b->err;
    TARE_TRY(tare__pad_read(&call, &read));
    const size_t x = tare__plan_find_value(b, read.x);
    if (r->next != NOTHING || x == NOTHING || y->count == 0) return TARE_OK;
    const plan_layout layout = tare__plan_layout(b, x);
    pad_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    order_of(y->ndim, layout, order);
    s->box = tare__pad_box_of(&read, order, y);
    s->rows = (size_t)tare__pad_row_count(&s->box);
    s->row_bytes = (size_t)y->count / s->rows * s->box.element;
    TARE_TRY(tare__plan_read(b, x, layout, &s->x));
    TARE_TRY(tare__plan_write(b, r->result, layout, &s->y));
    *done = true;
    return tare__plan_add_step(b, &tare__pad_step, s, r->node);
}

const step_class tare__pad_step = {
    .name = "pad",
    .heads = heads,
    .plan = plan_pad,
    .run = run_pad,
    .describe = describe,
    .replicate = tare__step_share,
};
