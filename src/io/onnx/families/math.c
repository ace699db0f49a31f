// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic, comparison, logic and conversion in ONNX.
#include <math.h>
#include <string.h>

#include "core/math/float_to_int.h"
#include "io/onnx/families/families.h"
#include "io/onnx/read/rules_common.h"

// --- reading ---

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

static tare_status translate_is_inf(onnx_call *c) {
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

// ONNX divides integers as C does; torch's division gives floats.
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

static tare_status translate_bit_shift(onnx_call *c) {
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

static tare_status translate_where(onnx_call *c) {
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

// Clips with bounds that are not constants: by comparing with tensors.
static tare_status clip_by_tensors(onnx_call *c, value x) {
    for (size_t i = 1; i <= 2; i++) {
        const value bound = tare__onnx_input(c, i);
        if (bound.kind == VALUE_NONE) continue;
        TARE_TRY(ONNX_CALL(c, &x, i == 1 ? "torch.maximum" : "torch.minimum", x, bound));
    }
    tare__onnx_set_output(c, 0, &x);
    return TARE_OK;
}

static tare_status translate_clip(onnx_call *c) {
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

static tare_status call_to(onnx_call *c, tare_dtype dtype) {
    value x;
    const tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "input", &t));
    tare__onnx_ignore_attr(c, "saturate"); // only for 8-bit floats
    if (is_float8(dtype) || is_float8(t->dtype))
        return tare__onnx_fail(c, "conversion from %s to %s is not supported",
                               tare_dtype_name(t->dtype), tare_dtype_name(dtype));
    return tare__onnx_finish(c, &x, dtype);
}

static tare_status translate_cast(onnx_call *c) {
    int64_t to;
    tare_dtype dtype;
    TARE_TRY(tare__onnx_attr_int(c, "to", 0, &to));
    TARE_TRY(tare__onnx_dtype(c, to, &dtype));
    return call_to(c, dtype);
}

static tare_status translate_cast_like(onnx_call *c) {
    const tare_tensor *like = NULL;
    TARE_TRY(tare__onnx_need_meta(c, 1, "target_type", &like));
    if (tare__onnx_is_packed_constant(c, 1))
        return tare__onnx_fail(c, "conversion to 4-bit elements is not supported");
    return call_to(c, like->dtype);
}

static tare_status translate_identity(onnx_call *c) {
    value x;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    tare__onnx_set_output(c, 0, &x);
    return TARE_OK;
}

// In inference nothing is dropped, and the mask is true everywhere.
static tare_status translate_dropout(onnx_call *c) {
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

static const onnx_rule read_rows[] = {
    {"Abs", .translate = unary_abs},
    {"Acos", .translate = unary_acos},
    {"Acosh", .translate = unary_acosh},
    {"Add", .translate = binary_add},
    {"And", .translate = binary_and},
    {"Asin", .translate = unary_asin},
    {"Asinh", .translate = unary_asinh},
    {"Atan", .translate = unary_atan},
    {"Atanh", .translate = unary_atanh},
    {"BitShift", .translate = translate_bit_shift},
    {"BitwiseAnd", 18, .translate = binary_bitwise_and},
    {"BitwiseNot", 18, .translate = unary_bitwise_not},
    {"BitwiseOr", 18, .translate = binary_bitwise_or},
    {"BitwiseXor", 18, .translate = binary_bitwise_xor},
    {"Cast", .translate = translate_cast},
    {"CastLike", 15, .translate = translate_cast_like},
    {"Ceil", .translate = unary_ceil},
    {"Clip", .translate = translate_clip},
    {"Cos", .translate = unary_cos},
    {"Cosh", .translate = unary_cosh},
    {"Div", .translate = binary_div},
    {"Dropout", .translate = translate_dropout},
    {"Equal", .translate = binary_equal},
    {"Erf", .translate = unary_erf},
    {"Exp", .translate = unary_exp},
    {"Floor", .translate = unary_floor},
    {"Greater", .translate = binary_greater},
    {"GreaterOrEqual", 12, .translate = binary_greater_equal},
    {"Identity", .translate = translate_identity},
    {"IsInf", .translate = translate_is_inf},
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
    {"Where", .translate = translate_where},
    {"Xor", .translate = binary_xor},
};

// --- writing ---

static bool is_float(tare_dtype dtype) {
    return tare__dtype(dtype)->is_float;
}

// --- one operand ---

// Operators that torch computes in floats for integer inputs.
static void in_floats(onnx_out *o, const char *(*make)(onnx_out *o, const char *x)) {
    tare__out_result(o, make(o, tare__out_operand(o, 0,
                                                  tare__out_result_meta(o)->q != NULL
                                                      ? TARE_FLOAT32
                                                      : tare__out_result_meta(o)->dtype)));
}

#define COMPOSED(name, expression)                                                                 \
    static const char *make_##name(onnx_out *o, const char *x) {                                   \
        return expression;                                                                         \
    }                                                                                              \
    static void name(onnx_out *o) {                                                                \
        in_floats(o, make_##name);                                                                 \
    }
static const char *number(onnx_out *o, double n) {
    const tare_tensor *t = tare__out_result_meta(o);
    return tare__out_number(o, t->q != NULL ? TARE_FLOAT32 : t->dtype, n);
}
COMPOSED(rsqrt, OUT(o, "Reciprocal", OUT(o, "Sqrt", x)))
COMPOSED(square, OUT(o, "Mul", x, x))
COMPOSED(power_of_two, OUT(o, "Pow", number(o, 2), x))
COMPOSED(exp_minus_one, OUT(o, "Sub", OUT(o, "Exp", x), number(o, 1)))
COMPOSED(binary_log, OUT(o, "Div", OUT(o, "Log", x), number(o, log(2))))
COMPOSED(log_of_one_more, OUT(o, "Log", OUT(o, "Add", x, number(o, 1))))
COMPOSED(cut_off, OUT(o, "Mul", OUT(o, "Sign", x), OUT(o, "Floor", OUT(o, "Abs", x))))

#define IN_FLOATS(name, op_type) COMPOSED(name, OUT(o, op_type, x))
IN_FLOATS(write_acos, "Acos")
IN_FLOATS(write_acosh, "Acosh")
IN_FLOATS(write_asin, "Asin")
IN_FLOATS(write_asinh, "Asinh")
IN_FLOATS(write_atan, "Atan")
IN_FLOATS(write_atanh, "Atanh")
IN_FLOATS(write_cos, "Cos")
IN_FLOATS(write_cosh, "Cosh")
IN_FLOATS(write_erf, "Erf")
IN_FLOATS(write_exp, "Exp")
IN_FLOATS(write_log, "Log")
IN_FLOATS(write_reciprocal, "Reciprocal")
IN_FLOATS(write_sin, "Sin")
IN_FLOATS(write_sinh, "Sinh")
IN_FLOATS(write_sqrt, "Sqrt")
IN_FLOATS(write_tan, "Tan")

static void write_logical_not(onnx_out *o) {
    tare__out_result(o, OUT(o, "Not", tare__out_operand(o, 0, TARE_BOOL)));
}

static void infinite(onnx_out *o, bool negative, bool positive) {
    const char *y = OUT(o, "IsInf", tare__out_input(o, 0));
    tare__out_attr_int(o, "detect_negative", negative);
    tare__out_attr_int(o, "detect_positive", positive);
    tare__out_result(o, y);
}
static void write_is_inf(onnx_out *o) {
    infinite(o, true, true);
}
static void write_is_positive_inf(onnx_out *o) {
    infinite(o, false, true);
}
static void write_is_negative_inf(onnx_out *o) {
    infinite(o, true, false);
}

// --- two operands ---

// The dtype of both operands: the result's, unless it is the bool of a comparison.
static tare_dtype common_dtype(onnx_out *o) {
    const op_call *call = tare__out_call(o);
    tare_dtype widest = TARE_DTYPE_UNSET;
    for (size_t i = 0; i < 2; i++) {
        const value *v = call->param[i];
        tare_dtype dtype = TARE_DTYPE_UNSET;
        if (v != NULL && v->kind == VALUE_TENSOR)
            dtype = v->as.tensor->q != NULL ? TARE_FLOAT32 : v->as.tensor->dtype;
        else if (v != NULL && v->kind == VALUE_FLOAT)
            dtype = TARE_FLOAT32;
        if (dtype == TARE_DTYPE_UNSET) continue;
        const bool wider = widest == TARE_DTYPE_UNSET || (is_float(dtype) && !is_float(widest)) ||
                           (is_float(dtype) == is_float(widest) &&
                            tare_dtype_size(dtype) > tare_dtype_size(widest)) ||
                           widest == TARE_BOOL;
        if (wider) widest = dtype;
    }
    return widest != TARE_DTYPE_UNSET ? widest : TARE_INT64;
}

static tare_dtype result_dtype(onnx_out *o) {
    const tare_tensor *t = tare__out_result_meta(o);
    return t->q != NULL ? TARE_FLOAT32 : t->dtype;
}

static void arithmetic(onnx_out *o, const char *op_type) {
    const tare_dtype dtype = result_dtype(o);
    if (dtype == TARE_BOOL) tare__out_refuse(o, "%s does not take bools", op_type);
    const char *a = tare__out_operand(o, 0, dtype), *b = tare__out_operand(o, 1, dtype);
    if (tare__out_given(o, 2) && tare__out_double(o, 2, 1) != 1) // alpha
        b = OUT(o, "Mul", b, tare__out_number(o, dtype, tare__out_double(o, 2, 1)));
    tare__out_result(o, OUT(o, op_type, a, b));
}
static void write_add(onnx_out *o) {
    arithmetic(o, "Add");
}
static void write_sub(onnx_out *o) {
    arithmetic(o, "Sub");
}
static void write_mul(onnx_out *o) {
    arithmetic(o, "Mul");
}
static void write_maximum(onnx_out *o) {
    arithmetic(o, "Max");
}
static void write_minimum(onnx_out *o) {
    arithmetic(o, "Min");
}

static void write_rsub(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    const char *a = tare__out_operand(o, 0, dtype), *b = tare__out_operand(o, 1, dtype);
    if (tare__out_given(o, 2) && tare__out_double(o, 2, 1) != 1) // alpha
        a = OUT(o, "Mul", a, tare__out_number(o, dtype, tare__out_double(o, 2, 1)));
    tare__out_result(o, OUT(o, "Sub", b, a));
}

static void write_power(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    const char *x = tare__out_operand(o, 0, dtype);
    const value *exponent = tare__out_call(o)->param[1];
    double n = 0;
    const bool is_number =
        exponent != NULL && exponent->kind != VALUE_TENSOR && tare__call_number(exponent, &n);
    if (is_number && n == 2)
        tare__out_result(o, OUT(o, "Mul", x, x));
    else
        tare__out_result(o, OUT(o, "Pow", x, tare__out_operand(o, 1, dtype)));
}

// ONNX's integer division truncates; subtracting the remainder with the divisor's sign first gives
// floor.
static const char *floor_of(onnx_out *o, const char *a, const char *b, tare_dtype dtype) {
    if (is_float(dtype)) return OUT(o, "Floor", OUT(o, "Div", a, b));
    return OUT(o, "Div", OUT(o, "Sub", a, OUT(o, "Mod", a, b)), b);
}

static void write_divide(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    const char *mode = tare__out_text(o, 2, "");
    const char *a = tare__out_operand(o, 0, dtype), *b = tare__out_operand(o, 1, dtype);
    if (strcmp(mode, "floor") == 0) {
        tare__out_result(o, floor_of(o, a, b, dtype));
        return;
    }
    const char *q = OUT(o, "Div", a, b);
    if (strcmp(mode, "trunc") == 0 && is_float(dtype)) q = make_cut_off(o, q);
    tare__out_result(o, q);
}

static void write_floor_divide(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    tare__out_result(
        o, floor_of(o, tare__out_operand(o, 0, dtype), tare__out_operand(o, 1, dtype), dtype));
}

static void write_remainder_of(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    const char *a = tare__out_operand(o, 0, dtype), *b = tare__out_operand(o, 1, dtype);
    if (is_float(dtype))
        tare__out_result(o, OUT(o, "Sub", a, OUT(o, "Mul", floor_of(o, a, b, dtype), b)));
    else
        tare__out_result(o, OUT(o, "Mod", a, b));
}

static void write_remainder_as_c(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    const char *y = OUT(o, "Mod", tare__out_operand(o, 0, dtype), tare__out_operand(o, 1, dtype));
    tare__out_attr_int(o, "fmod", 1);
    tare__out_result(o, y);
}

static const char *compare_as(onnx_out *o, const char *op_type) {
    const tare_dtype dtype = common_dtype(o);
    return OUT(o, op_type, tare__out_operand(o, 0, dtype), tare__out_operand(o, 1, dtype));
}
#define COMPARISON(name, op_type)                                                                  \
    static void name(onnx_out *o) {                                                                \
        tare__out_result(o, compare_as(o, op_type));                                               \
    }
COMPARISON(equal, "Equal")
COMPARISON(less, "Less")
COMPARISON(less_equal, "LessOrEqual")
COMPARISON(greater, "Greater")
COMPARISON(greater_equal, "GreaterOrEqual")
static void write_not_equal(onnx_out *o) {
    tare__out_result(o, OUT(o, "Not", compare_as(o, "Equal")));
}

static void logical(onnx_out *o, const char *op_type) {
    tare__out_result(
        o, OUT(o, op_type, tare__out_operand(o, 0, TARE_BOOL), tare__out_operand(o, 1, TARE_BOOL)));
}
static void write_logical_and(onnx_out *o) {
    logical(o, "And");
}
static void write_logical_or(onnx_out *o) {
    logical(o, "Or");
}
static void write_logical_xor(onnx_out *o) {
    logical(o, "Xor");
}

static void bitwise(onnx_out *o, const char *of_bools, const char *of_integers) {
    const tare_dtype dtype = result_dtype(o);
    if (dtype == TARE_BOOL) {
        logical(o, of_bools);
        return;
    }
    if (tare__out_opset(o) < 18) tare__out_refuse(o, "%s comes with opset 18", of_integers);
    tare__out_result(
        o, OUT(o, of_integers, tare__out_operand(o, 0, dtype), tare__out_operand(o, 1, dtype)));
}
static void write_bitwise_and(onnx_out *o) {
    bitwise(o, "And", "BitwiseAnd");
}
static void write_bitwise_or(onnx_out *o) {
    bitwise(o, "Or", "BitwiseOr");
}
static void write_bitwise_xor(onnx_out *o) {
    bitwise(o, "Xor", "BitwiseXor");
}

static void write_bitwise_not(onnx_out *o) {
    if (tare__out_meta(o, 0)->dtype == TARE_BOOL) {
        write_logical_not(o);
        return;
    }
    if (tare__out_opset(o) < 18) tare__out_refuse(o, "BitwiseNot comes with opset 18");
    tare__out_result(o, OUT(o, "BitwiseNot", tare__out_input(o, 0)));
}

// --- choice ---

static void write_where(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    tare__out_result(o, OUT(o, "Where", tare__out_operand(o, 0, TARE_BOOL),
                            tare__out_operand(o, 1, dtype), tare__out_operand(o, 2, dtype)));
}

static void write_masked_fill(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    tare__out_result(o, OUT(o, "Where", tare__out_operand(o, 1, TARE_BOOL),
                            tare__out_operand(o, 2, dtype), tare__out_operand(o, 0, dtype)));
}

// --- conversion ---

static void write_convert(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const tare_dtype from = x->q != NULL ? TARE_FLOAT32 : x->dtype;
    tare__out_result(o, tare__out_cast(o, tare__out_input(o, 0), from, result_dtype(o)));
}

static const onnx_write_rule write_rows[] = {
    {"abs", "Abs"},
    {"acos", "Acos", .write = write_acos},
    {"acosh", "Acosh", .write = write_acosh},
    {"add", "Add", .write = write_add},
    {"asin", "Asin", .write = write_asin},
    {"asinh", "Asinh", .write = write_asinh},
    {"atan", "Atan", .write = write_atan},
    {"atanh", "Atanh", .write = write_atanh},
    {"bitwise_and", "And, BitwiseAnd (opset 18)", .write = write_bitwise_and},
    {"bitwise_not", "Not, BitwiseNot (opset 18)", .write = write_bitwise_not},
    {"bitwise_or", "Or, BitwiseOr (opset 18)", .write = write_bitwise_or},
    {"bitwise_xor", "Xor, BitwiseXor (opset 18)", .write = write_bitwise_xor},
    {"bool", "Cast", .write = write_convert},
    {"ceil", "Ceil"},
    {"cos", "Cos", .write = write_cos},
    {"cosh", "Cosh", .write = write_cosh},
    {"decomposed.convert_element_type", "Cast", .write = write_convert},
    {"div", "Div", .write = write_divide},
    {"double", "Cast", .write = write_convert},
    {"eq", "Equal", .write = equal},
    {"erf", "Erf", .write = write_erf},
    {"exp", "Exp", .write = write_exp},
    {"exp2", "Pow", .write = power_of_two},
    {"expm1", "Exp, Sub", .write = exp_minus_one},
    {"float", "Cast", .write = write_convert},
    {"floor", "Floor"},
    {"floor_divide", "Div, Floor", .write = write_floor_divide},
    {"fmod", "Mod", .write = write_remainder_as_c},
    {"ge", "GreaterOrEqual", .write = greater_equal},
    {"gt", "Greater", .write = greater},
    {"half", "Cast", .write = write_convert},
    {"int", "Cast", .write = write_convert},
    {"isinf", "IsInf", .write = write_is_inf},
    {"isnan", "IsNaN"},
    {"isneginf", "IsInf", .write = write_is_negative_inf},
    {"isposinf", "IsInf", .write = write_is_positive_inf},
    {"le", "LessOrEqual", .write = less_equal},
    {"log", "Log", .write = write_log},
    {"log1p", "Add, Log", .write = log_of_one_more},
    {"log2", "Log, Div", .write = binary_log},
    {"logical_and", "And", .write = write_logical_and},
    {"logical_not", "Not", .write = write_logical_not},
    {"logical_or", "Or", .write = write_logical_or},
    {"logical_xor", "Xor", .write = write_logical_xor},
    {"long", "Cast", .write = write_convert},
    {"lt", "Less", .write = less},
    {"masked_fill", "Where", .write = write_masked_fill},
    {"maximum", "Max", .write = write_maximum},
    {"minimum", "Min", .write = write_minimum},
    {"mul", "Mul", .write = write_mul},
    {"ne", "Equal, Not", .write = write_not_equal},
    {"neg", "Neg"},
    {"pow", "Pow", .write = write_power},
    {"reciprocal", "Reciprocal", .write = write_reciprocal},
    {"remainder", "Mod", .write = write_remainder_of},
    {"round", "Round"},
    {"rsqrt", "Sqrt, Reciprocal", .write = rsqrt},
    {"rsub", "Sub", .write = write_rsub},
    {"sign", "Sign"},
    {"sin", "Sin", .write = write_sin},
    {"sinh", "Sinh", .write = write_sinh},
    {"sqrt", "Sqrt", .write = write_sqrt},
    {"square", "Mul", .write = square},
    {"sub", "Sub", .write = write_sub},
    {"tan", "Tan", .write = write_tan},
    {"to", "Cast", .write = write_convert},
    {"trunc", "Sign, Floor, Abs, Mul", .write = cut_off},
    {"where", "Where", .write = write_where},
};

const onnx_family tare__onnx_math_family = {.read = ONNX_RULES(read_rows),
                                            .write = ONNX_WRITE_RULES(write_rows)};
