// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Binary functions of tensors or numbers, with broadcasting: arithmetic, comparison, logic.
#include "ops/families/arithmetic.h"

#include <math.h>
#include <string.h>

#include "core/math/f64.h"
#include "ops/families/element.h"
#include "ops/families/families.h"
#include "ops/parts.h"
#include "ops/rules.h"

// --- operands ---

typedef struct operands {
    operand side[2];
    double alpha;     // multiplies the second one (torch.add)
    tare_dtype dtype; // common dtype of the tensors; unset when both are numbers
    int ndim;
    int64_t shape[TARE_MAX_DIMS];
} operands;

tare_status tare__read_operand(op_call *call, size_t i, operand *out) {
    const value *v = call->param[i];
    *out = (operand){0};
    if (v != NULL && v->kind == VALUE_TENSOR) {
        out->t = v->as.tensor;
        if (out->t->q == NULL) return TARE_OK;
        return tare__call_fail(call, "has no form for %s", tare_dtype_name(out->t->dtype));
    }
    if (v == NULL || !tare__value_number(v, &out->number))
        return tare__call_fail(call, "operand %zu must be a tensor or a number", i + 1);
    const value *number = v->kind == VALUE_SCALAR ? &v->as.items[0] : v;
    out->is_float = number->kind == VALUE_FLOAT;
    out->is_bool = number->kind == VALUE_BOOL;
    return TARE_OK;
}

// Bools rank below integers, integers below floats; within a rank the wider dtype wins.
static int rank_of(tare_dtype dtype) {
    if (tare__dtype(dtype)->is_float) return 200 + (int)tare_dtype_size(dtype);
    return dtype == TARE_BOOL ? 0 : 100 + (int)tare_dtype_size(dtype);
}

// torch's rule: tensors with dimensions decide, then those without, then numbers. A later group
// only matters if its category (bool, integer, float) is higher.
tare_dtype tare__common_dtype(const operand side[2]) {
    tare_dtype found = TARE_DTYPE_UNSET;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 2; i++) {
            const tare_tensor *t = side[i].t;
            if (t == NULL || (t->ndim > 0) != (pass == 0)) continue;
            const bool higher =
                found == TARE_DTYPE_UNSET || rank_of(t->dtype) / 100 > rank_of(found) / 100;
            const bool wider =
                pass == 0 && found != TARE_DTYPE_UNSET && rank_of(t->dtype) > rank_of(found);
            if (higher || wider) found = t->dtype;
        }
    for (int i = 0; i < 2 && found != TARE_DTYPE_UNSET; i++) {
        const operand *number = &side[i];
        if (number->t != NULL) continue;
        if (number->is_float && !tare__dtype(found)->is_float) found = TARE_FLOAT32;
        if (!number->is_float && !number->is_bool && found == TARE_BOOL) found = TARE_INT64;
    }
    return found;
}

static tare_status read_operands(op_call *call, operands *o) {
    *o = (operands){.alpha = 1};
    TARE_TRY(tare__read_operand(call, 0, &o->side[0]));
    TARE_TRY(tare__read_operand(call, 1, &o->side[1]));
    if (tare__op_param_is(call->op, 2, "alpha")) TARE_TRY(tare__call_double(call, 2, 1, &o->alpha));
    const tare_tensor scalar = {0};
    o->dtype = tare__common_dtype(o->side);
    return tare__broadcast(call, o->side[0].t != NULL ? o->side[0].t : &scalar,
                           o->side[1].t != NULL ? o->side[1].t : &scalar, &o->ndim, o->shape);
}

// --- shape rule, which also computes the result of two numbers ---

// True if the result of two numbers is a tensor, as for aten's .Tensor overloads; floats are then
// float32.
static bool makes_tensor(const op_call *call) {
    return call->function != NULL && tare__aten_name(call->function) != NULL &&
           tare__ends_with(call->function, ".Tensor");
}

