// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic, comparison, logic and conversion as ONNX.
#include <math.h>
#include <string.h>

#include "io/onnx/write/rules.h"

static bool is_float(tare_dtype dtype) {
    return tare__dtype(dtype)->is_float;
}

// --- one operand ---

// What torch computes of integers in floats.
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

static void logical_not(onnx_out *o) {
    tare__out_result(o, OUT(o, "Not", tare__out_operand(o, 0, TARE_BOOL)));
}

static void infinite(onnx_out *o, bool negative, bool positive) {
    const char *y = OUT(o, "IsInf", tare__out_input(o, 0));
    tare__out_attr_int(o, "detect_negative", negative);
    tare__out_attr_int(o, "detect_positive", positive);
    tare__out_result(o, y);
}
static void is_inf(onnx_out *o) {
    infinite(o, true, true);
}
static void is_positive_inf(onnx_out *o) {
    infinite(o, false, true);
}
static void is_negative_inf(onnx_out *o) {
    infinite(o, true, false);
}

// --- two operands ---

// In what dtype both are computed: the result's, where that is not a comparison's bool.
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
    if (dtype == TARE_BOOL) tare__out_refuse(o, "%s takes no bools", op_type);
    const char *a = tare__out_operand(o, 0, dtype), *b = tare__out_operand(o, 1, dtype);
    if (tare__out_given(o, 2) && tare__out_double(o, 2, 1) != 1) // alpha
        b = OUT(o, "Mul", b, tare__out_number(o, dtype, tare__out_double(o, 2, 1)));
    tare__out_result(o, OUT(o, op_type, a, b));
}
static void add(onnx_out *o) {
    arithmetic(o, "Add");
}
static void sub(onnx_out *o) {
    arithmetic(o, "Sub");
}
static void mul(onnx_out *o) {
    arithmetic(o, "Mul");
}
static void maximum(onnx_out *o) {
    arithmetic(o, "Max");
}
static void minimum(onnx_out *o) {
    arithmetic(o, "Min");
}

static void rsub(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    const char *a = tare__out_operand(o, 0, dtype), *b = tare__out_operand(o, 1, dtype);
    if (tare__out_given(o, 2) && tare__out_double(o, 2, 1) != 1) // alpha
        a = OUT(o, "Mul", a, tare__out_number(o, dtype, tare__out_double(o, 2, 1)));
    tare__out_result(o, OUT(o, "Sub", b, a));
}

