// SPDX-License-Identifier: Apache-2.0
// Steps that only move elements, between any layouts: permuting, slicing, splitting, repeating. If
// the result in some layout has the order of elements of the input in its layout, nothing is moved.
#include <string.h>

#include "ops/families/gather.h"
#include "ops/rules.h"
#include "runtime/gemm/strided_copy.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

typedef struct copy_step {
    size_t x, y; // buffers
    strided_copy copy;
} copy_step;

static tare_status run_copy(const plan_run_state *run, void *state) {
    const copy_step *s = state;
    thread_pool *pool = tare__threads_for(run, tare__strided_copy_elements(&s->copy));
    tare__strided_copy_run(&s->copy, pool, tare__buffer_data(run, s->x),
                           tare__buffer_data(run, s->y));
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const copy_step *s = state;
    (void)p;
    tare__step_say(out, "%s",
                   s->copy.other.size > 1 ? "the innermost dimension changes: tiles are transposed"
                                          : "rows are copied");
}

// --- boxes in layouts ---

// Strides of a tensor's dimensions in a layout, in elements.
static void steps_of(const tare_tensor *t, plan_layout layout, int64_t step[TARE_MAX_DIMS]) {
    int64_t next = 1;
    if (layout == LAYOUT_CHANNELS_LAST) {
        step[1] = 1;
        next = t->shape[1];
    }
    for (int d = t->ndim - 1; d >= 0; d--) {
        if (layout == LAYOUT_CHANNELS_LAST && d == 1) continue;
        step[d] = next;
        next *= t->shape[d];
    }
}

// The dimension that has this stride in the plain layout.
static int dim_of(const tare_tensor *t, const int64_t *plain, int64_t step) {
    for (int d = 0; d < t->ndim; d++)
        if (t->shape[d] > 1 && step >= plain[d]) return d;
    return t->ndim - 1;
}

// The box's strides in x in a layout; false if a stride crosses dimensions of x.
static bool steps_in(const gather *g, plan_layout layout, int64_t *from, int64_t *offset) {
    const tare_tensor *x = g->x;
    int64_t plain[TARE_MAX_DIMS], step[TARE_MAX_DIMS], reach[TARE_MAX_DIMS] = {0}, rest = g->offset;
    if (layout == LAYOUT_PLAIN) {
        memcpy(from, g->stride, (size_t)g->ndim * sizeof *from);
        *offset = g->offset;
        return true;
    }
    steps_of(x, LAYOUT_PLAIN, plain);
    steps_of(x, layout, step);
    *offset = 0;
    for (int d = 0; d < x->ndim; d++) {
        reach[d] = rest / plain[d];
        rest %= plain[d];
        *offset += reach[d] * step[d];
    }
    for (int i = 0; i < g->ndim; i++) {
        from[i] = 0;
        if (g->stride[i] == 0 || g->size[i] == 1) continue;
        if (g->stride[i] < 0) return false;
        const int d = dim_of(x, plain, g->stride[i]);
        const int64_t times = g->stride[i] / plain[d];
        if (g->stride[i] % plain[d] != 0) return false;
        reach[d] += (g->size[i] - 1) * times;
        if (reach[d] >= x->shape[d]) return false;
        from[i] = times * step[d];
    }
    return true;
}

// The box's strides in y in a layout; false if the box's dimensions are not those of y, or products
// of them.
static bool steps_out(const gather *g, const tare_tensor *y, plan_layout layout, int64_t *to) {
    int64_t step[TARE_MAX_DIMS];
    int i = g->ndim - 1;
    steps_of(y, layout, step);
    for (int d = y->ndim - 1; d >= 0; d--) {
        int64_t filled = 1;
        for (; i >= 0 && filled < y->shape[d]; i--) {
            to[i] = filled * step[d];
            filled *= g->size[i];
        }
        if (filled != y->shape[d]) return false;
    }
    for (; i >= 0; i--) { // the remaining dimensions have size 1
        if (g->size[i] != 1) return false;
        to[i] = 0;
    }
    return true;
}

// --- choosing ---

typedef struct copy_path {
    plan_layout in, out;
    strided_copy copy;
} copy_path;

