// SPDX-License-Identifier: Apache-2.0
// Operators on quantized values that have only a float step: the dequantized values become values
// of the plan, so that the float operator's step computes them, with intermediate values in the
// plan's memory.
#include <string.h>

#include "ops/quantized/layer.h"
#include "ops/quantized/rule.h"
#include "runtime/plan/dispatch.h"
#include "runtime/plan/records.h"
#include "runtime/steps/quantized_elements.h"
#include "runtime/steps/steps.h"

// A record that starts a longer chain is not taken.
static bool heads(const plan_builder *b, const plan_record *r) {
    if (b->setting->kernels == NULL || r->next != NOTHING || r->result == NOTHING ||
        r->is_observer || r->is_view)
        return false;
    const tare_tensor *y = b->values[r->result].tensor;
    return tare__is_byte_quantized(y) && y->count > 0;
}

// True if the result is a new tensor to be computed.
static bool is_new_float(const plan_builder *b, const value *result) {
    return result->kind == VALUE_TENSOR && result->as.tensor->dtype == TARE_FLOAT32 &&
           result->as.tensor->store == NULL &&
           tare__plan_find_value(b, result->as.tensor) == NOTHING;
}

static bool knows_quantized(const plan_builder *b, const through_float *t) {
    bool knows = true;
    for (size_t i = 0; i < t->f.call.param_count; i++)
        knows = knows &&
                (t->quantized[i] == NULL || tare__plan_find_value(b, t->quantized[i]) != NOTHING);
    return knows;
}

// Adds the float call as a record, with its inputs in `inputs`.
static tare_status add_inputs(plan_builder *b, const through_float *t, size_t *inputs,
                              plan_record *r) {
    for (size_t i = 0; i < t->f.call.param_count; i++) {
        const value *now = t->f.call.param[i];
        if (now == NULL || now->kind != VALUE_TENSOR) continue;
        size_t v = tare__plan_find_value(b, now->as.tensor);
        if (v == NOTHING) TARE_TRY(tare__plan_add_value(b, now->as.tensor, &v));
        if (t->quantized[i] != NULL) {
            b->values[v].uses_left = 1;
            TARE_TRY(tare__plan_convert(b, tare__plan_find_value(b, t->quantized[i]), v, NULL));
        }
        inputs[r->input_count++] = v;
    }
    r->inputs = inputs;
    return TARE_OK;
}

// Copies the call into the plan's memory; the plan holds the tensors.
static tare_status keep_call(plan_builder *b, const through_float *t, op_call *out) {
    value *params = tare__arena_array(&b->plan->memory, OP_MAX_PARAMS, sizeof *params);
    if (params == NULL) return tare__out_of_memory(b->err);
    memcpy(params, t->f.params, sizeof t->f.params);
    *out = t->f.call;
    for (size_t i = 0; i < out->param_count; i++)
        if (out->param[i] != NULL) out->param[i] = &params[i];
    return TARE_OK;
}

static void forget_copies(plan_builder *b, const through_float *t) {
    for (size_t i = 0; i < t->f.call.param_count; i++)
        if (t->quantized[i] != NULL)
            b->values[tare__plan_find_value(b, t->f.call.param[i]->as.tensor)].uses_left = 0;
}

static tare_status add_float_step(plan_builder *b, size_t record) {
    return tare__plan_is_float(b, &b->records[record]) ? tare__plan_one(b, record)
                                                       : tare__plan_call(b, record);
}

// The record exists only while its step is planned.
static tare_status add_steps(plan_builder *b, size_t head, const through_float *t) {
    const size_t y = b->records[head].result, record = b->record_count;
    const node *n = b->records[head].node;
    size_t *inputs = tare__arena_array(&b->plan->memory, OP_MAX_PARAMS, sizeof *inputs), made;
    if (inputs == NULL ||
        !tare__grow((void **)&b->records, &b->record_capacity, b->record_count, sizeof *b->records))
        return tare__out_of_memory(b->err);
    plan_record r = {
        .node = n, .compute = tare__op_compute, .group = NOTHING, .next = NOTHING, .head = record};
    TARE_TRY(keep_call(b, t, &r.call));
    r.op = tare__op_id(r.call.op);
    TARE_TRY(add_inputs(b, t, inputs, &r));
    TARE_TRY(tare__plan_add_value(b, t->f.call.result.as.tensor, &made));
    b->values[made].uses_left = 1;
    r.result = made;
    b->records[b->record_count++] = r;
    const tare_status status = add_float_step(b, record);
    b->record_count--;
    TARE_TRY(status);
    forget_copies(b, t);
    return tare__plan_convert(b, made, y, n);
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    bool known = false;
    through_float t = {0};
    op_call call = r->call;
    call.err = b->err;
    call.memory = &b->plan->memory;
    tare_status status = tare__through_float_begin(&call, &t, &known);
    *done =
        status == TARE_OK && known && is_new_float(b, &t.f.call.result) && knows_quantized(b, &t);
    if (*done) status = add_steps(b, head, &t);
    if (known) tare__float_call_end(&t.f); // the plan holds its own references
    if (status != TARE_OK || *done || tare__plan_quantized_input(r) != NULL) return status;
    return tare__plan_decline_operator(b);
}

const step_class tare__through_float_step = {
    .name = "through float",
    .heads = heads,
    .plan = plan_chain,
};
