// SPDX-License-Identifier: Apache-2.0
// Creating, destroying and running plans.
#include "runtime/plan/plan.h"

#include <string.h>

#include "dnnl/float_layers.h"
#include "runtime/plan/dispatch.h"
#include "runtime/plan/emit.h"
#include "runtime/plan/profile.h"
#include "runtime/plan/replicas.h"
#include "runtime/steps/steps.h"

// --- making ---

static bool moves(const plan_buffer *buffer) {
    return buffer->kind == BUFFER_INPUT || buffer->kind == BUFFER_OUTPUT ||
           buffer->kind == BUFFER_STATE;
}

// Sets the addresses of tensors in calls; some are known only during a run.
static tare_status place_tensors(plan_builder *b) {
    plan *p = b->plan;
    for (size_t v = 0; v < b->value_count; v++) {
        const plan_value *found = &b->values[v];
        const size_t buffer = found->placement[LAYOUT_PLAIN].buffer;
        if (found->is_constant || buffer == NOTHING) continue;
        found->tensor->data = p->buffers[buffer].data;
        if (!p->is_of_call && !moves(&p->buffers[buffer])) continue;
        if (!tare__grow((void **)&p->moving, &p->moving_capacity, p->moving_count,
                        sizeof *p->moving))
            return tare__out_of_memory(b->err);
        p->moving[p->moving_count++] = (placed_tensor){found->tensor, buffer};
    }
    return TARE_OK;
}

static tare_status finish(plan_builder *b) {
    tare__plan_join(b);
    TARE_TRY(tare__plan_emit(b));
    TARE_TRY(tare__plan_lay_out(b->plan, b->budget.limit, b->err));
    for (size_t i = 0; i < b->plan->output_count; i++)
        b->plan->outputs[i].whole = b->plan->outputs[i].like;
    return place_tensors(b);
}

static tare_status build(plan_builder *b, const tare_tensor *const *inputs, size_t count) {
    TARE_TRY(tare__plan_trace(b, inputs, count));
    return finish(b);
}

static tare_status begin(plan_builder *b, const plan_setting *setting, tare_error *err) {
    plan *p = tare__alloc_zeroed(1, sizeof *p);
    if (p == NULL) return tare__out_of_memory(err);
    p->setting = *setting;
    p->samples = 1;
    *b = (plan_builder){.plan = p,
                        .setting = setting,
                        .classes = tare__step_classes,
                        .call = &tare__call_step,
                        .budget = tare__run_budget(setting->it->memory_limit),
                        .err = err};
    return TARE_OK;
}

static tare_status end(plan_builder *b, tare_status status, plan **out) {
    tare__arena_release(&b->scratch);
    tare__free(b->values);
    tare__free(b->records);
    tare__free(b->touched);
    if (status != TARE_OK)
        tare__plan_destroy(b->plan);
    else
        *out = b->plan;
    return status;
}

tare_status tare__plan_create(const plan_setting *setting, const tare_tensor *const *inputs,
                              size_t input_count, plan **out, tare_error *err) {
    plan_builder b;
    TARE_TRY(begin(&b, setting, err));
    return end(&b, build(&b, inputs, input_count), out);
}

static tare_status build_call(plan_builder *b, const node *n, const op_call *call,
                              const tare_tensor *const *inputs, size_t count, bool *is_known) {
    TARE_TRY(tare__plan_trace_call(b, n, call, inputs, count));
    *is_known = b->record_count == 1 && tare__plan_class_of(b, &b->records[0]) != NULL;
    return *is_known ? finish(b) : TARE_UNSUPPORTED;
}

tare_status tare__plan_create_call(const plan_setting *setting, const node *n, const op_call *call,
                                   const tare_tensor *const *inputs, size_t input_count, plan **out,
                                   bool *is_known) {
    plan_builder b;
    *is_known = false;
    TARE_TRY(begin(&b, setting, NULL));
    b.classes = tare__call_step_classes;
    b.call = NULL;
    b.plan->is_of_call = true;
    return end(&b, build_call(&b, n, call, inputs, input_count, is_known), out);
}

void tare__plan_destroy(plan *p) {
    if (p == NULL) return;
    tare__plan_drop_replicas(p);
    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i].class->destroy != NULL) p->steps[i].class->destroy(p->steps[i].state);
    for (size_t i = 0; i < p->tensor_count; i++) tare_tensor_release(p->tensors[i]);
    tare__free(p->tensors);
    tare__free(p->buffers);
    tare__free(p->steps);
    tare__free(p->moving);
    tare__free(p->outputs);
    tare__plan_stop_profile(p);
    tare__plan_destroy(p->tail);
    if (!p->is_of_call) tare__free_aligned(p->block);
    tare__arena_release(&p->memory);
    tare__arena_release(&p->run_memory);
    tare__free(p);
}

// --- running ---

tare_status tare__plan_repeat(plan *p, int64_t samples, tare_error *err) {
    for (size_t i = 0; i < p->output_count; i++) {
        const tare_tensor *like = p->outputs[i].like;
        int64_t shape[TARE_MAX_DIMS];
        tare_tensor *whole = NULL;
        memcpy(shape, like->shape, sizeof shape);
        shape[0] = samples;
        TARE_TRY(tare__tensor_meta(like->dtype, like->ndim, shape, like->q, &whole, err));
        const tare_status status = tare__plan_keep_tensor(p, whole, err);
        tare_tensor_release(whole);
        if (status != TARE_OK) return status;
        p->outputs[i].whole = whole;
    }
    p->samples = samples;
    return TARE_OK;
}

