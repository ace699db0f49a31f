// SPDX-License-Identifier: Apache-2.0
// Attention of floats and of quantized values. Queries, keys and values are mostly projections
// [batch][length][heads][width] that the graph transposes to put heads before length, and so is the
// result: these transpositions are not copied, but read and written in place.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "runtime/gemm/quantized_attention.h"
#include "runtime/kernels/schemes.h"
#include "runtime/plan/records.h"
#include "runtime/steps/matrices.h"
#include "runtime/steps/steps.h"

typedef struct attention_step {
    attention_call call; // its tensors are the plan's; the mask's address is set in every run
    matrices q, k, v, y;
    size_t k_scales,
        v_scales;        // buffers, if k and v are int8 times a scale for each row; else NOTHING
    size_t mask;         // buffer, if there is a mask
    size_t scratch;      // buffer: memory of each thread
    size_t thread_bytes; // of it
    int64_t count;       // number of q's matrices
    attention_products products; // of floats
    attention_quantized quantized;
} attention_step;

static uint8_t *quantized_at(const plan_run_state *run, const matrices *m, int64_t i) {
    return (uint8_t *)tare__buffer_data(run, m->buffer) + tare__matrix_offset(m, i);
}

typedef struct attention_run {
    const plan_run_state *run;
    attention_step s; // with the mask of this run
    tare_tensor mask;
    _Atomic bool failed;
} attention_run;

// Replicas read masks from buffers of their own, so the shared call cannot hold the address.
static void begin_run(attention_run *r, const plan_run_state *run, const attention_step *s) {
    r->run = run;
    r->s = *s;
    r->s.quantized.call = &r->s.call;
    r->failed = false;
    if (s->call.mask == NULL) return;
    r->mask = *s->call.mask;
    r->mask.data = tare__buffer_data(run, s->mask);
    r->s.call.mask = &r->mask;
}

static unsigned char *scratch_of(const attention_run *r, size_t worker) {
    return (unsigned char *)tare__buffer_data(r->run, r->s.scratch) + worker * r->s.thread_bytes;
}

static tare_status attend(const attention_run *r, int64_t i, int64_t first, int64_t end,
                          float *memory) {
    const attention_step *s = &r->s;
    const attention_call *a = &s->call;
    const row_functions *k = &r->run->kernels->rows->functions;
    const attention_offsets at = tare__attention_offsets_of(a, i);
    const query_block block = {.q = i, .k = at.k, .v = at.v, .first = first, .end = end};
    float *scores = tare__scores_in(memory);
    if (a->queries == 1) // as the reference does
        k->dots(tare__matrix_at(r->run, &s->q, i), tare__matrix_at(r->run, &s->k, at.k),
                (size_t)a->width, (size_t)a->keys, (size_t)s->k.row_step, scores);
    else
        TARE_TRY(tare__attention_score(r->run, &s->products, &s->q, &s->k, &block, memory));
    tare__attention_weigh(a, &at, first, end, k, scores);
    return tare__attention_mix(r->run, &s->products, &s->v, &s->y, &block, memory);
}

// With one query the products are of single rows, whose keys need no transposition.
static bool takes_one_query(const attention_call *a) {
    return a->queries == 1 && a->value_width <= PANEL_COLUMNS && a->value_width % PANEL_STEP == 0;
}
static bool is_one_query(const attention_step *s) {
    return takes_one_query(&s->call) && s->v.row_step == s->call.value_width;
}

// Queries of one row that share a matrix of keys: those of up to MOST_HEADS heads.
enum { MOST_HEADS = 4 };
static int64_t heads_of(const attention_step *s) {
    const int64_t group = s->call.group;
    return group < MOST_HEADS ? group : MOST_HEADS;
}

static int64_t units_of(const attention_step *s) {
    const int64_t group = s->call.group, heads = heads_of(s);
    return s->count / group * ((group + heads - 1) / heads);
}

// The floats of a matrix of keys or values. int8 values are multiplied by their rows' scales.
static const float *floats_of(const plan_run_state *run, const matrices *m, size_t scales,
                              int64_t matrix, int64_t width, int64_t rows, float *room) {
    if (scales == NOTHING) return tare__matrix_at(run, m, matrix);
    const int8_t *x = (const int8_t *)tare__buffer_data(run, m->buffer);
    const float *scale = (const float *)tare__buffer_data(run, scales) + matrix * rows;
    x += tare__matrix_offset(m, matrix);
    for (int64_t r = 0; r < rows; r++)
        run->kernels->rows->functions.from_int8(x + r * width, (size_t)width, scale[r],
                                                room + r * width);
    return room;
}

