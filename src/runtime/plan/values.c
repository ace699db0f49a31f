// SPDX-License-Identifier: Apache-2.0
// Buffers of values: their layouts, slices of concatenations, in-place results and views. If a step
// needs a value in another layout, a step that moves it is inserted before.
#include "runtime/plan/values.h"

#include "ops/rules.h"
#include "runtime/plan/dispatch.h"
#include "runtime/plan/states.h"
#include "runtime/steps/reorder.h"

// --- buffers and steps ---

tare_status tare__plan_new_buffer(plan_builder *b, buffer_kind kind, size_t bytes, size_t *out) {
    plan *p = b->plan;
    if (!tare__grow((void **)&p->buffers, &p->buffer_capacity, p->buffer_count, sizeof *p->buffers))
        return tare__out_of_memory(b->err);
    size_t whole;
    if (!tare__add_size(bytes, BUFFER_ALIGNMENT - 1, &whole)) return tare__out_of_memory(b->err);
    *out = p->buffer_count++;
    p->buffers[*out] = (plan_buffer){.kind = kind,
                                     .bytes = whole / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT,
                                     .first = NOTHING,
                                     .whole = NOTHING};
    return TARE_OK;
}

tare_status tare__plan_touch(plan_builder *b, size_t buffer) {
    if (!tare__grow((void **)&b->touched, &b->touched_capacity, b->touched_count,
                    sizeof *b->touched))
        return tare__out_of_memory(b->err);
    b->touched[b->touched_count++] = buffer;
    return TARE_OK;
}

static tare_status touch_value(plan_builder *b, size_t buffer, const tare_tensor *t, bool reads) {
    const tare_tensor **first = reads ? &b->facts.x : &b->facts.y;
    if (reads && *first == NULL) b->facts.x_buffer = buffer;
    if (*first == NULL) *first = t;
    *(reads ? &b->facts.bytes_in : &b->facts.bytes_out) += tare__tensor_bytes(t);
    return tare__plan_touch(b, buffer);
}

void tare__plan_forget_touched(plan_builder *b) {
    b->touched_count = 0;
    b->facts = (step_facts){0};
}

tare_status tare__plan_new_scratch(plan_builder *b, size_t bytes, size_t *out) {
    TARE_TRY(tare__plan_new_buffer(b, BUFFER_ARENA, bytes, out));
    return tare__plan_touch(b, *out);
}

static void note_use(plan *p, size_t buffer, size_t step) {
    plan_buffer *at = &p->buffers[buffer];
    if (at->first == NOTHING) at->first = step;
    at->last = step;
    if (at->whole != NOTHING) note_use(p, at->whole, step);
}

void tare__plan_keep_to_end(plan *p, size_t buffer) {
    note_use(p, buffer, p->step_count - 1);
}

static tare_status push_step(plan_builder *b, const step_class *class, void *state, const node *n) {
    plan *p = b->plan;
    if (!tare__grow((void **)&p->steps, &p->step_capacity, p->step_count, sizeof *p->steps)) {
        if (class->destroy != NULL) class->destroy(state);
        return tare__out_of_memory(b->err);
    }
    p->steps[p->step_count++] =
        (plan_step){.class = class, .state = state, .node_name = n != NULL ? n->name : NULL};
    return TARE_OK;
}

tare_status tare__plan_add_step(plan_builder *b, const step_class *class, void *state,
                                const node *n) {
    TARE_TRY(push_step(b, class, state, n));
    plan_step *step = &b->plan->steps[b->plan->step_count - 1];
    for (size_t i = 0; i < b->touched_count; i++)
        note_use(b->plan, b->touched[i], b->plan->step_count - 1);
    step->facts = b->facts;
    tare__plan_forget_touched(b);
    return TARE_OK;
}

// --- values in layouts ---

bool tare__plan_layouts_agree(const tare_tensor *t) {
    if (t->ndim < 3 || t->count == 0) return true;
    const int64_t inner = tare__inner_count(t, 1);
    return t->shape[1] == 1 || inner == 1;
}

