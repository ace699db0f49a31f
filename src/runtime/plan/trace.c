// SPDX-License-Identifier: Apache-2.0
// The first half of planning: shape inference for the whole graph. Every value is a meta tensor,
// and every call is recorded as its shape rule left it. Each meta tensor has an empty storage of
// its own, by which views of it are recognized.
#include <string.h>

#include "ir/call_names.h"
#include "ops/classes/module_call.h"
#include "ops/op.h"
#include "runtime/plan/emit.h"
#include "runtime/plan/states.h"

// --- values ---

size_t tare__plan_find_value(const plan_builder *b, const tare_tensor *t) {
    return t != NULL ? tare__pointer_index_get(&b->by_tensor, t, NOTHING) : NOTHING;
}

static size_t find_base(const plan_builder *b, const tare_tensor *t) {
    const size_t v = tare__pointer_index_get(&b->by_storage, t->store, NOTHING);
    return v != NOTHING ? b->values[v].base : NOTHING;
}

tare_status tare__plan_keep_tensor(plan *p, tare_tensor *t, tare_error *err) {
    if (!tare__grow((void **)&p->tensors, &p->tensor_capacity, p->tensor_count, sizeof *p->tensors))
        return tare__out_of_memory(err);
    p->tensors[p->tensor_count++] = tare_tensor_retain(t);
    return TARE_OK;
}

tare_status tare__plan_add_value(plan_builder *b, tare_tensor *t, size_t *out) {
    if (!tare__grow((void **)&b->values, &b->value_capacity, b->value_count, sizeof *b->values))
        return tare__out_of_memory(b->err);
    const size_t base = t->data == NULL && t->store != NULL ? find_base(b, t) : NOTHING;
    if (t->data == NULL && t->store == NULL) {
        t->store = tare__storage_adopt(NULL, 0, NULL, NULL);
        if (t->store == NULL) return tare__out_of_memory(b->err);
    }
    TARE_TRY(tare__plan_keep_tensor(b->plan, t, b->err));
    if (!tare__pointer_index_set(&b->by_tensor, &b->scratch, t, b->value_count) ||
        (t->store != NULL &&
         !tare__pointer_index_set(&b->by_storage, &b->scratch, t->store, b->value_count)))
        return tare__out_of_memory(b->err);
    const plan_placement nowhere = {NOTHING, NOTHING, 0, NOTHING, NOTHING};
    *out = b->value_count++;
    b->values[*out] = (plan_value){.tensor = t,
                                   .base = base != NOTHING ? base : *out,
                                   .placement = {nowhere, nowhere},
                                   .source = {.value = NOTHING, .also = NOTHING},
                                   .consumer = NOTHING,
                                   .is_constant = t->data != NULL};
    return TARE_OK;
}

// --- what a record reads ---

typedef struct reading {
    plan_builder *b;
    size_t *list; // in the builder's scratch
    size_t count, capacity;
} reading;

static tare_status read_tensor(reading *r, tare_tensor *t) {
    size_t v = tare__plan_find_value(r->b, t);
    // Tensors of modules are added when they are first read; all others already were.
    if (v == NOTHING) TARE_TRY(tare__plan_add_value(r->b, t, &v));
    for (size_t i = 0; i < r->count; i++)
        if (r->list[i] == v) return TARE_OK;
    if (r->count == r->capacity) {
        const size_t capacity = 2 * r->capacity + 4;
        size_t *larger = tare__arena_array(&r->b->scratch, capacity, sizeof *larger);
        if (larger == NULL) return tare__out_of_memory(r->b->err);
        if (r->count > 0) memcpy(larger, r->list, r->count * sizeof *larger);
        r->list = larger;
        r->capacity = capacity;
    }
    r->list[r->count++] = v;
    return TARE_OK;
}

static tare_status read_value(reading *r, const value *v) {
    if (v->kind == VALUE_TENSOR) return read_tensor(r, v->as.tensor);
    if (!tare__value_has_items(v)) return TARE_OK;
    for (uint32_t i = 0; i < v->count; i++) TARE_TRY(read_value(r, &v->as.items[i]));
    return TARE_OK;
}

static tare_status read_arguments(reading *r, const op_call *call) {
    for (size_t i = 0; i < call->arg_count; i++) TARE_TRY(read_value(r, &call->args[i]));
    for (size_t i = 0; i < call->kwarg_count; i++) TARE_TRY(read_value(r, &call->kwargs[i].value));
    return TARE_OK;
}