// The scores of a unit's rows, and behind them a matrix of int8 values as floats.
static size_t floats_of_unit(const attention_step *s) {
    const attention_call *a = &s->call;
    const int64_t width = a->width > a->value_width ? a->width : a->value_width;
    return (size_t)(a->keys * (heads_of(s) + (s->k_scales != NOTHING ? width : 0)));
}

// Computes queries [first, first + count), of one row each, which share keys and values.
static void attend_rows(const plan_run_state *run, const attention_step *s, int64_t first,
                        int64_t count, float *scores) {
    const attention_call *a = &s->call;
    const row_functions *k = &run->kernels->rows->functions;
    const attention_offsets shared = tare__attention_offsets_of(a, first);
    float mixed[MOST_HEADS][PANEL_COLUMNS], *room = scores + heads_of(s) * a->keys;
    const float *keys = floats_of(run, &s->k, s->k_scales, shared.k, a->width, a->keys, room);
    for (int64_t r = 0; r < count; r++) {
        const attention_offsets at = tare__attention_offsets_of(a, first + r);
        k->dots(tare__matrix_at(run, &s->q, first + r), keys, (size_t)a->width, (size_t)a->keys,
                (size_t)s->k.row_step, scores + r * a->keys);
        tare__attention_weigh(a, &at, 0, 1, k, scores + r * a->keys);
    }
    const float_tile mixture = {
        .x = scores,
        .w = floats_of(run, &s->v, s->v_scales, shared.v, a->value_width, a->keys, room),
        .y = mixed[0],
        .rows = (size_t)count,
        .inner = (size_t)a->keys,
        .columns = (size_t)a->value_width,
        .x_step = (size_t)a->keys,
        .w_step = (size_t)a->value_width,
        .y_step = PANEL_COLUMNS};
    k->tile(&mixture);
    for (int64_t r = 0; r < count; r++)
        memcpy(tare__matrix_at(run, &s->y, first + r), mixed[r],
               (size_t)a->value_width * sizeof **mixed);
}

static void attend_some_rows(void *user, size_t first, size_t end, size_t worker) {
    attention_run *r = user;
    const int64_t group = r->s.call.group, heads = heads_of(&r->s);
    const int64_t units = (group + heads - 1) / heads; // of a group
    float *scores = (float *)(void *)scratch_of(r, worker);
    for (int64_t i = (int64_t)first; i < (int64_t)end; i++) {
        const int64_t within = i % units * heads, left = group - within;
        attend_rows(r->run, &r->s, i / units * group + within, left < heads ? left : heads, scores);
    }
}

static void attend_some(void *user, size_t i, size_t first, size_t end, size_t worker) {
    attention_run *r = user;
    float *memory = (float *)(void *)scratch_of(r, worker);
    if (attend(r, (int64_t)i, (int64_t)first, (int64_t)end, memory) != TARE_OK) r->failed = true;
}

static tare_status run_attention(const plan_run_state *run, void *state) {
    const attention_step *s = state;
    const attention_call *a = &s->call;
    // With one query each score takes as long as many elements.
    const int64_t work = s->count * a->queries * a->keys * (a->queries == 1 ? 8 : 1);
    thread_pool *pool = tare__threads_for(run, work);
    attention_run r;
    begin_run(&r, run, s);
    if (is_one_query(s))
        tare__parallel(pool, (size_t)units_of(s), 1, attend_some_rows, &r);
    else
        tare__parallel_nest(pool, (size_t)s->count, (size_t)a->queries, s->products.query_block,
                            attend_some, &r);
    return r.failed ? tare__out_of_memory(run->err) : TARE_OK;
}

void tare__describe_float_products(const plan *p, bool calls_library, const char *what,
                                   step_note *out) {
    out->kernel = calls_library ? "sgemm" : p->setting.kernels->rows->name;
    out->bits_may_differ = calls_library;
    tare__step_say(out, "float");
    if (what != NULL) tare__step_say(out, "%s", what);
    if (calls_library) tare__step_say(out, ": oneDNN's products; bits may differ between machines");
}

