// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Bitwise functions of integers and bools, and gcd and lcm.
#include "core/math/divisor.h"
#include "core/math/float_to_int.h"
#include "ops/families/arithmetic.h"
#include "ops/families/families.h"
#include "ops/parts.h"
#include "ops/rules.h"

typedef int64_t (*bit_function)(int64_t a, int64_t b, const dtype_info *info);

static int64_t bits_and(int64_t a, int64_t b, const dtype_info *info) {
    (void)info;
    return a & b;
}
static int64_t bits_or(int64_t a, int64_t b, const dtype_info *info) {
    (void)info;
    return a | b;
}
static int64_t bits_xor(int64_t a, int64_t b, const dtype_info *info) {
    (void)info;
    return a ^ b;
}

static int64_t shift_left(int64_t a, int64_t b, const dtype_info *info) {
    if (b < 0 || b >= 8 * (int64_t)info->size) return 0;
    return tare__dtype_wrap((uint64_t)a << b, info);
}

static int64_t shift_right(int64_t a, int64_t b, const dtype_info *info) {
    const int64_t bits = 8 * (int64_t)info->size;
    if (b < 0 || b >= bits) b = bits - 1 + (a >= 0 ? 1 : 0);
    if (b > 63) return 0;
    return a >= 0 ? (int64_t)((uint64_t)a >> b) : ~(int64_t)(~(uint64_t)a >> b);
}

// gcd of the absolute values. The absolute value of the lowest number is truncated to the dtype
// again.
static int64_t greatest_divisor(int64_t a, int64_t b, const dtype_info *info) {
    const uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b;
    return tare__dtype_wrap(tare__greatest_divisor(x, y), info);
}

static int64_t least_multiple(int64_t a, int64_t b, const dtype_info *info) {
    const int64_t divisor = greatest_divisor(a, b, tare__dtype(TARE_INT64));
    if (divisor == 0) return 0;
    const uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b;
    const int64_t multiple = tare__dtype_wrap(x / (uint64_t)divisor * y, info);
    return multiple < 0 && multiple != INT64_MIN ? tare__dtype_wrap(-(uint64_t)multiple, info)
                                                 : multiple;
}

// --- two operands ---

typedef struct bit_operands {
    operand side[2];
    tare_dtype dtype;
    int ndim;
    int64_t shape[TARE_MAX_DIMS];
} bit_operands;

static tare_status read_bits(op_call *call, bit_operands *o) {
    const tare_tensor scalar = {0};
    for (size_t i = 0; i < 2; i++) TARE_TRY(tare__read_operand(call, i, &o->side[i]));
    o->dtype = tare__common_dtype(o->side);
    for (int i = 0; i < 2; i++)
        if ((o->side[i].t != NULL && tare__dtype(o->side[i].t->dtype)->is_float) ||
            o->side[i].is_float)
            return tare__call_fail(call, "operand %d must be an integer or a bool", i + 1);
    return tare__broadcast(call, o->side[0].t != NULL ? o->side[0].t : &scalar,
                           o->side[1].t != NULL ? o->side[1].t : &scalar, &o->ndim, o->shape);
}

static tare_status bits_shape(op_call *call, bit_function f) {
    bit_operands o;
    TARE_TRY(read_bits(call, &o));
    if (o.dtype != TARE_DTYPE_UNSET) return tare__call_result(call, o.dtype, o.ndim, o.shape, NULL);
    const int64_t r = f(tare__cut_int64(o.side[0].number), tare__cut_int64(o.side[1].number),
                        tare__dtype(TARE_INT64));
    const bool bools = o.side[0].is_bool && o.side[1].is_bool;
    call->result = bools ? tare__bool(r != 0) : tare__int(r);
    return TARE_OK;
}

static int64_t bits_at(const operand *side, int64_t i) {
    return side->t != NULL ? tare__tensor_get_int(side->t, i) : tare__cut_int64(side->number);
}

// Fast loops for bools, which are bytes, and int64, if both operands have the dtype of the result.
#define RUN(type, operation)                                                                       \
    for (int64_t k = 0; k < count; k++)                                                            \
        ((type *)to)[k] = (type)(((const type *)from[0])[k * step[0]] operation(                   \
            (const type *)from[1])[k * step[1]]);
#define RUNS(type)                                                                                 \
    if (f == bits_and)                                                                             \
        RUN(type, &)                                                                               \
    else if (f == bits_or)                                                                         \
        RUN(type, |)                                                                               \
    else                                                                                           \
        RUN(type, ^)

static void whole_run(bit_function f, size_t size, const void *const from[2], const int64_t *step,
                      int64_t count, void *to) {
    if (size == 1) {
        RUNS(uint8_t)
    } else {
        RUNS(int64_t)
    }
}

static bool has_runs(bit_function f, const bit_operands *o, const tare_tensor *y) {
    const size_t size = tare_dtype_size(y->dtype);
    if ((f != bits_and && f != bits_or && f != bits_xor) || (size != 1 && size != 8)) return false;
    for (int i = 0; i < 2; i++)
        if (o->side[i].t == NULL || o->side[i].t->dtype != y->dtype) return false;
    return true;
}

