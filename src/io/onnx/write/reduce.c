// SPDX-License-Identifier: Apache-2.0
// Reductions, orders and sums along a dimension as ONNX.
#include <math.h>

#include "io/onnx/write/rules.h"

typedef struct reduction {
    int64_t axes[TARE_MAX_DIMS];
    size_t count;
    bool keeps;
} reduction;

// No dimensions are all of them.
static reduction read_reduction(onnx_out *o, size_t dims, size_t keepdim) {
    const tare_tensor *x = tare__out_meta(o, 0);
    reduction r = {.count = 0};
    if (tare__out_given(o, dims))
        tare__out_try(
            o, tare__call_int_list(tare__out_call(o), dims, TARE_MAX_DIMS, r.axes, &r.count));
    for (int d = 0; d < x->ndim && r.count < (size_t)x->ndim && !tare__out_given(o, dims); d++)
        r.axes[r.count++] = d;
    if (r.count == 0)
        for (int d = 0; d < x->ndim; d++) r.axes[r.count++] = d;
    for (size_t i = 0; i < r.count; i++)
        if (r.axes[i] < 0) r.axes[i] += x->ndim;
    r.keeps = tare__out_bool(o, keepdim, false);
    return r;
}

static void reduce(onnx_out *o, const char *op_type) {
    const reduction r = read_reduction(o, 1, 2);
    const tare_tensor *y = tare__out_result_meta(o);
    const char *x = tare__out_operand(o, 0, y->q != NULL ? TARE_FLOAT32 : y->dtype);
    tare__out_result(o,
                     r.count == 0 ? x : tare__out_reduce(o, op_type, x, r.axes, r.count, r.keeps));
}
static void mean(onnx_out *o) {
    reduce(o, "ReduceMean");
}
static void sum(onnx_out *o) {
    reduce(o, "ReduceSum");
}
static void amax(onnx_out *o) {
    reduce(o, "ReduceMax");
}
static void amin(onnx_out *o) {
    reduce(o, "ReduceMin");
}
static void prod(onnx_out *o) {
    reduce(o, "ReduceProd");
}
static void logsumexp(onnx_out *o) {
    reduce(o, "ReduceLogSumExp");
}

// As integers: ONNX reduces no bools before opset 20.
static void quantifier(onnx_out *o, const char *op_type) {
    const reduction r = read_reduction(o, 1, 2);
    const char *x = tare__out_operand(o, 0, TARE_BOOL);
    x = tare__out_cast(o, x, TARE_BOOL, TARE_INT32);
    x = tare__out_reduce(o, op_type, x, r.axes, r.count, r.keeps);
    tare__out_result(o, tare__out_cast(o, x, TARE_INT32, tare__out_result_meta(o)->dtype));
}
static void any(onnx_out *o) {
    quantifier(o, "ReduceMax");
}
static void all(onnx_out *o) {
    quantifier(o, "ReduceMin");
}

// --- spread ---

static const char *variance(onnx_out *o) {
    const tare_tensor *t = tare__out_meta(o, 0), *other = NULL;
    const reduction r = read_reduction(o, 1, 2);
    double correction = tare__out_bool(o, 3, true) ? 1 : 0, count = 1;
    if (tare__out_given(o, 4)) correction = tare__out_double(o, 4, 1);
    other = tare__out_result_other(o);
    for (size_t i = 0; i < r.count; i++) {
        count *= (double)t->shape[r.axes[i]];
        if (r.axes[i] == 0 && other != NULL && correction != 0)
            tare__out_refuse(o, "a correction that depends on the batch");
    }
    const char *x = tare__out_input(o, 0);
    const char *centered =
        OUT(o, "Sub", x, tare__out_reduce(o, "ReduceMean", x, r.axes, r.count, true));
    const char *y = tare__out_reduce(o, "ReduceMean", OUT(o, "Mul", centered, centered), r.axes,
                                     r.count, r.keeps);
    if (correction == 0) return y;
    return OUT(o, "Mul", y, tare__out_number(o, TARE_FLOAT32, count / (count - correction)));
}
static void var(onnx_out *o) {
    tare__out_result(o, variance(o));
}
static void std(onnx_out *o) {
    tare__out_result(o, OUT(o, "Sqrt", variance(o)));
}