static void describe_step(const plan *p, const void *state, step_note *out) {
    const attention_step *s = state;
    const attention_call *a = &s->call;
    const bool calls_library = !is_one_query(s) && tare__products_call_library(&s->products);
    out->macs = s->count * a->queries * a->keys * (a->width + a->value_width);
    tare__describe_float_products(p, calls_library, a->queries == 1 ? ": one query" : NULL, out);
    if (s->k_scales != NOTHING) tare__step_say(out, ", keys and values of int8");
}

// --- of quantized values ---

static void attend_quantized(const attention_run *r, size_t i, unsigned char *memory) {
    const attention_step *s = &r->s;
    const attention_offsets at = tare__attention_offsets_of(&s->call, (int64_t)i);
    const attention_head head = {
        .at = at,
        .q = quantized_at(r->run, &s->q, (int64_t)i),
        .k = quantized_at(r->run, &s->k, at.k),
        .v = quantized_at(r->run, &s->v, at.v),
        .q_step = (size_t)s->q.row_step,
        .k_step = (size_t)s->k.row_step,
        .v_step = (size_t)s->v.row_step,
        .y_step = (size_t)s->y.row_step,
        .y = s->quantized.gives_quantized ? (void *)quantized_at(r->run, &s->y, (int64_t)i)
                                          : (void *)tare__matrix_at(r->run, &s->y, (int64_t)i),
    };
    tare__attention_quantized_run(&s->quantized, &head, memory);
}

static void attend_some_quantized(void *user, size_t first, size_t end, size_t worker) {
    const attention_run *r = user;
    unsigned char *memory = scratch_of(r, worker);
    for (size_t i = first; i < end; i++) attend_quantized(r, i, memory);
}

static tare_status run_quantized_attention(const plan_run_state *run, void *state) {
    const attention_step *s = state;
    attention_run r;
    begin_run(&r, run, s);
    const int64_t work = s->count * s->call.queries * s->call.keys;
    tare__parallel(tare__threads_for(run, work), (size_t)s->count, 1, attend_some_quantized, &r);
    return TARE_OK;
}

static void describe_quantized(const plan *p, const void *state, step_note *out) {
    const attention_step *s = state;
    const attention_call *a = &s->call;
    (void)p;
    out->kernel = s->quantized.product->name;
    out->multiplies_quantized = true;
    out->macs = s->count * a->queries * a->keys * (a->width + a->value_width);
    tare__step_say(out, "integers: scores and mixtures, weights in bytes");
    if (!s->quantized.gives_quantized) tare__step_say(out, ", to floats");
}

// --- planning ---

matrices tare__plan_describe_matrices(const tare_tensor *t, bool is_swapped) {
    const int64_t columns = t->shape[t->ndim - 1], rows = t->shape[t->ndim - 2];
    const int64_t group = t->ndim > 2 ? t->shape[t->ndim - 3] : 1;
    return (matrices){.row_step = is_swapped ? group * columns : columns,
                      .step = is_swapped ? columns : rows * columns,
                      .outer_step = group * rows * columns,
                      .group = group};
}

tare_status tare__plan_read_matrices(plan_builder *b, const tare_tensor *t, matrices *out) {
    size_t v = tare__plan_find_value(b, t);
    const size_t from = tare__plan_source(b, v, SOURCE_SWAPPED);
    *out = tare__plan_describe_matrices(t, from != NOTHING);
    return tare__plan_read(b, from != NOTHING ? from : v, LAYOUT_PLAIN, &out->buffer);
}

bool tare__attention_products_init(attention_products *p, bool has_library) {
    enum { LINE = 64, QUERY_BLOCK = 128 };
    const int64_t queries = p->queries, keys = p->keys;
    size_t floats;
    p->library_scores = has_library && !tare__float_product_is_small(queries, p->width, keys);
    p->library_mixes = has_library && !tare__float_product_is_small(queries, keys, p->value_width);
    p->query_block = (size_t)queries; // the library gets whole matrices, as from the references
    if (!tare__products_call_library(p)) p->query_block = tare__least(p->query_block, QUERY_BLOCK);
    if (!tare__mul_size(p->query_block, (size_t)keys, &floats) ||
        !tare__add_size(floats, FLOAT_BLOCK_MEMORY + LINE / sizeof(float), &floats) ||
        !tare__mul_size(floats, sizeof(float), &p->thread_bytes))
        return false;
    p->thread_bytes -= p->thread_bytes % LINE;
    return true;
}

