// SPDX-License-Identifier: Apache-2.0
// Linear layers with group-wise weights of 4 or 8 bits (gemm/grouped_product.h).
#include "ops/quantized/layer.h"
#include "runtime/gemm/floats/grouped_product.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

typedef struct grouped_step {
    grouped_layer layer;
    size_t rows;
    size_t x, y, scratch; // buffers; scratch: NOTHING if not needed
} grouped_step;

static tare_status run_grouped(const plan_run_state *run, void *state) {
    const grouped_step *s = state;
    tare__grouped_multiply(run->kernels, &s->layer, s->rows, tare__buffer_data(run, s->x),
                           s->scratch != NOTHING ? tare__buffer_data(run, s->scratch) : NULL,
                           tare__buffer_data(run, s->y));
    return TARE_OK;
}

static void destroy(void *state) {
    grouped_step *s = state;
    tare__grouped_layer_release(&s->layer);
}

static void describe(const plan *p, const void *state, step_note *out) {
    const grouped_step *s = state;
    const grouped_weights *w = &s->layer.w;
    out->kernel = tare__grouped_kernels_choose(p->setting.kernels->isa)->name;
    out->weight_bytes = tare__grouped_layer_bytes(&s->layer);
    out->macs = (int64_t)s->rows * w->ins * w->outs;
    out->multiplies_quantized = w->quantizes_input;
    tare__step_say(out, "%d-bit weights in groups of %lld, %s", w->bits, (long long)w->group,
                   w->quantizes_input ? "rows quantized at run time" : "float rows");
}

// --- planning ---

static bool heads(const plan_builder *b, const plan_record *r) {
    const module *m = r->call.module;
    return b->setting->kernels != NULL && m != NULL && m->class->role == ROLE_GROUPED &&
           r->result != NOTHING;
}

static tare_status assign_buffers(plan_builder *b, const plan_record *r, const tare_tensor *x,
                                  grouped_step *s) {
    const size_t bytes = tare__grouped_scratch_bytes(&s->layer, s->rows);
    s->scratch = NOTHING;
    TARE_TRY(tare__plan_read(b, tare__plan_find_value(b, x), LAYOUT_PLAIN, &s->x));
    if (bytes > 0) TARE_TRY(tare__plan_new_scratch(b, bytes, &s->scratch));
    return tare__plan_write(b, r->result, LAYOUT_PLAIN, &s->y);
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    const tare_tensor *x = tare__call_layer_input(&r->call);
    grouped_weights w;
    TARE_TRY(tare__grouped_read(r->call.module, &w, b->err));
    if (x == NULL || x->dtype != TARE_FLOAT32 || x->count == 0 || !tare__grouped_layer_suits(&w) ||
        tare__plan_find_value(b, x) == NOTHING)
        return TARE_OK;
    grouped_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    s->rows = (size_t)(x->count / w.ins);
    TARE_TRY(tare__grouped_layer_pack(&w, r->call.module->class->fused == FUSED_RELU, &s->layer,
                                      b->err));
    const tare_status status = assign_buffers(b, r, x, s);
    if (status != TARE_OK) {
        destroy(s);
        return status;
    }
    *done = true;
    return tare__plan_add_step(b, &tare__grouped_step, s, r->node);
}

const step_class tare__grouped_step = {
    .name = "grouped layer",
    .heads = heads,
    .plan = plan_chain,
    .run = run_grouped,
    .destroy = destroy,
    .describe = describe,
    .replicate = tare__step_share,
};
