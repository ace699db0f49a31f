// SPDX-License-Identifier: Apache-2.0
// Observers in a plan. Most accept a tensor's elements in any order, so that convolutions around
// them stay channels last. Observers that record nothing are left out, and one whose tensor is the
// same in every run looks at it once.
#include "observe/observer.h"
#include "runtime/kernels/scan.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

typedef struct observe_step {
    const node *node;
    module *observer; // in the module tree of the run
    tare_tensor *x;   // owned; its data is that of the buffer
    size_t buffer;
    float_scan scan;
    bool looks_once, has_looked;
} observe_step;

static tare_status run_observe(const plan_run_state *run, void *state) {
    observe_step *s = state;
    if (s->looks_once && s->has_looked) return TARE_OK;
    s->x->data = tare__buffer_data(run, s->buffer);
    const tare_status status = tare__observer_update_by(s->observer, s->x, &s->scan, run->err);
    s->x->data = NULL;
    s->has_looked = status == TARE_OK;
    return status == TARE_OK ? status : tare__at(run->err, status, "node '%s'", s->node->name);
}

static void destroy_observe(void *state) {
    observe_step *s = state;
    tare_tensor_release(s->x);
}

static void describe(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "it watches, and changes nothing");
}

// A fake quantizer returns a new tensor instead.
static bool hands_on(const plan_record *r) {
    const value *result = &r->call.result;
    return r->call.arg_count == 1 && r->call.args[0].kind == VALUE_TENSOR &&
           result->kind == VALUE_TENSOR && result->as.tensor == r->call.args[0].as.tensor;
}

static bool heads(const plan_builder *b, const plan_record *r) {
    (void)b;
    return r->is_observer;
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    module *observer = tare__call_own(&r->call, r->call.module);
    if (!hands_on(r)) return TARE_OK;
    *done = true;
    if (observer == NULL || !tare__observer_watches(observer)) return TARE_OK;
    const size_t v = tare__plan_find_value(b, r->call.result.as.tensor);
    const plan_value *seen = &b->values[v];
    observe_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (observe_step){
        .node = r->node,
        .observer = observer,
        .scan = {tare__scan_choose(b->setting->kernels->isa), b->setting->kernels->space.pool},
        .looks_once = seen->is_constant && tare__observer_is_idempotent(observer)};
    const tare_tensor *t = seen->tensor;
    TARE_TRY(tare__plan_read(
        b, v, tare__observer_ignores_order(observer) ? tare__plan_layout(b, v) : LAYOUT_PLAIN,
        &s->buffer));
    TARE_TRY(tare__tensor_meta(t->dtype, t->ndim, t->shape, t->q, &s->x, b->err));
    return tare__plan_add_step(b, &tare__observe_step, s, r->node);
}

const step_class tare__observe_step = {
    .name = "observe",
    .heads = heads,
    .plan = plan_chain,
    .run = run_observe,
    .destroy = destroy_observe,
    .describe = describe,
};
