// SPDX-License-Identifier: Apache-2.0
// Linear layers on quantized or dynamically quantized inputs whose float results pass through
// functions, a sum, a norm, and are quantized again. Each row block goes through the whole chain
// while it is in the cache, so that floats without another reader never reach memory.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "runtime/kernels/schemes.h"
#include "runtime/plan/records.h"
#include "runtime/steps/dynamic.h"
#include "runtime/steps/steps.h"

enum {
    MOST_ROW_BLOCK_OPS = 8,     // in the chain after the layer
    FEW_ELEMENTS = 8,           // shorter rows are left to the reference
    CACHED_FLOATS = 32 << 10,   // floats of a row block, to fit the first-level cache
    CACHED_WEIGHTS = 640 << 10, // weights, which all row blocks read from the second-level cache
    LEAST_TILES = 6,            // tiles of rows in a block, even if it then exceeds CACHED_FLOATS:
                                // with fewer, products do not prefetch the next weights
};

typedef enum row_block_kind {
    ROW_BLOCK_ELEMENT,
    ROW_BLOCK_SUM,
    ROW_BLOCK_FUNCTION,
    ROW_BLOCK_RELU
} row_block_kind;

typedef struct row_block_op {
    row_block_kind kind;
    element_loop loop; // of ROW_BLOCK_ELEMENT
    float p[ELEMENT_MAX_PARAMETERS];
    size_t other, other_buffer; // of ROW_BLOCK_SUM: the addend
    row_call row;               // of ROW_BLOCK_FUNCTION
} row_block_op;

typedef struct quantized_row_block {
    qlayer *layer;
    size_t rows, width, ins; // rows: in all; width, ins: of a row, floats and quantized values
    size_t block_rows;       // rows of the largest block
    bool is_whole;           // there is one block, and the product itself is divided among threads
    size_t x, y, quantized, scratch; // buffers; y, quantized: NOTHING if not read
    size_t input;                    // the buffer of dynamic parameters; NOTHING: they are constant
    const qparams *weights; // the weights' scales, which dynamic parameters are multiplied with
    bool fuses;             // as in qlayer_run
    size_t layer_bytes, thread_bytes; // of scratch
    quantized_scheme scheme;
    void (*to_quantized)(const quantized_scheme *s, const float *x, size_t count, uint8_t *y);
    size_t count, applied; // applied: without the last one if to_quantized does it
    row_block_op ops[MOST_ROW_BLOCK_OPS];
} quantized_row_block;

// --- running ---

typedef struct row_block_run {
    const plan_run_state *run;
    const quantized_row_block *s;
} row_block_run;

static void apply_function(const row_block_run *r, const row_call *call, const float *x,
                           size_t rows, float *y) {
    const size_t width = r->s->width;
    for (size_t i = 0; i < rows; i++)
        call->run(call, &r->run->kernels->rows->functions, x + i * width, y + i * width);
}

// Applies op to x and writes y, which may be x.
static void apply(const row_block_run *r, const row_block_op *op, size_t first, size_t rows,
                  float *x, float *y) {
    const size_t count = rows * r->s->width;
    if (op->kind == ROW_BLOCK_RELU) {
        for (size_t i = 0; i < count; i++) y[i] = x[i] < 0 ? 0.0F : x[i];
    } else if (op->kind == ROW_BLOCK_FUNCTION) {
        apply_function(r, &op->row, x, rows, y);
    } else if (op->kind == ROW_BLOCK_ELEMENT) {
        op->loop(x, y, (int64_t)count, op->p);
    } else {
        const float *other = tare__buffer_data(r->run, op->other_buffer);
        r->run->kernels->rows->functions.add(other + first * r->s->width, count, x);
        if (y != x) memcpy(y, x, count * sizeof *y);
    }
}

static void run_rows(void *user, size_t first, size_t end, size_t worker) {
    const row_block_run *r = user;
    const quantized_row_block *s = r->s;
    const workspace alone = {.pool = NULL};
    const size_t rows = end - first;
    unsigned char *memory = tare__buffer_data(r->run, s->scratch);
    memory += worker * s->thread_bytes;
    float *values = (float *)(void *)(memory + s->layer_bytes), *last = values;
    if (s->y != NOTHING) last = (float *)tare__buffer_data(r->run, s->y) + first * s->width;
    const qlayer_run product = {.batch = rows,
                                .x = (uint8_t *)tare__buffer_data(r->run, s->x) + first * s->ins,
                                .real = s->applied > 0 ? values : last,
                                .fuses = s->fuses,
                                .scratch = memory,
                                .space = s->is_whole ? &r->run->kernels->space : &alone};
    tare__qlayer_run(s->layer, &product);
    for (size_t i = 0; i < s->applied; i++)
        apply(r, &s->ops[i], first, rows, values, i + 1 < s->applied ? values : last);
    if (s->quantized == NOTHING) return;
    uint8_t *quantized = (uint8_t *)tare__buffer_data(r->run, s->quantized) + first * s->width;
    s->to_quantized(&s->scheme, last, rows * s->width, quantized);
}

