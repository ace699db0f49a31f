// SPDX-License-Identifier: Apache-2.0
// Plans of single calls: the arguments are copied with meta tensors, and a plan is made whose
// inputs these are.
#include "runtime/plan/call_plan.h"

#include "core/memory/alloc.h"
#include "runtime/plan/build.h"

enum { MOST_CALL_PLANS = 4 }; // per node; further combinations of arguments replace the oldest

typedef struct call_plan {
    struct call_plan *next;
    arena memory;
    op_call call; // arguments: meta tensors for run-time tensors, and the model's own tensors
    plan *plan;   // NULL: the reference runs the call
    const tare_tensor **inputs; // of the plan; during a run, the tensors of the run
    tare_tensor **outputs;
    size_t input_count, output_count;
} call_plan;

static void destroy(call_plan *c) {
    if (c == NULL) return;
    tare__plan_destroy(c->plan);
    for (size_t i = 0; i < c->call.arg_count; i++)
        tare__value_release_tensors((value *)&c->call.args[i]);
    for (size_t i = 0; i < c->call.kwarg_count; i++)
        tare__value_release_tensors((value *)&c->call.kwargs[i].value);
    tare__arena_release(&c->memory);
    tare__free(c);
}

void tare__call_plans_destroy(call_plans *plans) {
    for (call_plan *c = plans->newest, *next; c != NULL; c = next) {
        next = c->next;
        destroy(c);
    }
    *plans = (call_plans){0};
}

// --- does a plan fit? ---

static bool fits_tensor(const tare_tensor *own, const tare_tensor *given) {
    if (own->data != NULL) return own == given; // a tensor of the model
    return own->dtype == given->dtype && own->is_channels_last == given->is_channels_last &&
           tare__same_shape(own, given) && tare__qparams_equal(own->q, given->q);
}

static bool fits_value(const value *own, const value *given) {
    if (own->kind != given->kind) return false;
    if (own->kind == VALUE_TENSOR) return fits_tensor(own->as.tensor, given->as.tensor);
    if (!tare__value_has_items(own)) return tare__value_equal(own, given);
    if (own->count != given->count) return false;
    for (uint32_t i = 0; i < own->count; i++)
        if (!fits_value(&own->as.items[i], &given->as.items[i])) return false;
    return true;
}

// All calls of a node have the same keywords.
static bool fits(const op_call *own, const op_call *given) {
    if (own->module != given->module) return false;
    for (size_t i = 0; i < own->arg_count; i++)
        if (!fits_value(&own->args[i], &given->args[i])) return false;
    for (size_t i = 0; i < own->kwarg_count; i++)
        if (!fits_value(&own->kwargs[i].value, &given->kwargs[i].value)) return false;
    return true;
}

// --- the tensors of a run ---

static size_t count_tensors(const value *v) {
    size_t count = v->kind == VALUE_TENSOR;
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        count += count_tensors(&v->as.items[i]);
    return count;
}

// From left to right, without tensors of the model.
static void list_inputs(call_plan *c, const value *own, const value *given) {
    if (own->kind == VALUE_TENSOR && own->as.tensor->data == NULL)
        c->inputs[c->input_count++] = given->as.tensor;
    for (uint32_t i = 0; tare__value_has_items(own) && i < own->count; i++)
        list_inputs(c, &own->as.items[i], &given->as.items[i]);
}

static void list_outputs(call_plan *c, const value *result) {
    if (result->kind == VALUE_TENSOR) c->outputs[c->output_count++] = result->as.tensor;
    for (uint32_t i = 0; tare__value_has_items(result) && i < result->count; i++)
        list_outputs(c, &result->as.items[i]);
}

static void list_tensors(call_plan *c, const op_call *given) {
    c->input_count = c->output_count = 0;
    for (size_t i = 0; i < given->arg_count; i++) list_inputs(c, &c->call.args[i], &given->args[i]);
    for (size_t i = 0; i < given->kwarg_count; i++)
        list_inputs(c, &c->call.kwargs[i].value, &given->kwargs[i].value);
    list_outputs(c, &given->result);
}

// --- making ---

// of: the argument of the node.
static tare_status copy_value(arena *memory, const value *of, const value *given, value *out,
                              tare_error *err) {
    *out = *given;
    if (given->kind == VALUE_TENSOR) {
        const tare_tensor *t = given->as.tensor;
        out->as.tensor = NULL;
        if (of->kind == VALUE_NODE && of->as.node->op == NODE_GET_ATTR) {
            out->as.tensor = tare_tensor_retain(given->as.tensor);
            return TARE_OK;
        }
        TARE_TRY(tare__tensor_meta(t->dtype, t->ndim, t->shape, t->q, &out->as.tensor, err));
        out->as.tensor->is_channels_last = t->is_channels_last;
        return TARE_OK;
    }
    if (!tare__value_has_items(given)) return TARE_OK;
    *out = tare__value_sequence(memory, given->kind, given->count);
    if (out->as.items == NULL) return tare__out_of_memory(err);
    const bool is_same = of->kind == given->kind && of->count == given->count;
    for (uint32_t i = 0; i < given->count; i++)
        TARE_TRY(copy_value(memory, is_same ? &of->as.items[i] : of, &given->as.items[i],
                            &out->as.items[i], err));
    return TARE_OK;
}