tare_status tare__attention_score(const plan_run_state *run, const attention_products *p,
                                  const matrices *q, const matrices *k, const query_block *b,
                                  float *memory) {
    const float_multiplier by = tare__multiplier_of(run, p->library_scores, memory);
    const float_block block = {.rows = b->end - b->first,
                               .inner = p->width,
                               .columns = p->keys,
                               .x_step = q->row_step,
                               .w_step = k->row_step,
                               .y_step = p->keys,
                               .transposed = p->keys_are_rows};
    return tare__float_block_multiply(&by, &block,
                                      tare__matrix_at(run, q, b->q) + b->first * q->row_step,
                                      tare__matrix_at(run, k, b->k), tare__scores_in(memory));
}

tare_status tare__attention_mix(const plan_run_state *run, const attention_products *p,
                                const matrices *v, const matrices *y, const query_block *b,
                                float *memory) {
    const float_multiplier by = tare__multiplier_of(run, p->library_mixes, memory);
    const float_block block = {.rows = b->end - b->first,
                               .inner = p->keys,
                               .columns = p->value_width,
                               .x_step = p->keys,
                               .w_step = v->row_step,
                               .y_step = y->row_step};
    return tare__float_block_multiply(&by, &block, tare__scores_in(memory),
                                      tare__matrix_at(run, v, b->v),
                                      tare__matrix_at(run, y, b->q) + b->first * y->row_step);
}

tare_status tare__plan_thread_scratch(plan_builder *b, size_t bytes, size_t *out) {
    if (!tare__mul_size(bytes, tare__thread_count(b->setting->kernels->space.pool), &bytes))
        return tare__out_of_memory(b->err);
    return tare__plan_new_scratch(b, bytes, out);
}

static bool is_sane(const attention_call *a) {
    return a->queries > 0 && a->keys > 0 && a->width > 0 && a->value_width > 0;
}

// The rest of the chain: the result is quantized, and heads and length are swapped.
typedef struct attention_epilogue {
    size_t result;                // the value that the step computes
    bool is_swapped, of_floats;   // of_floats: the inputs are
    const tare_tensor *quantized; // NULL: the result is floats
} attention_epilogue;

static attention_epilogue read_epilogue(const plan_builder *b, const plan_record *r) {
    attention_epilogue epilogue = {.result = r->result,
                                   .of_floats = !tare__attention_is_of_quantized(&r->call)};
    for (size_t i = r->next; i != NOTHING; i = b->records[i].next) {
        epilogue.result = b->records[i].result;
        if (tare__plan_swaps_heads(b, &b->records[i]))
            epilogue.is_swapped = true;
        else
            epilogue.quantized = b->values[epilogue.result].tensor;
    }
    return epilogue;
}

// The unrepeated matrices of keys or values that the graph repeats for several heads of queries;
// NOTHING: they are not repeated. *times: how often.
static size_t repeated(const plan_builder *b, const tare_tensor *t, int64_t *times) {
    const size_t view = tare__plan_source(b, tare__plan_find_value(b, t), SOURCE_VIEW);
    const size_t v = view != NOTHING ? tare__plan_source(b, view, SOURCE_REPEATED) : NOTHING;
    if (v != NOTHING) *times = t->count / b->values[v].tensor->count;
    return v;
}

// Uses each matrix for several consecutive heads, as the call's enable_gqa does.
static void share_heads(attention_call *a, int64_t times) {
    a->group = times;
    for (int d = 0; d + 1 < a->batch_ndim; d++) {
        a->k_stride[d] /= times;
        a->v_stride[d] /= times;
    }
}

// --- a cache of int8: keys or values are int8 numbers times a scale for each row ---

// The only reader of a record's result; NULL: there is none, or several.
static const plan_record *reader_of(const plan_builder *b, const plan_record *r) {
    const plan_value *v = &b->values[r->result];
    return v->uses_left == 1 && v->consumer != NOTHING ? &b->records[v->consumer] : NULL;
}

// True if attention with one query reads this record's result as its keys or values.
static bool is_read_by_query(const plan_builder *b, const plan_record *r) {
    const plan_record *reader = reader_of(b, r);
    if (reader == NULL || !tare__record_is(reader, TARE_OP_SCALED_DOT_PRODUCT_ATTENTION))
        return false;
    const tare_tensor *q = tare__call_tensor(&reader->call, 0), *t = b->values[r->result].tensor;
    return q != NULL && q->ndim >= 2 && q->shape[q->ndim - 2] == 1 &&
           (tare__call_tensor(&reader->call, 1) == t || tare__call_tensor(&reader->call, 2) == t);
}

