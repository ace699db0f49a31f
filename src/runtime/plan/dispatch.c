// SPDX-License-Identifier: Apache-2.0
// Goes through the kinds of steps in order of priority: each says whether it can start with a call,
// joins the calls that follow, and plans the chain.
#include "runtime/plan/dispatch.h"

#include "ops/rules.h"

const step_class *tare__plan_class_of(const plan_builder *b, const plan_record *r) {
    const step_class *const *at = b->classes;
    while (*at != NULL && !(*at)->heads(b, r)) at++;
    return *at;
}

bool tare__plan_reader_takes_quantized(const plan_builder *b, const plan_record *r) {
    const plan_value *v = &b->values[r->result];
    if (v->uses_left != 1 || v->consumer == NOTHING || tare__plan_lies_apart(b, r->inputs[0]))
        return false;
    const plan_record *next = &b->records[v->consumer];
    const step_class *class = tare__plan_class_of(b, &b->records[next->head]);
    return class != NULL && class->reads_quantized &&
           tare__same_shape(v->tensor, b->values[next->result].tensor);
}

static void extend(plan_builder *b, size_t head) {
    for (const step_class *const *at = b->classes; *at != NULL; at++)
        if ((*at)->extend != NULL && (*at)->heads(b, &b->records[head]) && (*at)->extend(b, head))
            return;
}

static void reserve(plan_builder *b, size_t record) {
    for (const step_class *const *at = b->classes; *at != NULL; at++)
        if ((*at)->reserve != NULL && (*at)->heads(b, &b->records[record]))
            (*at)->reserve(b, record);
}

void tare__plan_join(plan_builder *b) {
    for (size_t i = 0; i < b->record_count; i++)
        if (b->records[i].head == i) extend(b, i);
    for (size_t i = b->record_count; i-- > 0;) reserve(b, i);
}

static tare_status plan_from(plan_builder *b, const step_class *const *at, size_t head,
                             bool *done) {
    *done = false;
    for (; *at != NULL && !*done; at++)
        if ((*at)->heads(b, &b->records[head])) TARE_TRY((*at)->plan(b, head, done));
    return TARE_OK;
}

tare_status tare__plan_by_class(plan_builder *b, size_t head, bool *done) {
    return plan_from(b, b->classes, head, done);
}

tare_status tare__plan_by_later_class(plan_builder *b, const step_class *class, size_t head,
                                      bool *done) {
    const step_class *const *at = b->classes;
    while (*at != class) at++;
    return plan_from(b, at + 1, head, done);
}

tare_status tare__plan_call(plan_builder *b, size_t record) {
    bool done;
    if (b->call == NULL)
        return tare__fail(b->err, TARE_UNSUPPORTED, "node '%s': no step computes it",
                          b->records[record].node->name);
    return b->call->plan(b, record, &done);
}

tare_status tare__plan_one(plan_builder *b, size_t record) {
    bool done;
    TARE_TRY(tare__plan_by_class(b, record, &done));
    return done ? TARE_OK : tare__plan_call(b, record);
}
