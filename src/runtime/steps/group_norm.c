// SPDX-License-Identifier: Apache-2.0
// Group and instance norm. The parallel loop runs over the groups of all images.
#include "ops/layer_call.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

typedef struct group_step {
    group_norm_call call; // x's address is set in every run
    size_t x, y;          // buffers
} group_step;

typedef struct group_run {
    const plan_run_state *run;
    const group_step *s;
} group_run;

static void run_group(const group_run *r, size_t group) {
    const group_norm_call *g = &r->s->call;
    const row_functions *k = &r->run->kernels->rows->functions;
    const size_t inner = (size_t)g->inner, count = (size_t)g->each * inner;
    const float *x = (const float *)tare__buffer_data(r->run, r->s->x) + group * count;
    float *y = (float *)tare__buffer_data(r->run, r->s->y) + group * count;
    float mean, variance, scale, shift;
    k->moments(x, count, &mean, &variance);
    for (int64_t i = 0; i < g->each; i++, x += inner, y += inner) {
        const int64_t channel = (int64_t)group % g->groups * g->each + i;
        tare__group_norm_factors(g, channel, mean, variance, &scale, &shift);
        k->scale_shift(x, inner, scale, shift, y);
    }
}

static void run_some(void *user, size_t first, size_t end, size_t worker) {
    (void)worker;
    for (size_t i = first; i < end; i++) run_group(user, i);
}

static tare_status run_groups(const plan_run_state *run, void *state) {
    const group_step *s = state;
    group_run r = {run, s};
    const size_t groups = (size_t)(s->call.x->shape[0] * s->call.groups);
    tare__parallel(tare__threads_for(run, s->call.x->count), groups, 1, run_some, &r);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "float: sums in a fixed order");
}

// --- planning ---

// Parameters that the graph computes have no data yet.
static tare_status add_groups(plan_builder *b, size_t head, const group_norm_call *g, bool known,
                              bool *done) {
    const size_t x = tare__plan_find_value(b, g->x);
    bool unused;
    if (!known || x == NOTHING || g->x->count == 0) return TARE_OK;
    group_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    s->call = *g;
    TARE_TRY(tare__plan_read(b, x, LAYOUT_PLAIN, &s->x));
    TARE_TRY(tare__plan_write_over(b, b->records[head].result, x, LAYOUT_PLAIN, &s->y, &unused));
    *done = true;
    return tare__plan_add_step(b, &tare__group_norm_step, s, b->records[head].node);
}

static tare_status plan_groups(plan_builder *b, size_t head, bool *done) {
    op_call call = b->records[head].call;
    group_norm_call g;
    call.err = b->err;
    TARE_TRY(tare__group_norm_read(&call, &g));
    const bool known = tare__call_given(&call, 2) == (g.weight != NULL) &&
                       tare__call_given(&call, 3) == (g.bias != NULL);
    return add_groups(b, head, &g, known, done);
}

static tare_status plan_instances(plan_builder *b, size_t head, bool *done) {
    op_call call = b->records[head].call;
    group_norm_call g;
    bool own;
    call.err = b->err;
    TARE_TRY(tare__instance_norm_read(&call, &g, &own));
    const size_t weight = tare__op_param_index(call.op, "weight");
    const bool known = own && tare__call_given(&call, weight) == (g.weight != NULL) &&
                       tare__call_given(&call, weight + 1) == (g.bias != NULL);
    return add_groups(b, head, &g, known, done);
}

static bool heads(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_GROUP_NORM, TARE_OP_INSTANCE_NORM, TARE_OP_NONE};
    return tare__plan_is_float_op(b, r, ids);
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    return tare__record_is(&b->records[head], TARE_OP_GROUP_NORM) ? plan_groups(b, head, done)
                                                                  : plan_instances(b, head, done);
}

const step_class tare__group_norm_step = {
    .name = "group_norm",
    .heads = heads,
    .plan = plan_chain,
    .run = run_groups,
    .describe = describe,
    .replicate = tare__step_share,
};
