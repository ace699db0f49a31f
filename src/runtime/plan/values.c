// SPDX-License-Identifier: Apache-2.0
// Where values lie: in which layouts, between others, over another or as a view of it. Steps that
// move a value are made here, in front of the step that reads it.
#include "runtime/plan/values.h"

#include "ops/rules.h"
#include "runtime/plan/dispatch.h"
#include "runtime/steps/reorder.h"

// --- places and steps ---

tare_status tare__plan_new_place(plan_builder *b, place_kind kind, size_t bytes, size_t *out) {
    plan *p = b->plan;
    if (!tare__grow((void **)&p->places, &p->place_capacity, p->place_count, sizeof *p->places))
        return tare__out_of_memory(b->err);
    size_t whole;
    if (!tare__add_size(bytes, PLACE_ALIGNMENT - 1, &whole)) return tare__out_of_memory(b->err);
    *out = p->place_count++;
    p->places[*out] = (plan_place){.kind = kind,
                                   .bytes = whole / PLACE_ALIGNMENT * PLACE_ALIGNMENT,
                                   .first = NOTHING,
                                   .whole = NOTHING};
    return TARE_OK;
}

tare_status tare__plan_touch(plan_builder *b, size_t place) {
    if (!tare__grow((void **)&b->touched, &b->touched_capacity, b->touched_count,
                    sizeof *b->touched))
        return tare__out_of_memory(b->err);
    b->touched[b->touched_count++] = place;
    return TARE_OK;
}

static tare_status touch_value(plan_builder *b, size_t place, const tare_tensor *t, bool reads) {
    const tare_tensor **first = reads ? &b->facts.x : &b->facts.y;
    if (reads && *first == NULL) b->facts.x_place = place;
    if (*first == NULL) *first = t;
    *(reads ? &b->facts.bytes_in : &b->facts.bytes_out) += tare__tensor_bytes(t);
    return tare__plan_touch(b, place);
}

void tare__plan_forget_touched(plan_builder *b) {
    b->touched_count = 0;
    b->facts = (step_facts){0};
}

tare_status tare__plan_new_scratch(plan_builder *b, size_t bytes, size_t *out) {
    TARE_TRY(tare__plan_new_place(b, PLACE_ARENA, bytes, out));
    return tare__plan_touch(b, *out);
}

static void note_use(plan *p, size_t place, size_t step) {
    plan_place *at = &p->places[place];
    if (at->first == NOTHING) at->first = step;
    at->last = step;
    if (at->whole != NOTHING) note_use(p, at->whole, step);
}

void tare__plan_keep_to_end(plan *p, size_t place) {
    note_use(p, place, p->step_count - 1);
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
    const size_t codes = tare__plan_codes_of(b, v);
    if (codes != NOTHING) v = codes;
    return b->values[v].place[LAYOUT_CHANNELS_LAST] != NOTHING ? LAYOUT_CHANNELS_LAST
                                                               : LAYOUT_PLAIN;
}

// Constants and inputs get a place when they are first read.
static tare_status place_outside(plan_builder *b, size_t v) {
    plan_value *found = &b->values[v];
    plan *p = b->plan;
    const place_kind kind = found->is_constant ? PLACE_CONSTANT : PLACE_INPUT;
    size_t place;
    TARE_TRY(tare__plan_new_place(b, kind, tare__tensor_bytes(found->tensor), &place));
    p->places[place].data = found->tensor->data;
    for (size_t i = 0; found->is_input && i < p->input_count; i++)
        if (p->inputs[i] == found->tensor) p->input_places[i] = place;
    found->place[LAYOUT_PLAIN] = place;
    return TARE_OK;
}

// Where a value lies without gaps.
static size_t place_in(const plan_value *v, plan_layout layout) {
    const bool is_copy = layout == LAYOUT_CHANNELS_LAST && v->gathered != NOTHING;
    return is_copy ? v->gathered : v->place[layout];
}

// One that every layout can share.
static void share_layouts(plan_builder *b, size_t v) {
    plan_value *found = &b->values[v];
    if (!tare__plan_layouts_agree(found->tensor)) return;
    for (int i = 0; i < LAYOUT_COUNT; i++)
        if (found->place[i] == NOTHING)
            found->place[i] = place_in(found, (plan_layout)(LAYOUT_COUNT - 1 - i));
}

