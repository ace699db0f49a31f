// SPDX-License-Identifier: Apache-2.0
// Attention that the graph writes out: scores of queries and keys, scaled and masked, softmax, and
// the product with the values. One step computes it matrix by matrix, so that the scores stay in
// the cache of their thread.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/rules.h"
#include "runtime/plan/records.h"
#include "runtime/steps/matrices.h"
#include "runtime/steps/steps.h"

// The records of such a chain; NOTHING: absent.
typedef struct written {
    size_t qk, scale, mask, weights, pv, swap;
} written;

// A product with, or a quotient by, a number.
typedef struct score_scale {
    float number;
    bool divides;
} score_scale;

typedef struct scores_step {
    matrices q, k, v, y;
    int64_t count;
    score_scale scale;
    size_t scratch; // buffer: memory of each thread
    size_t mask;    // buffer; NOTHING: none
    attention_products products;
    row_call weights;
    int batch_ndim;
    int64_t batch[TARE_MAX_DIMS], mask_stride[TARE_MAX_DIMS]; // over the dimensions of the scores
} scores_step;

// --- recognition ---

static const tare_tensor *operand(const plan_record *r, size_t i) {
    const value *v = i < r->call.param_count ? r->call.param[i] : NULL;
    return v != NULL && v->kind == VALUE_TENSOR ? v->as.tensor : NULL;
}

// True for a batched product without broadcasting.
static bool is_product(const plan_builder *b, const plan_record *r) {
    const tare_tensor *x = operand(r, 0), *w = operand(r, 1);
    if (!tare__record_is(r, TARE_OP_MATMUL) || !tare__plan_is_float(b, r) || x == NULL ||
        w == NULL || x == w)
        return false;
    return x->ndim > 2 && x->ndim == w->ndim && x->count > 0 && w->count > 0 &&
           memcmp(x->shape, w->shape, (size_t)(x->ndim - 2) * sizeof *x->shape) == 0;
}

static bool read_scale(const plan_record *r, score_scale *out) {
    op_call call = r->call;
    double number = 0;
    call.err = NULL;
    if ((!tare__record_is(r, TARE_OP_MUL) && !tare__record_is(r, TARE_OP_DIV)) ||
        !tare__plan_is_binary(r) || r->input_count != 1 || operand(r, 0) == NULL ||
        operand(r, 1) != NULL || tare__call_double(&call, 1, 1, &number) != TARE_OK || number == 0)
        return false;
    *out = (score_scale){(float)number, tare__record_is(r, TARE_OP_DIV)};
    return true;
}

static const tare_tensor *mask_of(const plan_record *r, const tare_tensor *scores) {
    return operand(r, 0) == scores ? operand(r, 1) : operand(r, 0);
}

static bool adds_mask(const plan_builder *b, const plan_record *r, const tare_tensor *scores) {
    if (!tare__record_is(r, TARE_OP_ADD) || !tare__plan_is_binary(r) || r->input_count != 2)
        return false;
    const tare_tensor *mask = mask_of(r, scores);
    return mask != NULL && tare__same_shape(b->values[r->result].tensor, scores);
}

static const tare_tensor *result_of(const plan_builder *b, size_t record) {
    return b->values[b->records[record].result].tensor;
}

// Reads the function of rows of scores, which is softmax in attention.
static bool read_weights(const plan_record *r, const tare_tensor *scores, row_call *out) {
    op_call call = r->call;
    call.err = NULL;
    return call.op->row_function != NULL && call.op->row_function(&call, out) == TARE_OK &&
           out->run != NULL && tare__row_call_is_in_place(out) && out->x == scores &&
           out->count == scores->shape[scores->ndim - 1];
}

