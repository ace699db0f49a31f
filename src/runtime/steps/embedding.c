// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Rows of a table of floats, or of quantized values with parameters per row, and bags of such rows.
// Rows are anywhere in memory, so later ones are prefetched.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/rules.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

enum {
    AHEAD = 8, // rows
    LINE = 64, // bytes of a cache line
    GRAIN_ROWS = 64,
    BLOCK = 256, // columns
};

typedef struct embedding_step {
    op_call call;        // for error messages
    embedding_call rows; // indices are the plan's
    embedding_bags bags; // of rows; only for bags
    size_t y;            // buffer
} embedding_step;

typedef struct embedding_job {
    const embedding_step *s;
    const elementwise_kernels *kernels;
    float *y;
} embedding_job;

// The indices were checked before.
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

// Reads columns [first, first + count) of a row.
static void take_columns(const embedding_job *job, int64_t row, size_t first, size_t count,
                         float *y) {
    const tare_tensor *table = job->s->rows.table;
    const unsigned char *from = address_of(table, row) + first * tare_dtype_size(table->dtype);
    float scale, bias;
    if (table->q == NULL) {
        memcpy(y, from, count * sizeof *y);
        return;
    }
    tare__embedding_factors(table, row, &scale, &bias);
    job->kernels->expand(table->dtype == TARE_QINT8, scale, bias, from, count, y);
}

static void take_rows(void *user, size_t from, size_t end, size_t worker) {
    const embedding_job *job = user;
    const tare_tensor *indices = job->s->rows.indices, *table = job->s->rows.table;
    const int64_t first = (int64_t)from, last = (int64_t)end;
    (void)worker;
    for (int64_t i = first; i < last && i < first + AHEAD; i++) ask_for(table, row_at(indices, i));
    for (int64_t i = first; i < last; i++) {
        if (i + AHEAD < last) ask_for(table, row_at(indices, i + AHEAD));
        take_columns(job, row_at(indices, i), 0, (size_t)table->shape[1],
                     job->y + i * table->shape[1]);
    }
}

static tare_status run_embedding(const plan_run_state *run, void *state) {
    const embedding_step *s = state;
    const embedding_job job = {s, run->kernels->elementwise, tare__buffer_data(run, s->y)};
    const int64_t count = s->rows.indices->count;
    op_call call = s->call;
    call.err = run->err;
    for (int64_t i = 0; i < count; i++) {
        int64_t row;
        TARE_TRY(tare__embedding_row(&call, &s->rows, i, &row));
    }
    tare__parallel(tare__threads_for(run, count * s->rows.table->shape[1]), (size_t)count,
                   GRAIN_ROWS, take_rows, (void *)&job);
    return TARE_OK;
}

// --- bags ---

static void add_columns(const float *from, float share, size_t count, float *y) {
    for (size_t i = 0; i < count; i++) y[i] += from[i] * share;
}

static void max_columns(const float *from, size_t count, float *y) {
    for (size_t i = 0; i < count; i++) y[i] = from[i] > y[i] ? from[i] : y[i];
}

// `used`: rows added to the bag before this one.
static void put_row(const embedding_job *job, int64_t i, int64_t row, int64_t used, float *y) {
    const embedding_bags *b = &job->s->bags;
    const size_t width = (size_t)b->rows.table->shape[1];
    const float share = b->sample_weights != NULL ? tare__f32(b->sample_weights)[i] : 1;
    float from[BLOCK];
    for (size_t at = 0, count; at < width; at += count) {
        count = width - at < BLOCK ? width - at : BLOCK;
        take_columns(job, row, at, count, from);
        if (b->mode != BAG_MAX)
            add_columns(from, share, count, y + at);
        else if (used == 0)
            memcpy(y + at, from, count * sizeof *y);
        else
            max_columns(from, count, y + at);
    }
}

static void take_bag(const embedding_job *job, int64_t begin, int64_t end, float *y) {
    const embedding_bags *b = &job->s->bags;
    const int64_t width = b->rows.table->shape[1];
    int64_t used = 0;
    memset(y, 0, (size_t)width * sizeof *y);
    for (int64_t i = begin; i < end && i < begin + AHEAD; i++)
        ask_for(b->rows.table, row_at(b->rows.indices, i));
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = row_at(b->rows.indices, i);
        if (i + AHEAD < end) ask_for(b->rows.table, row_at(b->rows.indices, i + AHEAD));
        if (row != b->padding_index) put_row(job, i, row, used++, y);
    }
    for (int64_t k = 0; b->mode == BAG_MEAN && used > 0 && k < width; k++) y[k] /= (float)used;
}

// The number of bags of average length that contain GRAIN_ROWS rows.
static size_t grain_of(const embedding_bags *b) {
    const int64_t count = b->count * GRAIN_ROWS / (b->rows.indices->count + 1);
    return count > 1 ? (size_t)count : 1;
}