static double exact_of(const op_binary *op, double a, double b) {
    double y;
    op->exact(&a, &b, &y, 1);
    return y;
}

static tare_status tensor_of_numbers(op_call *call, const op_binary *op, const operands *o,
                                     bool floats) {
    double side[2] = {o->side[0].number, o->side[1].number};
    for (int i = 0; i < 2 && floats; i++) side[i] = (double)(float)side[i];
    const double r = exact_of(op, side[0], side[1] * o->alpha);
    tare_tensor *t = NULL;
    TARE_TRY(floats ? tare__tensor_scalar_float((float)r, &t, call->err)
                    : tare__tensor_scalar_int((int64_t)r, &t, call->err));
    call->result = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    return TARE_OK;
}

static tare_status number_result(op_call *call, const op_binary *op, const operands *o) {
    const double r = exact_of(op, o->side[0].number, o->side[1].number * o->alpha);
    const bool floats = op->kind == RESULT_FLOAT || o->side[0].is_float || o->side[1].is_float;
    if (op->kind != RESULT_BOOL && fabs(r) < 0x1p53 && makes_tensor(call))
        return tensor_of_numbers(call, op, o, floats);
    if (op->kind == RESULT_BOOL)
        call->result = tare__bool(r != 0);
    else if (floats)
        call->result = tare__float(r);
    else if (fabs(r) < 0x1p53)
        call->result = tare__int((int64_t)r);
    else
        return tare__call_fail(call, "the result of two ints is out of range");
    return TARE_OK;
}

static tare_status binary_shape(op_call *call, const op_binary *op) {
    operands o;
    TARE_TRY(read_operands(call, &o));
    if (o.dtype == TARE_DTYPE_UNSET) return number_result(call, op, &o);
    const bool integers = !tare__dtype(o.dtype)->is_float;
    const tare_dtype dtype = op->kind == RESULT_BOOL                ? TARE_BOOL
                             : op->kind == RESULT_FLOAT && integers ? TARE_FLOAT32
                                                                    : o.dtype;
    return tare__call_result(call, dtype, o.ndim, o.shape, NULL);
}

// --- computing ---

walk tare__walk(const tare_tensor *const *tensors, size_t count, int ndim, const int64_t *shape) {
    walk w = {.shape = shape, .run = 1, .outer_ndim = ndim, .count = count};
    const tare_tensor scalar = {0};
    for (size_t i = 0; i < count; i++)
        tare__broadcast_strides(tensors[i] != NULL ? tensors[i] : &scalar, ndim, shape,
                                w.stride[i]);
    // The run begins with the last dimension. An earlier dimension joins if all tensors continue
    // with the same step.
    while (w.outer_ndim > 0) {
        const int d = w.outer_ndim - 1;
        bool joins = true;
        for (size_t i = 0; i < count; i++) {
            const bool begins = w.run == 1 && w.stride[i][d] <= 1;
            const bool goes_on = w.stride[i][d] == w.step[i] * w.run;
            joins = joins && (shape[d] == 1 || begins || goes_on);
        }
        if (!joins) break;
        for (size_t i = 0; i < count && w.run == 1 && shape[d] > 1; i++) w.step[i] = w.stride[i][d];
        w.run *= shape[d];
        w.outer_ndim--;
    }
    return w;
}

int64_t tare__walk_at(const walk *w, int64_t at, int64_t end, int64_t *offset) {
    const int64_t within = at % w->run, left = w->run - within;
    for (size_t i = 0; i < w->count; i++)
        offset[i] = tare__strided_offset(w->outer_ndim, w->shape, w->stride[i], at / w->run) +
                    within * w->step[i];
    return left < end - at ? left : end - at;
}

double tare__operand_at(const operand *side, int64_t i) {
    return side->t != NULL ? tare__tensor_get(side->t, i) : side->number;
}

