// SPDX-License-Identifier: Apache-2.0
// The step that can do everything: a call of an operator's or module's reference, bound and shaped
// once, or of the fast way through its node.
#include <string.h>

#include "ops/quantized/dynamic.h"
#include "ops/quantized/layer.h"
#include "ops/rules.h"
#include "runtime/plan/values.h"
#include "runtime/steps/steps.h"

typedef struct call_step {
    const node *node;
    op_call call; // results are the plan's tensors
    op_compute compute;
    bool may_be_fast, clears;
    size_t result_count;
    tare_tensor **results; // left to right, lent
} call_step;

// --- results ---

static size_t count_tensors(const value *v) {
    size_t count = v->kind == VALUE_TENSOR ? 1 : 0;
    if (tare__value_has_items(v))
        for (uint32_t i = 0; i < v->count; i++) count += count_tensors(&v->as.items[i]);
    return count;
}

static void list_tensors(const value *v, tare_tensor ***at) {
    if (v->kind == VALUE_TENSOR) *(*at)++ = v->as.tensor;
    if (tare__value_has_items(v))
        for (uint32_t i = 0; i < v->count; i++) list_tensors(&v->as.items[i], at);
}

// A reference may put tensors of its own in place of those it was given: their data moves to ours,
// and ours come back.
static tare_status take_back(value *v, tare_tensor ***at) {
    if (v->kind == VALUE_TENSOR) {
        tare_tensor *own = *(*at)++, *made = v->as.tensor;
        if (made == own) return TARE_OK;
        const bool fits = made->dtype == own->dtype && made->count == own->count &&
                          made->data != NULL && tare__qparams_equal(made->q, own->q);
        if (fits && own->count > 0) memcpy(own->data, made->data, tare__tensor_bytes(own));
        tare_tensor_release(made);
        v->as.tensor = tare_tensor_retain(own);
        return fits ? TARE_OK : TARE_INTERNAL;
    }
    if (tare__value_has_items(v))
        for (uint32_t i = 0; i < v->count; i++) TARE_TRY(take_back(&v->as.items[i], at));
    return TARE_OK;
}

// --- running ---

static tare_status compute(const plan_run_state *run, const call_step *s, op_call *call) {
    const interpreter *it = run->plan->setting.it;
    bool handled = false;
    if (s->may_be_fast && it->execute != NULL)
        TARE_TRY(it->execute(it->user, s->node, call, &handled));
    if (handled) return TARE_OK;
    // References rely on fresh memory: sums begin at zero.
    for (size_t i = 0; s->clears && i < s->result_count; i++)
        if (s->results[i]->count > 0)
            memset(s->results[i]->data, 0, tare__tensor_bytes(s->results[i]));
    return s->compute(call);
}

static tare_status run_call(const plan_run_state *run, void *state) {
    const call_step *s = state;
    op_call call = s->call; // a run may bind other weights to it
    call.memory = &run->plan->run_memory;
    call.err = run->err;
    // Items of its own: a reference may put others in their place.
    TARE_TRY(tare__value_share(call.memory, &s->call.result, &call.result, call.err));
    tare_status status = compute(run, s, &call);
    tare_tensor **at = s->results;
    const tare_status taken = take_back(&call.result, &at);
    if (status == TARE_OK && taken != TARE_OK)
        status = tare__fail(run->err, taken, "node '%s': the result is not what was planned",
                            s->node->name);
    tare__value_release_tensors(&call.result);
    return status;
}

static int64_t weight_macs(const tare_tensor *weight, const tare_tensor *of) {
    if (weight->ndim < 2 || weight->shape[0] == 0 || of == NULL) return 0;
    return tare__size_product(of->count, weight->count / weight->shape[0]);
}

// Layers on codes keep their weights where rows do not see them.
static int64_t layer_macs(const call_step *s, const fast_path *path) {
    op_call call = s->call;
    quantized_layer layer;
    dynamic_weights w;
    bool relu;
    call.err = NULL;
    if (path == &tare__fast_layer && tare__call_layer_read(&call, &layer) == TARE_OK)
        return weight_macs(layer.weight, layer.weight->ndim > 2 && layer.conv.is_transposed
                                             ? tare__call_layer_input(&call)
                                             : s->results[0]);
    if (path == &tare__fast_dynamic && tare__dynamic_linear_read(&call, &w, &relu) == TARE_OK)
        return weight_macs(w.weight, s->results[0]);
    return 0;
}