static tare_status copy_arguments(call_plan *c, const node *n, const op_call *given) {
    value *args = tare__arena_array(&c->memory, given->arg_count + 1, sizeof *args);
    keyword *kwargs = tare__arena_array(&c->memory, given->kwarg_count + 1, sizeof *kwargs);
    if (args == NULL || kwargs == NULL) return tare__out_of_memory(given->err);
    c->call.args = args;
    c->call.kwargs = kwargs;
    for (; c->call.arg_count < given->arg_count; c->call.arg_count++)
        TARE_TRY(copy_value(&c->memory, &n->args[c->call.arg_count],
                            &given->args[c->call.arg_count], &args[c->call.arg_count], given->err));
    for (; c->call.kwarg_count < given->kwarg_count; c->call.kwarg_count++) {
        const size_t i = c->call.kwarg_count;
        kwargs[i].name = given->kwargs[i].name;
        TARE_TRY(copy_value(&c->memory, &n->kwargs[i].value, &given->kwargs[i].value,
                            &kwargs[i].value, given->err));
    }
    return TARE_OK;
}

static tare_status make_lists(call_plan *c, const op_call *given) {
    size_t inputs = 0;
    for (size_t i = 0; i < given->arg_count; i++) inputs += count_tensors(&given->args[i]);
    for (size_t i = 0; i < given->kwarg_count; i++)
        inputs += count_tensors(&given->kwargs[i].value);
    const size_t outputs = count_tensors(&given->result);
    c->inputs = tare__arena_array(&c->memory, inputs + 1, sizeof *c->inputs);
    c->outputs = tare__arena_array(&c->memory, outputs + 1, sizeof *c->outputs);
    return c->inputs != NULL && c->outputs != NULL ? TARE_OK : tare__out_of_memory(given->err);
}

static tare_status make_plan(call_plan *c, const plan_setting *setting, const node *n,
                             bool *is_known) {
    op_call call = c->call;
    if (call.module == NULL) TARE_TRY(tare__call_bind(&call, call.op));
    tare_status status =
        call.module != NULL ? call.module->class->shape(&call) : tare__op_shape(&call);
    list_tensors(c, &call);
    if (status == TARE_OK)
        status = tare__plan_create_call(setting, n, &call, c->inputs, c->input_count, &c->plan,
                                        is_known);
    tare__value_release_tensors(&call.result);
    return status;
}

static tare_status fill(call_plan *c, const plan_setting *setting, const node *n,
                        const op_call *given, bool *is_known) {
    c->call = (op_call){.op = given->op,
                        .module = given->module,
                        .function = given->function,
                        .node_name = given->node_name,
                        .memory = &c->memory,
                        .linear_rule = given->linear_rule,
                        .conv_rule = given->conv_rule,
                        .thread_count = given->thread_count,
                        .kernels = given->kernels};
    TARE_TRY(copy_arguments(c, n, given));
    TARE_TRY(make_lists(c, given));
    const tare_status status = make_plan(c, setting, n, is_known);
    return status == TARE_OUT_OF_MEMORY ? tare__out_of_memory(given->err) : TARE_OK;
}

static void drop_oldest(call_plan **list) {
    for (int count = 1; *list != NULL; count++, list = &(*list)->next)
        if (count == MOST_CALL_PLANS) {
            destroy(*list);
            *list = NULL;
            return;
        }
}

static tare_status add(call_plans *plans, const plan_setting *setting, const node *n,
                       const op_call *given) {
    bool is_known = false;
    call_plan *c = tare__alloc_zeroed(1, sizeof *c);
    if (c == NULL) return tare__out_of_memory(given->err);
    const tare_status status = fill(c, setting, n, given, &is_known);
    if (status != TARE_OK || !is_known) {
        destroy(c);
        plans->has_none = status == TARE_OK;
        return status;
    }
    drop_oldest(&plans->newest);
    c->next = plans->newest;
    plans->newest = c;
    return TARE_OK;
}

// --- running ---

tare_status tare__call_plans_run(call_plans *plans, const plan_setting *setting, scratch *block,
                                 const node *n, op_call *call, bool *handled) {
    // The write-back of a view is a call that the node does not contain.
    if (plans->has_none || call->arg_count != n->arg_count || call->kwarg_count != n->kwarg_count)
        return TARE_OK;
    call_plan *c = plans->newest;
    while (c != NULL && !fits(&c->call, call)) c = c->next;
    if (c == NULL) TARE_TRY(add(plans, setting, n, call));
    if (c == NULL) c = plans->newest;
    if (plans->has_none || c->plan == NULL) return TARE_OK;
    void *memory = tare__scratch_reserve(block, c->plan->block_bytes);
    if (memory == NULL) return tare__out_of_memory(call->err);
    tare__plan_take_block(c->plan, memory);
    list_tensors(c, call);
    *handled = true;
    const tare_status status = tare__plan_run_sample(c->plan, c->inputs, c->outputs, 0, call->err);
    for (size_t i = 0; i < c->plan->moving_count; i++) c->plan->moving[i].tensor->data = NULL;
    return status;
}