// A step in front of the one in the making, which moves a value.
static tare_status push_move(plan_builder *b, const step_class *class, void *state,
                             const tare_tensor *t, const size_t places[2]) {
    TARE_TRY(push_step(b, class, state, NULL));
    note_use(b->plan, places[0], b->plan->step_count - 1);
    note_use(b->plan, places[1], b->plan->step_count - 1);
    const size_t bytes = tare__tensor_bytes(t);
    b->plan->steps[b->plan->step_count - 1].facts =
        (step_facts){.x = t, .y = t, .x_place = places[0], .bytes_in = bytes, .bytes_out = bytes};
    return TARE_OK;
}

static tare_status convert_layout(plan_builder *b, size_t v, plan_layout to) {
    plan_value *found = &b->values[v];
    const size_t from = place_in(found, LAYOUT_COUNT - 1 - to);
    size_t place;
    void *state;
    TARE_TRY(tare__plan_new_place(b, PLACE_ARENA, tare__tensor_bytes(found->tensor), &place));
    TARE_TRY(tare__reorder_state(b, found->tensor, to, from, place, &state));
    TARE_TRY(
        push_move(b, &tare__reorder_step, state, found->tensor, (const size_t[]){from, place}));
    found->place[to] = place;
    return TARE_OK;
}

bool tare__plan_lies_apart(const plan_builder *b, size_t v) {
    const size_t place = b->values[v].place[LAYOUT_CHANNELS_LAST];
    return place != NOTHING && b->plan->places[place].pitch != 0;
}

static tare_status gather(plan_builder *b, size_t v) {
    plan_value *found = &b->values[v];
    const size_t from = found->place[LAYOUT_CHANNELS_LAST];
    size_t place;
    void *state;
    if (found->gathered != NOTHING) return TARE_OK;
    TARE_TRY(tare__plan_new_place(b, PLACE_ARENA, tare__tensor_bytes(found->tensor), &place));
    TARE_TRY(tare__gather_state(b, found->tensor, from, place, &state));
    TARE_TRY(push_move(b, &tare__gather_step, state, found->tensor, (const size_t[]){from, place}));
    found->gathered = place;
    return TARE_OK;
}