static bool path_of(const gather *g, const tare_tensor *y, plan_layout in, plan_layout out,
                    copy_path *w) {
    int64_t from[GATHER_MAX_DIMS], to[GATHER_MAX_DIMS], offset;
    copy_loop loops[GATHER_MAX_DIMS];
    if (!steps_in(g, in, from, &offset) || !steps_out(g, y, out, to)) return false;
    for (int i = 0; i < g->ndim; i++) loops[i] = (copy_loop){g->size[i], from[i], to[i]};
    *w = (copy_path){
        in, out, tare__strided_copy_of(tare_dtype_size(y->dtype), offset, loops, (size_t)g->ndim)};
    return true;
}

static bool is_whole(const gather *g, const tare_tensor *y, const copy_path *w) {
    return tare__strided_copy_is_same(&w->copy) && y->count == g->x->count;
}

// The number of elements that are contiguous in both tensors; no move at all is best.
static int64_t worth_of(const gather *g, const tare_tensor *y, const copy_path *w) {
    if (is_whole(g, y, w)) return INT64_MAX;
    return w->copy.row.from == 1 ? w->copy.row.size : 1;
}

static bool lies_in(const plan_builder *b, size_t v, plan_layout layout) {
    return b->values[v].placement[layout].buffer != NOTHING ||
           (layout == LAYOUT_PLAIN && !tare__plan_has_buffer(b, v));
}

static bool may_lie(const tare_tensor *t, plan_layout layout) {
    const size_t element = tare_dtype_size(t->dtype);
    const bool can_be_moved = element == 1 || element == sizeof(float);
    return layout == LAYOUT_PLAIN || (can_be_moved && !tare__plan_layouts_agree(t));
}

// Prefers the plain layout for the result. Channels last is chosen if the input has that layout, or
// already that order.
static bool choose_path(const plan_builder *b, const gather *g, size_t x, const tare_tensor *y,
                        copy_path *best) {
    int64_t most = 0;
    for (plan_layout out = 0; out < LAYOUT_COUNT; out++)
        for (plan_layout in = 0; in < LAYOUT_COUNT; in++) {
            copy_path w;
            if (!lies_in(b, x, in) || !may_lie(g->x, in) || !may_lie(y, out) ||
                !path_of(g, y, in, out, &w))
                continue;
            const int64_t worth = worth_of(g, y, &w);
            const bool suits = out == LAYOUT_PLAIN || in == out || worth == INT64_MAX;
            if (!suits || worth <= most) continue;
            *best = w;
            most = worth;
        }
    return most > 0;
}

static tare_status add_step(plan_builder *b, const plan_record *r, size_t x, size_t y,
                            const copy_path *w) {
    copy_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    s->copy = w->copy;
    TARE_TRY(tare__plan_read(b, x, w->in, &s->x));
    TARE_TRY(tare__plan_write(b, y, w->out, &s->y));
    return tare__plan_add_step(b, &tare__copy_step, s, r->node);
}

// The only reader of y, if it is a view.
static size_t only_view(const plan_builder *b, size_t y) {
    const plan_value *v = &b->values[y];
    if (v->uses_left != 1 || v->consumer == NOTHING) return NOTHING;
    const plan_record *next = &b->records[v->consumer];
    return next->is_view ? next->result : NOTHING;
}

// A shuffle of channels between two views, as one move from channels last to channels last.
static tare_status move_between_views(plan_builder *b, const plan_record *r, const gather *g,
                                      size_t y, bool *done) {
    const size_t view = tare__plan_find_value(b, g->x), to = only_view(b, y);
    const size_t x = tare__plan_source(b, view, SOURCE_VIEW);
    gather own = *g;
    copy_path w;
    if (x == NOTHING || to == NOTHING) return TARE_OK;
    own.x = b->values[x].tensor;
    const tare_tensor *made = b->values[to].tensor;
    if (!may_lie(own.x, LAYOUT_CHANNELS_LAST) || !may_lie(made, LAYOUT_CHANNELS_LAST) ||
        !path_of(&own, made, LAYOUT_CHANNELS_LAST, LAYOUT_CHANNELS_LAST, &w))
        return TARE_OK;
    *done = true;
    if (is_whole(&own, made, &w))
        return tare__plan_share(b, x, w.in, &b->values[to].placement[w.out].buffer);
    return add_step(b, r, x, to, &w);
}