// May the reference multiply floats, which a library does if there is one? Layers and products do,
// and modules that are made of others, but for what only watches.
static bool may_multiply_floats(const op_call *call) {
    const module_class *class = call->module != NULL ? call->module->class : NULL;
    const op_info *op = call->op;
    if (op == NULL && class != NULL && class->op != NULL)
        op = tare__op_by_id(class->op, class->dims);
    if (op == NULL) return class != NULL && class->role != ROLE_OBSERVER;
    return op->macs != NULL || (op->traits & (OP_WEIGHTED | OP_BY_MATRIX)) != 0;
}

// The same of fast ways: dynamic layers whose weights are halves, and recurrent functions, whose
// weights come with every call.
static bool multiplies_floats(const fast_path *path, const op_call *call) {
    const bool is_recurrent = path == &tare__fast_recurrent;
    if (!is_recurrent && path != &tare__fast_dynamic) return false;
    const module *m = is_recurrent ? call->module : tare__call_layer_module(call);
    bool has_halves = m == NULL;
    for (size_t i = 0; m != NULL && i < m->tensor_count; i++)
        has_halves = has_halves ||
                     (m->tensors[i].tensor != NULL && m->tensors[i].tensor->dtype == TARE_FLOAT16);
    return has_halves;
}

// Whether a fast way takes a call shows when it runs; this is the one that would be asked.
static void describe(const plan *p, const void *state, step_note *out) {
    const call_step *s = state;
    const fast_path *path = s->may_be_fast ? tare__fast_path_find(&s->call) : NULL;
    const tare_tensor *y = s->result_count > 0 ? s->results[0] : NULL;
    out->kernel = path != NULL ? path->name : "reference";
    if (out->macs == 0) out->macs = layer_macs(s, path);
    if (path == &tare__fast_dynamic) out->multiplies_codes = true;
    const bool may_multiply =
        path == NULL ? may_multiply_floats(&s->call) : multiplies_floats(path, &s->call);
    out->bits_may_differ =
        p->setting.layers != NULL && y != NULL && y->dtype == TARE_FLOAT32 && may_multiply;
}

// --- planning ---

static tare_status place_results(plan_builder *b, const call_step *s) {
    size_t unused;
    for (size_t i = 0; i < s->result_count; i++) {
        const size_t v = tare__plan_find_value(b, s->results[i]);
        if (b->values[v].place[LAYOUT_PLAIN] == NOTHING)
            TARE_TRY(tare__plan_write(b, v, LAYOUT_PLAIN, &unused));
    }
    return TARE_OK;
}

static tare_status plan_record_alone(plan_builder *b, size_t record, bool *done) {
    *done = true;
    const plan_record *r = &b->records[record];
    call_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (call_step){.node = r->node, .call = r->call, .compute = r->compute};
    s->result_count = count_tensors(&r->call.result);
    s->results = tare__arena_array(&b->plan->memory, s->result_count + 1, sizeof *s->results);
    if (s->results == NULL) return tare__out_of_memory(b->err);
    tare_tensor **at = s->results;
    list_tensors(&r->call.result, &at);
    s->may_be_fast = !r->is_observer && !tare__value_is_empty(&r->call.result);
    s->clears = !r->is_observer;
    for (size_t i = 0; i < r->input_count; i++) {
        size_t unused;
        TARE_TRY(tare__plan_read(b, r->inputs[i], LAYOUT_PLAIN, &unused));
    }
    TARE_TRY(place_results(b, s));
    b->facts.declined = b->declined;
    return tare__plan_add_step(b, &tare__call_step, s, r->node);
}

const step_class tare__call_step = {
    .name = "call",
    .plan = plan_record_alone,
    .run = run_call,
    .describe = describe,
};
