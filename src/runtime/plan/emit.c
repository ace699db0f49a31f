// SPDX-License-Identifier: Apache-2.0
// The second half of planning: turns chains of records into steps, in order.
#include "runtime/plan/emit.h"

#include "runtime/plan/dispatch.h"
#include "runtime/plan/states.h"

static tare_status emit_view(plan_builder *b, const plan_record *r) {
    const size_t base = b->values[r->result].base;
    if (tare__plan_has_buffer(b, r->result))
        return TARE_OK; // it is a view of a value with a buffer
    for (size_t i = 0; i < r->input_count; i++) {
        const size_t v = r->inputs[i];
        size_t buffer;
        if (b->values[v].base != base) continue;
        if (tare__plan_defer_view(b, r->result, v)) return TARE_OK;
        if (tare__plan_view_repeated(b, r->result, v)) return TARE_OK;
        TARE_TRY(tare__plan_share(b, v, LAYOUT_PLAIN, &buffer));
        b->values[r->result].placement[LAYOUT_PLAIN].buffer = buffer;
        return TARE_OK;
    }
    return tare__fail(b->err, TARE_UNSUPPORTED, "node '%s': cannot be planned", r->node->name);
}

static void consume_inputs(plan_builder *b, const plan_record *r) {
    for (size_t i = 0; i < r->input_count; i++) tare__plan_count_uses(b, r->inputs[i], -1);
}

static bool defer(plan_builder *b, size_t record) {
    const plan_record *r = &b->records[record];
    const step_class *class = r->next == NOTHING ? tare__plan_class_of(b, r) : NULL;
    if (class == NULL || class->defer == NULL) return false;
    const int kind = class->defer(b, r);
    if (kind == SOURCE_NONE) return false;
    const ptrdiff_t uses = (ptrdiff_t)b->values[r->result].uses_left;
    b->values[r->result].source = (plan_source){.kind = (enum plan_source_kind)kind,
                                                .value = r->inputs[0],
                                                .also = r->input_count > 1 ? r->inputs[1] : NOTHING,
                                                .record = record};
    for (size_t i = 0; i < r->input_count; i++) tare__plan_count_uses(b, r->inputs[i], uses);
    return true;
}

static tare_status emit_calls(plan_builder *b, size_t head) {
    if (tare__plan_class_of(b, &b->records[head]) == NULL) TARE_TRY(tare__plan_decline_operator(b));
    for (size_t i = head; i != NOTHING; i = b->records[i].next) {
        TARE_TRY(tare__plan_call(b, i));
        consume_inputs(b, &b->records[i]);
    }
    return TARE_OK;
}

static tare_status emit_steps(plan_builder *b, size_t head) {
    const plan_record *r = &b->records[head];
    bool done = true;
    b->declined = NULL;
    if (r->is_view)
        TARE_TRY(emit_view(b, r));
    else if (!defer(b, head))
        TARE_TRY(tare__plan_by_class(b, head, &done));
    if (!done) return emit_calls(b, head);
    for (size_t i = head; i != NOTHING; i = b->records[i].next) consume_inputs(b, &b->records[i]);
    return TARE_OK;
}

static tare_status emit_chain(plan_builder *b, size_t head) {
    const size_t first_step = b->plan->step_count;
    TARE_TRY(emit_steps(b, head));
    return tare__plan_note_chain(b, first_step, head);
}

// --- outputs ---

// Copied outputs are read after the last step.
static void keep_copied(plan *p) {
    for (size_t i = 0; i < p->output_count; i++) {
        const plan_output *out = &p->outputs[i];
        const plan_buffer *buffer = &p->buffers[out->buffer];
        if (out->is_copied && buffer->kind == BUFFER_ARENA && buffer->first != NOTHING)
            tare__plan_keep_to_end(p, out->buffer);
    }
}

static tare_status emit_outputs(plan_builder *b) {
    plan *p = b->plan;
    for (size_t i = 0; i < p->output_count; i++) {
        plan_output *out = &p->outputs[i];
        const size_t v = tare__plan_find_value(b, out->like);
        TARE_TRY(tare__plan_read(b, v, LAYOUT_PLAIN, &out->buffer));
        plan_buffer *buffer = &p->buffers[out->buffer];
        out->is_copied =
            buffer->kind != BUFFER_ARENA || buffer->whole != NOTHING || buffer->has_slices;
        if (!out->is_copied) buffer->kind = BUFFER_OUTPUT;
    }
    tare__plan_forget_touched(b);
    return TARE_OK;
}

tare_status tare__plan_emit(plan_builder *b) {
    for (size_t i = 0; i < b->record_count; i++)
        if (b->records[i].group == i) TARE_TRY(emit_chain(b, b->records[i].head));
    TARE_TRY(emit_outputs(b));
    TARE_TRY(tare__plan_emit_states(b));
    keep_copied(b->plan); // after the steps that these may have added
    tare__plan_keep_states(b->plan);
    return TARE_OK;
}