// What was deferred and is wanted after all. What the step in the making reads stays noted.
static tare_status emit_deferred(plan_builder *b, size_t v) {
    size_t *touched = b->touched;
    const size_t count = b->touched_count, capacity = b->touched_capacity;
    const size_t deferred = b->values[v].deferred, first_step = b->plan->step_count;
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

bool tare__plan_has_place(const plan_builder *b, size_t v) {
    const plan_value *found = &b->values[v];
    return found->place[LAYOUT_PLAIN] != NOTHING || found->place[LAYOUT_CHANNELS_LAST] != NOTHING;
}

size_t tare__plan_codes_of(const plan_builder *b, size_t v) {
    return tare__plan_has_place(b, v) ? NOTHING : b->values[v].coded;
}

// What a deferred value or view is made of; NOTHING: it is neither.
static size_t made_of(const plan_value *v) {
    if (v->viewed != NOTHING) return v->viewed;
    return v->swapped != NOTHING ? v->swapped : v->coded;
}

// Who uses a value uses what it is made of, too, and what that is made of.
void tare__plan_count_uses(plan_builder *b, size_t v, ptrdiff_t more) {
    for (; v != NOTHING; v = made_of(&b->values[v])) b->values[v].uses_left += (size_t)more;
}

// A view that is wanted after all, of elements in the plain order. What the step in the making
// reads stays noted.
static tare_status place_view(plan_builder *b, size_t v) {
    const size_t source = b->values[v].viewed;
    const step_facts facts = b->facts;
    TARE_TRY(tare__plan_read(b, source, LAYOUT_PLAIN, &b->values[v].place[LAYOUT_PLAIN]));
    b->facts = facts;
    tare__plan_count_uses(b, source, -(ptrdiff_t)b->values[v].uses_left);
    b->values[v].viewed = NOTHING;
    return TARE_OK;
}

static tare_status place_first(plan_builder *b, size_t v) {
    if (b->values[v].viewed != NOTHING) return place_view(b, v);
    return b->values[v].deferred != NOTHING ? emit_deferred(b, v) : place_outside(b, v);
}

tare_status tare__plan_read(plan_builder *b, size_t v, plan_layout layout, size_t *place) {
    plan_value *found = &b->values[v];
    if (!tare__plan_has_place(b, v)) TARE_TRY(place_first(b, v));
    if (tare__plan_lies_apart(b, v) &&
        (layout == LAYOUT_CHANNELS_LAST || found->place[LAYOUT_PLAIN] == NOTHING))
        TARE_TRY(gather(b, v));
    share_layouts(b, v);
    if (found->place[layout] == NOTHING) TARE_TRY(convert_layout(b, v, layout));
    *place = place_in(found, layout);
    return touch_value(b, *place, found->tensor, true);
}

static const char *name_of_result(const plan_builder *b, size_t v) {
    for (size_t i = 0; i < b->record_count; i++)
        if (b->records[i].result == v) return b->records[i].node->name;
    return NULL;
}

static plan_lines lines_of(const plan_builder *b, size_t v) {
    const plan_value *found = &b->values[v];
    const size_t place = found->place[LAYOUT_CHANNELS_LAST];
    const plan_place *at = &b->plan->places[place];
    const bool is_joined = at->whole != NOTHING && found->joined != NOTHING;
    return (plan_lines){.place = place,
                        .pitch = at->pitch != 0 ? at->pitch : (size_t)found->tensor->shape[1],
                        .joined = is_joined ? name_of_result(b, found->joined) : NULL};
}

tare_status tare__plan_read_lines(plan_builder *b, size_t v, plan_lines *out) {
    if (tare__plan_lies_apart(b, v))
        TARE_TRY(
            touch_value(b, b->values[v].place[LAYOUT_CHANNELS_LAST], b->values[v].tensor, true));
    else
        TARE_TRY(tare__plan_read(b, v, LAYOUT_CHANNELS_LAST, &out->place));
    *out = lines_of(b, v);
    return TARE_OK;
}

// A part of a larger value's place, which whoever comes first makes.
static tare_status place_part(plan_builder *b, size_t v, size_t *out) {
    const plan_value *found = &b->values[v];
    const tare_tensor *all = b->values[found->joined].tensor;
    size_t *whole = &b->values[found->joined].place[LAYOUT_CHANNELS_LAST];
    if (*whole == NOTHING)
        TARE_TRY(tare__plan_new_place(b, PLACE_ARENA, tare__tensor_bytes(all), whole));
    TARE_TRY(tare__plan_new_place(b, PLACE_ARENA, tare__tensor_bytes(found->tensor), out));
    plan_place *part = &b->plan->places[*out];
    part->whole = *whole;
    part->shift = found->joined_at;
    part->pitch = all->count > all->shape[1] ? (size_t)all->shape[1] : 0;
    b->plan->places[*whole].has_parts = true;
    return TARE_OK;
}

tare_status tare__plan_place_lines(plan_builder *b, size_t v, plan_lines *out) {
    plan_value *found = &b->values[v];
    size_t *place = &found->place[LAYOUT_CHANNELS_LAST];
    if (found->joined != NOTHING)
        TARE_TRY(place_part(b, v, place));
    else if (*place == NOTHING)
        TARE_TRY(tare__plan_new_place(b, PLACE_ARENA, tare__tensor_bytes(found->tensor), place));
    *out = lines_of(b, v);
    return TARE_OK;
}

tare_status tare__plan_write_lines(plan_builder *b, size_t v, plan_lines *out) {
    TARE_TRY(tare__plan_place_lines(b, v, out));
    return touch_value(b, out->place, b->values[v].tensor, false);
}

tare_status tare__plan_share(plan_builder *b, size_t v, plan_layout layout, size_t *place) {
    size_t found;
    TARE_TRY(tare__plan_read(b, v, layout, &found));
    tare__plan_forget_touched(b); // what reads the other value touches it
    *place = found;
    return TARE_OK;
}

// A piece of a larger value's memory, which may be a piece itself.
static tare_status place_piece(plan_builder *b, size_t v, size_t *out) {
    const plan_value *found = &b->values[v];
    size_t whole;
    TARE_TRY(tare__plan_place_whole(b, found->within, &whole));
    TARE_TRY(tare__plan_new_place(b, PLACE_ARENA, tare__tensor_bytes(found->tensor), out));
    plan_place *piece = &b->plan->places[*out];
    const plan_place *in = &b->plan->places[whole];
    piece->whole = in->whole != NOTHING ? in->whole : whole;
    piece->shift = (in->whole != NOTHING ? in->shift : 0) + found->within_at;
    b->plan->places[piece->whole].has_parts = true;
    return TARE_OK;
}

tare_status tare__plan_place_whole(plan_builder *b, size_t v, size_t *place) {
    plan_value *found = &b->values[v];
    if (found->whole == NOTHING)
        TARE_TRY(found->within != NOTHING
                     ? place_piece(b, v, &found->whole)
                     : tare__plan_new_place(b, PLACE_ARENA, tare__tensor_bytes(found->tensor),
                                            &found->whole));
    *place = found->whole;
    return TARE_OK;
}

tare_status tare__plan_write_whole(plan_builder *b, size_t v, bool by_step) {
    plan_value *found = &b->values[v];
    found->place[LAYOUT_PLAIN] = found->whole;
    return by_step ? touch_value(b, found->whole, found->tensor, false) : TARE_OK;
}

tare_status tare__plan_write(plan_builder *b, size_t v, plan_layout layout, size_t *place) {
    plan_value *found = &b->values[v];
    if (layout == LAYOUT_PLAIN && found->within != NOTHING)
        TARE_TRY(place_piece(b, v, place));
    else
        TARE_TRY(tare__plan_new_place(b, PLACE_ARENA, tare__tensor_bytes(found->tensor), place));
    found->place[layout] = *place;
    return touch_value(b, *place, found->tensor, false);
}

static bool is_within(const plan *p, size_t place, size_t whole) {
    return place == whole || (place != NOTHING && p->places[place].whole == whole);
}

// Who reads a value may read its copy without gaps, in which others may lie, too.
static size_t uses_of_place(const plan_builder *b, size_t place) {
    size_t uses = 0;
    for (size_t v = 0; v < b->value_count; v++) {
        const plan_value *found = &b->values[v];
        if (is_within(b->plan, found->place[LAYOUT_PLAIN], place) ||
            is_within(b->plan, found->place[LAYOUT_CHANNELS_LAST], place) ||
            found->gathered == place)
            uses += found->uses_left;
    }
    return uses;
}

bool tare__plan_may_write_over(const plan_builder *b, size_t v, size_t input, plan_layout layout) {
    const size_t old = b->values[input].place[layout];
    if (layout == LAYOUT_PLAIN && b->values[v].within != NOTHING) return false; // it goes there
    return b->plan->places[old].kind == PLACE_ARENA && b->plan->places[old].whole == NOTHING &&
           uses_of_place(b, old) == 1 &&
           tare__tensor_bytes(b->values[input].tensor) == tare__tensor_bytes(b->values[v].tensor);
}

tare_status tare__plan_write_over(plan_builder *b, size_t v, size_t input, plan_layout layout,
                                  size_t *place, bool *is_same) {
    const size_t old = b->values[input].place[layout];
    *is_same = tare__plan_may_write_over(b, v, input, layout);
    if (!*is_same) return tare__plan_write(b, v, layout, place);
    b->values[v].place[layout] = *place = old;
    return touch_value(b, old, b->values[v].tensor, false);
}

// Left until somebody reads it, who may as well read what it is a view of.
bool tare__plan_defer_view(plan_builder *b, size_t v, size_t of) {
    const size_t source = b->values[of].viewed != NOTHING ? b->values[of].viewed : of;
    const plan_value *from = &b->values[source];
    if (from->place[LAYOUT_PLAIN] != NOTHING || from->place[LAYOUT_CHANNELS_LAST] == NOTHING ||
        tare__plan_layouts_agree(from->tensor))
        return false;
    b->values[v].viewed = source;
    tare__plan_count_uses(b, source, (ptrdiff_t)b->values[v].uses_left);
    return true;
}
