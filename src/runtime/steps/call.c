// SPDX-License-Identifier: Apache-2.0
// Steps of calls that no other step computes. If an operator's result consists of independent parts
// (ops/parts.h), threads take parts; else the reference of the operator or module runs, which was
// bound and shaped once.
#include "runtime/steps/call.h"

#include <stdatomic.h>
#include <string.h>

#include "ops/classes/module_call.h"
#include "ops/parts.h"
#include "ops/quantized/dynamic.h"
#include "ops/quantized/layer.h"
#include "ops/rules.h"
#include "runtime/plan/records.h"
#include "runtime/steps/dynamic.h"
#include "runtime/steps/matrices.h"
#include "runtime/steps/steps.h"

typedef struct reference_step {
    call_step base;
    op_compute compute;
    bool clears;
    // Of layers on quantized values, whose weights the operators' rows do not see:
    int64_t macs;
    bool multiplies_quantized, multiplies_floats; // multiplies_floats: possibly by a library
} reference_step;

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

// A reference may replace the result tensors by its own: moves the data back to the plan's tensors.
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

tare_status tare__call_step_run(const plan_run_state *run, call_step *s,
                                tare_status (*compute)(const plan_run_state *run, call_step *s,
                                                       op_call *call)) {
    op_call call = s->call; // a copy: a run may bind other weights
    call.memory = &run->plan->run_memory;
    call.err = run->err;
    // A copy of the items, because a reference may replace them.
    TARE_TRY(tare__value_share(call.memory, &s->call.result, &call.result, call.err));
    tare_status status = compute(run, s, &call);
    tare_tensor **at = s->results;
    const tare_status taken = take_back(&call.result, &at);
    if (status == TARE_OK && taken != TARE_OK)
        status = tare__fail(run->err, taken,
                            "node '%s': the result differs from the planned shape or dtype",
                            s->node->name);
    tare__value_release_tensors(&call.result);
    return status;
}

static tare_status compute_reference(const plan_run_state *run, call_step *base, op_call *call) {
    const reference_step *s = (const reference_step *)base;
    (void)run;
    // References expect cleared memory, for example for sums.
    for (size_t i = 0; s->clears && i < base->result_count; i++)
        if (base->results[i]->count > 0)
            memset(base->results[i]->data, 0, tare__tensor_bytes(base->results[i]));
    return s->compute(call);
}

static tare_status run_reference(const plan_run_state *run, void *state) {
    return tare__call_step_run(run, state, compute_reference);
}

static void describe(const plan *p, const void *state, step_note *out) {
    const reference_step *s = state;
    const tare_tensor *y = s->base.result_count > 0 ? s->base.results[0] : NULL;
    out->kernel = "reference";
    if (out->macs == 0) out->macs = s->macs;
    if (s->multiplies_quantized) out->multiplies_quantized = true;
    out->bits_may_differ =
        p->setting.layers != NULL && y != NULL && y->dtype == TARE_FLOAT32 && s->multiplies_floats;
}

// --- planning ---

static int64_t weight_macs(const tare_tensor *weight, const tare_tensor *of) {
    if (weight->ndim < 2 || weight->shape[0] == 0 || of == NULL) return 0;
    return tare__size_product(of->count, weight->count / weight->shape[0]);
}

// True if the reference may multiply floats, for which it uses a library if there is one: layers,
// products and modules with children, but not observers.
static bool may_multiply_floats(const op_call *call) {
    const module_class *class = call->module != NULL ? call->module->class : NULL;
    const op_info *op = call->op;
    if (op == NULL && class != NULL && class->op != NULL)
        op = tare__op_by_id(class->op, class->dims);
    if (op == NULL) return class != NULL && class->role != ROLE_OBSERVER;
    return op->macs != NULL || (op->traits & (OP_WEIGHTED | OP_BY_MATRIX)) != 0;
}

bool tare__module_has_halves(const module *m) {
    for (size_t i = 0; i < m->tensor_count; i++)
        if (m->tensors[i].tensor != NULL && m->tensors[i].tensor->dtype == TARE_FLOAT16)
            return true;
    return false;
}

static void read_layer(const plan_record *r, const tare_tensor *y, reference_step *s) {
    op_call call = r->call;
    quantized_layer layer;
    call.err = NULL;
    if (tare__call_layer_read(&call, &layer) != TARE_OK) return;
    s->macs = weight_macs(layer.weight, layer.weight->ndim > 2 && layer.conv.is_transposed
                                            ? tare__call_layer_input(&call)
                                            : y);
}

static void read_dynamic(const plan_record *r, const tare_tensor *y, reference_step *s) {
    op_call call = r->call;
    dynamic_weights w;
    bool relu;
    call.err = NULL;
    s->multiplies_quantized = true;
    s->multiplies_floats = tare__module_has_halves(tare__call_layer_module(&call));
    if (tare__dynamic_linear_read(&call, &w, &relu) == TARE_OK) s->macs = weight_macs(w.weight, y);
}

static void note_layer(const plan_builder *b, const plan_record *r, reference_step *s) {
    const tare_tensor *y = r->result != NOTHING ? b->values[r->result].tensor : NULL;
    if (tare__plan_is_quantized_layer(r))
        read_layer(r, y, s);
    else if (tare__plan_is_dynamic_linear(r))
        read_dynamic(r, y, s);
    else
        s->multiplies_floats = may_multiply_floats(&r->call);
}

