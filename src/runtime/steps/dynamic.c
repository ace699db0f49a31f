// SPDX-License-Identifier: Apache-2.0
// Dynamic quantization of floats: range, parameters and quantized values, computed once for all
// layers that read them.
#include "runtime/steps/dynamic.h"

#include "ops/quantized/engine_rules.h"
#include "ops/quantized/layer.h"

enum { BLOCK = 1 << 14 }; // elements

typedef struct dynamic_quantized { // an entry of the planner
    struct dynamic_quantized *next;
    size_t value, quantized, input; // value: the floats; quantized, input: buffers
    const dynamic_weights *w;
} dynamic_quantized;

// --- the step ---

typedef struct range {
    float min, max;
    bool has_nan;
} range;

typedef struct dynamic_step {
    size_t x, quantized, input, ranges; // buffers
    size_t count;
    dynamic_weights w; // only what determines the parameters
    const scan_kernels *scan;
} dynamic_step;

typedef struct dynamic_run {
    const plan_run_state *run;
    const dynamic_step *s;
    const float *x;
    range *ranges;
    quantized_scheme scheme;
} dynamic_run;

static void find_range(void *user, size_t first, size_t end, size_t worker) {
    const dynamic_run *r = user;
    range *own = &r->ranges[first / BLOCK];
    (void)worker;
    r->s->scan->extremes(r->x + first, end - first, &own->min, &own->max, &own->has_nan);
}

static void quantize(void *user, size_t first, size_t end, size_t worker) {
    const dynamic_run *r = user;
    uint8_t *quantized = tare__buffer_data(r->run, r->s->quantized);
    (void)worker;
    r->run->kernels->elementwise->quantize(&r->scheme, r->x + first, end - first,
                                           quantized + first);
}

static void join_ranges(const dynamic_run *r, float *min, float *max) {
    const size_t count = tare__range_count(r->s->count, BLOCK);
    bool has_nan = false;
    *min = r->ranges[0].min;
    *max = r->ranges[0].max;
    for (size_t i = 0; i < count; i++) {
        const range *of_thread = &r->ranges[i];
        *min = of_thread->min < *min ? of_thread->min : *min;
        *max = of_thread->max > *max ? of_thread->max : *max;
        has_nan = has_nan || of_thread->has_nan;
    }
    if (has_nan) tare__dynamic_range(r->s->scan, r->x, r->s->count, min, max);
}

static tare_status run_dynamic(const plan_run_state *run, void *state) {
    const dynamic_step *s = state;
    thread_pool *pool = tare__threads_for(run, (int64_t)s->count);
    dynamic_run r = {.run = run,
                     .s = s,
                     .x = tare__buffer_data(run, s->x),
                     .ranges = tare__buffer_data(run, s->ranges)};
    tare__parallel(pool, s->count, BLOCK, find_range, &r);
    float min, max;
    join_ranges(&r, &min, &max);
    dynamic_input *input = tare__buffer_data(run, s->input);
    r.scheme = tare__dynamic_scheme(&s->w, min, max, &input->scale);
    input->zero_point = r.scheme.zero_point;
    tare__parallel(pool, s->count, BLOCK, quantize, &r);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const dynamic_step *s = state;
    (void)p;
    out->kernel = s->scan->name;
    tare__step_say(out, "the range of floats, then their quantized values");
}

static const step_class dynamic_class = {
    .name = "dynamic quantize",
    .run = run_dynamic,
    .describe = describe,
    .replicate = tare__step_share,
};

// --- planning ---

bool tare__plan_is_dynamic_linear(const plan_record *r) {
    const module *m = tare__call_layer_module(&r->call);
    const tare_tensor *x = tare__call_layer_input(&r->call);
    return r->result != NOTHING && !r->is_observer && m != NULL &&
           tare__class_op(m->class) == TARE_OP_LINEAR &&
           (m->class->role == ROLE_DYNAMIC || m->class->role == ROLE_PACKED) &&
           r->call.result.as.tensor->dtype == TARE_FLOAT32 && x != NULL && x->dtype == TARE_FLOAT32;
}

bool tare__plan_is_dynamic_layer(const plan_record *r) {
    op_call call = r->call;
    dynamic_weights w;
    bool relu;
    call.err = NULL;
    return tare__plan_is_dynamic_linear(r) &&
           tare__dynamic_linear_read(&call, &w, &relu) == TARE_OK &&
           w.weight->dtype == TARE_QINT8 && !tare__has_zero_points(w.weight) &&
           w.weight->shape[1] > 0 && tare__call_layer_input(&call)->count > 0;
}

static bool choose_alike(const dynamic_weights *a, const dynamic_weights *b) {
    const bool short_a = a->reduce_range && a->rule != REQUANT_Q;
    const bool short_b = b->reduce_range && b->rule != REQUANT_Q;
    return short_a == short_b && a->is_decomposed == b->is_decomposed &&
           a->quant_min == b->quant_min && a->quant_max == b->quant_max && a->eps == b->eps &&
           a->symmetric_zero_point == b->symmetric_zero_point && a->is_symmetric == b->is_symmetric;
}

static tare_status add_quantized(plan_builder *b, const plan_record *layer,
                                 const dynamic_weights *w, size_t x, dynamic_quantized *made) {
    dynamic_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (dynamic_step){.count = (size_t)b->values[x].tensor->count,
                        .w = *w,
                        .scan = tare__scan_choose(b->setting->kernels->isa)};
    TARE_TRY(tare__plan_read(b, x, LAYOUT_PLAIN, &s->x));
    TARE_TRY(
        tare__plan_new_scratch(b, tare__ceil_div(s->count, BLOCK) * sizeof(range), &s->ranges));
    TARE_TRY(tare__plan_new_scratch(b, s->count, &s->quantized));
    TARE_TRY(tare__plan_new_scratch(b, sizeof(dynamic_input), &s->input));
    *made = (dynamic_quantized){
        .next = b->dynamic, .value = x, .quantized = s->quantized, .input = s->input, .w = &s->w};
    return tare__plan_add_step(b, &dynamic_class, s, layer->node);
}

tare_status tare__plan_dynamic_quantized(plan_builder *b, const plan_record *layer,
                                         const dynamic_weights *w, size_t x, size_t *quantized,
                                         size_t *input) {
    dynamic_quantized *found = b->dynamic;
    while (found != NULL && (found->value != x || !choose_alike(found->w, w))) found = found->next;
    if (found == NULL) {
        found = tare__arena_alloc(&b->scratch, sizeof *found);
        if (found == NULL) return tare__out_of_memory(b->err);
        TARE_TRY(add_quantized(b, layer, w, x, found));
        b->dynamic = found;
    }
    *quantized = found->quantized;
    *input = found->input;
    TARE_TRY(tare__plan_touch(b, *quantized));
    return tare__plan_touch(b, *input);
}
