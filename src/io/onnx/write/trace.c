// SPDX-License-Identifier: Apache-2.0
// Traces a graph: every call with bound parameters and the shapes of its results, in execution
// order. Sequential containers are traced as their children.
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "io/onnx/write/state.h"
#include "ops/classes/module_call.h"
#include "ops/interpret.h"

enum {
    // Limit on the elements of computed constants: shapes and masks, not weights.
    MOST_FOLDED = 1 << 24,
    // Limit on those that are computed from a tensor of the model, which the file computes
    // otherwise.
    MOST_FOLDED_OF_MODEL = 1 << 16
};

tare_status tare__onnx_keep(out_trace *t, tare_tensor *tensor) {
    if (!tare__grow((void **)&t->kept, &t->kept_capacity, t->kept_count, sizeof *t->kept))
        return tare__out_of_memory(t->err);
    t->kept[t->kept_count++] = tare_tensor_retain(tensor);
    return TARE_OK;
}

static tare_status keep_all(out_trace *t, const value *v) {
    if (v->kind == VALUE_TENSOR) return tare__onnx_keep(t, v->as.tensor);
    if (!tare__value_has_items(v)) return TARE_OK;
    for (uint32_t i = 0; i < v->count; i++) TARE_TRY(keep_all(t, &v->as.items[i]));
    return TARE_OK;
}

// --- constants ---

static void key_of(const tare_tensor *tensor, char out[32]) {
    snprintf(out, 32, "%p", (const void *)tensor);
}

bool tare__onnx_is_pure(const out_trace *t, const tare_tensor *tensor) {
    char key[32];
    key_of(tensor, key);
    return tare__map_has(&t->pure, key);
}

typedef struct reading {
    bool constant, pure; // is true for all tensors among the arguments
} reading;

static void read_value(const out_trace *t, const value *v, reading *r) {
    if (v->kind == VALUE_TENSOR) {
        r->constant &= v->as.tensor->data != NULL;
        r->pure &= tare__onnx_is_pure(t, v->as.tensor);
    }
    if (v->kind == VALUE_MODULE) r->constant = false;
    if (!tare__value_has_items(v)) return;
    for (uint32_t i = 0; i < v->count; i++) read_value(t, &v->as.items[i], r);
}

static reading read_arguments(const out_trace *t, const op_call *call) {
    reading r = {true, true};
    for (size_t i = 0; i < call->arg_count; i++) read_value(t, &call->args[i], &r);
    for (size_t i = 0; i < call->kwarg_count; i++) read_value(t, &call->kwargs[i].value, &r);
    return r;
}

// Quantized values are not folded: their nodes carry the parameters, and weights are large.
static bool folds(const out_trace *t, const op_call *call, const reading *r) {
    const tare_tensor *made = call->result.kind == VALUE_TENSOR ? call->result.as.tensor : NULL;
    if (call->module != NULL || call->op == NULL || made == NULL || !r->constant) return false;
    const int64_t most = r->pure ? MOST_FOLDED : MOST_FOLDED_OF_MODEL;
    const int64_t macs = call->op->macs != NULL ? call->op->macs(call) : 0;
    return (call->op->traits & (OP_IMPURE | OP_WEIGHTED)) == 0 && made->q == NULL &&
           macs <= MOST_FOLDED && made->count <= most &&
           (uint64_t)made->count + t->folded <= MOST_FOLDED;
}

static tare_status fold(out_trace *t, const op_call *call, op_compute compute, const reading *r) {
    op_call own = *call;
    char key[32];
    tare_tensor *made = call->result.as.tensor;
    if (made->data == NULL) {
        TARE_TRY(tare__call_allocate(&own));
        t->folded += (size_t)made->count;
        if (!tare__value_is_empty(&own.result)) TARE_TRY(compute(&own));
    }
    key_of(made, key);
    if (!r->pure || tare__map_set(&t->pure, key, NULL)) return TARE_OK;
    return tare__out_of_memory(t->err);
}