plan_layout tare__plan_layout(const plan_builder *b, size_t v) {
    const size_t quantized = tare__plan_quantized_of(b, v);
    if (quantized != NOTHING) v = quantized;
    return b->values[v].placement[LAYOUT_CHANNELS_LAST].buffer != NOTHING ? LAYOUT_CHANNELS_LAST
                                                                          : LAYOUT_PLAIN;
}

// Constants and inputs get a buffer at their first use.
static tare_status place_outside(plan_builder *b, size_t v) {
    plan_value *found = &b->values[v];
    plan *p = b->plan;
    const buffer_kind kind = found->is_constant ? BUFFER_CONSTANT
                             : found->is_state  ? BUFFER_STATE
                                                : BUFFER_INPUT;
    size_t buffer;
    TARE_TRY(tare__plan_new_buffer(b, kind, tare__tensor_bytes(found->tensor), &buffer));
    p->buffers[buffer].data = found->tensor->data;
    for (size_t i = 0; found->is_input && i < p->input_count; i++)
        if (p->inputs[i] == found->tensor) p->input_buffers[i] = buffer;
    found->placement[LAYOUT_PLAIN].buffer = buffer;
    return TARE_OK;
}

// The contiguous buffer of a value in a layout.
static size_t buffer_in(const plan_value *v, plan_layout layout) {
    const plan_placement *at = &v->placement[layout];
    return at->packed != NOTHING ? at->packed : at->buffer;
}

// For values that have the same order of elements in both layouts.
static void share_layouts(plan_builder *b, size_t v) {
    plan_value *found = &b->values[v];
    if (!tare__plan_layouts_agree(found->tensor)) return;
    for (int i = 0; i < LAYOUT_COUNT; i++)
        if (found->placement[i].buffer == NOTHING)
            found->placement[i].buffer = buffer_in(found, (plan_layout)(LAYOUT_COUNT - 1 - i));
}

// Adds a step that moves a value before the step that is being planned.
static tare_status push_move(plan_builder *b, const step_class *class, void *state,
                             const tare_tensor *t, const size_t buffers[2]) {
    TARE_TRY(push_step(b, class, state, NULL));
    note_use(b->plan, buffers[0], b->plan->step_count - 1);
    note_use(b->plan, buffers[1], b->plan->step_count - 1);
    const size_t bytes = tare__tensor_bytes(t);
    b->plan->steps[b->plan->step_count - 1].facts =
        (step_facts){.x = t, .y = t, .x_buffer = buffers[0], .bytes_in = bytes, .bytes_out = bytes};
    return TARE_OK;
}

static tare_status convert_layout(plan_builder *b, size_t v, plan_layout to) {
    plan_value *found = &b->values[v];
    const size_t from = buffer_in(found, LAYOUT_COUNT - 1 - to);
    size_t buffer;
    void *state;
    TARE_TRY(tare__plan_new_buffer(b, BUFFER_ARENA, tare__tensor_bytes(found->tensor), &buffer));
    TARE_TRY(tare__reorder_state(b, found->tensor, to, from, buffer, &state));
    TARE_TRY(
        push_move(b, &tare__reorder_step, state, found->tensor, (const size_t[]){from, buffer}));
    found->placement[to].buffer = buffer;
    return TARE_OK;
}

bool tare__plan_lies_apart(const plan_builder *b, size_t v) {
    const size_t buffer = b->values[v].placement[LAYOUT_CHANNELS_LAST].buffer;
    return buffer != NOTHING && b->plan->buffers[buffer].pitch != 0;
}

static tare_status gather(plan_builder *b, size_t v) {
    const tare_tensor *t = b->values[v].tensor;
    plan_placement *at = &b->values[v].placement[LAYOUT_CHANNELS_LAST];
    size_t buffer;
    void *state;
    if (at->packed != NOTHING) return TARE_OK;
    TARE_TRY(tare__plan_new_buffer(b, BUFFER_ARENA, tare__tensor_bytes(t), &buffer));
    TARE_TRY(tare__gather_state(b, t, at->buffer, buffer, &state));
    TARE_TRY(push_move(b, &tare__gather_step, state, t, (const size_t[]){at->buffer, buffer}));
    at->packed = buffer;
    return TARE_OK;
}

