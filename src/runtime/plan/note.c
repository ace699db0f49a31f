// SPDX-License-Identifier: Apache-2.0
// Records facts about steps while a plan is made, and describes steps.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ops/op.h"
#include "ops/quantized/rule.h"
#include "runtime/plan/dispatch.h"
#include "runtime/plan/records.h"

void tare__step_say(step_note *note, const char *format, ...) {
    const size_t length = strlen(note->why);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(note->why + length, sizeof note->why - length, format, arguments);
    va_end(arguments);
}

tare_status tare__step_share(const plan *replica, const void *state, void **out, tare_error *err) {
    (void)replica, (void)err;
    *out = (void *)state;
    return TARE_OK;
}

// A quantized product of two tensors does what the float one does.
static const op_info *counting_row(const op_info *op) {
    const op_info *by_rule = op != NULL && op->macs == NULL ? tare__quantized_rule_op(op) : NULL;
    return tare__op_has(by_rule, OP_BY_MATRIX) ? by_rule : op;
}

static int64_t macs_of(const plan_record *r) {
    const op_info *op = counting_row(r->call.op);
    return op != NULL && op->macs != NULL ? op->macs(&r->call) : 0;
}

static bool begins_at(const plan_step *step, const plan_record *r) {
    return step != NULL && strcmp(step->node_name, r->node->name) == 0;
}

// The next step that a planner added. Reorder steps in front of it belong to its node. NULL: none.
static plan_step *next_step(plan *p, size_t *at) {
    const size_t first = *at;
    for (; *at < p->step_count; (*at)++) {
        plan_step *step = &p->steps[*at];
        if (step->node_name == NULL || step->facts.node_count > 0) continue;
        for (size_t i = first; i < *at; i++)
            if (p->steps[i].node_name == NULL) p->steps[i].node_name = step->node_name;
        (*at)++;
        return step;
    }
    return NULL;
}

// The operators of a fused module belong to one node.
static void note_record(step_facts *facts, const plan_record *r, const char ***names) {
    const char *name = r->node->name;
    facts->macs += macs_of(r);
    if (facts->node_count > 0 && strcmp(facts->nodes[facts->node_count - 1], name) == 0) return;
    *(*names)++ = name;
    facts->node_count++;
}

// The steps of a chain are in its order, and each begins with another node.
tare_status tare__plan_note_chain(plan_builder *b, size_t first_step, size_t head) {
    plan *p = b->plan;
    size_t at = first_step, count = 0;
    plan_step *step = NULL, *next = next_step(p, &at);
    if (next == NULL) return TARE_OK;
    for (size_t i = head; i != NOTHING; i = b->records[i].next) count++;
    const char **names = tare__arena_array(&p->memory, count, sizeof *names);
    if (names == NULL) return tare__out_of_memory(b->err);
    for (size_t i = head; i != NOTHING; i = b->records[i].next) {
        const plan_record *r = &b->records[i];
        if (begins_at(next, r)) {
            step = next;
            step->facts.op = tare__record_op(r);
            step->facts.nodes = names;
            next = next_step(p, &at);
        }
        if (step != NULL) note_record(&step->facts, r, &names);
    }
    return TARE_OK;
}
