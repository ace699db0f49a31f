// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Elementwise functions other than activations, and masking.
#include "core/math/f64.h"
#include "core/math/special.h"
#include "ops/families/element.h"
#include "ops/families/families.h"
#include "ops/parts.h"

#define TWO_PI 0x1.921fb54442d18p+2

VECTOR_ELEMENT(sqrt, SQRT)
VECTOR_ELEMENT(rsqrt, RSQRT)
VECTOR_ELEMENT(exp, EXP)
ELEMENT(log, tare__logf(v))
ELEMENT(sin, tare__sinf(v))
ELEMENT(cos, tare__cosf(v))
VECTOR_ELEMENT(erf, ERF)
ELEMENT(floor, floorf(v))
ELEMENT(ceil, ceilf(v))
ELEMENT(round, nearbyintf(v))
VECTOR_ELEMENT(reciprocal, RECIPROCAL)
VECTOR_ELEMENT(square, SQUARE)
ELEMENT(trunc, truncf(v))
ELEMENT(exp2, tare__exp2f(v))
VECTOR_ELEMENT(expm1, EXPM1)
ELEMENT(log2, tare__log2f(v))
ELEMENT(log10, (float)(tare__log((double)v) * 0x1.bcb7b1526e50ep-2)) // 1 / log(10)
ELEMENT(log1p, tare__log1pf(v))
ELEMENT(tan, tare__tanf(v))
ELEMENT(asin, tare__asinf(v))
ELEMENT(acos, tare__acosf(v))
ELEMENT(atan, tare__atanf(v))
ELEMENT(sinh, tare__sinhf(v))
ELEMENT(cosh, tare__coshf(v))
ELEMENT(asinh, tare__asinhf(v))
ELEMENT(acosh, tare__acoshf(v))
ELEMENT(atanh, tare__atanhf(v))
ELEMENT(lgamma, (float)tare__lgamma((double)v))
ELEMENT(digamma, (float)tare__digamma((double)v))
ELEMENT(erfinv, (float)tare__erfinv((double)v))
ELEMENT(i0, (float)tare__i0((double)v))
ELEMENT(special_i0e, (float)tare__i0e((double)v))
ELEMENT(special_i1, (float)tare__i1((double)v))
ELEMENT(special_i1e, (float)tare__i1e((double)v))
ELEMENT(special_ndtri, (float)tare__ndtri((double)v))

// --- sign: of tensors of every dtype, and of numbers ---

ELEMENT_LOOP(neg, -v)
ELEMENT_LOOP(abs, fabsf(v))
ELEMENT_LOOP(sign, isnan(v) ? v : (float)((v > 0) - (v < 0)))
static const op_element neg_element = {.loop = neg_loop};
static const op_element abs_element = {.loop = abs_loop};
static const op_element sign_element = {.loop = sign_loop};

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

// Computes elements [first, end) of the result, of any dtype.
static tare_status map_part(op_call *call, double (*f)(double x), int64_t first, int64_t end) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    double block[PART_BLOCK];
    for (int64_t at = first, count; at < end; at += count) {
        count = end - at < PART_BLOCK ? end - at : PART_BLOCK;
        tare__tensor_load(x, at, 1, count, block);
        for (int64_t i = 0; i < count; i++) block[i] = f(block[i]);
        tare__tensor_store(tare__call_out(call), at, count, block);
    }
    return TARE_OK;
}

static tare_status map_all(op_call *call, double (*f)(double x)) {
    return map_part(call, f, 0, tare__call_out(call)->count);
}

// The parts of an operator that maps all elements by NAME_of.
#define PARTS_OF(name)                                                                             \
    static tare_status name##_part(op_call *call, int64_t first, int64_t end) {                    \
        return map_part(call, name##_of, first, end);                                              \
    }                                                                                              \
    PARTS(name)
#define PARTS(name)                                                                                \
    static tare_status name##_parts(op_call *call, call_parts *out) {                              \
        return tare__element_parts(call, name##_part, out);                                        \
    }                                                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        return tare__run_parts(call, name##_parts);                                                \
    }

static double neg_of(double x) {
    return -x;
}
static tare_status neg_shape(op_call *call) {
    return number_or_same(call, neg_of);
}
PARTS_OF(neg)

static double abs_of(double x) {
    return fabs(x);
}
static tare_status abs_shape(op_call *call) {
    return number_or_same(call, abs_of);
}
PARTS_OF(abs)

