// SPDX-License-Identifier: Apache-2.0
// Finds the tensors of the model that calls modify, and plans where each run stores their new
// values.
#include "runtime/plan/states.h"

#include <stdatomic.h>
#include <string.h>

// --- tracing ---

static tare_status add_state(plan_builder *b, const char *path, plan_state *s) {
    const tare_tensor *t = tare__module_find_tensor(b->setting->it->root, path);
    tare_tensor *first = NULL;
    size_t v;
    if (t == NULL || t->q != NULL)
        return tare__fail(b->err, TARE_UNSUPPORTED, "tensor '%s': no state that can be planned",
                          path);
    TARE_TRY(tare__tensor_meta(t->dtype, t->ndim, t->shape, NULL, &first, b->err));
    const tare_status status = tare__plan_add_value(b, first, &v);
    tare_tensor_release(first); // the plan holds a reference
    TARE_TRY(status);
    b->values[v].is_state = true;
    *s = (plan_state){path, first, first, NOTHING, NOTHING};
    return TARE_OK;
}

tare_status tare__plan_add_states(plan_builder *b) {
    plan *p = b->plan;
    const size_t count = b->setting->state_count;
    p->states = tare__arena_array(&p->memory, count + 1, sizeof *p->states);
    if (p->states == NULL) return tare__out_of_memory(b->err);
    for (; p->state_count < count; p->state_count++)
        TARE_TRY(add_state(b, b->setting->states[p->state_count], &p->states[p->state_count]));
    return TARE_OK;
}

static plan_state *state_at(const plan *p, const char *path) {
    for (size_t i = 0; i < p->state_count; i++)
        if (strcmp(p->states[i].path, path) == 0) return &p->states[i];
    return NULL;
}

tare_tensor *tare__plan_stand_in(void *user, const char *path) {
    const plan_builder *b = user;
    const plan_state *s = state_at(b->plan, path);
    return s != NULL ? s->last : NULL;
}

tare_status tare__plan_note_write(void *user, const node *n, tare_tensor *now, tare_error *err) {
    const plan_builder *b = user;
    plan_state *s = n->owner == b->setting->it->root->graph ? state_at(b->plan, n->target) : NULL;
    if (s == NULL || now->q != NULL || now->dtype != s->first->dtype ||
        !tare__same_shape(now, s->first))
        return tare__fail(err, TARE_UNSUPPORTED, "node '%s': cannot be planned", n->name);
    s->last = now;
    return tare__plan_keep_tensor(b->plan, now, err);
}

tare_status tare__plan_use_states(plan_builder *b) {
    for (size_t i = 0; i < b->plan->state_count; i++) {
        const plan_state *s = &b->plan->states[i];
        size_t v = tare__plan_find_value(b, s->last);
        if (s->last == s->first) continue;
        if (v == NOTHING) TARE_TRY(tare__plan_add_value(b, s->last, &v)); // a constant
        b->values[v].uses_left++;
        b->values[v].consumer = NOTHING; // no single record reads it
    }
    return TARE_OK;
}

// --- placing ---

bool tare__plan_is_next_state(const plan_builder *b, size_t v, size_t input) {
    for (size_t i = 0; i < b->plan->state_count; i++) {
        const plan_state *s = &b->plan->states[i];
        if (s->first == b->values[input].tensor) return s->last == b->values[v].tensor;
    }
    return false;
}

static tare_status emit_state(plan_builder *b, plan_state *s) {
    plan *p = b->plan;
    TARE_TRY(tare__plan_read(b, tare__plan_find_value(b, s->first), LAYOUT_PLAIN, &s->buffer));
    s->from = s->buffer;
    if (s->last == s->first) return TARE_OK;
    TARE_TRY(tare__plan_read(b, tare__plan_find_value(b, s->last), LAYOUT_PLAIN, &s->from));
    const plan_buffer *from = &p->buffers[s->from];
    // If it is the old value of another state, the order of copies would matter.
    if (from->kind == BUFFER_STATE && s->from != s->buffer)
        return tare__fail(b->err, TARE_UNSUPPORTED, "tensor '%s' becomes another state", s->path);
    return TARE_OK;
}

tare_status tare__plan_emit_states(plan_builder *b) {
    for (size_t i = 0; i < b->plan->state_count; i++) TARE_TRY(emit_state(b, &b->plan->states[i]));
    tare__plan_forget_touched(b);
    return TARE_OK;
}

// The copies are made after the last step.
void tare__plan_keep_states(plan *p) {
    for (size_t i = 0; i < p->state_count; i++) {
        const plan_buffer *from = &p->buffers[p->states[i].from];
        if (from->kind == BUFFER_ARENA && from->first != NOTHING)
            tare__plan_keep_to_end(p, p->states[i].from);
    }
}

// --- running ---

// True if there is no other reference to the tensor or its data.
static bool is_own(tare_tensor *t) {
    return atomic_load(&t->refcount) == 1 && (t->count == 0 || tare_tensor_mutable_data(t) != NULL);
}

static tare_status take_state(const plan *p, const plan_state *s, tare_error *err) {
    module *own = p->setting.it->own;
    tare_tensor *t = own != NULL ? tare__module_find_tensor(own, s->path) : NULL;
    if (t == NULL || t->dtype != s->first->dtype || !tare__same_shape(t, s->first))
        return tare__fail(err, TARE_INTERNAL, "tensor '%s' is no state any more", s->path);
    if (!is_own(t)) {
        TARE_TRY(tare__tensor_copy(t, &t, err));
        const tare_status status = tare__module_replace_tensor(own, s->path, t, err);
        tare_tensor_release(t); // the module holds a reference
        TARE_TRY(status);
    }
    p->buffers[s->buffer].data = t->data;
    return TARE_OK;
}

tare_status tare__plan_take_states(plan *p, tare_error *err) {
    for (size_t i = 0; i < p->state_count; i++) TARE_TRY(take_state(p, &p->states[i], err));
    return TARE_OK;
}

void tare__plan_leave_states(const plan *p) {
    for (size_t i = 0; i < p->state_count; i++) {
        const plan_state *s = &p->states[i];
        if (s->from != s->buffer && s->first->count > 0)
            memcpy(p->buffers[s->buffer].data, p->buffers[s->from].data,
                   tare__tensor_bytes(s->first));
    }
}
