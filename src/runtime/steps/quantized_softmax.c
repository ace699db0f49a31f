// SPDX-License-Identifier: Apache-2.0
// Softmax over the last dimension of byte codes: a line becomes floats, passes the kernel of float
// lines, and is codes again.
#include <string.h>

#include "ops/quantized/layer.h"
#include "ops/quantized/rule.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

enum { LINES_PER_PART = 16, FEW_ELEMENTS = 8 }; // shorter lines are left to the reference

typedef struct code_lines {
    size_t x, y, scratch; // places; a line of floats for each thread
    size_t lines, count;  // elements of a line
    code_scheme from, to;
} code_lines;

typedef struct lines_run {
    const plan_run_state *run;
    const code_lines *s;
} lines_run;

static void run_part(void *user, size_t part, size_t worker) {
    const lines_run *r = user;
    const code_lines *s = r->s;
    const fast_context *fast = r->run->fast;
    const size_t first = part * LINES_PER_PART, left = s->lines - first;
    const size_t end = first + (left < LINES_PER_PART ? left : LINES_PER_PART);
    float *line = (float *)tare__place_data(r->run, s->scratch) + worker * s->count;
    for (size_t i = first; i < end; i++) {
        const uint8_t *x = (const uint8_t *)tare__place_data(r->run, s->x) + i * s->count;
        uint8_t *y = (uint8_t *)tare__place_data(r->run, s->y) + i * s->count;
        fast->elementwise->dequantize(&s->from, x, s->count, line);
        fast->lines->softmax(line, s->count, line);
        fast->elementwise->quantize(&s->to, line, s->count, y);
    }
}

static tare_status run_lines(const plan_run_state *run, void *state) {
    const code_lines *s = state;
    lines_run r = {run, s};
    tare__thread_pool_run(tare__threads_for(run, (int64_t)(s->lines * s->count)),
                          tare__ceil_div(s->lines, LINES_PER_PART), run_part, &r);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    (void)p;
    (void)state;
    tare__step_say(out, "codes of a line become floats, their softmax, and codes again");
}

// --- planning ---

static bool read_softmax(op_call *call, int ndim) {
    int dim = 0;
    return tare__call_given(call, 1) && !tare__call_given(call, 3) &&
           tare__call_dim(call, 1, 0, ndim, &dim) == TARE_OK && dim == ndim - 1;
}

static bool reads_softmax(const plan_record *r, const tare_tensor *x) {
    op_call call = r->call, bound;
    module_rule rule = {0};
    tare_tensor like = *x; // nobody looks at its data
    like.dtype = TARE_FLOAT32;
    like.q = NULL;
    const value v = {.kind = VALUE_TENSOR, .as.tensor = &like};
    bool known = false;
    call.err = NULL;
    if (tare__rule_bind(&call, &rule, &bound, &known) != TARE_OK || !known || rule.rule.relu)
        return false;
    bound.param[0] = &v;
    return tare__op_id(bound.op) == TARE_OP_SOFTMAX && read_softmax(&bound, x->ndim);
}

static bool heads(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_QUANTIZED_SOFTMAX, TARE_OP_NONE};
    return tare__plan_is_quantized_op(b, r, ids);
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    const tare_tensor *x = tare__plan_quantized_input(r), *y = b->values[r->result].tensor;
    const size_t threads = tare__thread_count(b->setting->fast->space.pool);
    if (x == NULL || x->ndim < 1 || !tare__is_byte_quantized(x) || !tare__is_byte_quantized(y) ||
        tare__plan_find_value(b, x) == NOTHING || x->shape[x->ndim - 1] < FEW_ELEMENTS)
        return TARE_OK;
    code_lines *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (code_lines){.count = (size_t)x->shape[x->ndim - 1],
                      .from = tare__code_scheme_of(x),
                      .to = tare__code_scheme_of(y)};
    if (y->count == 0 || !reads_softmax(r, x)) return TARE_OK;
    s->lines = (size_t)y->count / s->count;
    TARE_TRY(tare__plan_read(b, tare__plan_find_value(b, x), LAYOUT_PLAIN, &s->x));
    TARE_TRY(tare__plan_new_scratch(b, threads * s->count * sizeof(float), &s->scratch));
    TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y));
    *done = true;
    return tare__plan_add_step(b, &tare__quantized_softmax_step, s, r->node);
}

const step_class tare__quantized_softmax_step = {
    .name = "code softmax",
    .heads = heads,
    .plan = plan_chain,
    .run = run_lines,
    .describe = describe,
    .replicate = tare__step_share,
};
