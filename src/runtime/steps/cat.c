// SPDX-License-Identifier: Apache-2.0
// Tensors joined in the plain layout. Where nothing but dimensions of size 1 stands before the one
// that they are joined along, each is a piece of the result: the steps that make them write them
// there. What stands elsewhere is copied, row by row.
#include "ops/rules.h"
#include "runtime/gemm/strided_copy.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

typedef struct joined {
    size_t x;  // place
    size_t at; // bytes from the result's first
    strided_copy copy;
} joined;

typedef struct cat_step {
    joined *parts; // that are copied
    size_t count, y, in_place;
} cat_step;

// --- running ---

static tare_status run_cat(const plan_run_state *run, void *state) {
    const cat_step *s = state;
    unsigned char *y = tare__place_data(run, s->y);
    for (size_t i = 0; i < s->count; i++) {
        const joined *part = &s->parts[i];
        thread_pool *pool = tare__threads_for(run, tare__strided_copy_elements(&part->copy));
        tare__strided_copy_run(&part->copy, pool, tare__place_data(run, part->x), y + part->at);
    }
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const cat_step *s = state;
    (void)p;
    tare__step_say(out, "rows: %zu copied, %zu in place", s->count, s->in_place);
}

// --- planning ---

typedef struct cat_call {
    const tare_tensor **x, *y;
    size_t count;
    int64_t outer, inner; // rows of the result; elements of one step along the dimension
    int dim;
} cat_call;

static bool is_alike(const tare_tensor *x, const tare_tensor *y) {
    const bool same_codes =
        x->q == y->q || (x->q != NULL && y->q != NULL && tare__qparams_equal(x->q, y->q));
    return x->count > 0 && x->ndim == y->ndim && x->dtype == y->dtype && same_codes;
}

static bool heads(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_CAT, TARE_OP_QUANTIZED_CAT, TARE_OP_NONE};
    (void)b;
    return tare__record_is_one_of(r, ids) && r->result != NOTHING && !r->is_view && !r->is_observer;
}

static bool read_call(plan_builder *b, const plan_record *r, cat_call *c) {
    op_call call = r->call;
    call.err = NULL;
    call.memory = &b->scratch;
    c->y = b->values[r->result].tensor;
    if (c->y->count == 0 || tare__call_tensor_list(&call, 0, &c->x, &c->count) != TARE_OK ||
        tare__call_dim(&call, 1, 0, c->y->ndim, &c->dim) != TARE_OK)
        return false;
    for (size_t i = 0; i < c->count; i++)
        if (!is_alike(c->x[i], c->y) || tare__plan_find_value(b, c->x[i]) == NOTHING) return false;
    c->inner = tare__inner_count(c->y, c->dim);
    c->outer = c->y->count / (c->inner * c->y->shape[c->dim]);
    return true;
}

static size_t row_bytes(const cat_call *c, const tare_tensor *t) {
    return (size_t)(t->shape[c->dim] * c->inner) * tare_dtype_size(t->dtype);
}

// What a view shows is made where its base is.
static size_t made_as(const plan_builder *b, size_t v) {
    const size_t base = b->values[v].base;
    const bool is_all =
        tare__tensor_bytes(b->values[base].tensor) == tare__tensor_bytes(b->values[v].tensor);
    return is_all ? base : NOTHING;
}

// A value has one place: the last concatenation that reads it says where.
static void reserve(plan_builder *b, size_t record) {
    const plan_record *r = &b->records[record];
    cat_call c = {0};
    if (!read_call(b, r, &c) || c.outer != 1) return;
    for (size_t i = 0, at = 0; i < c.count; at += row_bytes(&c, c.x[i++])) {
        const size_t v = made_as(b, tare__plan_find_value(b, c.x[i]));
        if (v == NOTHING) continue;
        plan_value *x = &b->values[v];
        plan_placement *own = &x->placement[LAYOUT_PLAIN];
        if (own->slice_of != NOTHING || x->is_constant || x->is_input) continue;
        own->slice_of = r->result;
        own->slice_at = at;
    }
}

static bool is_in_place(const plan_builder *b, size_t x, size_t whole, size_t at) {
    const plan_place *piece = &b->plan->places[x], *y = &b->plan->places[whole];
    const size_t root = y->whole != NOTHING ? y->whole : whole;
    return piece->whole == root && piece->pitch == 0 && piece->shift == y->shift + at;
}

static tare_status add_part(plan_builder *b, const cat_call *c, const tare_tensor *x, size_t at,
                            cat_step *s) {
    const int64_t row = x->shape[c->dim] * c->inner, all = c->y->shape[c->dim] * c->inner;
    const copy_loop loops[] = {{c->outer, row, all}, {row, 1, 1}};
    const size_t v = tare__plan_find_value(b, x),
                 place = b->values[v].placement[LAYOUT_PLAIN].place;
    joined *part = &s->parts[s->count];
    if (place != NOTHING && is_in_place(b, place, s->y, at)) {
        s->in_place++;
        return TARE_OK;
    }
    TARE_TRY(tare__plan_read(b, v, LAYOUT_PLAIN, &part->x));
    part->at = at;
    part->copy = tare__strided_copy_of(tare_dtype_size(x->dtype), 0, loops, 2);
    s->count++;
    return TARE_OK;
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    cat_call c = {0};
    if (b->setting->kernels == NULL || r->next != NOTHING || !read_call(b, r, &c)) return TARE_OK;
    cat_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (cat_step){.parts = tare__arena_array(&b->plan->memory, c.count, sizeof *s->parts)};
    if (s->parts == NULL) return tare__out_of_memory(b->err);
    TARE_TRY(tare__plan_place_whole(b, r->result, LAYOUT_PLAIN, &s->y));
    for (size_t i = 0, at = 0; i < c.count; at += row_bytes(&c, c.x[i++]))
        TARE_TRY(add_part(b, &c, c.x[i], at, s));
    *done = true;
    TARE_TRY(tare__plan_write_whole(b, r->result, LAYOUT_PLAIN, s->count > 0));
    return s->count > 0 ? tare__plan_add_step(b, &tare__cat_step, s, r->node) : TARE_OK;
}

const step_class tare__cat_step = {
    .name = "cat",
    .heads = heads,
    .reserve = reserve,
    .plan = plan_chain,
    .run = run_cat,
    .describe = describe,
    .replicate = tare__step_share,
    .only_joins = true,
};
