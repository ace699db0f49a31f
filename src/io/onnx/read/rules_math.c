// SPDX-License-Identifier: Apache-2.0
// ONNX operators of elements: arithmetic, comparison, logic, conversion.
#include <math.h>

#include "core/math/float_to_int.h"
#include "io/onnx/read/rules_common.h"

// --- one operand ---

#define UNARY(name, target)                                                                        \
    static tare_status name(onnx_call *c) {                                                        \
        value x;                                                                                   \
        TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));                                            \
        return tare__onnx_one(c, target, 1, &x);                                                   \
    }
UNARY(unary_abs, "torch.abs")
UNARY(unary_acos, "torch.acos")
UNARY(unary_acosh, "torch.acosh")
UNARY(unary_asin, "torch.asin")
UNARY(unary_asinh, "torch.asinh")
UNARY(unary_atan, "torch.atan")
UNARY(unary_atanh, "torch.atanh")
UNARY(unary_bitwise_not, "torch.bitwise_not")
UNARY(unary_ceil, "torch.ceil")
UNARY(unary_cos, "torch.cos")
UNARY(unary_cosh, "torch.cosh")
UNARY(unary_erf, "torch.erf")
UNARY(unary_exp, "torch.exp")
UNARY(unary_floor, "torch.floor")
UNARY(unary_is_nan, "torch.isnan")
UNARY(unary_log, "torch.log")
UNARY(unary_neg, "operator.neg")
UNARY(unary_not, "torch.logical_not")
UNARY(unary_reciprocal, "torch.reciprocal")
UNARY(unary_round, "torch.round")
UNARY(unary_sign, "torch.sign")
UNARY(unary_sin, "torch.sin")
UNARY(unary_sinh, "torch.sinh")
UNARY(unary_sqrt, "torch.sqrt")
UNARY(unary_tan, "torch.tan")

static tare_status is_inf(onnx_call *c) {
    value x;
    bool negative, positive;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    TARE_TRY(tare__onnx_attr_bool(c, "detect_negative", true, &negative));
    TARE_TRY(tare__onnx_attr_bool(c, "detect_positive", true, &positive));
    if (negative && positive) return tare__onnx_one(c, "torch.isinf", 1, &x);
    if (negative) return tare__onnx_one(c, "torch.isneginf", 1, &x);
    if (positive) return tare__onnx_one(c, "torch.isposinf", 1, &x);
    value none[] = {x, tare__bool(false)};
    const keyword dtype = {"dtype", tare__dtype_value(TARE_BOOL)};
    return tare__onnx_one_with(c, &(onnx_emit){.target = "torch.full_like",
                                               .args = none,
                                               .arg_count = 2,
                                               .kwargs = &dtype,
                                               .kwarg_count = 1});
}

// --- two operands ---

static tare_status read_pair(onnx_call *c, value args[2]) {
    TARE_TRY(tare__onnx_need_input(c, 0, "A", &args[0]));
    return tare__onnx_need_input(c, 1, "B", &args[1]);
}

#define BINARY(name, target)                                                                       \
    static tare_status name(onnx_call *c) {                                                        \
        value args[2];                                                                             \
        TARE_TRY(read_pair(c, args));                                                              \
        return tare__onnx_one(c, target, 2, args);                                                 \
    }
BINARY(binary_add, "operator.add")
BINARY(binary_sub, "operator.sub")
BINARY(binary_mul, "operator.mul")
BINARY(binary_and, "torch.logical_and")
BINARY(binary_or, "torch.logical_or")
BINARY(binary_xor, "torch.logical_xor")
BINARY(binary_equal, "operator.eq")
BINARY(binary_greater, "operator.gt")
BINARY(binary_greater_equal, "operator.ge")
BINARY(binary_less, "operator.lt")
BINARY(binary_less_equal, "operator.le")
BINARY(binary_bitwise_and, "torch.bitwise_and")
BINARY(binary_bitwise_or, "torch.bitwise_or")
BINARY(binary_bitwise_xor, "torch.bitwise_xor")