// --- what it makes ---

static bool is_known(const plan_builder *b, const value *v) {
    if (v->kind == VALUE_TENSOR) return tare__plan_find_value(b, v->as.tensor) != NOTHING;
    if (!tare__value_has_items(v)) return true;
    for (uint32_t i = 0; i < v->count; i++)
        if (!is_known(b, &v->as.items[i])) return false;
    return true;
}

static tare_status note_results(plan_builder *b, const value *v) {
    size_t unused;
    if (v->kind == VALUE_TENSOR && tare__plan_find_value(b, v->as.tensor) == NOTHING)
        return tare__plan_add_value(b, v->as.tensor, &unused);
    if (!tare__value_has_items(v)) return TARE_OK;
    for (uint32_t i = 0; i < v->count; i++) TARE_TRY(note_results(b, &v->as.items[i]));
    return TARE_OK;
}

// True if the values of the result depend on constants only.
static bool reads_constants_only(const plan_builder *b, const op_call *call, const reading *r) {
    const bool is_blind = call->op != NULL && (call->op->traits & OP_BLIND_TO_FIRST) != 0;
    const value *first = is_blind ? call->param[0] : NULL;
    for (size_t i = 0; i < r->count; i++) {
        const plan_value *v = &b->values[r->list[i]];
        const bool is_unseen =
            first != NULL && first->kind == VALUE_TENSOR && first->as.tensor == v->tensor;
        if (!v->is_constant && !is_unseen) return false;
    }
    return true;
}

// Computes the call now, so that later calls see a tensor with data. A library is not used: for a
// single run it would not pay, and no step could report that bits may differ.
static tare_status fold_constant(plan_builder *b, const op_call *call, op_compute compute) {
    op_call own = *call;
    own.budget = &b->budget;
    own.kernels = NULL;
    TARE_TRY(tare__call_allocate(&own));
    return tare__value_is_empty(&own.result) ? TARE_OK : compute(&own);
}

// A module of a built-in class whose result depends on its input and tensors alone.
static bool is_pure_module(const module *m) {
    const module_role role = m->class->role;
    return m->class->op != NULL &&
           (role == ROLE_FLOAT || role == ROLE_REFERENCE || role == ROLE_QUANTIZED);
}

static bool can_fold(const op_call *call) {
    const bool is_impure = call->op != NULL && (call->op->traits & OP_IMPURE) != 0;
    return (call->module == NULL || is_pure_module(call->module)) && !is_impure &&
           call->result.kind == VALUE_TENSOR;
}

static bool is_true(const op_call *call, const char *param) {
    const size_t i = tare__op_param_index(call->op, param);
    const value *v = i < call->param_count ? call->param[i] : NULL;
    return v != NULL && v->kind == VALUE_BOOL && v->as.boolean;
}

// A norm that uses the statistics of its input and keeps none.
static bool keeps_no_statistics(const op_call *call) {
    const size_t i = tare__op_param_index(call->op, "running_mean");
    return i < call->param_count && !tare__call_given(call, i);
}

// A batch norm whose call sets training.
static bool trains_by_argument(const op_call *call) {
    return !(call->op->traits & OP_MOVES_DATA) && is_true(call, "training") &&
           !keeps_no_statistics(call);
}

static tare_status refuse(const plan_builder *b, const char *node_name) {
    return tare__fail(b->err, TARE_UNSUPPORTED, "node '%s': cannot be planned", node_name);
}

static tare_status check_plannable(const plan_builder *b, const op_call *call) {
    const module *m = call->module;
    const bool is_observer = m != NULL && m->class->role == ROLE_OBSERVER;
    // Checks of inputs compute nothing in any mode.
    const bool computes = call->op == NULL || !(call->op->traits & OP_NOT_ON_TENSORS);
    const bool trains = m != NULL ? m->training && !is_observer && computes
                                  : call->op != NULL && computes && trains_by_argument(call);
    const bool depends = call->op != NULL && (call->op->traits & OP_SHAPED_BY_DATA) != 0;
    return trains || depends ? refuse(b, call->node_name) : TARE_OK;
}

