// SPDX-License-Identifier: Apache-2.0
// Products of float tensors. Of two tensors: threads divide the matrices, or
// row blocks if there are few. Of groups of rows with a matrix each, as in a mixture of experts:
// threads take groups.
#include <stdio.h>
#include <string.h>

#include "ops/layer_call.h"
#include "runtime/kernels/scratch.h"
#include "runtime/plan/records.h"
#include "runtime/steps/matrices.h"
#include "runtime/steps/steps.h"

typedef struct matmul_step {
    matmul_call call; // its tensors are the plan's
    matrices a, b;
    size_t y, scratch; // buffers; that of scratch has FLOAT_BLOCK_MEMORY floats for each thread
    int64_t count;
    bool by_library;
} matmul_step;

// Fewer are finished before another thread has woken up.
enum { LEAST_SHARED_MACS = 1 << 18 };

typedef struct matmul_run {
    const plan_run_state *run;
    const matmul_step *s;
    _Atomic bool failed;
} matmul_run;

// Computes rows [first_row, end) of a product.
static void multiply(void *user, size_t product, size_t first_row, size_t end, size_t worker) {
    matmul_run *r = user;
    const matmul_step *s = r->s;
    const int64_t matrix = (int64_t)product, first = (int64_t)first_row;
    const matmul_call *m = &s->call;
    const int64_t a = tare__strided_offset(m->batch_ndim, m->batch, m->a_stride, matrix);
    const int64_t b = tare__strided_offset(m->batch_ndim, m->batch, m->b_stride, matrix);
    const float_block block = {.rows = (int64_t)end - first,
                               .inner = m->inner,
                               .columns = m->columns,
                               .x_step = s->a.row_step,
                               .w_step = s->b.row_step,
                               .y_step = m->columns};
    float *y = tare__buffer_data(r->run, s->y), *memory = tare__buffer_data(r->run, s->scratch);
    const float_multiplier multiplier =
        tare__multiplier_of(r->run, s->by_library, memory + worker * FLOAT_BLOCK_MEMORY);
    if (tare__float_block_multiply(&multiplier, &block,
                                   tare__matrix_at(r->run, &s->a, a) + first * s->a.row_step,
                                   tare__matrix_at(r->run, &s->b, b),
                                   y + (matrix * m->rows + first) * m->columns) != TARE_OK)
        r->failed = true;
}

static tare_status run_matmul(const plan_run_state *run, void *state) {
    const matmul_step *s = state;
    const matmul_call *m = &s->call;
    const double macs = (double)s->count * (double)m->rows * (double)m->inner * (double)m->columns;
    thread_pool *pool = macs >= LEAST_SHARED_MACS ? run->kernels->space.pool : NULL;
    const size_t threads = tare__thread_count(pool), count = (size_t)s->count;
    const size_t rows = (size_t)m->rows,
                 grain = count < threads ? tare__share(rows, threads, 1) : rows;
    matmul_run r = {.run = run, .s = s};
    tare__parallel_nest(pool, count, rows, grain, multiply, &r);
    return r.failed ? tare__out_of_memory(run->err) : TARE_OK;
}

static void describe_matmul(const plan *p, const void *state, step_note *out) {
    const matmul_step *s = state;
    tare__describe_float_products(p, s->by_library, NULL, out);
}

// *done is false if it is no matrix product.
static tare_status plan_product(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    op_call call = r->call;
    matmul_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    call.err = b->err;
    TARE_TRY(tare__matmul_read(&call, &s->call));
    tare__matmul_join_batch(&s->call);
    const matmul_call *m = &s->call;
    if (m->a->ndim < 2 || m->b->ndim < 2 || m->inner == 0) return TARE_OK;
    s->count = b->values[r->result].tensor->count / (m->rows * m->columns);
    s->by_library =
        b->setting->layers != NULL && !tare__float_product_is_small(m->rows, m->inner, m->columns);
    TARE_TRY(tare__plan_read_matrices(b, m->a, &s->a));
    TARE_TRY(tare__plan_read_matrices(b, m->b, &s->b));
    TARE_TRY(tare__plan_thread_scratch(b, FLOAT_BLOCK_MEMORY * sizeof(float), &s->scratch));
    TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y));
    *done = true;
    return tare__plan_add_step(b, &tare__matmul_step, s, r->node);
}

static bool heads(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_MATMUL, TARE_OP_NONE};
    return tare__plan_is_float_op(b, r, ids);
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    if (b->records[head].next != NOTHING) return TARE_OK;
    return plan_product(b, head, done);
}

const step_class tare__matmul_step = {
    .name = "matmul",
    .heads = heads,
    .plan = plan_chain,
    .run = run_matmul,
    .describe = describe_matmul,
    .replicate = tare__step_share,
};

// --- groups of rows ---

typedef struct groups_step {
    op_call call; // for error messages
    grouped_mm_call groups;
    size_t x, w, ends, y, scratch; // buffers; of scratch: FLOAT_BLOCK_MEMORY floats for each thread
} groups_step;