// ONNX divides integers as C does; torch's / would give floats.
static tare_status binary_div(onnx_call *c) {
    value args[2];
    const tare_tensor *a = NULL;
    TARE_TRY(read_pair(c, args));
    TARE_TRY(tare__onnx_need_meta(c, 0, "A", &a));
    if (tare__dtype(a->dtype)->is_float) return tare__onnx_one(c, "operator.truediv", 2, args);
    const keyword mode = {"rounding_mode", tare__string("trunc")};
    return tare__onnx_one_with(c, &(onnx_emit){.target = "torch.div",
                                               .args = args,
                                               .arg_count = 2,
                                               .kwargs = &mode,
                                               .kwarg_count = 1});
}

static tare_status binary_mod(onnx_call *c) {
    value args[2];
    bool fmod;
    TARE_TRY(read_pair(c, args));
    TARE_TRY(tare__onnx_attr_bool(c, "fmod", false, &fmod));
    return tare__onnx_one(c, fmod ? "torch.fmod" : "torch.remainder", 2, args);
}

// The result has the base's dtype, whatever the exponent's.
static tare_status binary_pow(onnx_call *c) {
    value args[2], power;
    const tare_tensor *base = NULL;
    TARE_TRY(read_pair(c, args));
    TARE_TRY(tare__onnx_need_meta(c, 0, "X", &base));
    const tare_dtype dtype = base->dtype;
    TARE_TRY(ONNX_CALL(c, &power, "torch.pow", args[0], args[1]));
    return tare__onnx_finish(c, &power, dtype);
}

static tare_status bit_shift(onnx_call *c) {
    value args[2];
    size_t direction = 0;
    TARE_TRY(read_pair(c, args));
    TARE_TRY(ONNX_CHOICE(c, "direction", "", &direction, "LEFT", "RIGHT"));
    return tare__onnx_one(
        c, direction == 0 ? "torch.bitwise_left_shift" : "torch.bitwise_right_shift", 2, args);
}

// --- any number of operands ---

static tare_status fold(onnx_call *c, const char *target, value *out) {
    const size_t count = tare__onnx_input_count(c);
    if (count == 0) return tare__onnx_malformed(c, "expected at least one input, found none");
    TARE_TRY(tare__onnx_need_input(c, 0, "data_0", out));
    for (size_t i = 1; i < count; i++) {
        value next;
        TARE_TRY(tare__onnx_need_input(c, i, "data", &next));
        TARE_TRY(ONNX_CALL(c, out, target, *out, next));
    }
    return TARE_OK;
}

#define VARIADIC(name, target)                                                                     \
    static tare_status name(onnx_call *c) {                                                        \
        value folded;                                                                              \
        TARE_TRY(fold(c, target, &folded));                                                        \
        tare__onnx_set_output(c, 0, &folded);                                                      \
        return TARE_OK;                                                                            \
    }
VARIADIC(variadic_sum, "operator.add")
VARIADIC(variadic_max, "torch.maximum")
VARIADIC(variadic_min, "torch.minimum")

static tare_status variadic_mean(onnx_call *c) {
    value sum;
    TARE_TRY(fold(c, "operator.add", &sum));
    const size_t count = tare__onnx_input_count(c);
    const value args[] = {sum, tare__int((int64_t)count)};
    if (count > 1) return tare__onnx_one(c, "operator.truediv", 2, args);
    tare__onnx_set_output(c, 0, &sum);
    return TARE_OK;
}

// --- choosing, bounding, converting ---