// Adds the step of a deferred value that is needed after all. The buffers noted for the step that
// is being planned are kept.
static tare_status emit_deferred(plan_builder *b, size_t v) {
    size_t *touched = b->touched;
    const size_t count = b->touched_count, capacity = b->touched_capacity;
    const size_t deferred = b->values[v].source.record, first_step = b->plan->step_count;
    const step_facts facts = b->facts;
    b->touched = NULL;
    b->touched_count = b->touched_capacity = 0;
    b->facts = (step_facts){0};
    tare_status status = tare__plan_one(b, deferred);
    if (status == TARE_OK) status = tare__plan_note_chain(b, first_step, deferred);
    b->facts = facts;
    tare__free(b->touched);
    b->touched = touched;
    b->touched_count = count;
    b->touched_capacity = capacity;
    return status;
}

bool tare__plan_has_buffer(const plan_builder *b, size_t v) {
    const plan_placement *at = b->values[v].placement;
    return at[LAYOUT_PLAIN].buffer != NOTHING || at[LAYOUT_CHANNELS_LAST].buffer != NOTHING;
}

size_t tare__plan_quantized_of(const plan_builder *b, size_t v) {
    return tare__plan_has_buffer(b, v) ? NOTHING : tare__plan_source(b, v, SOURCE_QUANTIZED);
}

// Using a value also uses its sources, and the sources of these.
void tare__plan_count_uses(plan_builder *b, size_t v, ptrdiff_t more) {
    for (; v != NOTHING; v = b->values[v].source.value) {
        b->values[v].uses_left += (size_t)more;
        const size_t also = b->values[v].source.also;
        if (also != NOTHING) tare__plan_count_uses(b, also, more);
    }
}

// Adds a view that is needed after all, with its elements in plain order. The buffers noted for the
// step that is being planned are kept.
static tare_status place_view(plan_builder *b, size_t v) {
    const size_t source = b->values[v].source.value;
    const step_facts facts = b->facts;
    TARE_TRY(
        tare__plan_read(b, source, LAYOUT_PLAIN, &b->values[v].placement[LAYOUT_PLAIN].buffer));
    b->facts = facts;
    tare__plan_count_uses(b, source, -(ptrdiff_t)b->values[v].uses_left);
    b->values[v].source = (plan_source){.value = NOTHING, .also = NOTHING};
    return TARE_OK;
}

static tare_status place_first(plan_builder *b, size_t v) {
    const enum plan_source_kind kind = b->values[v].source.kind;
    if (kind == SOURCE_VIEW) return place_view(b, v);
    return kind != SOURCE_NONE ? emit_deferred(b, v) : place_outside(b, v);
}

tare_status tare__plan_read(plan_builder *b, size_t v, plan_layout layout, size_t *buffer) {
    plan_value *found = &b->values[v];
    if (!tare__plan_has_buffer(b, v)) TARE_TRY(place_first(b, v));
    if (tare__plan_lies_apart(b, v) &&
        (layout == LAYOUT_CHANNELS_LAST || found->placement[LAYOUT_PLAIN].buffer == NOTHING))
        TARE_TRY(gather(b, v));
    share_layouts(b, v);
    if (found->placement[layout].buffer == NOTHING) TARE_TRY(convert_layout(b, v, layout));
    *buffer = buffer_in(found, layout);
    return touch_value(b, *buffer, found->tensor, true);
}

static const char *name_of_result(const plan_builder *b, size_t v) {
    for (size_t i = 0; i < b->record_count; i++)
        if (b->records[i].result == v) return b->records[i].node->name;
    return NULL;
}