static bool is_float_work(const op_binary *op, const operands *o, const tare_tensor *y) {
    if (tare__binary_loop(op) == NULL || y->dtype != TARE_FLOAT32 || o->alpha != 1) return false;
    for (int i = 0; i < 2; i++)
        if (o->side[i].t != NULL && o->side[i].t->dtype != TARE_FLOAT32) return false;
    return true;
}

static void load_operand(const operand *side, int64_t first, int64_t step, int64_t count,
                         double *out) {
    if (side->t != NULL)
        tare__tensor_load(side->t, first, step, count, out);
    else
        for (int64_t i = 0; i < count; i++) out[i] = side->number;
}

// Elements of any dtype, in double. from: the offsets in the operands.
static void compute_exactly(const op_binary *op, const operands *o, const walk *w,
                            const int64_t *from, tare_tensor *y, int64_t at, int64_t count) {
    double a[PART_BLOCK], b[PART_BLOCK];
    for (int64_t done = 0, n; done < count; done += n) {
        n = count - done < PART_BLOCK ? count - done : PART_BLOCK;
        load_operand(&o->side[0], from[0] + done * w->step[0], w->step[0], n, a);
        load_operand(&o->side[1], from[1] + done * w->step[1], w->step[1], n, b);
        for (int64_t i = 0; o->alpha != 1 && i < n; i++) b[i] *= o->alpha;
        op->exact(a, b, a, n);
        tare__tensor_store(y, at + done, n, a);
    }
}

static void compute_floats(const op_binary *op, const operands *o, const walk *w,
                           const int64_t *offset, float *y, int64_t count) {
    const float numbers[] = {(float)o->side[0].number, (float)o->side[1].number};
    const float *from[2];
    for (int i = 0; i < 2; i++)
        from[i] = o->side[i].t != NULL ? tare__f32(o->side[i].t) + offset[i] : &numbers[i];
    tare__binary_loop(op)(from[0], w->step[0], from[1], w->step[1], y, count);
}

// Computes elements [first, end) of the result.
static tare_status binary_part(op_call *call, const op_binary *op, int64_t first, int64_t end) {
    operands o;
    TARE_TRY(read_operands(call, &o));
    tare_tensor *y = tare__call_out(call);
    const walk w =
        tare__walk((const tare_tensor *[]){o.side[0].t, o.side[1].t}, 2, o.ndim, o.shape);
    const bool floats = is_float_work(op, &o, y);
    for (int64_t at = first, count; at < end; at += count) {
        int64_t offset[2] = {0};
        count = tare__walk_at(&w, at, end, offset);
        if (floats)
            compute_floats(op, &o, &w, offset, tare__f32(y) + at, count);
        else
            compute_exactly(op, &o, &w, offset, y, at, count);
    }
    return TARE_OK;
}

// --- the functions ---

#define OPERATOR(name, kind, loop_or_null, result)                                                 \
    static const op_binary name##_op = {kind, loop_or_null, name##_exact, result};                 \
    static tare_status name##_shape(op_call *call) {                                               \
        return binary_shape(call, &name##_op);                                                     \
    }                                                                                              \
    static tare_status name##_part(op_call *call, int64_t first, int64_t end) {                    \
        return binary_part(call, &name##_op, first, end);                                          \
    }                                                                                              \
    static tare_status name##_parts(op_call *call, call_parts *out) {                              \
        return tare__element_parts(call, name##_part, out);                                        \
    }                                                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        return tare__run_parts(call, name##_parts);                                                \
    }
#define EXACT_LOOP(name, expression)                                                               \
    static void name##_exact(const double *p, const double *q, double *y, int64_t count) {         \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const double a = p[i], b = q[i];                                                       \
            y[i] = (expression);                                                                   \
        }                                                                                          \
    }
#define EXACT_AND(name, kind, loop_or_null, result, expression)                                    \
    EXACT_LOOP(name, expression)                                                                   \
    OPERATOR(name, kind, loop_or_null, result)