static tare_status where(onnx_call *c) {
    value args[3];
    TARE_TRY(tare__onnx_need_input(c, 0, "condition", &args[0]));
    TARE_TRY(tare__onnx_need_input(c, 1, "X", &args[1]));
    TARE_TRY(tare__onnx_need_input(c, 2, "Y", &args[2]));
    const tare_tensor *x = tare__onnx_meta(c, &args[1]);
    value chosen;
    const tare_dtype dtype = x != NULL ? x->dtype : TARE_FLOAT32;
    TARE_TRY(ONNX_CALL(c, &chosen, "torch.where", args[0], args[1], args[2]));
    return tare__onnx_finish(c, &chosen, dtype);
}

// A bound that is no constant is a tensor to compare with.
static tare_status clip_by_tensors(onnx_call *c, value x) {
    for (size_t i = 1; i <= 2; i++) {
        const value bound = tare__onnx_input(c, i);
        if (bound.kind == VALUE_NONE) continue;
        TARE_TRY(ONNX_CALL(c, &x, i == 1 ? "torch.maximum" : "torch.minimum", x, bound));
    }
    tare__onnx_set_output(c, 0, &x);
    return TARE_OK;
}

static tare_status clip(onnx_call *c) {
    value x;
    double bound[2] = {(double)-INFINITY, (double)INFINITY};
    keyword kwargs[2];
    size_t count = 0;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    for (size_t i = 0; i < 2; i++) {
        const char *name = i == 0 ? "min" : "max";
        const value v = tare__onnx_input(c, i + 1);
        if (v.kind == VALUE_NONE) continue;
        if (tare__onnx_constant(c, i + 1) == NULL) return clip_by_tensors(c, x);
        TARE_TRY(tare__onnx_input_number(c, i + 1, name, 0, &bound[i]));
        const tare_tensor *t = tare__onnx_meta(c, &v);
        const bool is_float = t == NULL || tare__dtype(t->dtype)->is_float;
        kwargs[count++] = (keyword){name, is_float ? tare__float(bound[i])
                                                   : tare__int(tare__cut_int64(bound[i]))};
    }
    const tare_tensor *t = tare__onnx_meta(c, &x);
    if (bound[0] == 0 && bound[1] == 6 && t != NULL && t->dtype == TARE_FLOAT32)
        return tare__onnx_one(c, "torch.nn.functional.relu6", 1, &x);
    if (count == 0) {
        tare__onnx_set_output(c, 0, &x);
        return TARE_OK;
    }
    return tare__onnx_one_with(c, &(onnx_emit){.target = "torch.clamp",
                                               .args = &x,
                                               .arg_count = 1,
                                               .kwargs = kwargs,
                                               .kwarg_count = count});
}

static bool is_float8(tare_dtype dtype) {
    return dtype == TARE_FLOAT8_E5M2 || dtype == TARE_FLOAT8_E4M3FN;
}

static tare_status convert(onnx_call *c, tare_dtype dtype) {
    value x;
    const tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "input", &t));
    tare__onnx_ignore_attr(c, "saturate"); // of 8-bit floats only
    if (is_float8(dtype) || is_float8(t->dtype))
        return tare__onnx_fail(c, "conversion from %s to %s is not supported",
                               tare_dtype_name(t->dtype), tare_dtype_name(dtype));
    return tare__onnx_finish(c, &x, dtype);
}

static tare_status cast(onnx_call *c) {
    int64_t to;
    tare_dtype dtype;
    TARE_TRY(tare__onnx_attr_int(c, "to", 0, &to));
    TARE_TRY(tare__onnx_dtype(c, to, &dtype));
    return convert(c, dtype);
}

static tare_status cast_like(onnx_call *c) {
    const tare_tensor *like = NULL;
    TARE_TRY(tare__onnx_need_meta(c, 1, "target_type", &like));
    if (tare__onnx_is_packed_constant(c, 1))
        return tare__onnx_fail(c, "conversion to elements of 4 bits is not supported");
    return convert(c, like->dtype);
}

static tare_status identity(onnx_call *c) {
    value x;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    tare__onnx_set_output(c, 0, &x);
    return TARE_OK;
}

