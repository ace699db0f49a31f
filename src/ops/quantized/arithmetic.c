// SPDX-License-Identifier: Apache-2.0
// torch.ops.quantized.add, add_relu, mul, mul_relu on quantized values, with a tensor or a number
// as second operand.
#include <math.h>
#include <string.h>

#include "ops/families/families.h"
#include "ops/quantized/broadcast.h"
#include "ops/quantized/engine_rules.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/rule.h"
#include "ops/rules.h"

// Parameters of the rows.
enum { A, B, SCALE, ZERO_POINT };

static bool has(const op_call *call, const char *word) {
    return strstr(call->op->id, word) != NULL;
}

static bool is_number(const op_call *call, size_t i) {
    return tare__call_given(call, i) && call->param[i]->kind != VALUE_TENSOR;
}

// True if one operand is a number: usually the second one, but `3 + x` keeps its order when it is
// lowered.
static bool has_number(const op_call *call) {
    return is_number(call, A) != is_number(call, B);
}

static size_t number_of(const op_call *call) {
    return is_number(call, A) ? A : B;
}
static size_t tensor_of(const op_call *call) {
    return is_number(call, A) ? B : A;
}

static quantized_range range_of(const qparams *q) {
    return (quantized_range){.scale = (float)q->scale[0], .zero_point = (int32_t)q->zero_point[0]};
}

static tare_status need_quantized(op_call *call, size_t i, const tare_tensor **out) {
    TARE_TRY(tare__call_need_tensor(call, i, out));
    if (tare__is_byte_quantized(*out)) return TARE_OK;
    return tare__call_fail(call, "expected a quint8 or qint8 tensor, found %s",
                           tare_dtype_name((*out)->dtype));
}

// --- a number as one operand ---

static tare_status scalar_of(op_call *call, const tare_tensor *a, scalar_op *out) {
    double number;
    TARE_TRY(tare__call_double(call, number_of(call), 0, &number));
    const bool relu = has(call, "relu"), is_add = has(call, "add");
    const qparams *q = a->q;
    if (!isfinite(number)) return tare__call_fail(call, "expected a finite number");
    *out = (is_add ? tare__add_scalar : tare__mul_scalar)(q->scale[0], (int64_t)q->zero_point[0],
                                                          number, q->quant_min, q->quant_max, relu);
    return TARE_OK;
}

static tare_status scalar_shape(op_call *call) {
    const tare_tensor *a;
    scalar_op op;
    TARE_TRY(need_quantized(call, tensor_of(call), &a));
    TARE_TRY(scalar_of(call, a, &op));
    if (!isfinite((float)op.scale))
        return tare__call_fail(call, "the output's scale %g is out of range", op.scale);
    const qparams *q = tare__qparams_per_tensor(a->dtype, op.scale, op.zero_point);
    if (q == NULL) return tare__out_of_memory(call->err);
    const tare_status status = tare__call_result(call, a->dtype, a->ndim, a->shape, q);
    tare__qparams_release(q);
    return status;
}

static tare_status scalar_quantized(op_call *call) {
    const tare_tensor *a = call->param[tensor_of(call)]->as.tensor, *y = tare__call_out(call);
    scalar_op op;
    TARE_TRY(scalar_of(call, a, &op));
    for (int64_t i = 0; i < y->count; i++)
        tare__store_quantized(y, i,
                              (int32_t)tare__scalar_op_quantized(&op, tare__load_quantized(a, i)));
    return TARE_OK;
}

// --- two tensors ---

quantized_broadcast tare__quantized_broadcast_of(const tare_tensor *a, const tare_tensor *b,
                                                 tare_tensor *y) {
    quantized_broadcast p = {.a = a, .b = b, .y = y, .count = 1};
    int d = y->ndim - 1;
    tare__broadcast_strides(a, y->ndim, y->shape, p.stride_a);
    tare__broadcast_strides(b, y->ndim, y->shape, p.stride_b);
    while (d >= 0 && y->shape[d] == 1) d--;
    p.step_a = d >= 0 && p.stride_a[d] != 0;
    p.step_b = d >= 0 && p.stride_b[d] != 0;
    for (; d >= 0; d--) {
        const bool goes_on = y->shape[d] == 1 || (p.stride_a[d] == p.step_a * p.count &&
                                                  p.stride_b[d] == p.step_b * p.count);
        if (!goes_on) break;
        p.count *= y->shape[d];
    }
    p.ndim = d + 1;
    return p;
}