// True if x consists of samples like `own`, as many as the plan runs.
static bool has_samples(const plan *p, const tare_tensor *x, const tare_tensor *own) {
    if (p->samples == 1) return tare__same_shape(x, own);
    return x->ndim == own->ndim && x->shape[0] == p->samples * own->shape[0] &&
           memcmp(x->shape + 1, own->shape + 1, (size_t)(x->ndim - 1) * sizeof *x->shape) == 0;
}

bool tare__plan_fits(const plan *p, const tare_tensor *const *inputs, size_t input_count) {
    if (input_count != p->input_count) return false;
    for (size_t i = 0; i < input_count; i++) {
        const tare_tensor *x = inputs[i], *own = p->inputs[i];
        if (x == NULL || x->dtype != own->dtype || x->q != NULL || !has_samples(p, x, own))
            return false;
    }
    return true;
}

static tare_status create_like(const tare_tensor *t, tare_tensor **out, tare_error *err) {
    if (t->q != NULL) return tare__tensor_quantized(t->ndim, t->shape, t->q, out, err);
    return tare_tensor_create(t->dtype, t->ndim, t->shape, out, err);
}

static tare_status run_samples(plan *p, const tare_tensor *const *inputs,
                               tare_tensor *const *outputs, tare_error *err) {
    if (p->replicas != NULL) TARE_TRY(tare__plan_run_replicas(p, inputs, outputs, err));
    for (int64_t n = tare__plan_replica_samples(p); n < p->samples; n++)
        TARE_TRY(tare__plan_run_sample(p, inputs, outputs, n, err));
    return p->tail != NULL ? tare__plan_run_sample(p->tail, inputs, outputs, 0, err) : TARE_OK;
}

static tare_status run_on(plan *p, const tare_tensor *const *inputs, tare_tensor *const *outputs,
                          tare_error *err) {
    thread_pool *pool = p->setting.kernels->space.pool;
    if (p->setting.layers != NULL)
        TARE_TRY(tare__float_layers_expect_run(p->setting.layers, p->setting.tuner != NULL, err));
    tare__thread_pool_expect(pool, true);
    tare__plan_begin_timed(p);
    const tare_status status = run_samples(p, inputs, outputs, err);
    if (status == TARE_OK) tare__plan_end_timed(p);
    tare__thread_pool_expect(pool, false);
    return status;
}

tare_status tare__plan_check_output(size_t index, const tare_tensor *like, const tare_tensor *given,
                                    tare_error *err) {
    if (given->dtype == like->dtype && tare__same_shape(given, like) &&
        (like->q == NULL || (given->q != NULL && tare__qparams_equal(given->q, like->q))))
        return TARE_OK;
    char expected[128], found[128];
    tare__shape_text(like->ndim, like->shape, expected, sizeof expected);
    tare__shape_text(given->ndim, given->shape, found, sizeof found);
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "output %zu: expected a tensor of %s and shape %s%s, found %s and %s", index,
                      tare__dtype(like->dtype)->name, expected,
                      like->q != NULL ? " with the model's scale and zero point" : "",
                      tare__dtype(given->dtype)->name, found);
}

tare_status tare__plan_check_count(size_t found, size_t given, tare_error *err) {
    if (found == given) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "the model has %zu outputs, %zu are given", found,
                      given);
}

tare_status tare__plan_run_into(plan *p, const tare_tensor *const *inputs,
                                tare_tensor *const *outputs, size_t output_count, tare_error *err) {
    TARE_TRY(tare__plan_check_count(p->output_count, output_count, err));
    for (size_t i = 0; i < output_count; i++)
        TARE_TRY(tare__plan_check_output(i, p->outputs[i].whole, outputs[i], err));
    return run_on(p, inputs, outputs, err);
}

static tare_status run_anew(plan *p, const tare_tensor *const *inputs, tare_tensor **made,
                            tare_error *err) {
    for (size_t i = 0; i < p->output_count; i++)
        TARE_TRY(create_like(p->outputs[i].whole, &made[i], err));
    return run_on(p, inputs, made, err);
}

tare_status tare__plan_run(plan *p, const tare_tensor *const *inputs, tare_tensor **outputs,
                           size_t capacity, size_t *count, tare_error *err) {
    *count = p->output_count;
    if (p->output_count > capacity) return TARE_OK;
    for (size_t i = 0; i < p->output_count; i++) outputs[i] = NULL;
    const tare_status status = run_anew(p, inputs, outputs, err);
    for (size_t i = 0; status != TARE_OK && i < p->output_count; i++) {
        tare_tensor_release(outputs[i]);
        outputs[i] = NULL;
    }
    return status;
}

const call_names *tare__plan_output_names(const plan *p) {
    return &p->output_names;
}

size_t tare__plan_output_count(const plan *p) {
    return p->output_count;
}

// --- listings ---

size_t tare__plan_step_count(const plan *p) {
    return p->step_count + (p->tail != NULL ? p->tail->step_count : 0);
}

const char *tare__plan_step_name(const plan *p, size_t index) {
    if (index < p->step_count) return p->steps[index].class->name;
    return p->tail != NULL ? tare__plan_step_name(p->tail, index - p->step_count) : NULL;
}

size_t tare__plan_bytes(const plan *p, size_t *least) {
    *least = p->least_bytes;
    return p->block_bytes;
}
