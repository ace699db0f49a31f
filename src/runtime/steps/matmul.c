// SPDX-License-Identifier: Apache-2.0
// Products of two float tensors by a library's kernels. Threads divide the matrices, or row blocks
// if there are few.
#include <stdatomic.h>

#include "dnnl/float_layers.h"
#include "ops/layer_call.h"
#include "runtime/kernels/scratch.h"
#include "runtime/plan/records.h"
#include "runtime/steps/matrices.h"
#include "runtime/steps/steps.h"

typedef struct matmul_step {
    matmul_call call; // its tensors are the plan's
    matrices a, b;
    size_t y; // buffer
    int64_t count;
} matmul_step;

// Fewer are finished before another thread has woken up.
enum { LEAST_SHARED_MACS = 1 << 18 };

typedef struct matmul_run {
    const plan_run_state *run;
    const matmul_step *s;
    atomic_int status;
} matmul_run;

// Computes rows [first, end) of a product.
static tare_status multiply(const matmul_run *r, int64_t matrix, int64_t first, int64_t end) {
    const matmul_step *s = r->s;
    const matmul_call *m = &s->call;
    const int64_t a = tare__strided_offset(m->batch_ndim, m->batch, m->a_stride, matrix);
    const int64_t b = tare__strided_offset(m->batch_ndim, m->batch, m->b_stride, matrix);
    const float_block block = {.rows = end - first,
                               .inner = m->inner,
                               .columns = m->columns,
                               .x_step = s->a.row_step,
                               .w_step = s->b.row_step,
                               .y_step = m->columns,
                               .scale = 1.0F};
    float *y = tare__buffer_data(r->run, s->y);
    return tare__float_layers_multiply(r->run->plan->setting.layers, &block,
                                       tare__matrix_at(r->run, &s->a, a) + first * s->a.row_step,
                                       tare__matrix_at(r->run, &s->b, b),
                                       y + (matrix * m->rows + first) * m->columns, NULL);
}

static void multiply_rows(void *user, size_t matrix, size_t first, size_t end, size_t worker) {
    matmul_run *r = user;
    (void)worker;
    const tare_status status = multiply(r, (int64_t)matrix, (int64_t)first, (int64_t)end);
    if (status != TARE_OK) atomic_store(&r->status, (int)status);
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
    tare__parallel_nest(pool, count, rows, grain, multiply_rows, &r);
    const tare_status status = (tare_status)atomic_load(&r.status);
    return status == TARE_OK ? TARE_OK : tare__fail(run->err, status, "a product of floats failed");
}

static void describe_matmul(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    out->kernel = "sgemm";
    out->bits_may_differ = true;
    tare__step_say(out, "float: oneDNN; bits may differ between machines");
}

// *done is false if it is no matrix product.
static tare_status plan_product(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    op_call call = r->call;
    matmul_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    call.err = b->err;
    TARE_TRY(tare__matmul_read(&call, &s->call));
    const matmul_call *m = &s->call;
    if (m->a->ndim < 2 || m->b->ndim < 2 || m->inner == 0) return TARE_OK;
    s->count = b->values[r->result].tensor->count / (m->rows * m->columns);
    TARE_TRY(tare__plan_read_matrices(b, m->a, &s->a));
    TARE_TRY(tare__plan_read_matrices(b, m->b, &s->b));
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
    if (b->setting->layers == NULL)
        return tare__plan_decline(b, "float: no library computes products here");
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
