// SPDX-License-Identifier: Apache-2.0
// Tensors created from numbers: constants, ranges, identity matrices.
#include <math.h>

#include "ops/families/families.h"
#include "ops/rules.h"

static tare_status fill_all(op_call *call, double number) {
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++) tare__tensor_set(y, i, number);
    return TARE_OK;
}

// --- full, zeros, ones ---

// The dtype of a number if none is given.
static tare_dtype dtype_of(const value *v) {
    if (v == NULL) return TARE_FLOAT32;
    if (v->kind == VALUE_TENSOR) return v->as.tensor->dtype;
    const value *stored = v->kind == VALUE_SCALAR ? &v->as.items[0] : v;
    return stored->kind == VALUE_BOOL  ? TARE_BOOL
           : stored->kind == VALUE_INT ? TARE_INT64
                                       : TARE_FLOAT32;
}

static tare_status filled_shape(op_call *call) {
    int64_t shape[TARE_MAX_DIMS];
    size_t ndim = 0;
    tare_dtype dtype;
    const size_t fill = tare__op_param_index(call->op, "fill_value");
    if (call->param[0] != NULL) TARE_TRY(tare__call_int_list(call, 0, TARE_MAX_DIMS, shape, &ndim));
    TARE_TRY(tare__call_dtype(call, tare__op_param_index(call->op, "dtype"),
                              fill < call->param_count ? dtype_of(call->param[fill]) : TARE_FLOAT32,
                              &dtype));
    return tare__call_result(call, dtype, (int)ndim, shape, NULL);
}

// zeros_like and similar: the shape of the first parameter, and its dtype unless one is given.
static tare_status like_shape(op_call *call) {
    const tare_tensor *x;
    tare_dtype dtype;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_dtype(call, tare__op_param_index(call->op, "dtype"), x->dtype, &dtype));
    if (tare__dtype(dtype)->is_quantized)
        return tare__call_fail(call, "has no form for %s", tare_dtype_name(dtype));
    return tare__call_result(call, dtype, x->ndim, x->shape, NULL);
}

static tare_status full_reference(op_call *call) {
    double number;
    const size_t fill = tare__op_param_index(call->op, "fill_value");
    if (!tare__call_given(call, fill)) return tare__call_fail(call, "fill_value is missing");
    TARE_TRY(tare__call_double(call, fill, 0, &number));
    return fill_all(call, number);
}
static tare_status zeros_reference(op_call *call) {
    return fill_all(call, 0);
}
static tare_status ones_reference(op_call *call) {
    return fill_all(call, 1);
}

// x.new_zeros(*size): x gives the dtype.
static tare_status new_shape(op_call *call) {
    const tare_tensor *x;
    int64_t shape[TARE_MAX_DIMS];
    size_t ndim = 0;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (call->param[1] != NULL) TARE_TRY(tare__call_int_list(call, 1, TARE_MAX_DIMS, shape, &ndim));
    tare_dtype dtype;
    TARE_TRY(tare__call_dtype(call, tare__op_param_index(call->op, "dtype"), x->dtype, &dtype));
    return tare__call_result(call, dtype, (int)ndim, shape, NULL);
}

// --- arange ---

typedef struct range {
    double start, end, step;
    bool is_float;
    int64_t count;
} range;

// arange(end), arange(start, end), arange(start, end, step)
static tare_status read_range(op_call *call, range *r) {
    *r = (range){.step = 1};
    const bool has_end = tare__call_given(call, 1);
    TARE_TRY(tare__call_double(call, 0, 0, has_end ? &r->start : &r->end));
    if (has_end) TARE_TRY(tare__call_double(call, 1, 0, &r->end));
    TARE_TRY(tare__call_double(call, 2, 1, &r->step));
    for (size_t i = 0; i < 3; i++)
        r->is_float = r->is_float || (tare__call_given(call, i) &&
                                      tare__dtype(dtype_of(call->param[i]))->is_float);
    const double count = ceil((r->end - r->start) / r->step);
    if (r->step == 0 || !(count < 0x1p40))
        return tare__call_fail(call, "a range from %g to %g by %g is out of range", r->start,
                               r->end, r->step);
    r->count = count > 0 ? (int64_t)count : 0;
    return TARE_OK;
}

static tare_status arange_shape(op_call *call) {
    range r;
    tare_dtype dtype;
    TARE_TRY(read_range(call, &r));
    TARE_TRY(tare__call_dtype(call, tare__op_param_index(call->op, "dtype"),
                              r.is_float ? TARE_FLOAT32 : TARE_INT64, &dtype));
    return tare__call_result(call, dtype, 1, &r.count, NULL);
}

static tare_status arange_reference(op_call *call) {
    range r;
    TARE_TRY(read_range(call, &r));
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++) tare__tensor_set(y, i, r.start + (double)i * r.step);
    return TARE_OK;
}

// --- linspace(start, end, steps) ---

static tare_status linspace_shape(op_call *call) {
    int64_t steps;
    tare_dtype dtype;
    TARE_TRY(tare__call_int(call, 2, 0, &steps));
    if (steps < 0)
        return tare__call_fail(call, "steps must not be negative, found %lld", (long long)steps);
    TARE_TRY(tare__call_dtype(call, tare__op_param_index(call->op, "dtype"), TARE_FLOAT32, &dtype));
    if (dtype != TARE_FLOAT32 && dtype != TARE_FLOAT64)
        return tare__call_fail(call, "has no form for %s", tare_dtype_name(dtype));
    return tare__call_result(call, dtype, 1, &steps, NULL);
}

