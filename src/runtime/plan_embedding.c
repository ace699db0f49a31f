// SPDX-License-Identifier: Apache-2.0
// Rows of a table, of floats or of codes with parameters for each row. Rows lie anywhere in memory,
// so that some are asked for ahead.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/rules.h"
#include "runtime/plan_steps.h"

enum {
    AHEAD = 8, // rows
    LINE = 64, // bytes of a cache line
    ROWS_PER_PART = 64,
};

typedef struct embedding_step {
    op_call call;        // for messages
    embedding_call rows; // indices are the plan's
    size_t y;            // place
} embedding_step;

typedef struct embedding_job {
    const embedding_step *s;
    const elementwise_kernels *kernels;
    float *y;
} embedding_job;

// Indices have been checked.
static int64_t row_at(const tare_tensor *indices, int64_t i) {
    return indices->dtype == TARE_INT64 ? ((const int64_t *)indices->data)[i]
                                        : ((const int32_t *)indices->data)[i];
}

static const unsigned char *address_of(const tare_tensor *table, int64_t row) {
    const size_t bytes = (size_t)table->shape[1] * tare_dtype_size(table->dtype);
    return (const unsigned char *)table->data + (size_t)row * bytes;
}

static void ask_for(const tare_tensor *table, int64_t row) {
    const unsigned char *at = address_of(table, row);
    const size_t bytes = (size_t)table->shape[1] * tare_dtype_size(table->dtype);
    for (size_t i = 0; i < bytes; i += LINE) __builtin_prefetch(at + i);
    if (table->q == NULL) return;
    __builtin_prefetch(&table->q->scale[row]);
    __builtin_prefetch(&table->q->zero_point[row]);
}

static void take_row(const embedding_job *job, int64_t row, float *y) {
    const tare_tensor *table = job->s->rows.table;
    const size_t width = (size_t)table->shape[1];
    float scale, bias;
    if (table->q == NULL) {
        memcpy(y, address_of(table, row), width * sizeof *y);
        return;
    }
    tare__embedding_factors(table, row, &scale, &bias);
    job->kernels->expand(table->dtype == TARE_QINT8, scale, bias, address_of(table, row), width, y);
}

static void run_part(void *user, size_t part, size_t worker) {
    const embedding_job *job = user;
    const tare_tensor *indices = job->s->rows.indices, *table = job->s->rows.table;
    const int64_t first = (int64_t)part * ROWS_PER_PART, left = indices->count - first;
    const int64_t last = first + (left < ROWS_PER_PART ? left : ROWS_PER_PART);
    (void)worker;
    for (int64_t i = first; i < last && i < first + AHEAD; i++) ask_for(table, row_at(indices, i));
    for (int64_t i = first; i < last; i++) {
        if (i + AHEAD < last) ask_for(table, row_at(indices, i + AHEAD));
        take_row(job, row_at(indices, i), job->y + i * table->shape[1]);
    }
}

static tare_status run_embedding(const plan_run_state *run, void *state) {
    const embedding_step *s = state;
    const embedding_job job = {s, run->fast->elementwise, tare__place_data(run, s->y)};
    const int64_t count = s->rows.indices->count;
    op_call call = s->call;
    call.err = run->err;
    for (int64_t i = 0; i < count; i++) {
        int64_t row;
        TARE_TRY(tare__embedding_row(&call, &s->rows, i, &row));
    }
    tare__thread_pool_run(tare__threads_for(run, count * s->rows.table->shape[1]),
                          tare__ceil_div((size_t)count, ROWS_PER_PART), run_part, (void *)&job);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const embedding_step *s = state;
    (void)p;
    out->kernel = s->rows.table->q != NULL ? "expand" : "rows";
    out->weight_bytes = tare__tensor_bytes(s->rows.table);
    tare__step_say(out, "%s",
                   s->rows.table->q != NULL ? "rows of codes become floats"
                                            : "rows of floats are copied");
}

static const step_class embedding_class = {"embedding", run_embedding, NULL, describe};

tare_status tare__plan_embedding(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    embedding_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    size_t unused;
    if (s == NULL) return tare__out_of_memory(b->err);
    s->call = r->call;
    s->call.err = b->err;
    TARE_TRY(tare__embedding_read(&s->call, &s->rows));
    const size_t indices = tare__plan_find_value(b, s->rows.indices);
    if (b->setting->fast == NULL || indices == NOTHING || s->rows.table->data == NULL ||
        b->values[r->result].tensor->count == 0)
        return TARE_OK;
    TARE_TRY(tare__plan_read(b, indices, LAYOUT_PLAIN, &unused));
    TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y));
    *done = true;
    return tare__plan_add_step(b, &embedding_class, s, r->node);
}