static tare_status add_record(plan_builder *b, const node *n, const op_call *call,
                              op_compute compute, const reading *r) {
    if (!tare__grow((void **)&b->records, &b->record_capacity, b->record_count, sizeof *b->records))
        return tare__out_of_memory(b->err);
    value result; // a copy: the interpreter empties sequences after their last use
    TARE_TRY(tare__value_copy(&b->plan->memory, &call->result, NULL, NULL, &result, b->err));
    const size_t self = b->record_count++;
    const module *m = call->module;
    plan_record *record = &b->records[self];
    *record = (plan_record){.node = n,
                            .call = *call,
                            .op = tare__op_id(call->op),
                            .compute = compute,
                            .inputs = r->list,
                            .input_count = r->count,
                            .result = NOTHING,
                            .is_observer = m != NULL && m->class->role == ROLE_OBSERVER,
                            .group = self,
                            .head = self,
                            .next = NOTHING};
    record->call.result = result;
    if (call->result.kind == VALUE_TENSOR && !record->is_observer) {
        record->result = tare__plan_find_value(b, call->result.as.tensor);
        record->is_view = b->values[record->result].base != record->result;
    }
    for (size_t i = 0; i < r->count; i++) {
        b->values[r->list[i]].uses_left++;
        b->values[r->list[i]].consumer = self;
    }
    return TARE_OK;
}

static tare_status note_call(void *user, const node *n, const op_call *call, op_compute compute);

// The children of a fused module become records of their own, so that they are planned like the
// same operators outside of modules. `last`: the result of the whole module, which exists already.
static tare_status note_child(plan_builder *b, const node *n, const op_call *like,
                              const module *child, const value *input, const value *last,
                              value *out) {
    op_call call = tare__module_call_of(like, child, input);
    TARE_TRY(child->class->shape(&call));
    if (last != NULL) {
        tare__value_release_tensors(&call.result);
        call.result = *last;
    }
    *out = call.result;
    const tare_status status = note_call(b, n, &call, child->class->forward);
    if (last == NULL) tare_tensor_release(call.result.as.tensor); // the plan keeps it
    return status;
}

static bool is_sequence(const op_call *call) {
    const module *m = call->module;
    if (m == NULL || m->class->role != ROLE_FUSED || m->class->fused == FUSED_ADD ||
        m->class->fused == FUSED_ADD_RELU || call->result.kind != VALUE_TENSOR ||
        call->arg_count != 1 || call->kwarg_count > 0 || m->child_count == 0)
        return false;
    for (size_t i = 0; i < m->child_count; i++) {
        const module_class *class = m->children[i].module->class;
        const bool is_float = class->role == ROLE_FLOAT || class->role == ROLE_REFERENCE;
        if (class->shape == NULL || class->forward == NULL || !is_float) return false;
    }
    return true;
}

static tare_status note_sequence(plan_builder *b, const node *n, const op_call *call) {
    const module *m = call->module;
    const value *input = &call->args[0];
    for (size_t i = 0; i < m->child_count; i++) {
        value *made = tare__arena_alloc(&b->plan->memory, sizeof *made);
        if (made == NULL) return tare__out_of_memory(b->err);
        const bool is_last = i + 1 == m->child_count;
        TARE_TRY(note_child(b, n, call, m->children[i].module, input,
                            is_last ? &call->result : NULL, made));
        input = made;
    }
    return TARE_OK;
}

// --- composed functions ---

// A composed function: each call that it consists of becomes a record, so that steps compute it.
typedef struct composition {
    plan_builder *b;
    const node *n;
    size_t first_record, first_value; // of the inner calls
} composition;

static tare_status note_inner_call(void *user, const op_call *call) {
    const composition *c = user;
    return note_call(c->b, c->n, call, tare__op_compute);
}

static void replace_tensor(value *v, const tare_tensor *from, tare_tensor *to) {
    if (v->kind == VALUE_TENSOR && v->as.tensor == from) v->as.tensor = to;
    if (!tare__value_has_items(v)) return;
    for (uint32_t i = 0; i < v->count; i++) replace_tensor(&v->as.items[i], from, to);
}

// Replaces a tensor in the arguments and results of the inner calls.
static void replace_in_records(const composition *c, const tare_tensor *from, tare_tensor *to) {
    for (size_t i = c->first_record; i < c->b->record_count; i++) {
        op_call *call = &c->b->records[i].call;
        for (size_t k = 0; k < call->arg_count; k++)
            replace_tensor((value *)&call->args[k], from, to);
        replace_tensor(&call->result, from, to);
    }
}

