// SPDX-License-Identifier: Apache-2.0
// Softmax and layer norm over rows of quantized bytes: a row becomes floats, passes the kernel of
// float rows, and is quantized again while it is in the first-level cache.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/rule.h"
#include "runtime/kernels/schemes.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

enum {
    ELEMENTS_PER_PART = 1 << 12,
    FEW_ELEMENTS = 8, // softmax of shorter rows is left to the reference
};

typedef struct row_step {
    size_t x, y, scratch; // places; a row of floats for each thread
    size_t rows, count;   // count: elements of a row
    quantized_scheme from, to;
    bool is_norm;               // else softmax
    const float *weight, *bias; // NULL: none
    float eps;
} row_step;

typedef struct rows_run {
    const plan_run_state *run;
    const row_step *s;
} rows_run;

static void run_some(void *user, size_t first, size_t end, size_t worker) {
    const rows_run *r = user;
    const row_step *s = r->s;
    const kernel_context *k = r->run->kernels;
    float *row = (float *)tare__place_data(r->run, s->scratch) + worker * s->count;
    for (size_t i = first; i < end; i++) {
        const uint8_t *x = (const uint8_t *)tare__place_data(r->run, s->x) + i * s->count;
        uint8_t *y = (uint8_t *)tare__place_data(r->run, s->y) + i * s->count;
        k->elementwise->dequantize(&s->from, x, s->count, row);
        if (s->is_norm)
            k->rows->normalize(row, s->count, s->weight, s->bias, s->eps, row);
        else
            k->rows->softmax(row, s->count, row);
        k->elementwise->quantize(&s->to, row, s->count, y);
    }
}

static tare_status run_rows(const plan_run_state *run, void *state) {
    const row_step *s = state;
    rows_run r = {run, s};
    tare__parallel(tare__threads_for(run, (int64_t)(s->rows * s->count)), s->rows,
                   tare__grain_of(ELEMENTS_PER_PART, s->count), run_some, &r);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const row_step *s = state;
    (void)p;
    tare__step_say(out, "%s",
                   s->is_norm ? "a row becomes floats, their norm, and integers again"
                              : "a row becomes floats, their softmax, and integers again");
}

// --- planning ---

static tare_status add_rows(plan_builder *b, const plan_record *r, const step_class *class,
                            row_step like, bool *done) {
    const tare_tensor *x = tare__plan_quantized_input(r), *y = b->values[r->result].tensor;
    const size_t threads = tare__thread_count(b->setting->kernels->space.pool);
    row_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = like;
    s->from = tare__quantized_scheme_of(x);
    s->to = tare__quantized_scheme_of(y);
    s->rows = (size_t)y->count / s->count;
    TARE_TRY(tare__plan_read(b, tare__plan_find_value(b, x), LAYOUT_PLAIN, &s->x));
    TARE_TRY(tare__plan_new_scratch(b, threads * s->count * sizeof(float), &s->scratch));
    TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y));
    *done = true;
    return tare__plan_add_step(b, class, s, r->node);
}

// From bytes to bytes. *bound: the call of floats, on `like`, of which it looks at the shape.
typedef struct float_row_call {
    module_rule rule;
    tare_tensor like;
    value x;
    op_call bound;
} float_row_call;

static bool bind_floats(const plan_builder *b, const plan_record *r, float_row_call *out) {
    const tare_tensor *x = tare__plan_quantized_input(r), *y = b->values[r->result].tensor;
    bool known = false;
    op_call call = r->call;
    call.err = NULL;
    if (x == NULL || x->ndim < 1 || y->count == 0 || !tare__is_byte_quantized(x) ||
        !tare__is_byte_quantized(y) || tare__plan_find_value(b, x) == NOTHING ||
        tare__rule_bind(&call, &out->rule, &out->bound, &known) != TARE_OK || !known ||
        out->rule.rule.relu)
        return false;
    out->like = *x;
    out->like.dtype = TARE_FLOAT32;
    out->like.q = NULL;
    out->like.data = NULL;
    out->x = (value){.kind = VALUE_TENSOR, .as.tensor = &out->like};
    out->bound.param[0] = &out->x;
    return true;
}

static bool heads_softmax(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_QUANTIZED_SOFTMAX, TARE_OP_NONE};
    return tare__plan_is_quantized_op(b, r, ids);
}

static tare_status plan_softmax(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    float_row_call f;
    if (!bind_floats(b, r, &f) || tare__op_id(f.bound.op) != TARE_OP_SOFTMAX) return TARE_OK;
    const int64_t count = f.like.shape[f.like.ndim - 1];
    if (count < FEW_ELEMENTS || !tare__is_over_rows(&f.bound, &f.like)) return TARE_OK;
    const row_step s = {.count = (size_t)count};
    return add_rows(b, r, &tare__quantized_softmax_step, s, done);
}

static bool heads_norm(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_LAYER_NORM, TARE_OP_QUANTIZED_LAYER_NORM, TARE_OP_NONE};
    return tare__plan_is_quantized_op(b, r, ids);
}

static bool has_float_weights(op_call *call) {
    for (size_t i = 1; i < call->param_count; i++) {
        const tare_tensor *t = tare__call_tensor(call, i);
        if (t != NULL && t->dtype != TARE_FLOAT32) return false;
    }
    return true;
}

static tare_status plan_norm(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    float_row_call f;
    norm_call n;
    if (!bind_floats(b, r, &f) || tare__op_id(f.bound.op) != TARE_OP_LAYER_NORM ||
        !has_float_weights(&f.bound) || tare__norm_read(&f.bound, &n) != TARE_OK ||
        !tare__norm_is_known(&f.bound, &n))
        return TARE_OK;
    const row_step s = {.is_norm = true,
                        .count = (size_t)n.inner,
                        .weight = n.weight,
                        .bias = n.bias,
                        .eps = (float)n.eps};
    return add_rows(b, r, &tare__quantized_norm_step, s, done);
}

const step_class tare__quantized_softmax_step = {
    .name = "quantized softmax",
    .heads = heads_softmax,
    .plan = plan_softmax,
    .run = run_rows,
    .describe = describe,
    .replicate = tare__step_share,
};

const step_class tare__quantized_norm_step = {
    .name = "quantized norm",
    .heads = heads_norm,
    .plan = plan_norm,
    .run = run_rows,
    .describe = describe,
    .replicate = tare__step_share,
};
