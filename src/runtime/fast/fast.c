// SPDX-License-Identifier: Apache-2.0
// The table of fast ways, and those that need no state: between floats and codes, and on codes.
#include "runtime/fast/fast.h"

#include <string.h>

#include "ops/op.h"
#include "ops/quantized/broadcast.h"
#include "ops/quantized/engine_rules.h"
#include "ops/quantized/layer.h"

code_scheme tare__code_scheme_of(const tare_tensor *t) {
    return (code_scheme){
        .scale = (float)t->q->scale[0],
        .inverse = tare__inverse_scale(t->q->scale[0]),
        .zero_point = (int32_t)t->q->zero_point[0],
        .least = (int32_t)t->q->quant_min,
        .most = (int32_t)t->q->quant_max,
        .is_signed = t->dtype == TARE_QINT8,
    };
}

// --- quantize_per_tensor, dequantize ---

static bool is_quantize(const op_call *call) {
    return tare__fast_is_op(call, TARE_OP_QUANTIZE_PER_TENSOR);
}

static tare_status quantize(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)state;
    const tare_tensor *x = tare__fast_input(call, 0);
    tare_tensor *y = tare__call_out(call);
    if (x == NULL || x->dtype != TARE_FLOAT32 || !tare__is_byte_quantized(y)) return TARE_OK;
    const code_scheme scheme = tare__code_scheme_of(y);
    context->elementwise->quantize(&scheme, tare__f32(x), (size_t)x->count, y->data);
    *handled = true;
    return TARE_OK;
}

static bool is_dequantize(const op_call *call) {
    return tare__fast_is_op(call, TARE_OP_DEQUANTIZE);
}

static tare_status dequantize(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)state;
    const tare_tensor *x = tare__fast_input(call, 0);
    tare_tensor *y = tare__call_out(call);
    if (x == NULL || !tare__is_byte_quantized(x) || y->dtype != TARE_FLOAT32) return TARE_OK;
    const code_scheme scheme = tare__code_scheme_of(x);
    context->elementwise->dequantize(&scheme, x->data, (size_t)x->count, tare__f32(y));
    *handled = true;
    return TARE_OK;
}

// --- add, mul, and with a ReLU ---

static bool is_sum(const op_call *call) {
    return tare__fast_is_op(call, TARE_OP_QUANTIZED_ADD) ||
           tare__fast_is_op(call, TARE_OP_QUANTIZED_ADD_RELU);
}

static bool is_product(const op_call *call) {
    return tare__fast_is_op(call, TARE_OP_QUANTIZED_MUL) ||
           tare__fast_is_op(call, TARE_OP_QUANTIZED_MUL_RELU);
}

bool tare__is_code_sum(const op_call *call) {
    return is_sum(call) && !tare__rule_adds_in_fixed_point(call->linear_rule);
}

bool tare__is_code_binary(const op_call *call) {
    return is_product(call) || tare__is_code_sum(call);
}

code_binary tare__code_binary_of(const op_call *call, const tare_tensor *a, const tare_tensor *b,
                                 const tare_tensor *y) {
    const code_scheme sa = tare__code_scheme_of(a), sb = tare__code_scheme_of(b);
    const code_scheme sy = tare__code_scheme_of(y);
    const code_range ra = {sa.scale, sa.zero_point}, rb = {sb.scale, sb.zero_point};
    const code_range ry = {sy.scale, sy.zero_point};
    const bool relu =
        OP_IS_ANY(tare__op_id(call->op), TARE_OP_QUANTIZED_ADD_RELU, TARE_OP_QUANTIZED_MUL_RELU);
    return (code_binary){
        .is_signed = sa.is_signed,
        .is_product = is_product(call),
        .add = tare__native_add(ra, rb, ry, sy.least, sy.most, relu),
        .mul = tare__quantized_mul(ra, rb, ry, sy.least, sy.most, relu),
    };
}