static tare_status place_results(plan_builder *b, const call_step *s) {
    size_t unused;
    for (size_t i = 0; i < s->result_count; i++) {
        const size_t v = tare__plan_find_value(b, s->results[i]);
        if (b->values[v].placement[LAYOUT_PLAIN].buffer == NOTHING)
            TARE_TRY(tare__plan_write(b, v, LAYOUT_PLAIN, &unused));
    }
    return TARE_OK;
}

tare_status tare__plan_call_step(plan_builder *b, size_t record, const step_class *class,
                                 call_step *s) {
    const plan_record *r = &b->records[record];
    *s = (call_step){.node = r->node, .call = r->call};
    s->result_count = count_tensors(&r->call.result);
    s->results = tare__arena_array(&b->plan->memory, s->result_count + 1, sizeof *s->results);
    if (s->results == NULL) return tare__out_of_memory(b->err);
    tare_tensor **at = s->results;
    list_tensors(&r->call.result, &at);
    for (size_t i = 0; i < r->input_count; i++) {
        size_t unused;
        TARE_TRY(tare__plan_read(b, r->inputs[i], LAYOUT_PLAIN, &unused));
    }
    TARE_TRY(place_results(b, s));
    return tare__plan_add_step(b, class, s, r->node);
}

static tare_status plan_reference(plan_builder *b, size_t record, bool *done) {
    *done = true;
    const plan_record *r = &b->records[record];
    reference_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (reference_step){.compute = r->compute, .clears = !r->is_observer};
    note_layer(b, r, s);
    b->facts.declined = b->declined;
    return tare__plan_call_step(b, record, &tare__call_step, &s->base);
}

const step_class tare__call_step = {
    .name = "call",
    .plan = plan_reference,
    .run = run_reference,
    .describe = describe,
};

// --- parts ---

typedef struct parts_step {
    call_step base;
    call_parts parts;
} parts_step;

enum { GRAIN_ELEMENTS = 1 << 12 };

typedef struct parts_run {
    const op_call *call;
    const call_parts *parts;
    atomic_int status;
} parts_run;

// The call's copy has memory of its own, because other threads use the plan's.
static void run_some(void *user, size_t first, size_t end, size_t worker) {
    parts_run *r = user;
    arena memory = {0};
    op_call call = *r->call;
    (void)worker;
    call.memory = &memory;
    call.err = NULL;
    const tare_status status = r->parts->run(&call, (int64_t)first, (int64_t)end);
    if (status != TARE_OK) atomic_store(&r->status, (int)status);
    tare__arena_release(&memory);
}

static tare_status compute_parts(const plan_run_state *run, call_step *base, op_call *call) {
    const call_parts *parts = &((const parts_step *)base)->parts;
    parts_run r = {.call = call, .parts = parts, .status = TARE_OK};
    thread_pool *pool = tare__threads_for(run, tare__size_product(parts->count, parts->work));
    // A single thread has the memory of the call, which is kept from run to run.
    if (pool == NULL) return parts->run(call, 0, parts->count);
    tare__parallel(pool, (size_t)parts->count, tare__grain_of(GRAIN_ELEMENTS, (size_t)parts->work),
                   run_some, &r);
    const tare_status status = (tare_status)atomic_load(&r.status);
    // Once more in order, to say what failed.
    return status == TARE_OK ? TARE_OK : parts->run(call, 0, parts->count);
}

static tare_status run_parts(const plan_run_state *run, void *state) {
    return tare__call_step_run(run, state, compute_parts);
}

static void describe_parts(const plan *p, const void *state, step_note *out) {
    const parts_step *s = state;
    (void)p;
    tare__step_say(out, "%lld independent parts of %lld element%s", (long long)s->parts.count,
                   (long long)s->parts.work, s->parts.work == 1 ? "" : "s");
}

// Half-precision inputs would first become floats.
static bool is_plain(const tare_tensor *t, const op_info *op) {
    const bool is_half = t->dtype == TARE_FLOAT16 || t->dtype == TARE_BFLOAT16;
    return t->q == NULL && (!is_half || tare__op_has(op, OP_ANY_DTYPE | OP_MOVES_DATA));
}

static bool heads_parts(const plan_builder *b, const plan_record *r) {
    const op_info *op = r->call.op;
    const bool is_op = r->compute == tare__op_compute ||
                       (r->compute == tare__operator_module_forward && r->call.is_bound);
    if (op == NULL || op->parts == NULL || !is_op || r->is_observer || r->is_view ||
        r->next != NOTHING)
        return false;
    for (size_t i = 0; i < r->input_count; i++)
        if (!is_plain(b->values[r->inputs[i]].tensor, op)) return false;
    return !tare__value_is_empty(&r->call.result);
}

static tare_status plan_parts(plan_builder *b, size_t head, bool *done) {
    op_call call = b->records[head].call;
    call_parts parts = {0};
    call.err = b->err;
    call.memory = &b->scratch;
    TARE_TRY(call.op->parts(&call, &parts));
    if (parts.count == 0) return tare__plan_decline_operator(b);
    parts_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    s->parts = parts;
    *done = true;
    return tare__plan_call_step(b, head, &tare__parts_step, &s->base);
}

const step_class tare__parts_step = {
    .name = "parts",
    .heads = heads_parts,
    .defer = tare__attention_defers,
    .plan = plan_parts,
    .run = run_parts,
    .describe = describe_parts,
};