// --- calls ---

static tare_status add_record(out_trace *t, const node *n, const op_call *call) {
    value result; // a copy: the interpreter clears sequences after their last use
    if (!tare__grow((void **)&t->records, &t->record_capacity, t->record_count, sizeof *t->records))
        return tare__out_of_memory(t->err);
    TARE_TRY(tare__value_copy(&t->memory, &call->result, NULL, NULL, &result, t->err));
    out_record *record = &t->records[t->record_count++];
    *record = (out_record){.node = n, .call = *call, .result = result};
    record->call.result = result;
    return keep_all(t, &result);
}

static bool is_sequence(const op_call *call) {
    const module *m = call->module;
    return m != NULL && m->class->role == ROLE_FUSED && m->class->fused != FUSED_ADD &&
           m->class->fused != FUSED_ADD_RELU && call->result.kind == VALUE_TENSOR &&
           call->arg_count == 1 && call->kwarg_count == 0 && m->child_count > 0;
}

static tare_status note_call(void *user, const node *n, const op_call *call, op_compute compute);

static tare_status note_child(out_trace *t, const node *n, const op_call *like, module *child,
                              const value *input, const value *last, value *out) {
    op_call call = tare__module_call_of(like, child, input);
    if (child->class->shape == NULL)
        return tare__fail(t->err, TARE_UNSUPPORTED, "node '%s': a %s cannot be run", n->name,
                          child->class->name);
    TARE_TRY(child->class->shape(&call));
    if (last != NULL) {
        tare__value_release_tensors(&call.result);
        call.result = *last;
    }
    *out = call.result;
    const tare_status status = note_call(t, n, &call, child->class->forward);
    if (last == NULL) tare__value_release_tensors(&call.result); // the trace holds references
    return status;
}

static tare_status note_sequence(out_trace *t, const node *n, const op_call *call) {
    const module *m = call->module;
    const value *input = &call->args[0];
    for (size_t i = 0; i < m->child_count; i++) {
        value *made = tare__arena_alloc(&t->memory, sizeof *made);
        if (made == NULL) return tare__out_of_memory(t->err);
        TARE_TRY(note_child(t, n, call, m->children[i].module, input,
                            i + 1 == m->child_count ? &call->result : NULL, made));
        input = made;
    }
    return TARE_OK;
}

static tare_status note_call(void *user, const node *n, const op_call *call, op_compute compute) {
    out_trace *t = user;
    if (is_sequence(call)) return note_sequence(t, n, call);
    const reading r = read_arguments(t, call);
    if (folds(t, call, &r)) TARE_TRY(fold(t, call, compute, &r));
    return add_record(t, n, call);
}

// --- the graph ---

tare_status tare__onnx_trace(module *root, tare_tensor *const *inputs, size_t input_count,
                             out_trace *out, tare_error *err) {
    *out = (out_trace){.root = root, .err = err};
    out->inputs = tare__arena_array(&out->memory, input_count + 1, sizeof *out->inputs);
    if (out->inputs == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < input_count; i++) {
        out->inputs[i] = (value){.kind = VALUE_TENSOR, .as.tensor = inputs[i]};
        TARE_TRY(tare__onnx_keep(out, inputs[i]));
    }
    const interpreter it = {
        .root = root, .thread_count = 1, .shapes_only = true, .shaped = note_call, .user = out};
    return tare__interpret(&it, out->inputs, input_count, &out->memory, &out->outputs, err);
}

void tare__onnx_trace_release(out_trace *t) {
    tare__value_release_tensors(&t->outputs);
    for (size_t i = 0; i < t->kept_count; i++) tare_tensor_release(t->kept[i]);
    tare__free(t->kept);
    tare__free(t->records);
    tare__map_release(&t->pure);
    tare__arena_release(&t->memory);
    *t = (out_trace){0};
}
