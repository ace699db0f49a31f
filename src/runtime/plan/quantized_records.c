// SPDX-License-Identifier: Apache-2.0
// Questions about calls on quantized values.
#include <string.h>

#include "ops/quantized/call_table.h"
#include "ops/quantized/layer.h"
#include "ops/rules.h"
#include "runtime/kernels/schemes.h"
#include "runtime/plan/records.h"

// Modules have their input as only argument.
const tare_tensor *tare__plan_quantized_input(const plan_record *r) {
    const tare_tensor *bound = r->call.param_count > 0 ? tare__call_tensor(&r->call, 0) : NULL;
    const bool has_number =
        bound == NULL && r->call.module == NULL && r->call.param_count > 1 &&
        r->call.param[0] != NULL &&
        (r->call.param[0]->kind == VALUE_INT || r->call.param[0]->kind == VALUE_FLOAT);
    if (has_number) return tare__call_tensor(&r->call, 1); // 0.5 * x
    if (bound != NULL || r->call.module == NULL || r->call.arg_count == 0) return bound;
    return r->call.args[0].kind == VALUE_TENSOR ? r->call.args[0].as.tensor : NULL;
}

bool tare__plan_may_be_quantized(const plan_builder *b, const plan_record *r) {
    return r->result != NOTHING && !r->is_observer && !r->is_view && !tare__plan_is_float(b, r);
}

// Other modules compute with weights that are not their own.
static bool has_own_weights(const plan_record *r) {
    const module *m = r->call.module;
    return m == NULL || (m->class->role != ROLE_REFERENCE && m->class->role != ROLE_QAT);
}

bool tare__plan_is_own_quantized(const plan_builder *b, const plan_record *r) {
    return tare__plan_may_be_quantized(b, r) && has_own_weights(r);
}

bool tare__plan_is_quantized_op(const plan_builder *b, const plan_record *r, const op_id *ids) {
    return tare__record_is_one_of(r, ids) && tare__plan_is_own_quantized(b, r);
}

bool tare__plan_is_quantized_layer(const plan_record *r) {
    const module *m = tare__call_layer_module(&r->call);
    const tare_tensor *x = tare__call_layer_input(&r->call);
    if (r->result == NOTHING || r->is_observer || m == NULL || x == NULL || x->q == NULL ||
        (m->class->role != ROLE_QUANTIZED && m->class->role != ROLE_PACKED))
        return false;
    return tare__plan_layer_is_linear(r) ||
           tare__op_has(tare__class_row(m->class), OP_CONVOLUTION | OP_TRANSPOSED);
}

bool tare__plan_layer_is_linear(const plan_record *r) {
    return tare__class_op(tare__call_layer_module(&r->call)->class) == TARE_OP_LINEAR;
}

bool tare__plan_is_quantized_sum(const plan_builder *b, const plan_record *r) {
    const tare_tensor *x = tare__call_tensor(&r->call, 0), *other = tare__call_tensor(&r->call, 1);
    if (!tare__is_quantized_sum(&r->call) || x == NULL || other == NULL || x == other) return false;
    const tare_tensor *y = b->values[r->result].tensor;
    return tare__same_shape(x, y) && tare__same_shape(other, y);
}

bool tare__plan_is_quantized_function(const plan_builder *b, const plan_record *r) {
    const tare_tensor *x = tare__plan_quantized_input(r);
    return x != NULL && !r->is_observer && !r->is_view &&
           tare__is_function_of_one_value(&r->call, x) &&
           tare__same_shape(x, b->values[r->result].tensor);
}

tare_status tare__plan_quantized_table(plan_builder *b, const plan_record *r, uint8_t table[],
                                       bool *known) {
    op_call call = r->call;
    const tare_tensor *x = tare__plan_quantized_input(r);
    call.err = b->err;
    call.memory = &b->scratch;
    *known = false;
    if (x == NULL) return TARE_OK;
    return tare__quantized_table_of(&call, r->compute, x, table, known);
}

bool tare__plan_gives_bytes(const plan_builder *b, const plan_record *r) {
    return tare__record_is(r, TARE_OP_QUANTIZE_PER_TENSOR) && r->result != NOTHING &&
           !r->is_observer && tare__is_byte_quantized(b->values[r->result].tensor);
}