static double sign_of(double x) {
    return isnan(x) ? x : (double)((x > 0) - (x < 0));
}
static tare_status sign_shape(op_call *call) {
    return number_or_same(call, sign_of);
}
PARTS_OF(sign)

// Functions that are computed in double for dtypes other than float32; rounding keeps integers
// unchanged.
#define ROUNDING(name, function)                                                                   \
    static tare_status any_##name##_reference(op_call *call) {                                     \
        const tare_tensor *x;                                                                      \
        TARE_TRY(tare__call_need_tensor(call, 0, &x));                                             \
        return x->dtype == TARE_FLOAT32 ? name##_reference(call) : map_all(call, function);        \
    }
static double squared(double x) {
    return x * x;
}
ROUNDING(round, nearbyint)
ROUNDING(floor, floor)
ROUNDING(ceil, ceil)
ROUNDING(trunc, trunc)
ROUNDING(square, squared)

// Functions with a separate form for doubles.
#define DOUBLE_OF(name, function)                                                                  \
    static tare_status any_##name##_reference(op_call *call) {                                     \
        const tare_tensor *x;                                                                      \
        TARE_TRY(tare__call_need_tensor(call, 0, &x));                                             \
        return x->dtype == TARE_FLOAT64 ? map_all(call, function) : name##_reference(call);        \
    }
static double reciprocal_of(double x) {
    return 1 / x;
}
static double rsqrt_of(double x) {
    return 1 / sqrt(x);
}
static double cos_of(double x) {
    return tare__cos_of_turns(x / TWO_PI);
}
static double sin_of(double x) {
    return tare__cos_of_turns(x / TWO_PI - 0.25);
}
DOUBLE_OF(sqrt, sqrt)
DOUBLE_OF(sin, sin_of)
DOUBLE_OF(cos, cos_of)
DOUBLE_OF(rsqrt, rsqrt_of)
DOUBLE_OF(reciprocal, reciprocal_of)
DOUBLE_OF(exp, tare__exp)
DOUBLE_OF(log, tare__log)
DOUBLE_OF(log2, tare__log2)
DOUBLE_OF(log1p, tare__log1p)
DOUBLE_OF(atan, tare__atan)
DOUBLE_OF(lgamma, tare__lgamma)
DOUBLE_OF(digamma, tare__digamma)
DOUBLE_OF(erfinv, tare__erfinv)
DOUBLE_OF(i0, tare__i0)
DOUBLE_OF(special_i0e, tare__i0e)
DOUBLE_OF(special_i1, tare__i1)
DOUBLE_OF(special_i1e, tare__i1e)
DOUBLE_OF(special_ndtri, tare__ndtri)

// --- polygamma(n, x) ---

enum { POLYGAMMA_X, POLYGAMMA_N };

static tare_status polygamma_reference(op_call *call) {
    const tare_tensor *x;
    int64_t n;
    TARE_TRY(tare__call_need_tensor(call, POLYGAMMA_X, &x));
    TARE_TRY(tare__call_int(call, POLYGAMMA_N, 0, &n));
    if (n < 0 || n > INT16_MAX) return tare__call_fail(call, "n is out of range");
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < x->count; i++)
        tare__tensor_set(y, i, tare__polygamma((int)n, tare__tensor_get(x, i)));
    return TARE_OK;
}

// --- predicates ---

static tare_status question_shape(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (x->q != NULL) return tare__call_fail(call, "has no form for %s", tare_dtype_name(x->dtype));
    return tare__call_result(call, TARE_BOOL, x->ndim, x->shape, NULL);
}

#define QUESTION_OF(name, expression)                                                              \
    static double name##_of(double x) {                                                            \
        return (expression) ? 1 : 0;                                                               \
    }                                                                                              \
    static tare_status name##_part(op_call *call, int64_t first, int64_t end) {                    \
        const tare_tensor *given = tare__call_tensor(call, 0);                                     \
        uint8_t *y = tare__call_out(call)->data;                                                   \
        if (given == NULL || given->dtype != TARE_FLOAT32)                                         \
            return map_part(call, name##_of, first, end);                                          \
        for (int64_t i = first; i < end; i++) {                                                    \
            const float x = tare__f32(given)[i];                                                   \
            const bool is_so = (expression);                                                       \
            y[i] = is_so;                                                                          \
        }                                                                                          \
        return TARE_OK;                                                                            \
    }                                                                                              \
    PARTS(name)