static bool read_written(const plan_builder *b, size_t head, written *out) {
    written w = {head, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING};
    score_scale unused;
    row_call weights;
    size_t last = head, next = tare__plan_only_reader(b, head);
    if (next != NOTHING && read_scale(&b->records[next], &unused)) {
        w.scale = last = next;
        next = tare__plan_only_reader(b, last);
    }
    if (next != NOTHING && adds_mask(b, &b->records[next], result_of(b, last))) {
        w.mask = last = next;
        next = tare__plan_only_reader(b, last);
    }
    if (next == NOTHING || !read_weights(&b->records[next], result_of(b, last), &weights))
        return false;
    w.weights = next;
    w.pv = tare__plan_only_reader(b, next);
    if (w.pv == NOTHING || !is_product(b, &b->records[w.pv]) ||
        operand(&b->records[w.pv], 0) != result_of(b, w.weights))
        return false;
    next = tare__plan_only_reader(b, w.pv);
    if (next != NOTHING && tare__plan_swaps_heads(b, &b->records[next])) w.swap = next;
    *out = w;
    return true;
}

static bool heads(const plan_builder *b, const plan_record *r) {
    return is_product(b, r);
}

static bool extend(plan_builder *b, size_t head) {
    written w;
    size_t last = head;
    if (!read_written(b, head, &w)) return false;
    const size_t all[] = {w.scale, w.mask, w.weights, w.pv, w.swap};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] != NOTHING) tare__plan_append(b, head, &last, all[i]);
    return true;
}

// Reads the joined chain from the records.
static written read_chain(const plan_builder *b, size_t head) {
    written w = {head, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING};
    for (size_t i = b->records[head].next; i != NOTHING; i = b->records[i].next) {
        const plan_record *r = &b->records[i];
        if (r->call.op->row_function != NULL)
            w.weights = i;
        else if (tare__record_is(r, TARE_OP_MATMUL))
            w.pv = i;
        else if (w.pv != NOTHING)
            w.swap = i;
        else if (tare__record_is(r, TARE_OP_ADD))
            w.mask = i;
        else
            w.scale = i;
    }
    return w;
}

// --- running ---

typedef struct scores_run {
    const plan_run_state *run;
    const scores_step *s;
    _Atomic bool failed;
} scores_run;

static void add_mask(const plan_run_state *run, const scores_step *s, int64_t matrix, int64_t query,
                     float *row) {
    const int n = s->batch_ndim;
    const float *mask = tare__buffer_data(run, s->mask);
    mask += tare__strided_offset(n, s->batch, s->mask_stride, matrix) + query * s->mask_stride[n];
    if (s->mask_stride[n + 1] != 0)
        run->kernels->rows->functions.add(mask, (size_t)s->products.keys, row);
    else
        for (int64_t i = 0; i < s->products.keys; i++) row[i] += *mask;
}

// Computes the weights of queries [first, end) from their scores.
static void weigh(const scores_run *r, int64_t i, int64_t first, int64_t end, float *scores) {
    const scores_step *s = r->s;
    const row_functions *k = &r->run->kernels->rows->functions;
    for (int64_t q = first; q < end; q++, scores += s->products.keys) {
        if (s->scale.divides)
            k->divide(scores, (size_t)s->products.keys, s->scale.number, scores);
        else if (s->scale.number != 1)
            k->scale_shift(scores, (size_t)s->products.keys, s->scale.number, 0.0F, scores);
        if (s->mask != NOTHING) add_mask(r->run, s, i, q, scores);
        s->weights.run(&s->weights, k, scores, scores);
    }
}

static tare_status attend(const scores_run *r, int64_t i, int64_t first, int64_t end,
                          float *memory) {
    const scores_step *s = r->s;
    const query_block block = {.q = i, .k = i, .v = i, .first = first, .end = end};
    TARE_TRY(tare__attention_score(r->run, &s->products, &s->q, &s->k, &block, memory));
    weigh(r, i, first, end, tare__scores_in(memory));
    return tare__attention_mix(r->run, &s->products, &s->v, &s->y, &block, memory);
}

