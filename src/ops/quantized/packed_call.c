// SPDX-License-Identifier: Apache-2.0
// Reads a call of a function with packed weights: its weights, and the properties that follow from
// the operator's name.
#include "ops/quantized/packed.h"

#include <stdio.h>
#include <string.h>

#include "core/text/text.h"
#include "ops/op.h"

const module *tare__packed_argument(const op_call *call) {
    const value *v = call->module == NULL ? call->param[PACKED_WEIGHTS] : NULL;
    return v != NULL && v->kind == VALUE_MODULE ? v->as.module : NULL;
}

tare_status tare__packed_weights(op_call *call, const module **out) {
    const module *m = tare__packed_argument(call);
    char wanted[64];
    if (m == NULL) return tare__call_fail(call, "expected packed weights as its second input");
    if (m->class->dims > 0)
        snprintf(wanted, sizeof wanted, "quantized.%s%dd", m->class->op, m->class->dims);
    else
        snprintf(wanted, sizeof wanted, "quantized.%s", m->class->op);
    if (!tare__starts_with(call->op->id, wanted))
        return tare__call_fail(call, "cannot use the weights of a %s", m->class->name);
    *out = m;
    return TARE_OK;
}

bool tare__packed_has_relu(const op_call *call) {
    return strstr(call->op->id, "_relu") != NULL;
}

bool tare__packed_adds(const op_call *call) {
    return strstr(call->op->id, "_add") != NULL;
}

bool tare__packed_gives_floats(const op_call *call) {
    return tare__ends_with(call->op->id, "_float");
}

bool tare__packed_is_decomposed(const op_call *call) {
    return strstr(call->op->id, "_decomposed_") != NULL;
}

bool tare__packed_is_half(const op_call *call) {
    return tare__ends_with(call->op->id, "_fp16");
}