static plan_pixels pixels_of(const plan_builder *b, size_t v) {
    const plan_value *found = &b->values[v];
    const plan_placement *at = &found->placement[LAYOUT_CHANNELS_LAST];
    const plan_buffer *buffer = &b->plan->buffers[at->buffer];
    const bool is_slice = buffer->whole != NOTHING && at->slice_of != NOTHING;
    return (plan_pixels){.buffer = at->buffer,
                         .pitch =
                             buffer->pitch != 0 ? buffer->pitch : (size_t)found->tensor->shape[1],
                         .slice_of = is_slice ? name_of_result(b, at->slice_of) : NULL};
}

tare_status tare__plan_read_pixels(plan_builder *b, size_t v, plan_pixels *out) {
    const plan_value *found = &b->values[v];
    if (tare__plan_lies_apart(b, v))
        TARE_TRY(
            touch_value(b, found->placement[LAYOUT_CHANNELS_LAST].buffer, found->tensor, true));
    else
        TARE_TRY(tare__plan_read(b, v, LAYOUT_CHANNELS_LAST, &out->buffer));
    *out = pixels_of(b, v);
    return TARE_OK;
}

static tare_status new_buffer_of(plan_builder *b, size_t v, size_t *out) {
    return tare__plan_new_buffer(b, BUFFER_ARENA, tare__tensor_bytes(b->values[v].tensor), out);
}

// The buffer of a slice. The first slice of a concatenation creates the buffer of the whole, which
// may be a slice itself.
static tare_status place_slice(plan_builder *b, size_t v, plan_layout layout, size_t *out) {
    const plan_placement *at = &b->values[v].placement[layout];
    const tare_tensor *all = b->values[at->slice_of].tensor;
    size_t whole;
    TARE_TRY(tare__plan_place_whole(b, at->slice_of, layout, &whole));
    TARE_TRY(new_buffer_of(b, v, out));
    plan_buffer *slice = &b->plan->buffers[*out];
    const plan_buffer *in = &b->plan->buffers[whole];
    slice->whole = in->whole != NOTHING ? in->whole : whole;
    slice->shift = (in->whole != NOTHING ? in->shift : 0) + at->slice_at;
    if (layout == LAYOUT_CHANNELS_LAST && all->count > all->shape[1])
        slice->pitch = (size_t)all->shape[1];
    b->plan->buffers[slice->whole].has_slices = true;
    return TARE_OK;
}

tare_status tare__plan_place_whole(plan_builder *b, size_t v, plan_layout layout, size_t *buffer) {
    plan_placement *at = &b->values[v].placement[layout];
    if (at->whole == NOTHING)
        TARE_TRY(at->slice_of != NOTHING ? place_slice(b, v, layout, &at->whole)
                                         : new_buffer_of(b, v, &at->whole));
    *buffer = at->whole;
    return TARE_OK;
}

tare_status tare__plan_write_whole(plan_builder *b, size_t v, plan_layout layout, bool by_step) {
    plan_placement *at = &b->values[v].placement[layout];
    at->buffer = at->whole;
    return by_step ? touch_value(b, at->whole, b->values[v].tensor, false) : TARE_OK;
}

tare_status tare__plan_place_pixels(plan_builder *b, size_t v, plan_pixels *out) {
    plan_placement *at = &b->values[v].placement[LAYOUT_CHANNELS_LAST];
    if (at->slice_of != NOTHING)
        TARE_TRY(place_slice(b, v, LAYOUT_CHANNELS_LAST, &at->buffer));
    else if (at->buffer == NOTHING)
        TARE_TRY(tare__plan_place_whole(b, v, LAYOUT_CHANNELS_LAST, &at->buffer));
    *out = pixels_of(b, v);
    return TARE_OK;
}

tare_status tare__plan_write_pixels(plan_builder *b, size_t v, plan_pixels *out) {
    TARE_TRY(tare__plan_place_pixels(b, v, out));
    return touch_value(b, out->buffer, b->values[v].tensor, false);
}