typedef struct groups_run {
    const plan_run_state *run;
    const groups_step *s;
    const tare_tensor *ends; // with the data of this run
    _Atomic bool failed;
} groups_run;

static int64_t begin_of(const groups_run *r, size_t e) {
    return e > 0 ? tare__tensor_get_int(r->ends, (int64_t)e - 1) : 0;
}

static void multiply_some(void *user, size_t first, size_t end, size_t worker) {
    groups_run *r = user;
    const groups_step *s = r->s;
    const int64_t inner = s->groups.w->shape[1], columns = s->groups.w->shape[2];
    const bool has_library = r->run->plan->setting.layers != NULL;
    float *memory = tare__buffer_data(r->run, s->scratch);
    for (size_t e = first; e < end; e++) {
        const int64_t from = begin_of(r, e), rows = begin_of(r, e + 1) - from;
        const float_block block = {.rows = rows,
                                   .inner = inner,
                                   .columns = columns,
                                   .x_step = inner,
                                   .w_step = columns,
                                   .y_step = columns};
        const float_multiplier multiplier = tare__multiplier_of(
            r->run, has_library && !tare__float_product_is_small(rows, inner, columns),
            memory + worker * FLOAT_BLOCK_MEMORY);
        if (rows == 0) continue;
        if (tare__float_block_multiply(
                &multiplier, &block, (const float *)tare__buffer_data(r->run, s->x) + from * inner,
                (const float *)tare__buffer_data(r->run, s->w) + (int64_t)e * inner * columns,
                (float *)tare__buffer_data(r->run, s->y) + from * columns) != TARE_OK)
            r->failed = true;
    }
}

// Rows after the last group are set to 0.
static void clear_rest(const groups_run *r, size_t groups) {
    const int64_t columns = r->s->groups.w->shape[2], from = begin_of(r, groups);
    float *y = tare__buffer_data(r->run, r->s->y);
    memset(y + from * columns, 0,
           (size_t)((r->s->groups.x->shape[0] - from) * columns) * sizeof *y);
}

static tare_status run_groups(const plan_run_state *run, void *state) {
    const groups_step *s = state;
    const grouped_mm_call *g = &s->groups;
    const size_t count = (size_t)g->ends->count;
    tare_tensor ends = *g->ends;
    grouped_mm_call now = *g;
    op_call call = s->call;
    call.err = run->err;
    ends.data = tare__buffer_data(run, s->ends);
    now.ends = &ends;
    for (int64_t e = 0, from = 0, end; e < g->ends->count; e++, from = end)
        TARE_TRY(tare__grouped_mm_end(&call, &now, e, from, &end));
    groups_run r = {.run = run, .s = s, .ends = &ends};
    tare__parallel(tare__threads_for(run, g->x->count * g->w->shape[2]), count, 1, multiply_some,
                   &r);
    clear_rest(&r, count);
    return r.failed ? tare__out_of_memory(run->err) : TARE_OK;
}

static void describe_groups(const plan *p, const void *state, step_note *out) {
    const groups_step *s = state;
    char what[48];
    (void)snprintf(what, sizeof what, ", %lld groups of rows", (long long)s->groups.ends->count);
    tare__describe_float_products(p, p->setting.layers != NULL, what, out);
}

static bool heads_groups(const plan_builder *b, const plan_record *r) {
    (void)b;
    return tare__record_is(r, TARE_OP_GROUPED_MM) && r->result != NOTHING && !r->is_observer;
}

static tare_status plan_groups(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    op_call call = r->call;
    groups_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    call.err = b->err;
    call.memory = &b->scratch;
    TARE_TRY(tare__grouped_mm_read(&call, &s->groups));
    const grouped_mm_call *g = &s->groups;
    const size_t x = tare__plan_find_value(b, g->x), w = tare__plan_find_value(b, g->w);
    const size_t ends = tare__plan_find_value(b, g->ends);
    if (x == NOTHING || w == NOTHING || ends == NOTHING || g->x->count == 0 || g->w->count == 0)
        return tare__plan_decline_operator(b);
    s->call = r->call;
    TARE_TRY(tare__plan_read(b, x, LAYOUT_PLAIN, &s->x));
    TARE_TRY(tare__plan_read(b, w, LAYOUT_PLAIN, &s->w));
    TARE_TRY(tare__plan_read(b, ends, LAYOUT_PLAIN, &s->ends));
    TARE_TRY(tare__plan_thread_scratch(b, FLOAT_BLOCK_MEMORY * sizeof(float), &s->scratch));
    TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y));
    *done = true;
    return tare__plan_add_step(b, &tare__matmul_groups_step, s, r->node);
}

const step_class tare__matmul_groups_step = {
    .name = "matmul groups",
    .heads = heads_groups,
    .plan = plan_groups,
    .run = run_groups,
    .describe = describe_groups,
    .replicate = tare__step_share,
};
