// SPDX-License-Identifier: Apache-2.0
// Schemes, sums and products of quantized values, for kernels.
#include "runtime/kernels/schemes.h"

#include "ops/op.h"
#include "ops/quantized/engine_rules.h"

quantized_scheme tare__quantized_scheme_of(const tare_tensor *t) {
    return (quantized_scheme){
        .scale = (float)t->q->scale[0],
        .inverse = tare__inverse_scale(t->q->scale[0]),
        .zero_point = (int32_t)t->q->zero_point[0],
        .least = (int32_t)t->q->quant_min,
        .most = (int32_t)t->q->quant_max,
        .is_signed = t->dtype == TARE_QINT8,
    };
}

static bool is_sum(const op_call *call) {
    return OP_IS_ANY(tare__op_id(call->op), TARE_OP_QUANTIZED_ADD, TARE_OP_QUANTIZED_ADD_RELU);
}

static bool is_product(const op_call *call) {
    return OP_IS_ANY(tare__op_id(call->op), TARE_OP_QUANTIZED_MUL, TARE_OP_QUANTIZED_MUL_RELU);
}

bool tare__is_quantized_sum(const op_call *call) {
    return is_sum(call) && !tare__rule_adds_in_fixed_point(call->linear_rule);
}

bool tare__is_quantized_binary(const op_call *call) {
    return is_product(call) || tare__is_quantized_sum(call);
}

quantized_binary tare__quantized_binary_of(const op_call *call, const tare_tensor *a,
                                           const tare_tensor *b, const tare_tensor *y) {
    const quantized_scheme sa = tare__quantized_scheme_of(a), sb = tare__quantized_scheme_of(b);
    const quantized_scheme sy = tare__quantized_scheme_of(y);
    const quantized_range ra = {sa.scale, sa.zero_point}, rb = {sb.scale, sb.zero_point};
    const quantized_range ry = {sy.scale, sy.zero_point};
    const bool relu =
        OP_IS_ANY(tare__op_id(call->op), TARE_OP_QUANTIZED_ADD_RELU, TARE_OP_QUANTIZED_MUL_RELU);
    return (quantized_binary){
        .is_signed = sa.is_signed,
        .is_product = is_product(call),
        .add = tare__native_add(ra, rb, ry, sy.least, sy.most, relu),
        .mul = tare__quantized_mul(ra, rb, ry, sy.least, sy.most, relu),
    };
}

void tare__quantized_binary_run(const quantized_binary *op, const elementwise_kernels *k,
                                const uint8_t *a, const uint8_t *b, size_t count, uint8_t *y) {
    if (op->is_product)
        k->mul(&op->mul, op->is_signed, a, b, count, y);
    else
        k->add(&op->add, op->is_signed, a, b, count, y);
}

product_addend tare__value_addend_of(const tare_tensor *t) {
    return (product_addend){.kind = ADDEND_OF_VALUES,
                            .scale = (float)t->q->scale[0],
                            .zero_point = (int32_t)t->q->zero_point[0],
                            .is_signed = t->dtype == TARE_QINT8,
                            .quantized = t->data};
}
