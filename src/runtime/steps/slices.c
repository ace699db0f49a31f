// SPDX-License-Identifier: Apache-2.0
// Writes slices into a tensor, at given indices, as a decoder writes the keys and values of a token
// into its cache, or at places that the graph knows, as assignments to slices do in exported
// programs: in place if the old tensor is not needed any more.
#include <string.h>

#include "ops/families/gather.h"
#include "ops/layer_call.h"
#include "runtime/gemm/strided_copy.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

typedef struct slices_step {
    op_call call; // for error messages
    slices_call slices;
    size_t x, indices, source, y; // buffers
    bool is_same;                 // y is x, in place
} slices_step;

static tare_status run_slices(const plan_run_state *run, void *state) {
    const slices_step *s = state;
    op_call call = s->call;
    slices_call slices = s->slices;
    tare_tensor indices = *s->slices.indices, source = *s->slices.source;
    void *y = tare__buffer_data(run, s->y);
    call.err = run->err;
    indices.data = tare__buffer_data(run, s->indices);
    source.data = tare__buffer_data(run, s->source);
    slices.indices = &indices;
    slices.source = &source;
    if (!s->is_same) memcpy(y, tare__buffer_data(run, s->x), tare__tensor_bytes(s->slices.x));
    return tare__slices_put(&call, &slices, y);
}

static void say_where(bool is_same, step_note *out) {
    tare__step_say(out, "%s",
                   is_same ? "in place" : "after a copy: other steps need the old values");
}

static void describe(const plan *p, const void *state, step_note *out) {
    const slices_step *s = state;
    (void)p;
    say_where(s->is_same, out);
}

static bool heads(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_INDEX_COPY, TARE_OP_INDEX_PUT, TARE_OP_NONE};
    (void)b;
    return tare__record_is_one_of(r, ids) && r->result != NOTHING;
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    op_call call = r->call;
    slices_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    bool is_known = false;
    if (s == NULL) return tare__out_of_memory(b->err);
    call.err = b->err;
    TARE_TRY(tare__slices_read(&call, &s->slices, &is_known));
    if (!is_known || s->slices.x->count == 0) return tare__plan_decline_operator(b);
    const size_t x = tare__plan_find_value(b, s->slices.x);
    const size_t indices = tare__plan_find_value(b, s->slices.indices);
    const size_t source = tare__plan_find_value(b, s->slices.source);
    if (x == NOTHING || indices == NOTHING || source == NOTHING)
        return tare__plan_decline_operator(b);
    s->call = r->call;
    TARE_TRY(tare__plan_read(b, x, LAYOUT_PLAIN, &s->x));
    TARE_TRY(tare__plan_read(b, indices, LAYOUT_PLAIN, &s->indices));
    TARE_TRY(tare__plan_read(b, source, LAYOUT_PLAIN, &s->source));
    // Slices of the same tensor must be read before they are overwritten.
    if (s->source == s->x || s->indices == s->x)
        TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y));
    else
        TARE_TRY(tare__plan_write_over(b, r->result, x, LAYOUT_PLAIN, &s->y, &s->is_same));
    *done = true;
    return tare__plan_add_step(b, &tare__slices_step, s, r->node);
}

const step_class tare__slices_step = {
    .name = "slices",
    .heads = heads,
    .plan = plan_chain,
    .run = run_slices,
    .describe = describe,
    .replicate = tare__step_share,
};

// --- a box of the tensor ---

typedef struct place_step {
    size_t x, part, y; // buffers
    size_t bytes;      // of x
    bool is_same;      // y is x, in place
    int64_t offset;    // of the box's first element in y, in bytes
    strided_copy copy;
} place_step;

static tare_status run_place(const plan_run_state *run, void *state) {
    const place_step *s = state;
    unsigned char *y = tare__buffer_data(run, s->y);
    if (!s->is_same) memcpy(y, tare__buffer_data(run, s->x), s->bytes);
    tare__strided_copy_run(&s->copy, tare__threads_for(run, tare__strided_copy_elements(&s->copy)),
                           tare__buffer_data(run, s->part), y + s->offset);
    return TARE_OK;
}

static void describe_place(const plan *p, const void *state, step_note *out) {
    const place_step *s = state;
    (void)p;
    say_where(s->is_same, out);
}

static bool heads_place(const plan_builder *b, const plan_record *r) {
    (void)b;
    return r->call.op != NULL && r->call.op->place != NULL && r->result != NOTHING &&
           !r->is_observer && !r->is_view && r->next == NOTHING;
}

static strided_copy copy_of(const gather *g, size_t element) {
    copy_loop loops[GATHER_MAX_DIMS];
    int64_t step = 1;
    for (int d = g->ndim - 1; d >= 0; d--) {
        loops[d] = (copy_loop){g->size[d], step, g->stride[d]};
        step *= g->size[d];
    }
    return tare__strided_copy_of(element, 0, loops, (size_t)g->ndim);
}

static tare_status plan_place(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    const tare_tensor *part = tare__call_tensor(&r->call, 1);
    op_call call = r->call;
    gather g;
    call.err = b->err;
    call.memory = &b->scratch;
    TARE_TRY(call.op->place(&call, &g));
    const size_t x = tare__plan_find_value(b, g.x), from = tare__plan_find_value(b, part);
    if (x == NOTHING || from == NOTHING || part->count == 0) return tare__plan_decline_operator(b);
    place_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    const size_t element = tare_dtype_size(g.x->dtype);
    s->copy = copy_of(&g, element);
    s->bytes = tare__tensor_bytes(g.x);
    s->offset = g.offset * (int64_t)element;
    TARE_TRY(tare__plan_read(b, x, LAYOUT_PLAIN, &s->x));
    TARE_TRY(tare__plan_read(b, from, LAYOUT_PLAIN, &s->part));
    // A part of the same tensor must be read before it is overwritten.
    if (s->part == s->x)
        TARE_TRY(tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y));
    else
        TARE_TRY(tare__plan_write_over(b, r->result, x, LAYOUT_PLAIN, &s->y, &s->is_same));
    *done = true;
    return tare__plan_add_step(b, &tare__place_step, s, r->node);
}

const step_class tare__place_step = {
    .name = "place",
    .heads = heads_place,
    .plan = plan_place,
    .run = run_place,
    .describe = describe_place,
    .replicate = tare__step_share,
};
