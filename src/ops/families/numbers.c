// SPDX-License-Identifier: Apache-2.0
// Functions of Python's numbers: traced code computes with sizes (math.sqrt(x.size(-1))).
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

#define NUMBER(name, names)                                                                        \
    {                                                                                              \
        .id = #name, .functions = names, .params = "x", .traits = OP_NOT_ON_TENSORS,               \
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
};

const op_table tare__numbers_ops = OP_TABLE(rows);