// The whole function was constant.
static tare_status copy_constant(plan_builder *b, tare_tensor *t, const tare_tensor *made) {
    size_t unused;
    TARE_TRY(tare__tensor_allocate(t, b->err));
    if (t->count > 0) memcpy(t->data, made->data, tare__tensor_bytes(t));
    return tare__plan_add_value(b, t, &unused);
}

// Makes `t` represent the result of the inner calls in the rest of the graph.
static tare_status substitute(const composition *c, tare_tensor *t, const tare_tensor *made) {
    plan_builder *b = c->b;
    const size_t v = tare__plan_find_value(b, made);
    if (tare__plan_find_value(b, t) != NOTHING) return TARE_OK; // an argument
    if (made->data != NULL) return copy_constant(b, t, made);
    if (v == NOTHING || v < c->first_value) return refuse(b, c->n->name);
    if (t->store != NULL) tare__storage_release(t->store); // if t is a view
    t->store = tare__storage_retain(made->store);
    replace_in_records(c, made, t);
    b->values[v].tensor = t;
    TARE_TRY(tare__plan_keep_tensor(b->plan, t, b->err));
    return tare__pointer_index_set(&b->by_tensor, &b->scratch, t, v) ? TARE_OK
                                                                     : tare__out_of_memory(b->err);
}

static tare_status substitute_all(const composition *c, const value *v, const value *made) {
    if (v->kind == VALUE_TENSOR && made->kind == VALUE_TENSOR)
        return substitute(c, v->as.tensor, made->as.tensor);
    if (!tare__value_has_items(v) || v->kind != made->kind || v->count != made->count)
        return TARE_OK;
    for (uint32_t i = 0; i < v->count; i++)
        TARE_TRY(substitute_all(c, &v->as.items[i], &made->as.items[i]));
    return TARE_OK;
}

static bool is_of_quantized(const plan_builder *b, const reading *r) {
    for (size_t i = 0; i < r->count; i++)
        if (b->values[r->list[i]].tensor->q != NULL) return true;
    return false;
}

static tare_status note_composed(plan_builder *b, const node *n, const op_call *call) {
    composition c = {b, n, b->record_count, b->value_count};
    op_call own = *call;
    value made = tare__none();
    own.memory = &b->plan->memory;
    TARE_TRY(tare__composed_calls(&own, note_inner_call, &c, &made));
    const tare_status status = substitute_all(&c, &call->result, &made);
    tare__value_release_tensors(&made);
    return status;
}

// A function, or a module that is a bound call of one.
static bool is_composed(const op_call *call, op_compute compute) {
    const bool is_function =
        compute == tare__op_compute || (compute == tare__operator_module_forward && call->is_bound);
    return is_function && call->op != NULL && call->op->forward != NULL;
}

static tare_status note(plan_builder *b, const node *n, const op_call *call, op_compute compute) {
    reading r = {.b = b};
    const bool is_observer = call->module != NULL && call->module->class->role == ROLE_OBSERVER;
    if (is_observer) b->plan->observes = true;
    // Numbers, and arguments that are returned (dropout, an item of a tuple), need no record.
    if (!is_observer && is_known(b, &call->result)) return TARE_OK;
    if (is_sequence(call)) return note_sequence(b, n, call);
    if (tare__plan_is_reference(call, compute)) {
        op_call own;
        TARE_TRY(tare__plan_reference_call(b, call, &own));
        return note(b, n, &own, tare__op_compute);
    }
    TARE_TRY(read_arguments(&r, call));
    // An argument that is first used here.
    if (!is_observer && is_known(b, &call->result)) return TARE_OK;
    // Views of constants, also those of modules.
    if (tare__call_is_done(call)) return note_results(b, &call->result);
    if (can_fold(call) && reads_constants_only(b, call, &r)) {
        TARE_TRY(fold_constant(b, call, compute));
        return note_results(b, &call->result);
    }
    if (is_composed(call, compute) && !is_of_quantized(b, &r)) return note_composed(b, n, call);
    TARE_TRY(note_results(b, &call->result));
    return add_record(b, n, call, compute, &r);
}

static tare_status note_call(void *user, const node *n, const op_call *call, op_compute compute) {
    TARE_TRY(check_plannable(user, call));
    return note(user, n, call, compute);
}