static tare_status run_row_blocks(const plan_run_state *run, void *state) {
    const quantized_row_block *s = state;
    row_block_run r = {run, s};
    if (s->input != NOTHING) {
        const dynamic_input *in = tare__buffer_data(run, s->input);
        tare__qlayer_set_input(s->layer, s->weights, in->scale, in->zero_point);
    }
    if (s->is_whole) {
        run_rows(&r, 0, s->rows, 0);
        return TARE_OK;
    }
    thread_pool *pool = tare__workspace_pool(&run->kernels->space, s->rows * s->width * s->ins);
    tare__parallel(pool, s->rows, s->block_rows, run_rows, &r);
    return TARE_OK;
}

static void destroy(void *state) {
    const quantized_row_block *s = state;
    tare__qlayer_destroy(s->layer);
}

// The dynamic parameters of a run are stored in the layer, so replicas need copies.
static tare_status replicate(const plan *of, const void *state, void **out, tare_error *err) {
    const quantized_row_block *s = state;
    return s->input == NOTHING ? tare__step_share(of, state, out, err) : TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const quantized_row_block *s = state;
    const qlayer_form form = tare__qlayer_form(s->layer);
    (void)p;
    out->kernel = form.kernel;
    out->multiplies_quantized = true;
    out->weight_bytes = form.weight_bytes;
    out->macs = (int64_t)(s->rows * form.macs);
    tare__step_say(out, "integers: product, then floats in row blocks of %zu rows: %zu operator%s",
                   s->block_rows, s->count, s->count == 1 ? "" : "s");
    if (s->quantized != NOTHING) tare__step_say(out, ", quantized");
}

// --- what a row block can do ---

static bool read_function(const plan_builder *b, const plan_record *r, size_t self,
                          row_block_op *op) {
    op_call call = r->call;
    const tare_tensor *y = b->values[r->result].tensor;
    call.err = NULL;
    *op = (row_block_op){.kind = ROW_BLOCK_FUNCTION};
    return call.op != NULL && call.op->row_function != NULL &&
           call.op->row_function(&call, &op->row) == TARE_OK && op->row.run != NULL &&
           tare__row_call_is_in_place(&op->row) && op->row.x == b->values[self].tensor &&
           y->ndim > 0 && op->row.count == y->shape[y->ndim - 1] && op->row.count >= FEW_ELEMENTS;
}

// What `r` does to the value `self`; false if a row block cannot do it.
static bool read_op(const plan_builder *b, const plan_record *r, size_t self, row_block_op *op) {
    if (tare__plan_is_sum(b, r)) {
        const size_t other = r->inputs[0] == self ? r->inputs[1] : r->inputs[0];
        *op = (row_block_op){.kind = ROW_BLOCK_SUM, .other = other};
        return true;
    }
    if (!tare__plan_is_element(r)) return read_function(b, r, self, op);
    *op = (row_block_op){.kind = ROW_BLOCK_ELEMENT};
    return tare__plan_element_loop(b, r, &op->loop, op->p);
}

// A layer as kernels take it; w: how it quantizes its input.
typedef struct row_block_layer {
    quantized_layer layer;
    bool is_dynamic, relu;
    dynamic_weights w;
} row_block_layer;

static tare_status read_dynamic(op_call *call, row_block_layer *out) {
    const module *m = tare__call_layer_module(call);
    out->is_dynamic = true;
    TARE_TRY(tare__dynamic_linear_read(call, &out->w, &out->relu));
    out->layer = (quantized_layer){
        .module = m, .weight = out->w.weight, .out_channels = out->w.weight->shape[0]};
    return TARE_OK;
}

static tare_status read_layer(const plan_record *r, tare_error *err, row_block_layer *out) {
    op_call call = r->call;
    call.err = err;
    *out = (row_block_layer){0};
    return tare__plan_is_dynamic_layer(r) ? read_dynamic(&call, out)
                                          : tare__call_layer_read(&call, &out->layer);
}

static bool is_cached(const row_block_layer *l) {
    return l->layer.weight->count <= CACHED_WEIGHTS;
}