// Without training nothing is dropped, and the mask is all true.
static tare_status dropout(onnx_call *c) {
    value x, mask;
    double training;
    TARE_TRY(tare__onnx_need_input(c, 0, "data", &x));
    tare__onnx_ignore_attr(c, "ratio");
    tare__onnx_ignore_attr(c, "seed");
    TARE_TRY(tare__onnx_input_number(c, 2, "training_mode", 0, &training));
    if (training != 0) return tare__onnx_fail(c, "training_mode is not supported");
    tare__onnx_set_output(c, 0, &x);
    if (!tare__onnx_wants_output(c, 1)) return TARE_OK;
    const keyword dtype = {"dtype", tare__dtype_value(TARE_BOOL)};
    TARE_TRY(tare__onnx_function(c,
                                 &(onnx_emit){.target = "torch.ones_like",
                                              .args = &x,
                                              .arg_count = 1,
                                              .kwargs = &dtype,
                                              .kwarg_count = 1},
                                 &mask));
    tare__onnx_set_output(c, 1, &mask);
    return TARE_OK;
}

static const onnx_rule rows[] = {
    {"Abs", .translate = unary_abs},
    {"Acos", .translate = unary_acos},
    {"Acosh", .translate = unary_acosh},
    {"Add", .translate = binary_add},
    {"And", .translate = binary_and},
    {"Asin", .translate = unary_asin},
    {"Asinh", .translate = unary_asinh},
    {"Atan", .translate = unary_atan},
    {"Atanh", .translate = unary_atanh},
    {"BitShift", .translate = bit_shift},
    {"BitwiseAnd", 18, .translate = binary_bitwise_and},
    {"BitwiseNot", 18, .translate = unary_bitwise_not},
    {"BitwiseOr", 18, .translate = binary_bitwise_or},
    {"BitwiseXor", 18, .translate = binary_bitwise_xor},
    {"Cast", .translate = cast},
    {"CastLike", 15, .translate = cast_like},
    {"Ceil", .translate = unary_ceil},
    {"Clip", .translate = clip},
    {"Cos", .translate = unary_cos},
    {"Cosh", .translate = unary_cosh},
    {"Div", .translate = binary_div},
    {"Dropout", .translate = dropout},
    {"Equal", .translate = binary_equal},
    {"Erf", .translate = unary_erf},
    {"Exp", .translate = unary_exp},
    {"Floor", .translate = unary_floor},
    {"Greater", .translate = binary_greater},
    {"GreaterOrEqual", 12, .translate = binary_greater_equal},
    {"Identity", .translate = identity},
    {"IsInf", .translate = is_inf},
    {"IsNaN", .translate = unary_is_nan},
    {"Less", .translate = binary_less},
    {"LessOrEqual", 12, .translate = binary_less_equal},
    {"Log", .translate = unary_log},
    {"Max", .translate = variadic_max},
    {"Mean", .translate = variadic_mean},
    {"Min", .translate = variadic_min},
    {"Mod", .translate = binary_mod},
    {"Mul", .translate = binary_mul},
    {"Neg", .translate = unary_neg},
    {"Not", .translate = unary_not},
    {"Or", .translate = binary_or},
    {"Pow", .translate = binary_pow},
    {"Reciprocal", .translate = unary_reciprocal},
    {"Round", .translate = unary_round},
    {"Sign", .translate = unary_sign},
    {"Sin", .translate = unary_sin},
    {"Sinh", .translate = unary_sinh},
    {"Sqrt", .translate = unary_sqrt},
    {"Sub", .translate = binary_sub},
    {"Sum", .translate = variadic_sum},
    {"Tan", .translate = unary_tan},
    {"Where", .translate = where},
    {"Xor", .translate = binary_xor},
};

const onnx_rule_table tare__onnx_math_rules = ONNX_RULES(rows);