// As in torch, values are computed in the result's dtype: from the start in the first half, and
// from the end in the second.
static tare_status linspace_reference(op_call *call) {
    double start, end;
    TARE_TRY(tare__call_double(call, 0, 0, &start));
    TARE_TRY(tare__call_double(call, 1, 0, &end));
    tare_tensor *y = tare__call_out(call);
    const int64_t last = y->count - 1;
    const bool is_float = y->dtype == TARE_FLOAT32;
    const float low = (float)start, high = (float)end, step = (high - low) / (float)last;
    for (int64_t i = 0; i < y->count; i++) {
        const bool from_start = i < y->count / 2 || last == 0;
        const int64_t steps = last == 0 ? 0 : from_start ? i : last - i;
        const float moved = steps > 0 ? step * (float)steps : 0;
        const double exact = steps > 0 ? (end - start) / (double)last * (double)steps : 0;
        if (is_float)
            tare__tensor_set(y, i, from_start ? low + moved : high - moved);
        else
            tare__tensor_set(y, i, from_start ? start + exact : end - exact);
    }
    return TARE_OK;
}

// --- eye ---

static tare_status eye_shape(op_call *call) {
    int64_t shape[2];
    tare_dtype dtype;
    TARE_TRY(tare__call_int(call, 0, 0, &shape[0]));
    TARE_TRY(tare__call_int(call, 1, shape[0], &shape[1]));
    TARE_TRY(tare__call_dtype(call, tare__op_param_index(call->op, "dtype"), TARE_FLOAT32, &dtype));
    return tare__call_result(call, dtype, 2, shape, NULL);
}

static tare_status eye_reference(op_call *call) {
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->shape[0] && i < y->shape[1]; i++)
        tare__tensor_set(y, i * y->shape[1] + i, 1);
    return TARE_OK;
}

// --- rows ---

#define ATEN(text)      "torch.ops.aten." text " "
#define ATEN_NAME(name) "torch.ops.aten." name ".default"
#define REST            "dtype|layout|device|requires_grad|pin_memory"
#define ROW(name, method_names, parameters, rule, function)                                        \
    ROW_WITH(name, NULL, method_names, parameters, rule, function)
#define ROW_WITH(name, more, method_names, parameters, rule, function)                             \
    {                                                                                              \
        .id = #name, .functions = "torch." #name "|torch.ops.aten." #name ".default",              \
        .overloads = more, .methods = method_names, .params = parameters, .shape = rule,           \
        .reference = function                                                                      \
    }
#define LIKE(name, more, parameters, function)                                                     \
    {                                                                                              \
        .id = #name, .functions = "torch." #name "|torch.ops.aten." #name ".default",              \
        .overloads = more, .params = "input/self|" parameters REST "|memory_format",               \
        .traits = OP_BLIND_TO_FIRST, .shape = like_shape, .reference = function                    \
    }
#define NEW(name, functions_of, parameters, function)                                              \
    {                                                                                              \
        .id = name, .functions = functions_of, .methods = name,                                    \
        .params = "input/self|" parameters "|" REST, .traits = OP_BLIND_TO_FIRST,                  \
        .shape = new_shape, .reference = function                                                  \
    }

// clang-format off
static const op_info rows[] = {
    ROW_WITH(zeros, ATEN("empty.memory_format") ATEN("empty_strided.default(-stride)") "torch.ops.aten.empty_permuted.default(-physical_layout)", NULL, "*size|" REST "|memory_format", filled_shape, zeros_reference),
    ROW(ones, NULL, "*size|" REST, filled_shape, ones_reference),
    ROW_WITH(full, "torch.tensor(fill_value) torch.ops.aten.scalar_tensor.default", NULL, "size|fill_value/s|" REST, filled_shape, full_reference),
    LIKE(zeros_like, ATEN("empty_like.default") ATEN("zero.default") "torch.ops.aten.zero_.default", "", zeros_reference),
    LIKE(ones_like, NULL, "", ones_reference),
    // There are no random numbers: a sample is replaced by its expectation, like dropout.
    LIKE(full_like, ATEN("fill.Scalar") ATEN("fill_.Scalar") ATEN("fill.Tensor")
         ATEN("fill_.Tensor") ATEN("bernoulli.p(-generator)") "torch.ops.aten.bernoulli_.float(-generator)", "fill_value/value/p|", full_reference),
    ROW_WITH(arange, ATEN("arange.start") "torch.ops.aten.arange.start_step", NULL, "start|end|step|" REST, arange_shape, arange_reference),
    ROW(linspace, NULL, "start|end|steps|" REST, linspace_shape, linspace_reference),
    ROW(eye, NULL, "n|m|" REST, eye_shape, eye_reference),
    {.id = "new_zeros", .functions = ATEN_NAME("new_zeros") "|" ATEN_NAME("new_empty"), .overloads = "torch.ops.aten.new_empty_strided.default(-stride)", .methods = "new_zeros",
     .params = "input/self|*size|" REST, .traits = OP_BLIND_TO_FIRST, .shape = new_shape, .reference = zeros_reference},
    NEW("new_ones", ATEN_NAME("new_ones"), "*size", ones_reference),
    NEW("new_full", ATEN_NAME("new_full"), "size|fill_value", full_reference),
};
// clang-format on

const op_table tare__create_ops = OP_TABLE(rows);