void tare__code_binary_run(const code_binary *op, const elementwise_kernels *k, const uint8_t *a,
                           const uint8_t *b, size_t count, uint8_t *y) {
    if (op->is_product)
        k->mul(&op->mul, op->is_signed, a, b, count, y);
    else
        k->add(&op->add, op->is_signed, a, b, count, y);
}

// Lines are cut into pieces, for which an operand that stands still is repeated.
enum { PIECE = 1024, LEAST_LINE = 8 };

static void run_line(const code_binary *op, const elementwise_kernels *k, const code_pairs *p,
                     const uint8_t *a, const uint8_t *b, uint8_t *y) {
    uint8_t same[PIECE];
    if (p->step_a == 0) memset(same, a[0], PIECE);
    if (p->step_b == 0) memset(same, b[0], PIECE);
    for (int64_t i = 0; i < p->count; i += PIECE) {
        const int64_t left = p->count - i;
        tare__code_binary_run(op, k, p->step_a != 0 ? a + i : same, p->step_b != 0 ? b + i : same,
                              (size_t)(left < PIECE ? left : PIECE), y + i);
    }
}

static void run_lines(const code_binary *op, const elementwise_kernels *k, const code_pairs *p) {
    const uint8_t *a = p->a->data, *b = p->b->data;
    uint8_t *y = p->y->data;
    for (int64_t i = 0; i * p->count < p->y->count; i++) {
        int64_t at_a, at_b;
        tare__code_pairs_locate(p, i, &at_a, &at_b);
        run_line(op, k, p, a + at_a, b + at_b, y + i * p->count);
    }
}

static tare_status binary(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)state;
    const tare_tensor *a = tare__fast_input(call, 0), *b = tare__fast_input(call, 1);
    if (a == NULL || b == NULL) return TARE_OK;
    const code_pairs p = tare__code_pairs_of(a, b, tare__call_out(call));
    // One operand at least must go on; short lines are no matter for vectors.
    if (p.step_a + p.step_b == 0 || p.count < LEAST_LINE) return TARE_OK;
    const code_binary op = tare__code_binary_of(call, a, b, p.y);
    run_lines(&op, context->elementwise, &p);
    *handled = true;
    return TARE_OK;
}

// --- relu: codes are ordered as the values they stand for ---

static bool is_code_relu(const op_call *call) {
    const tare_tensor *x = tare__fast_input(call, 0);
    return tare__fast_is_op(call, TARE_OP_RELU) && x != NULL && tare__is_byte_quantized(x);
}

static tare_status relu(fast_context *context, void **state, op_call *call, bool *handled) {
    (void)state;
    const tare_tensor *x = tare__fast_input(call, 0);
    tare_tensor *y = tare__call_out(call);
    if (!tare__is_byte_quantized(x) || y->count != x->count) return TARE_OK;
    memset(y->data, (int)x->q->zero_point[0], (size_t)y->count);
    context->elementwise->raise(x->dtype == TARE_QINT8, x->data, (size_t)x->count, y->data);
    *handled = true;
    return TARE_OK;
}

// --- table ---

static const fast_path code_paths[] = {
    {"quantize", is_quantize, quantize, NULL},
    {"dequantize", is_dequantize, dequantize, NULL},
    {"binary", tare__is_code_binary, binary, NULL},
    {"relu", is_code_relu, relu, NULL},
};

const fast_path *tare__fast_path_find(const op_call *call) {
    static const fast_path *const larger[] = {&tare__fast_layer,        &tare__fast_dynamic,
                                              &tare__fast_recurrent,    &tare__fast_max_pool,
                                              &tare__fast_average_pool, &tare__fast_norm};
    if (call->result.kind != VALUE_TENSOR)
        return tare__fast_recurrent.suits(call) ? &tare__fast_recurrent : NULL;
    for (size_t i = 0; i < sizeof larger / sizeof *larger; i++)
        if (larger[i]->suits(call)) return larger[i];
    for (size_t i = 0; i < sizeof code_paths / sizeof *code_paths; i++)
        if (code_paths[i].suits(call)) return &code_paths[i];
    return NULL;
}