static void take_bags(void *user, size_t first, size_t last, size_t worker) {
    const embedding_job *job = user;
    const embedding_bags *b = &job->s->bags;
    op_call call = job->s->call;
    (void)worker;
    for (int64_t i = (int64_t)first; i < (int64_t)last; i++) {
        int64_t begin = 0, end = 0;
        (void)tare__embedding_bag_at(&call, b, i, &begin, &end); // was checked before
        take_bag(job, begin, end, job->y + i * b->rows.table->shape[1]);
    }
}

// Checks in the reference's order.
static tare_status check_bags(op_call *call, const embedding_bags *b) {
    for (int64_t i = 0; i < b->count; i++) {
        int64_t begin, end, row;
        TARE_TRY(tare__embedding_bag_at(call, b, i, &begin, &end));
        for (int64_t k = begin; k < end; k++)
            TARE_TRY(tare__embedding_row(call, &b->rows, k, &row));
    }
    return TARE_OK;
}

static tare_status run_bags(const plan_run_state *run, void *state) {
    const embedding_step *s = state;
    const embedding_bags *b = &s->bags;
    const embedding_job job = {s, run->kernels->elementwise, tare__buffer_data(run, s->y)};
    op_call call = s->call;
    call.err = run->err;
    TARE_TRY(check_bags(&call, b));
    tare__parallel(
        tare__threads_for(run, (b->rows.indices->count + b->count) * b->rows.table->shape[1]),
        (size_t)b->count, grain_of(b), take_bags, (void *)&job);
    return TARE_OK;
}

// --- planning ---

static void describe(const plan *p, const void *state, step_note *out) {
    const embedding_step *s = state;
    (void)p;
    out->kernel = s->rows.table->q != NULL ? "expand" : "rows";
    out->weight_bytes = tare__tensor_bytes(s->rows.table);
    tare__step_say(out, "%s",
                   s->rows.table->q != NULL ? "rows of integers become floats"
                                            : "rows of floats are copied");
}

// The table must have its data now; indices may be computed by the graph.
static bool can_run(const plan_builder *b, const plan_record *r, const embedding_call *rows) {
    return b->setting->kernels != NULL && rows->table->data != NULL &&
           tare__plan_find_value(b, rows->indices) != NOTHING &&
           b->values[r->result].tensor->count > 0;
}

static tare_status read_if_given(plan_builder *b, const tare_tensor *t) {
    size_t unused;
    if (t == NULL) return TARE_OK;
    return tare__plan_read(b, tare__plan_find_value(b, t), LAYOUT_PLAIN, &unused);
}

static tare_status start(plan_builder *b, const plan_record *r, embedding_step **out) {
    *out = tare__arena_alloc(&b->plan->memory, sizeof **out);
    if (*out == NULL) return tare__out_of_memory(b->err);
    **out = (embedding_step){.call = r->call};
    (*out)->call.err = b->err;
    return TARE_OK;
}

static bool heads_rows(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_EMBEDDING, TARE_OP_NONE};
    return tare__plan_is_quantized_op(b, r, ids);
}

static tare_status plan_rows(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    embedding_step *s;
    TARE_TRY(start(b, r, &s));
    TARE_TRY(tare__embedding_read(&s->call, &s->rows));
    if (!can_run(b, r, &s->rows)) return TARE_OK;
    TARE_TRY(read_if_given(b, s->rows.indices));
    TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y));
    *done = true;
    return tare__plan_add_step(b, &tare__embedding_step, s, r->node);
}

static bool heads_bags(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_EMBEDDING_BAG, TARE_OP_NONE};
    return tare__plan_is_quantized_op(b, r, ids);
}

static tare_status plan_bags(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    embedding_step *s;
    TARE_TRY(start(b, r, &s));
    TARE_TRY(tare__embedding_bags_read(&s->call, &s->bags));
    s->rows = s->bags.rows;
    if (!can_run(b, r, &s->rows)) return TARE_OK;
    TARE_TRY(read_if_given(b, s->rows.indices));
    TARE_TRY(read_if_given(b, s->bags.offsets));
    TARE_TRY(read_if_given(b, s->bags.sample_weights));
    TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y));
    *done = true;
    return tare__plan_add_step(b, &tare__embedding_bag_step, s, r->node);
}

const step_class tare__embedding_step = {
    .name = "embedding",
    .heads = heads_rows,
    .plan = plan_rows,
    .run = run_embedding,
    .describe = describe,
};

const step_class tare__embedding_bag_step = {
    .name = "embedding bag",
    .heads = heads_bags,
    .plan = plan_bags,
    .run = run_bags,
    .describe = describe,
};