static void vector_norm(onnx_out *o) {
    const reduction r = read_reduction(o, 2, 3);
    const double order = tare__out_double(o, 1, 2);
    const char *x = tare__out_input(o, 0);
    if (isinf(order))
        tare__out_result(o, tare__out_reduce(o, order > 0 ? "ReduceMax" : "ReduceMin",
                                             OUT(o, "Abs", x), r.axes, r.count, r.keeps));
    else if (order == 1 || order == 2)
        tare__out_result(o, tare__out_reduce(o, order == 1 ? "ReduceL1" : "ReduceL2", x, r.axes,
                                             r.count, r.keeps));
    else
        tare__out_refuse(o, "a norm of order %g has no ReduceL operator", order);
}

// --- places ---

static const char *arg_of(onnx_out *o, const char *op_type, const char *x, int64_t axis,
                          bool keeps) {
    const char *y = OUT(o, op_type, x);
    tare__out_attr_int(o, "axis", axis);
    tare__out_attr_int(o, "keepdims", keeps);
    return y;
}

static void arg(onnx_out *o, const char *op_type) {
    const tare_tensor *t = tare__out_meta(o, 0);
    const char *x = tare__out_input(o, 0);
    const int64_t all_of_them = -1;
    if (!tare__out_given(o, 1)) {
        const char *flat = tare__out_reshape(o, x, &all_of_them, 1);
        const char *y = arg_of(o, op_type, flat, 0, false);
        int64_t ones[TARE_MAX_DIMS];
        for (int d = 0; d < t->ndim; d++) ones[d] = 1;
        if (tare__out_bool(o, 2, false)) y = tare__out_reshape(o, y, ones, (size_t)t->ndim);
        tare__out_result(o, y);
        return;
    }
    const int64_t axis = tare__out_dim(o, 1, 0, t->ndim);
    tare__out_result(o, arg_of(o, op_type, x, axis, tare__out_bool(o, 2, false)));
}
static void argmax(onnx_out *o) {
    arg(o, "ArgMax");
}
static void argmin(onnx_out *o) {
    arg(o, "ArgMin");
}

// max(x), max(x, other) and max(x, dim).
static void extreme(onnx_out *o, const char *binary, const char *reduces, const char *place) {
    const op_call *call = tare__out_call(o);
    const tare_tensor *t = tare__out_meta(o, 0);
    if (tare__out_given(o, 1) && call->param[1]->kind == VALUE_TENSOR &&
        call->result.kind == VALUE_TENSOR) {
        const tare_tensor *y = tare__out_result_meta(o);
        const tare_dtype dtype = y->q != NULL ? TARE_FLOAT32 : y->dtype;
        tare__out_result(
            o, OUT(o, binary, tare__out_operand(o, 0, dtype), tare__out_operand(o, 1, dtype)));
        return;
    }
    if (!tare__out_given(o, 1)) {
        const reduction r = read_reduction(o, 1, 2);
        tare__out_result(
            o, tare__out_reduce(o, reduces, tare__out_input(o, 0), r.axes, r.count, false));
        return;
    }
    const int64_t axis = tare__out_dim(o, 1, 0, t->ndim);
    const bool keeps = tare__out_bool(o, 2, false);
    const char *x = tare__out_input(o, 0);
    tare__out_result_item(o, 0, tare__out_reduce(o, reduces, x, &axis, 1, keeps));
    tare__out_result_item(o, 1, arg_of(o, place, x, axis, keeps));
}
static void greatest(onnx_out *o) {
    extreme(o, "Max", "ReduceMax", "ArgMax");
}
static void least(onnx_out *o) {
    extreme(o, "Min", "ReduceMin", "ArgMin");
}

// --- orders ---

