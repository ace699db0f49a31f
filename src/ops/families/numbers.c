// SPDX-License-Identifier: Apache-2.0
// Functions of Python numbers, because traced code computes with sizes (math.sqrt(x.size(-1))).
#include <math.h>

#include "ops/families/families.h"
#include "ops/rules.h"

static tare_status read_number(op_call *call, double *out) {
    const value *v = call->param[0];
    if (v != NULL && v->kind != VALUE_TENSOR && tare__value_number(v, out)) return TARE_OK;
    return tare__call_fail(call, "expected a number");
}

static tare_status give_float(op_call *call, double (*f)(double x)) {
    double x;
    TARE_TRY(read_number(call, &x));
    call->result = tare__float(f(x));
    return TARE_OK;
}

static tare_status give_int(op_call *call, double (*f)(double x)) {
    double x;
    TARE_TRY(read_number(call, &x));
    const double y = f(x);
    if (!(fabs(y) < 0x1p53)) return tare__call_fail(call, "%g has no int", x);
    call->result = tare__int((int64_t)y);
    return TARE_OK;
}

#define FLOAT_OF(name, function)                                                                   \
    static tare_status name##_shape(op_call *call) {                                               \
        return give_float(call, function);                                                         \
    }
#define INT_OF(name, function)                                                                     \
    static tare_status name##_shape(op_call *call) {                                               \
        return give_int(call, function);                                                           \
    }
static double itself(double x) {
    return x;
}
FLOAT_OF(math_sqrt, sqrt)
FLOAT_OF(math_exp, exp)
FLOAT_OF(math_log, log)
FLOAT_OF(math_log2, log2)
FLOAT_OF(sym_float, itself)
INT_OF(math_floor, floor)
INT_OF(math_ceil, ceil)
INT_OF(math_trunc, trunc)

// The maximum or minimum of two numbers: an int if both are.
static tare_status give_one_of(op_call *call, bool larger) {
    double a, b;
    const value *x = call->param[0], *y = call->param[1];
    if (x == NULL || y == NULL || x->kind == VALUE_TENSOR || y->kind == VALUE_TENSOR ||
        !tare__value_number(x, &a) || !tare__value_number(y, &b))
        return tare__call_fail(call, "expected two numbers");
    const bool takes_first = larger ? a >= b : a <= b;
    const bool is_int = x->kind != VALUE_FLOAT && y->kind != VALUE_FLOAT;
    call->result = is_int ? *(takes_first ? x : y) : tare__float(takes_first ? a : b);
    return TARE_OK;
}
static tare_status sym_max_shape(op_call *call) {
    return give_one_of(call, true);
}
static tare_status sym_min_shape(op_call *call) {
    return give_one_of(call, false);
}

// sym_ite(condition, a, b): one of two numbers.
static tare_status sym_ite_shape(op_call *call) {
    double condition, number;
    TARE_TRY(read_number(call, &condition));
    const value *taken = call->param[condition != 0 ? 1 : 2];
    if (taken == NULL || taken->kind == VALUE_TENSOR || !tare__value_number(taken, &number))
        return tare__call_fail(call, "expected two numbers");
    call->result = *taken;
    return TARE_OK;
}

static tare_status sym_not_shape(op_call *call) {
    double x;
    TARE_TRY(read_number(call, &x));
    call->result = tare__bool(x == 0);
    return TARE_OK;
}

#define NUMBER(name, names)                                                                        \
    {                                                                                              \
        .id = #name, .functions = names, .params = "x", .traits = OP_NOT_ON_TENSORS,               \
        .shape = name##_shape                                                                      \
    }

#define TWO_NUMBERS(name, names)                                                                   \
    {                                                                                              \
        .id = #name, .functions = names, .params = "a|b", .traits = OP_NOT_ON_TENSORS,             \
        .shape = name##_shape                                                                      \
    }

static const op_info rows[] = {
    NUMBER(math_sqrt, "math.sqrt|torch._sym_sqrt"),
    NUMBER(math_exp, "math.exp"),
    NUMBER(math_log, "math.log"),
    NUMBER(math_log2, "math.log2"),
    NUMBER(math_floor, "math.floor"),
    NUMBER(math_ceil, "math.ceil"),
    NUMBER(math_trunc, "math.trunc|torch.sym_int"),
    NUMBER(sym_float, "torch.sym_float"),
    NUMBER(sym_not, "torch.sym_not"),
    {.id = "sym_ite",
     .functions = "torch.sym_ite",
     .params = "b|t|f",
     .traits = OP_NOT_ON_TENSORS,
     .shape = sym_ite_shape},
    TWO_NUMBERS(sym_max, "torch.sym_max"),
    TWO_NUMBERS(sym_min, "torch.sym_min"),
};

const op_table tare__numbers_ops = OP_TABLE(rows);