static void attend_some(void *user, size_t i, size_t first, size_t end, size_t worker) {
    scores_run *r = user;
    unsigned char *memory = tare__buffer_data(r->run, r->s->scratch);
    memory += worker * r->s->products.thread_bytes;
    if (attend(r, (int64_t)i, (int64_t)first, (int64_t)end, (float *)(void *)memory) != TARE_OK)
        r->failed = true;
}

static tare_status run_scores(const plan_run_state *run, void *state) {
    const scores_step *s = state;
    scores_run r = {.run = run, .s = s};
    tare__parallel_nest(tare__threads_for(run, s->count * s->products.queries * s->products.keys),
                        (size_t)s->count, (size_t)s->products.queries, s->products.query_block,
                        attend_some, &r);
    return r.failed ? tare__out_of_memory(run->err) : TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const scores_step *s = state;
    out->macs = s->count * s->products.queries * s->products.keys *
                (s->products.width + s->products.value_width);
    tare__describe_float_products(p, tare__products_call_library(&s->products),
                                  ": attention as it is written out", out);
}

// --- planning ---

static tare_status place_mask(plan_builder *b, const written *w, scores_step *s) {
    s->mask = NOTHING;
    if (w->mask == NOTHING) return TARE_OK;
    const size_t before = w->scale != NOTHING ? w->scale : w->qk;
    const tare_tensor *scores = result_of(b, before);
    const tare_tensor *mask = mask_of(&b->records[w->mask], scores);
    tare__broadcast_strides(mask, scores->ndim, scores->shape, s->mask_stride);
    return tare__plan_read(b, tare__plan_find_value(b, mask), LAYOUT_PLAIN, &s->mask);
}

static void read_sizes(const tare_tensor *q, const tare_tensor *k, const tare_tensor *y,
                       scores_step *s) {
    s->batch_ndim = q->ndim - 2;
    memcpy(s->batch, q->shape, sizeof s->batch);
    s->products.queries = q->shape[q->ndim - 2];
    s->products.width = q->shape[q->ndim - 1];
    s->products.keys = k->shape[k->ndim - 1];
    s->products.value_width = y->shape[y->ndim - 1];
    s->count = q->count / (s->products.queries * s->products.width);
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *qk = &b->records[head];
    if (qk->next == NOTHING) return TARE_OK; // a single product
    const written w = read_chain(b, head);
    const plan_record *pv = &b->records[w.pv];
    const tare_tensor *y = b->values[pv->result].tensor;
    const size_t result = w.swap != NOTHING ? b->records[w.swap].result : pv->result;
    scores_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (scores_step){.scale = {.number = 1}};
    read_sizes(operand(qk, 0), operand(qk, 1), y, s);
    if (w.scale != NOTHING) (void)read_scale(&b->records[w.scale], &s->scale);
    const size_t scored = w.mask != NOTHING ? w.mask : w.scale != NOTHING ? w.scale : w.qk;
    (void)read_weights(&b->records[w.weights], result_of(b, scored), &s->weights);
    TARE_TRY(tare__plan_read_matrices(b, operand(qk, 0), &s->q));
    TARE_TRY(tare__plan_read_matrices(b, operand(qk, 1), &s->k));
    TARE_TRY(tare__plan_read_matrices(b, operand(pv, 1), &s->v));
    TARE_TRY(place_mask(b, &w, s));
    if (!tare__attention_products_init(&s->products, b->setting->layers != NULL))
        return tare__out_of_memory(b->err);
    TARE_TRY(tare__plan_thread_scratch(b, s->products.thread_bytes, &s->scratch));
    s->y = tare__plan_describe_matrices(y, w.swap != NOTHING);
    *done = true;
    TARE_TRY(tare__plan_write(b, result, LAYOUT_PLAIN, &s->y.buffer));
    return tare__plan_add_step(b, &tare__scores_step, s, qk->node);
}

const step_class tare__scores_step = {
    .name = "attention",
    .heads = heads,
    .extend = extend,
    .plan = plan_chain,
    .run = run_scores,
    .describe = describe,
    .replicate = tare__step_share,
};