static tare_status add_copy(plan_builder *b, const plan_record *r, const gather *g, size_t y) {
    const tare_tensor *made = b->values[y].tensor;
    const size_t x = tare__plan_find_value(b, g->x);
    bool is_moved = false;
    copy_path w;
    TARE_TRY(move_between_views(b, r, g, y, &is_moved));
    if (is_moved) return TARE_OK;
    // A box of plain tensors always has a path; for another layout the input may have to be moved
    // first.
    if (!choose_path(b, g, x, made, &w) && !path_of(g, made, LAYOUT_PLAIN, LAYOUT_PLAIN, &w))
        return tare__fail(b->err, TARE_INTERNAL, "node '%s': cannot be moved", r->node->name);
    if (is_whole(g, made, &w))
        return tare__plan_share(b, x, w.in, &b->values[y].placement[w.out].buffer);
    return add_step(b, r, x, y, &w);
}

// --- planning ---

static bool heads(const plan_builder *b, const plan_record *r) {
    (void)b;
    return r->call.op != NULL && r->call.op->box != NULL && !r->is_observer && !r->is_view &&
           r->next == NOTHING && !tare__value_is_empty(&r->call.result);
}

static tare_status copy_to(plan_builder *b, const plan_record *r, size_t index,
                           const tare_tensor *y, bool *done) {
    op_call call = r->call;
    gather g;
    const size_t v = tare__plan_find_value(b, y);
    call.err = b->err;
    call.memory = &b->scratch;
    TARE_TRY(call.op->box(&call, index, &g));
    if (g.x == NULL || v == NOTHING || tare__plan_find_value(b, g.x) == NOTHING) return TARE_OK;
    *done = true;
    if (tare__plan_has_buffer(b, v) || b->values[v].uses_left == 0 || y->count == 0) return TARE_OK;
    return add_copy(b, r, &g, v);
}

// [..][heads][1][rows][columns] is expanded to [..][heads][n][rows][columns], and heads and n are
// merged.
static bool repeats_heads(const plan_builder *b, const plan_record *r) {
    if (!tare__record_is(r, TARE_OP_EXPAND) || r->result == NOTHING) return false;
    const tare_tensor *x = b->values[r->inputs[0]].tensor, *y = b->values[r->result].tensor;
    const size_t view = only_view(b, r->result);
    const int ndim = y->ndim;
    if (view == NOTHING || ndim < 4 || x->ndim != ndim || x->shape[ndim - 3] != 1 ||
        y->dtype != TARE_FLOAT32)
        return false;
    const tare_tensor *merged = b->values[view].tensor;
    return merged->ndim == ndim - 1 && merged->shape[ndim - 2] == y->shape[ndim - 1] &&
           merged->shape[ndim - 3] == y->shape[ndim - 2] && x->count > 0 &&
           y->count / x->count == y->shape[ndim - 3];
}

// Products read and write transposed heads in place, and read repeated heads where they are stored
// once.
static int defer(const plan_builder *b, const plan_record *r) {
    if (repeats_heads(b, r)) return SOURCE_REPEATED;
    const bool swaps = tare__plan_swaps_heads(b, r) &&
                       tare__plan_source(b, r->inputs[0], SOURCE_SWAPPED) == NOTHING;
    return swaps ? SOURCE_SWAPPED : SOURCE_NONE;
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    const value *made = &r->call.result;
    if (b->setting->kernels == NULL) return TARE_OK;
    if (made->kind == VALUE_TENSOR) return copy_to(b, r, 0, made->as.tensor, done);
    if (!tare__value_has_items(made)) return TARE_OK;
    for (uint32_t i = 0; i < made->count; i++) {
        bool is_known = false;
        if (made->as.items[i].kind != VALUE_TENSOR) return TARE_OK;
        TARE_TRY(copy_to(b, r, i, made->as.items[i].as.tensor, &is_known));
        if (!is_known) return TARE_OK;
    }
    *done = true;
    return TARE_OK;
}

const step_class tare__copy_step = {
    .name = "copy",
    .heads = heads,
    .defer = defer,
    .plan = plan_chain,
    .run = run_copy,
    .describe = describe,
    .replicate = tare__step_share,
};
