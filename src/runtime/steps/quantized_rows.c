// SPDX-License-Identifier: Apache-2.0
// Functions of quantized rows: a row is dequantized, computed by the float kernel, and quantized
// again, in the first-level cache.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/rule.h"
#include "runtime/kernels/schemes.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

enum {
    GRAIN_ELEMENTS = 1 << 12,
    FEW_ELEMENTS = 8, // shorter rows are left to the reference
};

typedef struct row_step {
    size_t x, y, scratch; // scratch: a row of floats for each thread
    size_t rows, count;   // count: elements of a row
    quantized_scheme from, to;
    row_call call; // of floats; x is unset
} row_step;

typedef struct rows_run {
    const plan_run_state *run;
    const row_step *s;
} rows_run;

static void run_some(void *user, size_t first, size_t end, size_t worker) {
    const rows_run *r = user;
    const row_step *s = r->s;
    const kernel_context *k = r->run->kernels;
    float *row = (float *)tare__buffer_data(r->run, s->scratch) + worker * s->count;
    for (size_t i = first; i < end; i++) {
        const uint8_t *x = (const uint8_t *)tare__buffer_data(r->run, s->x) + i * s->count;
        uint8_t *y = (uint8_t *)tare__buffer_data(r->run, s->y) + i * s->count;
        k->elementwise->dequantize(&s->from, x, s->count, row);
        s->call.run(&s->call, &k->rows->functions, row, row);
        k->elementwise->quantize(&s->to, row, s->count, y);
    }
}

static tare_status run_rows(const plan_run_state *run, void *state) {
    const row_step *s = state;
    rows_run r = {run, s};
    tare__parallel(tare__threads_for(run, (int64_t)(s->rows * s->count)), s->rows,
                   tare__grain_of(GRAIN_ELEMENTS, s->count), run_some, &r);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "a row becomes floats, passes their kernel, and becomes integers again");
}

// --- planning ---

// The float call of a quantized one; `like` has its shape.
typedef struct float_row_call {
    module_rule rule;
    tare_tensor like;
    value x;
    op_call bound;
} float_row_call;

static bool bind_floats(const plan_record *r, const tare_tensor *x, float_row_call *out) {
    bool known = false;
    op_call call = r->call;
    call.err = NULL;
    if (tare__rule_bind(&call, &out->rule, &out->bound, &known) != TARE_OK || !known ||
        out->rule.rule.relu || out->bound.op->row_function == NULL)
        return false;
    out->like = *x;
    out->like.dtype = TARE_FLOAT32;
    out->like.q = NULL;
    out->like.data = NULL;
    out->x = (value){.kind = VALUE_TENSOR, .as.tensor = &out->like};
    out->bound.param[0] = &out->x;
    return true;
}

// What the call does to a row; false if this step cannot compute it.
static bool read_rows(const plan_builder *b, const plan_record *r, row_call *out) {
    float_row_call f;
    if (!tare__plan_is_own_quantized(b, r)) return false;
    const tare_tensor *x = tare__plan_quantized_input(r), *y = b->values[r->result].tensor;
    if (x == NULL || x->ndim < 1 || y->count == 0 || !tare__is_byte_quantized(x) ||
        !tare__is_byte_quantized(y) || tare__plan_find_value(b, x) == NOTHING ||
        !bind_floats(r, x, &f) || f.bound.op->row_function(&f.bound, out) != TARE_OK)
        return false;
    out->x = NULL;
    return out->run != NULL && tare__row_call_is_in_place(out) && out->count >= FEW_ELEMENTS;
}

static bool heads(const plan_builder *b, const plan_record *r) {
    row_call unused;
    return read_rows(b, r, &unused);
}

static tare_status plan_rows(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    const tare_tensor *x = tare__plan_quantized_input(r), *y = b->values[r->result].tensor;
    const size_t threads = tare__thread_count(b->setting->kernels->space.pool);
    row_call call;
    if (!read_rows(b, r, &call)) return TARE_OK;
    row_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (row_step){.call = call,
                    .count = (size_t)call.count,
                    .rows = (size_t)(y->count / call.count),
                    .from = tare__quantized_scheme_of(x),
                    .to = tare__quantized_scheme_of(y)};
    TARE_TRY(tare__plan_read(b, tare__plan_find_value(b, x), LAYOUT_PLAIN, &s->x));
    TARE_TRY(tare__plan_new_scratch(b, threads * s->count * sizeof(float), &s->scratch));
    TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y));
    *done = true;
    return tare__plan_add_step(b, &tare__quantized_rows_step, s, r->node);
}

const step_class tare__quantized_rows_step = {
    .name = "quantized rows",
    .heads = heads,
    .plan = plan_rows,
    .run = run_rows,
    .describe = describe,
    .replicate = tare__step_share,
};