void tare__quantized_broadcast_locate(const quantized_broadcast *p, int64_t i, int64_t *a,
                                      int64_t *b) {
    *a = tare__strided_offset(p->ndim, p->y->shape, p->stride_a, i);
    *b = tare__strided_offset(p->ndim, p->y->shape, p->stride_b, i);
}

static tare_status binary_shape(op_call *call) {
    const tare_tensor *a, *b;
    int64_t shape[TARE_MAX_DIMS];
    int ndim;
    if (has_number(call)) return scalar_shape(call);
    TARE_TRY(need_quantized(call, A, &a));
    TARE_TRY(need_quantized(call, B, &b));
    if (a->dtype != b->dtype)
        return tare__call_fail(call, "expected two tensors of one dtype, found %s and %s",
                               tare_dtype_name(a->dtype), tare_dtype_name(b->dtype));
    TARE_TRY(tare__broadcast(call, a, b, &ndim, shape));
    const qparams *q;
    TARE_TRY(tare__output_qparams(call, a->dtype, SCALE, ZERO_POINT, &q));
    const tare_status status = tare__call_result(call, a->dtype, ndim, shape, q);
    tare__qparams_release(q);
    return status;
}

#define PAIRS(name, kind, quantized)                                                               \
    static void name(const quantized_broadcast *p, const kind *op) {                               \
        for (int64_t i = 0, row = 0, a, b; i < p->y->count; i += p->count, row++) {                \
            tare__quantized_broadcast_locate(p, row, &a, &b);                                      \
            for (int64_t k = 0; k < p->count; k++, a += p->step_a, b += p->step_b)                 \
                tare__store_quantized(                                                             \
                    p->y, i + k,                                                                   \
                    quantized(op, tare__load_quantized(p->a, a), tare__load_quantized(p->b, b)));  \
        }                                                                                          \
    }
PAIRS(native_sums, native_add, tare__native_add_quantized)
PAIRS(qnnpack_sums, qnnpack_add, tare__qnnpack_add_quantized)
PAIRS(products, quantized_mul, tare__quantized_mul_quantized)

static tare_status binary_quantized(op_call *call) {
    if (has_number(call)) return scalar_quantized(call);
    const quantized_broadcast p = tare__quantized_broadcast_of(
        call->param[A]->as.tensor, call->param[B]->as.tensor, tare__call_out(call));
    const quantized_range a = range_of(p.a->q), b = range_of(p.b->q), y = range_of(p.y->q);
    const int32_t least = (int32_t)p.y->q->quant_min, most = (int32_t)p.y->q->quant_max;
    const bool relu = has(call, "relu");
    if (has(call, "mul")) {
        const quantized_mul op = tare__quantized_mul(a, b, y, least, most, relu);
        products(&p, &op);
    } else if (tare__rule_adds_in_fixed_point(call->linear_rule)) {
        const qnnpack_add op = tare__qnnpack_add(a, b, y, least, most, relu);
        qnnpack_sums(&p, &op);
    } else {
        const native_add op = tare__native_add(a, b, y, least, most, relu);
        native_sums(&p, &op);
    }
    return TARE_OK;
}

// --- rows ---

#define BINARY(name)                                                                               \
    {                                                                                              \
        .id = "quantized." #name, .functions = "torch.ops.quantized." #name,                       \
        .params = "qa/a|qb/b|scale|zero_point", .traits = OP_ELEMENTWISE | OP_ANY_DTYPE,           \
        .shape = binary_shape, .reference = binary_quantized                                       \
    }

static const op_info rows[] = {
    BINARY(add),
    BINARY(add_relu),
    BINARY(mul),
    BINARY(mul_relu),
};

const op_table tare__quantized_arithmetic_ops = OP_TABLE(rows);