// Computes elements [first, end) of the result.
static tare_status bits_part(op_call *call, bit_function f, int64_t first, int64_t end) {
    bit_operands o;
    TARE_TRY(read_bits(call, &o));
    tare_tensor *y = tare__call_out(call);
    const dtype_info *info = tare__dtype(y->dtype);
    const walk w =
        tare__walk((const tare_tensor *[]){o.side[0].t, o.side[1].t}, 2, o.ndim, o.shape);
    const bool runs = has_runs(f, &o, y);
    for (int64_t at = first, count; at < end; at += count) {
        int64_t offset[2] = {0};
        const void *from[2] = {NULL, NULL};
        count = tare__walk_at(&w, at, end, offset);
        for (int i = 0; i < 2 && runs; i++)
            from[i] = (const char *)o.side[i].t->data + (size_t)offset[i] * info->size;
        if (runs)
            whole_run(f, info->size, from, w.step, count,
                      (char *)y->data + (size_t)at * info->size);
        else
            for (int64_t k = 0; k < count; k++)
                tare__tensor_set_int(y, at + k,
                                     f(bits_at(&o.side[0], offset[0] + k * w.step[0]),
                                       bits_at(&o.side[1], offset[1] + k * w.step[1]), info));
    }
    return TARE_OK;
}

#define BITS(name, function)                                                                       \
    static tare_status name##_shape(op_call *call) {                                               \
        return bits_shape(call, function);                                                         \
    }                                                                                              \
    static tare_status name##_part(op_call *call, int64_t first, int64_t end) {                    \
        return bits_part(call, function, first, end);                                              \
    }                                                                                              \
    static tare_status name##_parts(op_call *call, call_parts *out) {                              \
        return tare__element_parts(call, name##_part, out);                                        \
    }                                                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        return tare__run_parts(call, name##_parts);                                                \
    }
BITS(bitwise_and, bits_and)
BITS(bitwise_or, bits_or)
BITS(bitwise_xor, bits_xor)
BITS(bitwise_left_shift, shift_left)
BITS(bitwise_right_shift, shift_right)
BITS(gcd, greatest_divisor)
BITS(lcm, least_multiple)

// --- bitwise_not ---

static tare_status bitwise_not_shape(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (x->q == NULL && !tare__dtype(x->dtype)->is_float) return tare__shape_same(call);
    return tare__call_fail(call, "has no form for %s", tare_dtype_name(x->dtype));
}

static tare_status bitwise_not_part(op_call *call, int64_t first, int64_t end) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    const size_t size = tare_dtype_size(x->dtype);
    const uint8_t *from = x->data;
    uint8_t *to = tare__call_out(call)->data;
    for (size_t i = (size_t)first * size; i < (size_t)end * size; i++)
        to[i] = x->dtype == TARE_BOOL ? from[i] == 0 : (uint8_t)~from[i];
    return TARE_OK;
}

static tare_status bitwise_not_parts(op_call *call, call_parts *out) {
    return tare__element_parts(call, bitwise_not_part, out);
}

static tare_status bitwise_not_reference(op_call *call) {
    return tare__run_parts(call, bitwise_not_parts);
}

// --- rows ---

#define ATEN(name) "torch.ops.aten." name
// dunder: the name in aten of the Python operator (__and__), with overloads for tensors and
// numbers.
#define ROW(name, names, dunder, scalar)                                                           \
    {                                                                                              \
        .id = #name,                                                                               \
        .functions = "torch." #name "|" names "|" ATEN(#name ".Tensor") "|" ATEN(                  \
            #name scalar) "|" ATEN(dunder ".Tensor") "|" ATEN(dunder ".Scalar"),                   \
        .methods = #name, .params = "input/self|other", .traits = OP_ELEMENTWISE,                  \
        .shape = name##_shape, .reference = name##_reference, .parts = name##_parts                \
    }

#define DIVISOR(name)                                                                              \
    {                                                                                              \
        .id = #name, .functions = "torch." #name "|" ATEN(#name ".default"), .methods = #name,     \
        .params = "input/self|other", .traits = OP_ELEMENTWISE, .shape = name##_shape,             \
        .reference = name##_reference, .parts = name##_parts                                       \
    }

static const op_info rows[] = {
    ROW(bitwise_and, "operator.and_|operator.iand", "__and__", ".Scalar"),
    ROW(bitwise_or, "operator.or_|operator.ior", "__or__", ".Scalar"),
    ROW(bitwise_xor, "operator.xor|operator.ixor", "__xor__", ".Scalar"),
    ROW(bitwise_left_shift, "operator.lshift|operator.ilshift", "__lshift__", ".Tensor_Scalar"),
    ROW(bitwise_right_shift, "operator.rshift|operator.irshift", "__rshift__", ".Tensor_Scalar"),
    DIVISOR(gcd),
    DIVISOR(lcm),
    {.id = "bitwise_not",
     .functions = "torch.bitwise_not|torch.ops.aten.bitwise_not.default|operator.invert",
     .methods = "bitwise_not",
     .params = "input/self",
     .traits = OP_ELEMENTWISE,
     .shape = bitwise_not_shape,
     .reference = bitwise_not_reference,
     .parts = bitwise_not_parts},
};

const op_table tare__bitwise_ops = OP_TABLE(rows);