// True for int8 numbers as floats, which come first, times scales [..][rows][1], for one query.
static bool scales_rows(const plan_builder *b, const plan_record *r, size_t numbers) {
    if (!tare__record_is(r, TARE_OP_MUL) || r->result == NOTHING || r->input_count != 2 ||
        r->inputs[0] != numbers || !tare__plan_is_float(b, r) || !is_read_by_query(b, r))
        return false;
    const tare_tensor *y = b->values[r->result].tensor, *scales = b->values[r->inputs[1]].tensor;
    return tare__same_shape(y, b->values[numbers].tensor) && scales->ndim == y->ndim &&
           memcmp(scales->shape, y->shape, (size_t)(y->ndim - 1) * sizeof *y->shape) == 0 &&
           scales->shape[y->ndim - 1] == 1;
}

int tare__attention_defers(const plan_builder *b, const plan_record *r) {
    if (r->result == NOTHING || r->input_count == 0) return SOURCE_NONE;
    const size_t x = r->inputs[0];
    if (tare__plan_source(b, x, SOURCE_INT8) != NOTHING)
        return !tare__plan_has_buffer(b, x) && scales_rows(b, r, x) ? SOURCE_SCALED : SOURCE_NONE;
    const tare_tensor *from = b->values[x].tensor, *y = b->values[r->result].tensor;
    const plan_record *reader = reader_of(b, r);
    const bool converts = tare__op_has(r->call.op, OP_ANY_DTYPE) && r->input_count == 1 &&
                          from->dtype == TARE_INT8 && from->q == NULL && y->dtype == TARE_FLOAT32 &&
                          tare__same_shape(from, y);
    return converts && reader != NULL && scales_rows(b, reader, r->result) ? SOURCE_INT8
                                                                           : SOURCE_NONE;
}

static bool is_cached(const plan_builder *b, const tare_tensor *t) {
    const size_t v = tare__plan_find_value(b, t);
    return tare__plan_source(b, v, SOURCE_SCALED) != NOTHING && !tare__plan_has_buffer(b, v);
}

static tare_status read_cached(plan_builder *b, const tare_tensor *t, matrices *out,
                               size_t *scales) {
    const plan_source *scaled = &b->values[tare__plan_find_value(b, t)].source;
    const size_t numbers = b->values[scaled->value].source.value, also = scaled->also;
    *out = tare__plan_describe_matrices(t, false);
    TARE_TRY(tare__plan_read(b, numbers, LAYOUT_PLAIN, &out->buffer));
    return tare__plan_read(b, also, LAYOUT_PLAIN, scales);
}

static tare_status read_caches(plan_builder *b, attention_step *s) {
    TARE_TRY(read_cached(b, s->call.k, &s->k, &s->k_scales));
    return read_cached(b, s->call.v, &s->v, &s->v_scales);
}

static tare_status read_keys(plan_builder *b, attention_step *s) {
    int64_t times = 1, also = 1;
    const size_t k = repeated(b, s->call.k, &times), v = repeated(b, s->call.v, &also);
    const attention_call *a = &s->call;
    if (k == NOTHING || v == NOTHING || times != also || a->group != 1 || a->batch_ndim < 1) {
        if (takes_one_query(a) && is_cached(b, a->k) && is_cached(b, a->v))
            return read_caches(b, s);
        TARE_TRY(tare__plan_read_matrices(b, a->k, &s->k));
        return tare__plan_read_matrices(b, a->v, &s->v);
    }
    share_heads(&s->call, times);
    s->k = tare__plan_describe_matrices(b->values[k].tensor, false);
    s->v = tare__plan_describe_matrices(b->values[v].tensor, false);
    TARE_TRY(tare__plan_read(b, k, LAYOUT_PLAIN, &s->k.buffer));
    return tare__plan_read(b, v, LAYOUT_PLAIN, &s->v.buffer);
}

static tare_status assign_buffers(plan_builder *b, const attention_epilogue *epilogue,
                                  attention_step *s) {
    const attention_call *a = &s->call;
    TARE_TRY(tare__plan_read_matrices(b, a->q, &s->q));
    TARE_TRY(read_keys(b, s));
    if (a->mask != NULL)
        TARE_TRY(tare__plan_read(b, tare__plan_find_value(b, a->mask), LAYOUT_PLAIN, &s->mask));
    if (epilogue->of_floats && is_one_query(s)) s->thread_bytes = floats_of_unit(s) * sizeof(float);
    TARE_TRY(tare__plan_thread_scratch(b, s->thread_bytes, &s->scratch));
    return tare__plan_write(b, epilogue->result, LAYOUT_PLAIN, &s->y.buffer);
}

