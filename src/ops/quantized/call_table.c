// SPDX-License-Identifier: Apache-2.0
// The lookup table of a bound call.
#include "ops/quantized/call_table.h"

#include <string.h>

#include "ops/quantized/layer.h"
#include "ops/quantized/rule.h"

static bool is_number(const value *v) {
    return v->kind != VALUE_TENSOR || (v->as.tensor->count == 1 && v->as.tensor->data != NULL);
}

// True if every tensor of the module has one element. Otherwise, as in PReLU with a slope per
// channel, the function of an element depends on its position.
static bool has_numbers_alone(const module *m) {
    for (size_t i = 0; m != NULL && i < m->tensor_count; i++)
        if (m->tensors[i].tensor != NULL && m->tensors[i].tensor->count != 1) return false;
    return true;
}

// The index of the only tensor among the arguments (the second one in `0.5 * x`); arg_count: there
// is not exactly one.
static size_t find_tensor(const op_call *call) {
    size_t found = call->arg_count;
    for (size_t i = 0; i < call->arg_count; i++) {
        const value *v = &call->args[i];
        if (tare__value_has_items(v)) return call->arg_count;
        if (v->kind != VALUE_TENSOR || (i > 0 && is_number(v))) continue;
        if (found < call->arg_count) return call->arg_count;
        found = i;
    }
    return found;
}

bool tare__is_function_of_one_value(const op_call *call, const tare_tensor *x) {
    const op_info *op = call->op;
    if (op != NULL && tare__quantized_rule_op(op) != NULL) op = tare__quantized_rule_op(op);
    if (op == NULL || !tare__op_is_by_element(op) || (op->traits & OP_IMPURE) ||
        call->result.kind != VALUE_TENSOR || !has_numbers_alone(call->module))
        return false;
    const size_t at = find_tensor(call);
    if (at == call->arg_count || call->args[at].as.tensor != x) return false;
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
    const size_t at = find_tensor(call);
    args[at < call->arg_count ? at : 0] = (value){.kind = VALUE_TENSOR, .as.tensor = x};
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
    return tare__quantized_table_make(x, call->result.as.tensor, compute_call, &t, table,
                                      call->err);
}
