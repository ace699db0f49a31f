// SPDX-License-Identifier: Apache-2.0
// Elementary functions of one element that are no activations, and masking.
#include "ops/element.h"
#include "ops/families.h"

ELEMENT(sqrt, sqrtf(v))
ELEMENT(rsqrt, 1.0f / sqrtf(v))
ELEMENT(exp, tare__expf(v))
ELEMENT(log, tare__logf(v))
ELEMENT(sin, tare__sinf(v))
ELEMENT(cos, tare__cosf(v))
ELEMENT(erf, tare__erff(v))
ELEMENT(floor, floorf(v))
ELEMENT(ceil, ceilf(v))
ELEMENT(round, nearbyintf(v))
ELEMENT(reciprocal, 1.0f / v)
ELEMENT(square, v *v)

// --- sign: of tensors of every dtype, and of numbers ---

static tare_status number_or_same(op_call *call, double (*f)(double x)) {
    double number;
    const value *v = call->param[0];
    if (v == NULL || v->kind == VALUE_TENSOR || !tare__value_number(v, &number))
        return tare__shape_same(call);
    const value *stored = v->kind == VALUE_SCALAR ? &v->as.items[0] : v;
    if (stored->kind == VALUE_FLOAT)
        call->result = tare__float(f(number));
    else if (fabs(number) < 0x1p53)
        call->result = tare__int((int64_t)f(number));
    else
        return tare__call_fail(call, "the int is out of range");
    return TARE_OK;
}

static tare_status map_all(op_call *call, double (*f)(double x)) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < x->count; i++) tare__tensor_set(y, i, f(tare__tensor_get(x, i)));
    return TARE_OK;
}

static double negative(double x) {
    return -x;
}
static tare_status neg_shape(op_call *call) {
    return number_or_same(call, negative);
}
static tare_status neg_reference(op_call *call) {
    return map_all(call, negative);
}
static tare_status abs_shape(op_call *call) {
    return number_or_same(call, fabs);
}
static tare_status abs_reference(op_call *call) {
    return map_all(call, fabs);
}

// --- masked_fill ---

static tare_status masked_fill_shape(op_call *call) {
    const tare_tensor *x, *mask;
    int ndim;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_need_tensor(call, 1, &mask));
    if (mask->dtype != TARE_BOOL)
        return tare__call_fail(call, "mask must be torch.bool, found %s",
                               tare_dtype_name(mask->dtype));
    TARE_TRY(tare__broadcast(call, x, mask, &ndim, shape));
    return tare__call_result(call, x->dtype, ndim, shape, NULL);
}

static tare_status masked_fill_reference(op_call *call) {
    const tare_tensor *x, *mask;
    double fill;
    int64_t x_stride[TARE_MAX_DIMS], mask_stride[TARE_MAX_DIMS];
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_need_tensor(call, 1, &mask));
    TARE_TRY(tare__call_double(call, 2, 0, &fill));
    tare_tensor *y = tare__call_out(call);
    tare__broadcast_strides(x, y->ndim, y->shape, x_stride);
    tare__broadcast_strides(mask, y->ndim, y->shape, mask_stride);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t from = tare__strided_offset(y->ndim, y->shape, x_stride, i);
        const int64_t at = tare__strided_offset(y->ndim, y->shape, mask_stride, i);
        const bool is_filled = tare__tensor_get(mask, at) != 0;
        tare__tensor_set(y, i, is_filled ? fill : tare__tensor_get(x, from));
    }
    return TARE_OK;
}

// --- rows ---

#define UNARY(name, names, method_names)                                                           \
    {                                                                                              \
        .id = #name, .functions = names "|torch.ops.aten." #name ".default",                       \
        .methods = method_names, .params = "input/self", .traits = OP_ELEMENTWISE,                 \
        .shape = tare__shape_same_float, .reference = name##_reference                             \
    }

// clang-format off
static const op_info rows[] = {
    UNARY(sqrt, "torch.sqrt", "sqrt"),
    UNARY(rsqrt, "torch.rsqrt", "rsqrt"),
    UNARY(exp, "torch.exp", "exp"),
    UNARY(log, "torch.log", "log"),
    UNARY(sin, "torch.sin", "sin"),
    UNARY(cos, "torch.cos", "cos"),
    UNARY(erf, "torch.erf", "erf"),
    UNARY(floor, "torch.floor", "floor"),
    UNARY(ceil, "torch.ceil", "ceil"),
    UNARY(round, "torch.round", "round"),
    UNARY(reciprocal, "torch.reciprocal", "reciprocal"),
    UNARY(square, "torch.square", "square"),
    {.id = "neg", .functions = "torch.neg|operator.neg|torch.ops.aten.neg.default", .methods = "neg", .params = "input/self",
     .traits = OP_ELEMENTWISE, .shape = neg_shape, .reference = neg_reference},
    {.id = "abs", .functions = "torch.abs|operator.abs|torch.ops.aten.abs.default", .methods = "abs", .params = "input/self",
     .traits = OP_ELEMENTWISE, .shape = abs_shape, .reference = abs_reference},
    {.id = "masked_fill", .functions = "torch.masked_fill|torch.ops.aten.masked_fill.Scalar", .methods = "masked_fill|masked_fill_",
     .params = "input/self|mask|value", .traits = OP_ELEMENTWISE, .shape = masked_fill_shape, .reference = masked_fill_reference},
};
// clang-format on

const op_table tare__unary_ops = OP_TABLE(rows);