static bool begins_row_blocks(const plan_builder *b, const plan_record *r) {
    row_block_layer l;
    if (tare__plan_is_dynamic_layer(r)) return read_layer(r, NULL, &l) == TARE_OK && is_cached(&l);
    if (!tare__plan_is_quantized_layer(r) || !tare__plan_layer_is_linear(r)) return false;
    const tare_tensor *x = tare__call_layer_input(&r->call), *y = b->values[r->result].tensor;
    return y->q == NULL && y->count > 0 && read_layer(r, NULL, &l) == TARE_OK && !l.layer.adds &&
           tare__qlayer_refusal(&l.layer, x) == NULL && is_cached(&l);
}

static bool heads(const plan_builder *b, const plan_record *r) {
    return tare__plan_is_dynamic_layer(r) || begins_row_blocks(b, r);
}

static bool can_do(const plan_builder *b, size_t before, size_t next) {
    row_block_op unused;
    return tare__plan_keeps_shape(b, before, next) &&
           read_op(b, &b->records[next], b->records[before].result, &unused);
}

// The record that quantizes r's floats before any other reader reads them; NOTHING: none.
static size_t first_quantize(const plan_builder *b, size_t record) {
    const size_t made = b->records[record].result;
    for (size_t i = record + 1; i < b->record_count; i++) {
        const plan_record *r = &b->records[i];
        bool reads = false;
        for (size_t k = 0; k < r->input_count; k++) reads = reads || r->inputs[k] == made;
        if (reads)
            return tare__plan_gives_bytes(b, r) && r->head == i && r->next == NOTHING ? i : NOTHING;
    }
    return NOTHING;
}

// Adds what row blocks can apply to the layer's floats, and the final quantize. The last floats may
// have other readers.
static bool extend(plan_builder *b, size_t head) {
    if (!begins_row_blocks(b, &b->records[head])) return false;
    size_t last = head, next = tare__plan_only_reader(b, head);
    for (size_t count = 0; next != NOTHING && count < MOST_ROW_BLOCK_OPS; count++) {
        if (!can_do(b, last, next)) break;
        tare__plan_append(b, head, &last, next);
        next = tare__plan_only_reader(b, last);
    }
    if (last == head) return false;
    const size_t quantize = first_quantize(b, last);
    if (quantize != NOTHING) tare__plan_append(b, head, &last, quantize);
    return true;
}

// --- planning ---

// Reads the chain. *floats: the value of its last floats.
static bool read_chain(const plan_builder *b, size_t head, quantized_row_block *s, size_t *floats,
                       size_t *quantized) {
    *floats = b->records[head].result;
    *quantized = NOTHING;
    for (size_t i = b->records[head].next; i != NOTHING; i = b->records[i].next) {
        const plan_record *r = &b->records[i];
        const tare_tensor *y = b->values[r->result].tensor;
        if (y->q != NULL) {
            *quantized = r->result;
            s->scheme = tare__quantized_scheme_of(y);
            return true;
        }
        if (s->count == MOST_ROW_BLOCK_OPS || !read_op(b, r, *floats, &s->ops[s->count++]))
            return false;
        *floats = r->result;
    }
    return true;
}

// Equally many for each thread. Shorter row blocks would shorten the wait for the last one, but
// cost more.
static size_t count_row_blocks(const quantized_row_block *s, size_t threads) {
    const size_t cached = CACHED_FLOATS / sizeof(float) / s->width;
    const size_t least = LEAST_TILES * tare__qlayer_form(s->layer).tile_rows;
    const size_t rows = cached > least ? cached : least;
    return tare__least(tare__round_up(tare__ceil_div(s->rows, rows), threads), s->rows);
}

static void choose_row_blocks(const plan_builder *b, quantized_row_block *s) {
    const size_t threads = tare__thread_count(b->setting->kernels->space.pool);
    s->block_rows = s->is_whole ? s->rows : tare__ceil_div(s->rows, count_row_blocks(s, threads));
    const size_t workers = s->is_whole ? threads : 1;
    const size_t floats = s->count > 0 ? s->block_rows * s->width : 0;
    s->layer_bytes = tare__round_up(tare__qlayer_scratch_bytes(s->layer, workers, s->block_rows),
                                    BUFFER_ALIGNMENT);
    s->thread_bytes = s->layer_bytes + tare__round_up(floats * sizeof(float), BUFFER_ALIGNMENT);
}

static bool is_gelu(const kernel_context *kernels, const row_block_op *op) {
    return op->kind == ROW_BLOCK_ELEMENT && op->loop == kernels->rows->elements[ELEMENT_GELU];
}