tare_status tare__plan_share(plan_builder *b, size_t v, plan_layout layout, size_t *buffer) {
    size_t found;
    TARE_TRY(tare__plan_read(b, v, layout, &found));
    tare__plan_forget_touched(b); // the readers of the other value note its buffer
    *buffer = found;
    return TARE_OK;
}

tare_status tare__plan_write(plan_builder *b, size_t v, plan_layout layout, size_t *buffer) {
    // Steps that write slices channels last use pixels (tare__plan_write_pixels).
    TARE_TRY(layout == LAYOUT_PLAIN && tare__plan_is_slice(b, v, layout)
                 ? place_slice(b, v, layout, buffer)
                 : new_buffer_of(b, v, buffer));
    b->values[v].placement[layout].buffer = *buffer;
    return touch_value(b, *buffer, b->values[v].tensor, false);
}

static bool is_within(const plan *p, size_t buffer, size_t whole) {
    return buffer == whole || (buffer != NOTHING && p->buffers[buffer].whole == whole);
}

// Readers may use a contiguous copy of the value, which other values may share.
static size_t uses_of_buffer(const plan_builder *b, size_t buffer) {
    size_t uses = 0;
    for (size_t v = 0; v < b->value_count; v++) {
        const plan_value *found = &b->values[v];
        if (is_within(b->plan, found->placement[LAYOUT_PLAIN].buffer, buffer) ||
            is_within(b->plan, found->placement[LAYOUT_CHANNELS_LAST].buffer, buffer) ||
            found->placement[LAYOUT_CHANNELS_LAST].packed == buffer)
            uses += found->uses_left;
    }
    return uses;
}

bool tare__plan_may_write_over(const plan_builder *b, size_t v, size_t input, plan_layout layout) {
    const size_t old = b->values[input].placement[layout].buffer;
    if (layout == LAYOUT_PLAIN && tare__plan_is_slice(b, v, layout)) return false; // it goes there
    const bool is_ours = b->plan->buffers[old].kind == BUFFER_ARENA ||
                         (layout == LAYOUT_PLAIN && tare__plan_is_next_state(b, v, input));
    return is_ours && b->plan->buffers[old].whole == NOTHING && uses_of_buffer(b, old) == 1 &&
           tare__tensor_bytes(b->values[input].tensor) == tare__tensor_bytes(b->values[v].tensor);
}

tare_status tare__plan_write_over(plan_builder *b, size_t v, size_t input, plan_layout layout,
                                  size_t *buffer, bool *is_same) {
    const size_t old = b->values[input].placement[layout].buffer;
    *is_same = tare__plan_may_write_over(b, v, input, layout);
    if (!*is_same) return tare__plan_write(b, v, layout, buffer);
    b->values[v].placement[layout].buffer = *buffer = old;
    return touch_value(b, old, b->values[v].tensor, false);
}

// Defers a view: its readers may use the value that it is a view of.
bool tare__plan_defer_view(plan_builder *b, size_t v, size_t of) {
    const size_t viewed = tare__plan_source(b, of, SOURCE_VIEW);
    const size_t source = viewed != NOTHING ? viewed : of;
    const plan_value *from = &b->values[source];
    if (from->placement[LAYOUT_PLAIN].buffer != NOTHING ||
        from->placement[LAYOUT_CHANNELS_LAST].buffer == NOTHING ||
        tare__plan_layouts_agree(from->tensor))
        return false;
    b->values[v].source =
        (plan_source){.kind = SOURCE_VIEW, .value = source, .also = NOTHING, .record = NOTHING};
    tare__plan_count_uses(b, source, (ptrdiff_t)b->values[v].uses_left);
    return true;
}

bool tare__plan_view_repeated(plan_builder *b, size_t v, size_t of) {
    if (tare__plan_has_buffer(b, of) || tare__plan_source(b, of, SOURCE_REPEATED) == NOTHING)
        return false;
    b->values[v].source =
        (plan_source){.kind = SOURCE_VIEW, .value = of, .also = NOTHING, .record = NOTHING};
    tare__plan_count_uses(b, of, (ptrdiff_t)b->values[v].uses_left);
    return true;
}