static void power(onnx_out *o) {
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

// ONNX's integer division cuts off; a remainder with the divisor's sign makes it floor.
static const char *floor_of(onnx_out *o, const char *a, const char *b, tare_dtype dtype) {
    if (is_float(dtype)) return OUT(o, "Floor", OUT(o, "Div", a, b));
    return OUT(o, "Div", OUT(o, "Sub", a, OUT(o, "Mod", a, b)), b);
}

static void divide(onnx_out *o) {
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

static void floor_divide(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    tare__out_result(
        o, floor_of(o, tare__out_operand(o, 0, dtype), tare__out_operand(o, 1, dtype), dtype));
}

static void remainder_of(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    const char *a = tare__out_operand(o, 0, dtype), *b = tare__out_operand(o, 1, dtype);
    if (is_float(dtype))
        tare__out_result(o, OUT(o, "Sub", a, OUT(o, "Mul", floor_of(o, a, b, dtype), b)));
    else
        tare__out_result(o, OUT(o, "Mod", a, b));
}

static void remainder_as_c(onnx_out *o) {
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
static void not_equal(onnx_out *o) {
    tare__out_result(o, OUT(o, "Not", compare_as(o, "Equal")));
}

static void logical(onnx_out *o, const char *op_type) {
    tare__out_result(
        o, OUT(o, op_type, tare__out_operand(o, 0, TARE_BOOL), tare__out_operand(o, 1, TARE_BOOL)));
}
static void logical_and(onnx_out *o) {
    logical(o, "And");
}
static void logical_or(onnx_out *o) {
    logical(o, "Or");
}
static void logical_xor(onnx_out *o) {
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
static void bitwise_and(onnx_out *o) {
    bitwise(o, "And", "BitwiseAnd");
}
static void bitwise_or(onnx_out *o) {
    bitwise(o, "Or", "BitwiseOr");
}
static void bitwise_xor(onnx_out *o) {
    bitwise(o, "Xor", "BitwiseXor");
}

static void bitwise_not(onnx_out *o) {
    if (tare__out_meta(o, 0)->dtype == TARE_BOOL) {
        logical_not(o);
        return;
    }
    if (tare__out_opset(o) < 18) tare__out_refuse(o, "BitwiseNot comes with opset 18");
    tare__out_result(o, OUT(o, "BitwiseNot", tare__out_input(o, 0)));
}

// --- choice ---

static void where(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    tare__out_result(o, OUT(o, "Where", tare__out_operand(o, 0, TARE_BOOL),
                            tare__out_operand(o, 1, dtype), tare__out_operand(o, 2, dtype)));
}

static void masked_fill(onnx_out *o) {
    const tare_dtype dtype = result_dtype(o);
    tare__out_result(o, OUT(o, "Where", tare__out_operand(o, 1, TARE_BOOL),
                            tare__out_operand(o, 2, dtype), tare__out_operand(o, 0, dtype)));
}

// --- conversion ---

static void convert(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const tare_dtype from = x->q != NULL ? TARE_FLOAT32 : x->dtype;
    tare__out_result(o, tare__out_cast(o, tare__out_input(o, 0), from, result_dtype(o)));
}

static const onnx_write_rule rows[] = {
    {"abs", "Abs"},
    {"acos", "Acos", .write = write_acos},
    {"acosh", "Acosh", .write = write_acosh},
    {"add", "Add", .write = add},
    {"asin", "Asin", .write = write_asin},
    {"asinh", "Asinh", .write = write_asinh},
    {"atan", "Atan", .write = write_atan},
    {"atanh", "Atanh", .write = write_atanh},
    {"bitwise_and", "And, BitwiseAnd (opset 18)", .write = bitwise_and},
    {"bitwise_not", "Not, BitwiseNot (opset 18)", .write = bitwise_not},
    {"bitwise_or", "Or, BitwiseOr (opset 18)", .write = bitwise_or},
    {"bitwise_xor", "Xor, BitwiseXor (opset 18)", .write = bitwise_xor},
    {"bool", "Cast", .write = convert},
    {"ceil", "Ceil"},
    {"cos", "Cos", .write = write_cos},
    {"cosh", "Cosh", .write = write_cosh},
    {"decomposed.convert_element_type", "Cast", .write = convert},
    {"div", "Div", .write = divide},
    {"double", "Cast", .write = convert},
    {"eq", "Equal", .write = equal},
    {"erf", "Erf", .write = write_erf},
    {"exp", "Exp", .write = write_exp},
    {"exp2", "Pow", .write = power_of_two},
    {"expm1", "Exp, Sub", .write = exp_minus_one},
    {"float", "Cast", .write = convert},
    {"floor", "Floor"},
    {"floor_divide", "Div, Floor", .write = floor_divide},
    {"fmod", "Mod", .write = remainder_as_c},
    {"ge", "GreaterOrEqual", .write = greater_equal},
    {"gt", "Greater", .write = greater},
    {"half", "Cast", .write = convert},
    {"int", "Cast", .write = convert},
    {"isinf", "IsInf", .write = is_inf},
    {"isnan", "IsNaN"},
    {"isneginf", "IsInf", .write = is_negative_inf},
    {"isposinf", "IsInf", .write = is_positive_inf},
    {"le", "LessOrEqual", .write = less_equal},
    {"log", "Log", .write = write_log},
    {"log1p", "Add, Log", .write = log_of_one_more},
    {"log2", "Log, Div", .write = binary_log},
    {"logical_and", "And", .write = logical_and},
    {"logical_not", "Not", .write = logical_not},
    {"logical_or", "Or", .write = logical_or},
    {"logical_xor", "Xor", .write = logical_xor},
    {"long", "Cast", .write = convert},
    {"lt", "Less", .write = less},
    {"masked_fill", "Where", .write = masked_fill},
    {"maximum", "Max", .write = maximum},
    {"minimum", "Min", .write = minimum},
    {"mul", "Mul", .write = mul},
    {"ne", "Equal, Not", .write = not_equal},
    {"neg", "Neg"},
    {"pow", "Pow", .write = power},
    {"reciprocal", "Reciprocal", .write = write_reciprocal},
    {"remainder", "Mod", .write = remainder_of},
    {"round", "Round"},
    {"rsqrt", "Sqrt, Reciprocal", .write = rsqrt},
    {"rsub", "Sub", .write = rsub},
    {"sign", "Sign"},
    {"sin", "Sin", .write = write_sin},
    {"sinh", "Sinh", .write = write_sinh},
    {"sqrt", "Sqrt", .write = write_sqrt},
    {"square", "Mul", .write = square},
    {"sub", "Sub", .write = sub},
    {"tan", "Tan", .write = write_tan},
    {"to", "Cast", .write = convert},
    {"trunc", "Sign, Floor, Abs, Mul", .write = cut_off},
    {"where", "Where", .write = where},
};

const onnx_write_table tare__onnx_write_math_rules = ONNX_WRITE_RULES(rows);