QUESTION_OF(isnan, isnan(x))
QUESTION_OF(isinf, isinf(x))
QUESTION_OF(isfinite, isfinite(x))
QUESTION_OF(signbit, signbit(x) != 0)
QUESTION_OF(isposinf, isinf(x) && x > 0)
QUESTION_OF(isneginf, isinf(x) && x < 0)
QUESTION_OF(logical_not, x == 0)

// --- frexp: (mantissa, exponent), x = mantissa 2^exponent ---

static tare_status frexp_shape(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (x->dtype != TARE_FLOAT32 && x->dtype != TARE_FLOAT64)
        return tare__call_fail(call, "has no form for %s", tare_dtype_name(x->dtype));
    return tare__call_result_pair(call, x->dtype, TARE_INT32, x->ndim, x->shape);
}

static tare_status frexp_reference(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    const value *items = call->result.as.items;
    for (int64_t i = 0; i < x->count; i++) {
        int exponent = 0;
        const double v = tare__tensor_get(x, i);
        tare__tensor_set(items[0].as.tensor, i, isfinite(v) ? frexp(v, &exponent) : v);
        tare__tensor_set_int(items[1].as.tensor, i, exponent);
    }
    return TARE_OK;
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

#define UNARY(name, names, method_names) UNARY_BY(name, name##_reference, names, method_names)
#define UNARY_BY(name, function, names, method_names)                                              \
    {                                                                                              \
        .id = #name,                                                                               \
        .functions = names "|torch.ops.aten." #name ".default|torch.ops.aten." #name "_.default",  \
        .methods = method_names, .params = "input/self", .traits = OP_ELEMENTWISE,                 \
        .shape = tare__shape_same_float, .reference = function, .element = &name##_element         \
    }

// Functions without a form in place.
#define SPECIAL(name, aten)                                                                        \
    {                                                                                              \
        .id = #aten,                                                                               \
        .functions =                                                                               \
            "torch.special." name "|torch._C._special." #aten "|torch.ops.aten." #aten ".default", \
        .params = "input/self", .traits = OP_ELEMENTWISE, .shape = tare__shape_same_float,         \
        .reference = any_##aten##_reference, .element = &aten##_element                            \
    }

// Functions whose result is an integer for integers.
#define SAME(name, function, names, method_names)                                                  \
    {                                                                                              \
        .id = #name,                                                                               \
        .functions = names "|torch.ops.aten." #name ".default|torch.ops.aten." #name "_.default",  \
        .methods = method_names, .params = "input/self", .traits = OP_ELEMENTWISE,                 \
        .shape = tare__shape_same, .reference = function, .element = &name##_element               \
    }
#define ASKED(name, names, method_names)                                                           \
    {                                                                                              \
        .id = #name, .functions = names "|torch.ops.aten." #name ".default",                       \
        .methods = method_names, .params = "input/self", .traits = OP_ELEMENTWISE,                 \
        .shape = question_shape, .reference = name##_reference, .parts = name##_parts              \
    }

// clang-format off
static const op_info rows[] = {
    UNARY_BY(sqrt, any_sqrt_reference, "torch.sqrt", "sqrt"),
    UNARY_BY(rsqrt, any_rsqrt_reference, "torch.rsqrt", "rsqrt"),
    UNARY_BY(exp, any_exp_reference, "torch.exp", "exp"),
    UNARY_BY(log, any_log_reference, "torch.log", "log"),
    UNARY_BY(sin, any_sin_reference, "torch.sin", "sin"),
    UNARY_BY(cos, any_cos_reference, "torch.cos", "cos"),
    UNARY(erf, "torch.erf", "erf"),
    SAME(floor, any_floor_reference, "torch.floor", "floor"),
    SAME(ceil, any_ceil_reference, "torch.ceil", "ceil"),
    SAME(round, any_round_reference, "torch.round", "round"),
    UNARY_BY(reciprocal, any_reciprocal_reference, "torch.reciprocal", "reciprocal"),
    SAME(square, any_square_reference, "torch.square", "square"),
    SAME(trunc, any_trunc_reference, "torch.trunc", "trunc"),
    UNARY(exp2, "torch.exp2", "exp2"),
    UNARY(expm1, "torch.expm1", "expm1"),
    UNARY_BY(log2, any_log2_reference, "torch.log2", "log2"),
    UNARY(log10, "torch.log10", "log10"),
    UNARY_BY(log1p, any_log1p_reference, "torch.log1p", "log1p"),
    UNARY(sinh, "torch.sinh", "sinh"),
    UNARY(cosh, "torch.cosh", "cosh"),
    UNARY(asin, "torch.asin|torch.arcsin", "asin"),
    UNARY(acos, "torch.acos|torch.arccos", "acos"),
    UNARY_BY(atan, any_atan_reference, "torch.atan|torch.arctan", "atan"),
    UNARY(asinh, "torch.asinh|torch.arcsinh", "asinh"),
    UNARY(acosh, "torch.acosh|torch.arccosh", "acosh"),
    UNARY(atanh, "torch.atanh|torch.arctanh", "atanh"),
    UNARY(tan, "torch.tan", "tan"),
    UNARY_BY(lgamma, any_lgamma_reference, "torch.lgamma|torch.special.gammaln|torch._C._special.special_gammaln", "lgamma"),
    UNARY_BY(digamma, any_digamma_reference, "torch.digamma|torch.special.digamma|torch._C._special.special_digamma", "digamma"),
    UNARY_BY(erfinv, any_erfinv_reference, "torch.erfinv|torch.special.erfinv|torch._C._special.special_erfinv", "erfinv"),
    UNARY_BY(i0, any_i0_reference, "torch.i0|torch.special.i0|torch._C._special.special_i0", "i0"),
    SPECIAL("i0e", special_i0e),
    SPECIAL("i1", special_i1),
    SPECIAL("i1e", special_i1e),
    SPECIAL("ndtri", special_ndtri),
    {.id = "polygamma", .methods = "polygamma", .overloads = "torch.ops.aten.polygamma.default torch.polygamma(n|input) torch.special.polygamma(n|input) torch._C._special.special_polygamma(n|input)",
     .params = "input/self|n", .traits = OP_ELEMENTWISE, .shape = tare__shape_same_float, .reference = polygamma_reference},
    {.id = "neg", .functions = "torch.neg|operator.neg|torch.ops.aten.neg.default|torch.ops.aten.neg_.default", .methods = "neg", .params = "input/self",
     .traits = OP_ELEMENTWISE, .shape = neg_shape, .reference = neg_reference, .parts = neg_parts, .element = &neg_element},
    {.id = "abs", .functions = "torch.abs|operator.abs|torch.ops.aten.abs.default|torch.ops.aten.abs_.default", .methods = "abs", .params = "input/self",
     .traits = OP_ELEMENTWISE, .shape = abs_shape, .reference = abs_reference, .parts = abs_parts, .element = &abs_element},
    {.id = "sign", .functions = "torch.sign|torch.sgn|torch.ops.aten.sign.default|torch.ops.aten.sgn.default", .methods = "sign", .params = "input/self",
     .traits = OP_ELEMENTWISE, .shape = sign_shape, .reference = sign_reference, .parts = sign_parts, .element = &sign_element},
    ASKED(isnan, "torch.isnan", "isnan"),
    ASKED(isinf, "torch.isinf", "isinf"),
    ASKED(isfinite, "torch.isfinite", "isfinite"),
    ASKED(signbit, "torch.signbit", "signbit"),
    ASKED(isposinf, "torch.isposinf", NULL),
    ASKED(isneginf, "torch.isneginf", NULL),
    ASKED(logical_not, "torch.logical_not", "logical_not"),
    {.id = "frexp", .functions = "torch.frexp|torch.ops.aten.frexp.Tensor", .methods = "frexp", .params = "input/self",
     .shape = frexp_shape, .reference = frexp_reference},
    {.id = "masked_fill", .functions = "torch.masked_fill|torch.ops.aten.masked_fill.Scalar|torch.ops.aten.masked_fill_.Scalar|torch.ops.aten.masked_fill.Tensor|torch.ops.aten.masked_fill_.Tensor", .methods = "masked_fill|masked_fill_",
     .params = "input/self|mask|value", .traits = OP_ELEMENTWISE, .shape = masked_fill_shape, .reference = masked_fill_reference},
};
// clang-format on

const op_table tare__unary_ops = OP_TABLE(rows);