static void use_quantized(const plan_builder *b, const attention_epilogue *epilogue,
                          attention_step *s) {
    quantized_scheme scheme;
    if (epilogue->quantized != NULL) scheme = tare__quantized_scheme_of(epilogue->quantized);
    tare__attention_quantized_init(&s->quantized, &s->call,
                                   epilogue->quantized != NULL ? &scheme : NULL,
                                   b->setting->kernels->isa);
    s->thread_bytes = tare__attention_quantized_bytes(&s->quantized);
}

static bool heads_floats(const plan_builder *b, const plan_record *r) {
    (void)b;
    return tare__record_is(r, TARE_OP_SCALED_DOT_PRODUCT_ATTENTION);
}

static bool heads_quantized(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_QUANTIZED_SCALED_DOT_PRODUCT_ATTENTION, TARE_OP_NONE};
    return tare__plan_is_quantized_op(b, r, ids);
}

// Adds a following transposition, and for quantized inputs the quantize, to the chain.
static bool extend(plan_builder *b, size_t head) {
    size_t last = head, next = tare__plan_sole_reader(b, head);
    if (next != NOTHING && tare__attention_is_of_quantized(&b->records[head].call) &&
        tare__plan_gives_bytes(b, &b->records[next])) {
        tare__plan_append(b, head, &last, next);
        next = tare__plan_sole_reader(b, last);
    }
    if (next != NOTHING && tare__plan_swaps_heads(b, &b->records[next]))
        tare__plan_append(b, head, &last, next);
    return last != head;
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    const tare_tensor *y = b->values[r->result].tensor;
    const attention_epilogue epilogue = read_epilogue(b, r);
    op_call call = r->call;
    attention_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    call.err = b->err;
    TARE_TRY(tare__attention_read(&call, &s->call));
    s->k_scales = s->v_scales = NOTHING;
    const attention_call *a = &s->call;
    const bool of_quantized = tare__attention_is_of_quantized(&call);
    s->products = (attention_products){.queries = a->queries,
                                       .keys = a->keys,
                                       .width = a->width,
                                       .value_width = a->value_width,
                                       .keys_are_rows = true};
    if (!is_sane(a) || !tare__attention_products_init(&s->products, b->setting->layers != NULL))
        return TARE_OK;
    s->thread_bytes = s->products.thread_bytes;
    s->count = y->count / (a->queries * a->value_width);
    s->y = tare__plan_describe_matrices(y, epilogue.is_swapped);
    if (of_quantized) use_quantized(b, &epilogue, s);
    TARE_TRY(assign_buffers(b, &epilogue, s));
    *done = true;
    return tare__plan_add_step(
        b, of_quantized ? &tare__quantized_attention_step : &tare__attention_step, s, r->node);
}

// True if all tensors are floats, except the mask, which may be bool.
static bool is_of_floats(const plan_builder *b, const plan_record *r) {
    enum { MASK = 3 };
    const value *given = tare__call_given(&r->call, MASK) ? r->call.param[MASK] : NULL;
    const tare_tensor *mask =
        given != NULL && given->kind == VALUE_TENSOR ? given->as.tensor : NULL;
    for (size_t i = 0; i < r->input_count; i++) {
        const tare_tensor *t = b->values[r->inputs[i]].tensor;
        if (t->dtype != TARE_FLOAT32 && (t != mask || t->dtype != TARE_BOOL)) return false;
    }
    const tare_tensor *y = r->result != NOTHING ? b->values[r->result].tensor : NULL;
    return y != NULL && y->dtype == TARE_FLOAT32 && y->count > 0 && !r->is_observer && !r->is_view;
}

static tare_status plan_floats(plan_builder *b, size_t head, bool *done) {
    if (!is_of_floats(b, &b->records[head])) return tare__plan_decline_operator(b);
    return plan_chain(b, head, done);
}

const step_class tare__attention_step = {
    .name = "attention",
    .heads = heads_floats,
    .extend = extend,
    .plan = plan_floats,
    .run = run_attention,
    .describe = describe_step,
    .replicate = tare__step_share,
};

const step_class tare__quantized_attention_step = {
    .name = "quantized attention",
    .heads = heads_quantized,
    .extend = extend,
    .plan = plan_chain,
    .run = run_quantized_attention,
    .describe = describe_quantized,
    .replicate = tare__step_share,
};