// Computed in double only: rarely hot, or no float result.
#define EXACT(name, result, expression) EXACT_AND(name, BINARY_OTHER, NULL, result, expression)
// With the float loop of core/math/binary.def.
#define PAIRED(name, kind, result, expression) EXACT_AND(name, kind, NULL, result, expression)
// With a float loop; separate cases for the steps let compilers vectorize.
#define FAST(name, result, expression)                                                             \
    static void name##_loop(const float *p, int64_t p_step, const float *q, int64_t q_step,        \
                            float *y, int64_t count) {                                             \
        if (p_step == 1 && q_step == 1)                                                            \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const float a = p[i], b = q[i];                                                    \
                y[i] = (expression);                                                               \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const float a = p[i * p_step], b = q[i * q_step];                                  \
                y[i] = (expression);                                                               \
            }                                                                                      \
    }                                                                                              \
    EXACT_AND(name, BINARY_OTHER, name##_loop, result, expression)

// Python's and torch's remainder has the sign of the divisor.
static double remainder_of(double a, double b) {
    const double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// log(exp(a) + exp(b)), shifted by the greater one.
static double log_of_sum(double a, double b) {
    const double top = a > b ? a : b;
    return isinf(a) && a == b ? a : top + tare__log1p(tare__exp(-fabs(a - b)));
}

PAIRED(add, BINARY_ADD, RESULT_COMMON, a + b)
PAIRED(sub, BINARY_SUB, RESULT_COMMON, a - b)
PAIRED(rsub, BINARY_RSUB, RESULT_COMMON, b - a)
PAIRED(mul, BINARY_MUL, RESULT_COMMON, a *b)
PAIRED(div, BINARY_DIV, RESULT_FLOAT, a / b)
FAST(maximum, RESULT_COMMON, a > b || a != a ? a : b)
FAST(minimum, RESULT_COMMON, a < b || a != a ? a : b)
EXACT(floor_divide, RESULT_COMMON, floor(a / b))
EXACT(remainder, RESULT_COMMON, remainder_of(a, b))
EXACT(eq, RESULT_BOOL, a == b)
EXACT(ne, RESULT_BOOL, a != b)
EXACT(lt, RESULT_BOOL, a < b)
EXACT(le, RESULT_BOOL, a <= b)
EXACT(gt, RESULT_BOOL, a > b)
EXACT(ge, RESULT_BOOL, a >= b)
EXACT(logical_and, RESULT_BOOL, a != 0 && b != 0)
EXACT(logical_or, RESULT_BOOL, a != 0 || b != 0)
EXACT(logical_xor, RESULT_BOOL, (a != 0) != (b != 0))
EXACT(trunc_divide, RESULT_COMMON, trunc(a / b))
EXACT(fmod, RESULT_COMMON, fmod(a, b))
EXACT(atan2, RESULT_FLOAT, atan2(a, b))
EXACT(fmax, RESULT_COMMON, fmax(a, b))
EXACT(fmin, RESULT_COMMON, fmin(a, b))
EXACT(hypot, RESULT_COMMON, sqrt(a *a + b * b))
EXACT(copysign, RESULT_FLOAT, copysign(a, b))
EXACT(heaviside, RESULT_COMMON, a != a ? a : a < 0 ? 0 : a > 0 ? 1 : b)
EXACT(xlogy, RESULT_FLOAT, b != b ? b : a == 0 ? 0 : a * tare__log(b))
EXACT(logaddexp, RESULT_COMMON, log_of_sum(a, b))

// Exponents for which torch has special code, and that code.
#define POWERS(POWER)                                                                              \
    POWER(2, a *a)                                                                                 \
    POWER(3, a *a *a)                                                                              \
    POWER(0.5F, sqrtf(a))                                                                          \
    POWER(-0.5F, 1 / sqrtf(a))                                                                     \
    POWER(-1, 1 / a)                                                                               \
    POWER(-2, 1 / (a * a))

static float power_of(float a, float b) {
#define POWER(exponent, result)                                                                    \
    if (b == (exponent)) return result;
    POWERS(POWER)
#undef POWER
    return (float)tare__pow((double)a, (double)b);
}

static void pow_loop(const float *p, int64_t p_step, const float *q, int64_t q_step, float *y,
                     int64_t count) {
#define POWER(exponent, result)                                                                    \
    if (p_step == 1 && q_step == 0 && *q == (exponent)) {                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const float a = p[i];                                                                  \
            y[i] = result;                                                                         \
        }                                                                                          \
        return;                                                                                    \
    }
    POWERS(POWER)
#undef POWER
    for (int64_t i = 0; i < count; i++) y[i] = power_of(p[i * p_step], q[i * q_step]);
}

EXACT_LOOP(pow, tare__pow(a, b))
OPERATOR(pow, BINARY_OTHER, pow_loop, RESULT_COMMON)

// Computes other - alpha * input.
static tare_status rsub_as_sub(op_call *call, bool compute) {
    op_call swapped = *call;
    swapped.param[0] = call->param[1];
    swapped.param[1] = call->param[0];
    swapped.op = tare__op_of_family(&tare__arithmetic_ops, "sub");
    const tare_status status = compute ? sub_reference(&swapped) : sub_shape(&swapped);
    call->result = swapped.result;
    return status;
}
static tare_status any_rsub_shape(op_call *call) {
    return tare__call_given(call, 2) ? rsub_as_sub(call, false) : rsub_shape(call);
}
static tare_status any_rsub_reference(op_call *call) {
    return tare__call_given(call, 2) ? rsub_as_sub(call, true) : rsub_reference(call);
}

// The variants of torch.div(a, b, rounding_mode=..).
typedef struct division {
    const char *mode;
    tare_status (*shape)(op_call *call);
    tare_status (*reference)(op_call *call);
    tare_status (*parts)(op_call *call, call_parts *out);
} division;

static tare_status choose_division(op_call *call, const division **out) {
    static const division divisions[] = {
        {"", div_shape, div_reference, div_parts},
        {"floor", floor_divide_shape, floor_divide_reference, floor_divide_parts},
        {"trunc", trunc_divide_shape, trunc_divide_reference, trunc_divide_parts}};
    const char *mode;
    TARE_TRY(tare__call_text(call, 2, "", &mode));
    for (size_t i = 0; i < sizeof divisions / sizeof *divisions; i++)
        if (strcmp(divisions[i].mode, mode) == 0) {
            *out = &divisions[i];
            return TARE_OK;
        }
    return tare__call_fail(call, "rounding_mode '%s' is not supported", mode);
}

static tare_status div_mode_shape(op_call *call) {
    const division *d = NULL;
    TARE_TRY(choose_division(call, &d));
    return d->shape(call);
}

static tare_status div_mode_parts(op_call *call, call_parts *out) {
    const division *d = NULL;
    TARE_TRY(choose_division(call, &d));
    return d->parts(call, out);
}

static tare_status div_mode_reference(op_call *call) {
    const division *d = NULL;
    TARE_TRY(choose_division(call, &d));
    return d->reference(call);
}

// Compares values such as strings and dtypes for equality. False for a tensor and for two numbers,
// which are left to the binary function.
static bool equal_at_once(op_call *call, bool *equal) {
    const value *a = call->param[0], *b = call->param[1];
    double number;
    if (a == NULL || b == NULL || a->kind == VALUE_TENSOR || b->kind == VALUE_TENSOR) return false;
    if (tare__value_number(a, &number) && tare__value_number(b, &number)) return false;
    *equal = tare__value_equal(a, b);
    return true;
}

static tare_status any_eq_shape(op_call *call) {
    bool equal;
    if (!equal_at_once(call, &equal)) return eq_shape(call);
    call->result = tare__bool(equal);
    return TARE_OK;
}

static tare_status any_ne_shape(op_call *call) {
    bool equal;
    if (!equal_at_once(call, &equal)) return ne_shape(call);
    call->result = tare__bool(!equal);
    return TARE_OK;
}

// --- Python's lists and tuples: [1] + [2], [1] * 3 ---

static bool is_sequence(const value *v) {
    return v != NULL && (v->kind == VALUE_LIST || v->kind == VALUE_TUPLE);
}

// Concatenates `times` copies of a, and b (NULL: none).
static tare_status join_sequences(op_call *call, const value *a, uint32_t times, const value *b) {
    const uint64_t count = (uint64_t)a->count * times + (b != NULL ? b->count : 0);
    if (count > VALUE_MOST_ITEMS) return tare__call_fail(call, "the sequence would be too long");
    const value joined = tare__value_sequence(call->memory, a->kind, (uint32_t)count);
    if (joined.as.items == NULL) return tare__out_of_memory(call->err);
    for (uint64_t i = 0; i < count; i++) {
        const bool of_a = i < (uint64_t)a->count * times;
        joined.as.items[i] =
            of_a ? a->as.items[i % a->count] : b->as.items[i - (uint64_t)a->count * times];
    }
    return tare__value_share(call->memory, &joined, &call->result, call->err);
}

static tare_status any_add_shape(op_call *call) {
    const value *a = call->param[0], *b = call->param[1];
    if (!is_sequence(a) || !is_sequence(b) || a->kind != b->kind) return add_shape(call);
    return join_sequences(call, a, 1, b);
}

static tare_status any_mul_shape(op_call *call) {
    const value *a = call->param[0], *b = call->param[1];
    if (is_sequence(b)) {
        a = call->param[1];
        b = call->param[0];
    }
    if (!is_sequence(a) || b == NULL || b->kind != VALUE_INT) return mul_shape(call);
    const int64_t times = b->as.integer;
    return join_sequences(call, a,
                          times < 0                  ? 0
                          : times > VALUE_MOST_ITEMS ? VALUE_MOST_ITEMS + 1
                                                     : (uint32_t)times,
                          NULL);
}

// --- rows ---

#define ATEN(name) "|torch.ops.aten." name
#define BINARY_BY(name, rule, names, method_names, parameters)                                     \
    {                                                                                              \
        .id = #name, .functions = names, .methods = method_names, .params = parameters,            \
        .traits = OP_ELEMENTWISE, .shape = rule, .reference = name##_reference,                    \
        .parts = name##_parts, .binary = &name##_op                                                \
    }
#define BINARY(name, names, method_names, parameters)                                              \
    BINARY_BY(name, name##_shape, names, method_names, parameters)
#define COMPARE(name, shape_rule)                                                                  \
    {                                                                                              \
        .id = #name,                                                                               \
        .functions =                                                                               \
            "operator." #name "|torch." #name ATEN(#name ".Scalar") ATEN(#name ".Tensor"),         \
        .methods = #name, .params = "input/self|other", .traits = OP_ELEMENTWISE,                  \
        .shape = shape_rule, .reference = name##_reference, .parts = name##_parts                  \
    }
#define OTHER "input/self|other"

// clang-format off
static const op_info rows[] = {
    BINARY_BY(add, any_add_shape, "torch.add|operator.add|operator.iadd" ATEN("add.Tensor") ATEN("add_.Tensor") ATEN("add.Scalar") ATEN("add_.Scalar"), "add|add_", "input/self|other|alpha"),
    BINARY(sub, "torch.sub|operator.sub|operator.isub|torch.subtract" ATEN("sub.Tensor") ATEN("sub_.Tensor") ATEN("sub.Scalar") ATEN("sub_.Scalar") ATEN("subtract.Tensor") ATEN("subtract.Scalar"), "sub|sub_|subtract", "input/self|other|alpha"),
    {.id = "rsub", .functions = "torch.rsub" ATEN("rsub.Scalar") ATEN("rsub.Tensor"), .params = "input/self|other|alpha", .traits = OP_ELEMENTWISE,
     .shape = any_rsub_shape, .reference = any_rsub_reference, .binary = &rsub_op},
    BINARY_BY(mul, any_mul_shape, "torch.mul|operator.mul|operator.imul|torch.multiply" ATEN("mul.Tensor") ATEN("mul_.Tensor") ATEN("mul.Scalar") ATEN("mul_.Scalar") ATEN("multiply.Tensor") ATEN("multiply_.Tensor") ATEN("multiply.Scalar"), "mul|mul_|multiply", OTHER),
    {.id = "div", .functions = "torch.div|operator.truediv|operator.itruediv|torch.true_divide|torch.divide" ATEN("div.Tensor") ATEN("div_.Tensor") ATEN("div.Scalar") ATEN("div.Tensor_mode") ATEN("div.Scalar_mode") ATEN("div_.Scalar") ATEN("div_.Tensor_mode") ATEN("divide.Tensor") ATEN("divide.Scalar") ATEN("divide.Tensor_mode") ATEN("true_divide.Tensor") ATEN("true_divide.Scalar"),
     .methods = "div|div_|divide|true_divide", .params = "input/self|other|rounding_mode", .traits = OP_ELEMENTWISE, .shape = div_mode_shape, .reference = div_mode_reference, .parts = div_mode_parts, .binary = &div_op},
    BINARY(floor_divide, "torch.floor_divide|operator.floordiv" ATEN("floor_divide.default") ATEN("floor_divide.Scalar"), "floor_divide", OTHER),
    BINARY(remainder, "torch.remainder|operator.mod|operator.imod" ATEN("remainder.Scalar") ATEN("remainder.Tensor"), "remainder", OTHER),
    BINARY(fmod, "torch.fmod" ATEN("fmod.Scalar") ATEN("fmod.Tensor"), "fmod", OTHER),
    BINARY(atan2, "torch.atan2|torch.arctan2" ATEN("atan2.default"), "atan2", OTHER),
    BINARY(pow, "torch.pow|operator.pow" ATEN("pow.Tensor_Scalar") ATEN("pow.Tensor_Tensor") ATEN("pow.Scalar"), "pow", "input/self|exponent/other"),
    BINARY(maximum, "torch.maximum" ATEN("maximum.default"), "maximum", OTHER),
    BINARY(fmax, "torch.fmax" ATEN("fmax.default"), "fmax", OTHER),
    BINARY(fmin, "torch.fmin" ATEN("fmin.default"), "fmin", OTHER),
    BINARY(hypot, "torch.hypot" ATEN("hypot.default"), "hypot", OTHER),
    BINARY(copysign, "torch.copysign" ATEN("copysign.Tensor") ATEN("copysign.Scalar"), "copysign", OTHER),
    BINARY(heaviside, "torch.heaviside" ATEN("heaviside.default"), "heaviside", "input/self|values/other"),
    BINARY(xlogy, "torch.xlogy|torch.special.xlogy" ATEN("xlogy.Tensor") ATEN("xlogy.Scalar_Other") ATEN("xlogy.Scalar_Self"), "xlogy", OTHER),
    BINARY(logaddexp, "torch.logaddexp" ATEN("logaddexp.default"), "logaddexp", OTHER),
    BINARY(minimum, "torch.minimum" ATEN("minimum.default"), "minimum", OTHER),
    COMPARE(eq, any_eq_shape),
    COMPARE(ne, any_ne_shape),
    COMPARE(lt, lt_shape),
    COMPARE(le, le_shape),
    COMPARE(gt, gt_shape),
    COMPARE(ge, ge_shape),
    BINARY(logical_and, "torch.logical_and" ATEN("logical_and.default"), "logical_and", OTHER),
    BINARY(logical_or, "torch.logical_or" ATEN("logical_or.default"), "logical_or", OTHER),
    BINARY(logical_xor, "torch.logical_xor" ATEN("logical_xor.default"), "logical_xor", OTHER),
};
// clang-format on

const op_table tare__arithmetic_ops = OP_TABLE(rows);