static void top(onnx_out *o, int64_t k, int64_t axis, bool is_largest, bool is_sorted,
                const char *both[2]) {
    OUT(o, "TopK", tare__out_input(o, 0), tare__out_ints(o, &k, 1));
    tare__out_outputs(o, 2, both);
    tare__out_attr_int(o, "axis", axis);
    tare__out_attr_int(o, "largest", is_largest);
    tare__out_attr_int(o, "sorted", is_sorted);
}

static void topk(onnx_out *o) {
    const char *both[2];
    const int ndim = tare__out_meta(o, 0)->ndim;
    top(o, tare__out_int(o, 1, 1), tare__out_dim(o, 2, -1, ndim), tare__out_bool(o, 3, true),
        tare__out_bool(o, 4, true), both);
    tare__out_result_item(o, 0, both[0]);
    tare__out_result_item(o, 1, both[1]);
}

static void sorted(onnx_out *o, const char *both[2]) {
    const tare_tensor *t = tare__out_meta(o, 0);
    const int64_t axis = tare__out_dim(o, 1, -1, t->ndim);
    both[0] = both[1] = "";
    if (axis == 0 && tare__out_result_other(o) != NULL)
        tare__out_refuse(o, "an order of the batch is not written");
    if (!tare__out_failed(o))
        top(o, t->ndim > 0 ? t->shape[axis] : 1, axis, tare__out_bool(o, 2, false), true, both);
}

static void sort(onnx_out *o) {
    const char *both[2];
    sorted(o, both);
    tare__out_result_item(o, 0, both[0]);
    tare__out_result_item(o, 1, both[1]);
}

static void argsort(onnx_out *o) {
    const char *both[2];
    sorted(o, both);
    tare__out_result(o, both[1]);
}

// --- along a dimension ---

static void cumsum(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_meta(o, 0)->ndim);
    const tare_tensor *y = tare__out_result_meta(o);
    tare__out_result(o, OUT(o, "CumSum", tare__out_operand(o, 0, y->dtype),
                            tare__out_number(o, TARE_INT64, (double)axis)));
}

static void triangle(onnx_out *o, bool is_upper) {
    const tare_tensor *t = tare__out_meta(o, 0);
    if (tare__out_opset(o) < 14) tare__out_refuse(o, "Trilu comes with opset 14");
    const char *y = OUT(o, "Trilu", tare__out_codes(o, t),
                        tare__out_number(o, TARE_INT64, (double)tare__out_int(o, 1, 0)));
    tare__out_attr_int(o, "upper", is_upper);
    tare__out_result(o, y);
}
static void tril(onnx_out *o) {
    triangle(o, false);
}
static void triu(onnx_out *o) {
    triangle(o, true);
}

static const onnx_write_rule rows[] = {
    {"all", "ReduceMin", .write = all},
    {"amax", "ReduceMax", .write = amax},
    {"amin", "ReduceMin", .write = amin},
    {"any", "ReduceMax", .write = any},
    {"argmax", "ArgMax", .write = argmax},
    {"argmin", "ArgMin", .write = argmin},
    {"argsort", "TopK", .write = argsort},
    {"cumsum", "CumSum", .write = cumsum},
    {"logsumexp", "ReduceLogSumExp", .write = logsumexp},
    {"max", "Max, ReduceMax, ArgMax", .write = greatest},
    {"mean", "ReduceMean", .write = mean},
    {"min", "Min, ReduceMin, ArgMin", .write = least},
    {"prod", "ReduceProd", .write = prod},
    {"sort", "TopK", .write = sort},
    {"std", "ReduceMean, Sqrt", .write = std},
    {"sum", "ReduceSum", .write = sum},
    {"topk", "TopK", .write = topk},
    {"tril", "Trilu", 14, .write = tril},
    {"triu", "Trilu", 14, .write = triu},
    {"var", "ReduceMean", .write = var},
    {"vector_norm", "ReduceL1, ReduceL2", .write = vector_norm},
};

const onnx_write_table tare__onnx_write_reduce_rules = ONNX_WRITE_RULES(rows);
