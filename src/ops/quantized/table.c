// SPDX-License-Identifier: Apache-2.0
// Look-up tables over quantized values.
#include "ops/quantized/table.h"

#include <string.h>

#include "ops/quantized/layer.h"
#include "ops/quantized/rule.h"
#include "ops/rules.h"

enum { LEAST_WORTH = 4 * QUANTIZED_COUNT };

static bool has_tensor(const value *v) {
    if (v == NULL) return false;
    if (v->kind == VALUE_TENSOR) return true;
    if (!tare__value_has_items(v)) return false;
    for (uint32_t i = 0; i < v->count; i++)
        if (has_tensor(&v->as.items[i])) return true;
    return false;
}

static bool is_by_element(const op_info *op) {
    return (op->traits & OP_ELEMENTWISE) || op->shape == tare__shape_identity;
}

bool tare__quantized_table_fits(const op_info *op, const value *const *param, size_t count,
                                const value *y) {
    if (!is_by_element(op) || param[0] == NULL || param[0]->kind != VALUE_TENSOR ||
        y->kind != VALUE_TENSOR)
        return false;
    for (size_t i = 1; i < count; i++)
        if (has_tensor(param[i])) return false;
    const tare_tensor *x = param[0]->as.tensor, *out = y->as.tensor;
    return x->count >= LEAST_WORTH && x->count == out->count && tare__is_byte_quantized(x) &&
           tare__is_byte_quantized(out);
}

// Tensors of all quantized values of x, and of as many of y.
static tare_status make_tensors(const tare_tensor *x, const tare_tensor *y, value *quantized,
                                value *results, tare_error *err) {
    const int64_t shape[] = {QUANTIZED_COUNT};
    *quantized = *results = (value){.kind = VALUE_TENSOR};
    TARE_TRY(tare__tensor_meta(x->dtype, 1, shape, x->q, &quantized->as.tensor, err));
    TARE_TRY(tare__tensor_meta(y->dtype, 1, shape, y->q, &results->as.tensor, err));
    TARE_TRY(tare__tensor_allocate(quantized->as.tensor, err));
    TARE_TRY(tare__tensor_allocate(results->as.tensor, err));
    uint8_t *each = quantized->as.tensor->data; // signed quantized values by their bytes too
    for (int i = 0; i < QUANTIZED_COUNT; i++) each[i] = (uint8_t)i;
    return TARE_OK;
}

static tare_status make_table(const tare_tensor *x, const tare_tensor *y,
                              quantized_function compute, void *user,
                              uint8_t table[QUANTIZED_COUNT], tare_error *err) {
    value quantized, results;
    tare_status status = make_tensors(x, y, &quantized, &results, err);
    if (status == TARE_OK) status = compute(user, &quantized, &results);
    if (status == TARE_OK) memcpy(table, results.as.tensor->data, QUANTIZED_COUNT);
    tare_tensor_release(quantized.as.tensor);
    tare_tensor_release(results.as.tensor);
    return status;
}

tare_status tare__quantized_table_run(const tare_tensor *x, tare_tensor *y,
                                      quantized_function compute, void *user, tare_error *err) {
    uint8_t table[QUANTIZED_COUNT];
    TARE_TRY(make_table(x, y, compute, user, table, err));
    const uint8_t *from = x->data;
    uint8_t *to = y->data;
    for (int64_t i = 0; i < x->count; i++) to[i] = table[from[i]];
    return TARE_OK;
}

// --- the table of a call ---

static bool is_number(const value *v) {
    return v->kind != VALUE_TENSOR || (v->as.tensor->count == 1 && v->as.tensor->data != NULL);
}

// A module with a tensor of several numbers, as PReLU with a slope for each channel, computes
// another function for each of them.
static bool has_numbers_alone(const module *m) {
    for (size_t i = 0; m != NULL && i < m->tensor_count; i++)
        if (m->tensors[i].tensor != NULL && m->tensors[i].tensor->count != 1) return false;
    return true;
}

bool tare__is_function_of_one_value(const op_call *call, const tare_tensor *x) {
    const op_info *op = call->op;
    if (op != NULL && tare__quantized_rule_op(op) != NULL) op = tare__quantized_rule_op(op);
    if (op == NULL || !is_by_element(op) || (op->traits & OP_IMPURE) || call->arg_count == 0 ||
        call->args[0].kind != VALUE_TENSOR || call->args[0].as.tensor != x ||
        call->result.kind != VALUE_TENSOR || !has_numbers_alone(call->module))
        return false;
    for (size_t i = 1; i < call->arg_count; i++)
        if (!is_number(&call->args[i]) || tare__value_has_items(&call->args[i])) return false;
    for (size_t i = 0; i < call->kwarg_count; i++)
        if (!is_number(&call->kwargs[i].value) || tare__value_has_items(&call->kwargs[i].value))
            return false;
    const tare_tensor *y = call->result.as.tensor;
    return tare__is_byte_quantized(x) && tare__is_byte_quantized(y) && x->count == y->count;
}

tare_status tare__call_on(const op_call *call, op_compute compute, tare_tensor *x, tare_tensor *y) {
    op_call own = *call;
    value *args = tare__arena_array(call->memory, call->arg_count, sizeof *args);
    if (args == NULL) return tare__out_of_memory(call->err);
    memcpy(args, call->args, call->arg_count * sizeof *args);
    args[0] = (value){.kind = VALUE_TENSOR, .as.tensor = x};
    own.args = args;
    own.result = (value){.kind = VALUE_TENSOR, .as.tensor = y};
    for (size_t i = 0; i < call->param_count; i++)
        for (size_t k = 0; k < call->arg_count; k++)
            if (call->param[i] == &call->args[k]) own.param[i] = &args[k];
    return compute(&own);
}

typedef struct table_call {
    const op_call *call;
    op_compute compute;
} table_call;

static tare_status compute_call(void *user, const value *in, value *out) {
    const table_call *t = user;
    return tare__call_on(t->call, t->compute, in->as.tensor, out->as.tensor);
}

tare_status tare__quantized_table_of(const op_call *call, op_compute compute, const tare_tensor *x,
                                     uint8_t table[QUANTIZED_COUNT], bool *known) {
    table_call t = {call, compute};
    *known = tare__is_function_of_one_value(call, x);
    if (!*known) return TARE_OK;
    return make_table(x, call->result.as.tensor, compute_call, &t, table, call->err);
}