// --- inputs and outputs ---

static tare_status begin_inputs(plan_builder *b, size_t count) {
    plan *p = b->plan;
    p->inputs = tare__arena_array(&p->memory, count + 1, sizeof *p->inputs);
    p->input_buffers = tare__arena_array(&p->memory, count + 1, sizeof *p->input_buffers);
    return p->inputs != NULL && p->input_buffers != NULL ? TARE_OK : tare__out_of_memory(b->err);
}

static tare_status add_input(plan_builder *b, tare_tensor *t) {
    plan *p = b->plan;
    size_t v;
    TARE_TRY(tare__plan_add_value(b, t, &v));
    b->values[v].is_input = true;
    p->inputs[p->input_count] = t;
    p->input_buffers[p->input_count++] = NOTHING;
    return TARE_OK;
}

static tare_status make_inputs(plan_builder *b, const tare_tensor *const *inputs, size_t count,
                               value *values) {
    TARE_TRY(begin_inputs(b, count));
    for (size_t i = 0; i < count; i++) {
        const tare_tensor *x = inputs[i];
        tare_tensor *t = NULL;
        if (x->q != NULL) return tare__fail(b->err, TARE_UNSUPPORTED, "input %zu is quantized", i);
        TARE_TRY(tare__tensor_meta(x->dtype, x->ndim, x->shape, NULL, &t, b->err));
        const tare_status status = add_input(b, t);
        tare_tensor_release(t); // the plan keeps it
        TARE_TRY(status);
        values[i] = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    }
    return TARE_OK;
}

static tare_status note_outputs(plan_builder *b, const value *v) {
    plan *p = b->plan;
    if (v->kind == VALUE_TENSOR) {
        size_t known = tare__plan_find_value(b, v->as.tensor);
        if (known == NOTHING) TARE_TRY(tare__plan_add_value(b, v->as.tensor, &known));
        b->values[known].uses_left++;
        b->values[known].consumer = NOTHING; // no single record reads it
        if (!tare__grow((void **)&p->outputs, &p->output_capacity, p->output_count,
                        sizeof *p->outputs))
            return tare__out_of_memory(b->err);
        p->outputs[p->output_count++] = (plan_output){.like = v->as.tensor, .buffer = NOTHING};
        return TARE_OK;
    }
    if (!tare__value_has_items(v)) return TARE_OK;
    for (uint32_t i = 0; i < v->count; i++) TARE_TRY(note_outputs(b, &v->as.items[i]));
    return TARE_OK;
}

// --- the graph, or a call ---

tare_status tare__plan_trace_call(plan_builder *b, const node *n, const op_call *call,
                                  const tare_tensor *const *inputs, size_t count) {
    TARE_TRY(begin_inputs(b, count));
    for (size_t i = 0; i < count; i++) TARE_TRY(add_input(b, (tare_tensor *)inputs[i]));
    TARE_TRY(
        note(b, n, call, call->module != NULL ? call->module->class->forward : tare__op_compute));
    return note_outputs(b, &call->result);
}

static interpreter tracer(plan_builder *b) {
    interpreter it = *b->setting->it;
    it.after = NULL;
    it.execute = NULL;
    it.remember = NULL;
    it.shapes_only = true;
    it.shaped = note_call;
    it.writes = tare__plan_note_write;
    it.stand_in = tare__plan_stand_in;
    it.user = b;
    return it;
}

tare_status tare__plan_trace(plan_builder *b, const tare_tensor *const *inputs, size_t count) {
    const interpreter it = tracer(b);
    value *values = tare__arena_array(&b->scratch, count + 1, sizeof *values);
    value result = tare__none();
    if (values == NULL) return tare__out_of_memory(b->err);
    TARE_TRY(make_inputs(b, inputs, count, values));
    TARE_TRY(tare__plan_add_states(b));
    TARE_TRY(tare__interpret(&it, values, count, &b->plan->memory, &result, b->err));
    tare_status status = note_outputs(b, &result);
    if (status == TARE_OK) status = tare__plan_use_states(b);
    if (status == TARE_OK)
        status = tare__output_names(it.root->graph, &result, &b->plan->memory,
                                    &b->plan->output_names, b->err);
    tare__value_release_tensors(&result); // the plan keeps them
    return status;
}