// Chooses how floats without another reader are quantized.
static void choose_end(const plan_builder *b, quantized_row_block *s) {
    const kernel_context *kernels = b->setting->kernels;
    const bool is_one = kernels->elementwise->quantize_gelu != NULL && s->y == NOTHING &&
                        s->count > 0 && is_gelu(kernels, &s->ops[s->count - 1]);
    s->applied = s->count - is_one;
    s->to_quantized = is_one ? kernels->elementwise->quantize_gelu : kernels->elementwise->quantize;
}

static tare_status assign_buffers(plan_builder *b, const plan_record *r, const row_block_layer *l,
                                  quantized_row_block *s, size_t floats, size_t quantized) {
    const size_t x = tare__plan_find_value(b, tare__call_layer_input(&r->call));
    const size_t threads = s->is_whole ? 1 : tare__thread_count(b->setting->kernels->space.pool);
    const size_t inner_uses = quantized != NOTHING ? 1 : 0; // the quantize of the chain
    size_t other = NOTHING;
    bool unused;
    s->y = s->quantized = s->input = NOTHING;
    if (l->is_dynamic)
        TARE_TRY(tare__plan_dynamic_quantized(b, r, &l->w, x, &s->x, &s->input));
    else
        TARE_TRY(tare__plan_read(b, x, LAYOUT_PLAIN, &s->x));
    for (size_t i = 0; i < s->count; i++) {
        if (s->ops[i].kind != ROW_BLOCK_SUM) continue;
        other = s->ops[i].other;
        TARE_TRY(tare__plan_read(b, other, LAYOUT_PLAIN, &s->ops[i].other_buffer));
    }
    TARE_TRY(tare__plan_new_scratch(b, threads * s->thread_bytes, &s->scratch));
    // Row blocks are independent, so the result may overwrite the last addend.
    if (quantized == NOTHING || b->values[floats].uses_left > inner_uses)
        TARE_TRY(other != NOTHING
                     ? tare__plan_write_over(b, floats, other, LAYOUT_PLAIN, &s->y, &unused)
                     : tare__plan_write(b, floats, LAYOUT_PLAIN, &s->y));
    return quantized != NOTHING ? tare__plan_write(b, quantized, LAYOUT_PLAIN, &s->quantized)
                                : TARE_OK;
}

static tare_status add_row_blocks(plan_builder *b, const plan_record *r, const row_block_layer *l,
                                  quantized_row_block *s, size_t floats, size_t quantized) {
    choose_row_blocks(b, s);
    const tare_status status = assign_buffers(b, r, l, s, floats, quantized);
    choose_end(b, s);
    if (status == TARE_OK)
        return tare__plan_add_step(b, &tare__quantized_row_block_step, s, r->node);
    tare__qlayer_destroy(s->layer);
    return status;
}

// Packs the layer; NULL if no kernel supports it.
static tare_status pack(plan_builder *b, const row_block_layer *l, const tare_tensor *x,
                        const tare_tensor *y, qlayer **out) {
    const isa_level isa = tare__qlayer_level(&l->layer, y, b->setting->kernels->isa);
    if (!l->is_dynamic) return tare__qlayer_create(&l->layer, x, y, isa, out, b->err);
    return tare__dynamic_pack(l->layer.module, &l->w, y, isa, out, b->err);
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    row_block_layer l;
    size_t floats, quantized;
    if (r->next == NOTHING && !tare__plan_is_dynamic_layer(r)) return TARE_OK;
    TARE_TRY(read_layer(r, b->err, &l));
    const tare_tensor *x = tare__call_layer_input(&r->call), *y = b->values[r->result].tensor;
    quantized_row_block *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (quantized_row_block){.rows = (size_t)(y->count / l.layer.out_channels),
                               .width = (size_t)l.layer.out_channels,
                               .ins = (size_t)l.layer.weight->shape[1],
                               .weights = l.layer.weight->q,
                               .fuses = l.w.rule == REQUANT_F,
                               .is_whole = !is_cached(&l)};
    if (l.relu) s->ops[s->count++].kind = ROW_BLOCK_RELU;
    if (tare__plan_find_value(b, x) == NOTHING || !read_chain(b, head, s, &floats, &quantized))
        return TARE_OK;
    TARE_TRY(pack(b, &l, x, y, &s->layer));
    if (s->layer == NULL) return tare__plan_decline(b, tare__qlayer_refusal(&l.layer, x));
    *done = true;
    return add_row_blocks(b, r, &l, s, floats, quantized);
}

const step_class tare__quantized_row_block_step = {
    .name = "quantized row block",
    .heads = heads,
    .extend = extend,
    .plan = plan_chain,
    .run = run_row_blocks,
    .destroy = destroy,
    .describe = describe,
    .replicate = replicate,
};
