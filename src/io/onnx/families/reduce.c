// SPDX-License-Identifier: Apache-2.0
// Reductions, norms, sorting and cumulative sums along a dimension, in ONNX.
#include <math.h>
#include <string.h>

#include "io/onnx/families/families.h"
#include "io/onnx/read/rules_common.h"

// --- reading ---

typedef struct reduction {
    value x;
    const tare_tensor *t;
    tare_dtype dtype;
    int64_t axes[TARE_MAX_DIMS];
    size_t count;
    bool keeps;
    bool is_nothing; // no axes, and noop_with_empty_axes is set
} reduction;

// `axes` became an input in opset 18, for ReduceSum in 13.
static tare_status read_reduction(onnx_call *c, int input_since, reduction *r) {
    bool given = false, noop = false;
    TARE_TRY(tare__onnx_need_input(c, 0, "data", &r->x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "data", &r->t));
    r->dtype = r->t->dtype;
    r->count = 0;
    TARE_TRY(tare__onnx_axes(c, input_since, 1, r->t->ndim, r->axes, &r->count, &given));
    TARE_TRY(tare__onnx_attr_bool(c, "keepdims", true, &r->keeps));
    if (tare__onnx_opset(c) >= input_since)
        TARE_TRY(tare__onnx_attr_bool(c, "noop_with_empty_axes", false, &noop));
    r->is_nothing = r->count == 0 && noop;
    for (int d = 0; r->count == 0 && !noop && d < r->t->ndim; d++) r->axes[d] = d;
    if (r->count == 0 && !noop) r->count = (size_t)r->t->ndim;
    return TARE_OK;
}

// f(x, axes, keepdim). A single axis is passed as an int. Output 0 has the input's dtype.
static tare_status apply(onnx_call *c, const reduction *r, bool is_method, const char *target,
                         const value *x, value *out) {
    value axes = tare__int(r->count > 0 ? r->axes[0] : 0);
    *out = *x;
    if (r->is_nothing || r->t->ndim == 0) return TARE_OK;
    if (r->count > 1) TARE_TRY(tare__onnx_ints(c, r->axes, r->count, &axes));
    const value args[] = {*x, axes};
    const keyword keepdim = {"keepdim", tare__bool(true)};
    const onnx_emit e = {.target = target,
                         .args = args,
                         .arg_count = 2,
                         .kwargs = &keepdim,
                         .kwarg_count = r->keeps ? 1 : 0};
    return is_method ? tare__onnx_method(c, &e, out) : tare__onnx_function(c, &e, out);
}

static tare_status reduce_by(onnx_call *c, int input_since, bool is_method, const char *target) {
    reduction r;
    value y;
    TARE_TRY(read_reduction(c, input_since, &r));
    const tare_dtype dtype = r.dtype;
    TARE_TRY(apply(c, &r, is_method, target, &r.x, &y));
    return tare__onnx_finish(c, &y, dtype);
}

static tare_status translate_reduce_sum(onnx_call *c) {
    return reduce_by(c, 13, false, "torch.sum");
}
static tare_status translate_reduce_max(onnx_call *c) {
    return reduce_by(c, 18, false, "torch.amax");
}
static tare_status translate_reduce_min(onnx_call *c) {
    return reduce_by(c, 18, false, "torch.amin");
}

// A mean over all spatial dimensions that keeps them is an adaptive pool; any other is
// x.mean(axes).
static bool is_global_pool(const reduction *r) {
    const int ndim = r->t->ndim;
    if (!r->keeps || ndim < 4 || ndim > 5 || r->count != (size_t)ndim - 2) return false;
    bool named[TARE_MAX_DIMS] = {false};
    for (size_t i = 0; i < r->count; i++) named[r->axes[i]] = true;
    for (int d = 2; d < ndim; d++)
        if (!named[d]) return false;
    return true;
}

static tare_status translate_reduce_mean(onnx_call *c) {
    reduction r;
    value y;
    TARE_TRY(read_reduction(c, 18, &r));
    const value args[] = {r.x, tare__int(1)};
    if (is_global_pool(&r) && r.dtype == TARE_FLOAT32)
        return tare__onnx_one(c,
                              r.t->ndim == 4 ? "torch.nn.functional.adaptive_avg_pool2d"
                                             : "torch.nn.functional.adaptive_avg_pool3d",
                              2, args);
    const tare_dtype dtype = r.dtype;
    TARE_TRY(apply(c, &r, true, "mean", &r.x, &y));
    return tare__onnx_finish(c, &y, dtype);
}

// torch.prod takes one dimension; starting with the last one keeps the indices of the others valid.
static tare_status translate_reduce_prod(onnx_call *c) {
    reduction r;
    value y;
    bool named[TARE_MAX_DIMS] = {false};
    TARE_TRY(read_reduction(c, 18, &r));
    const tare_dtype dtype = r.dtype;
    const int ndim = r.t->ndim;
    for (size_t i = 0; i < r.count; i++) named[r.axes[i]] = true;
    y = r.x;
    for (int d = ndim - 1; d >= 0 && !r.is_nothing; d--)
        if (named[d])
            TARE_TRY(ONNX_CALL(c, &y, "torch.prod", y, tare__int(d), tare__bool(r.keeps)));
    return tare__onnx_finish(c, &y, dtype);
}

// --- norms and logarithms, from the sums ---

typedef enum around { AROUND_NOTHING, MAGNITUDES, SQUARES } around;

static tare_status reduce_around(onnx_call *c, around before, const char *after) {
    reduction r;
    value x, y;
    TARE_TRY(read_reduction(c, 18, &r));
    const tare_dtype dtype = r.dtype;
    x = r.x;
    if (before == MAGNITUDES) TARE_TRY(ONNX_CALL(c, &x, "torch.abs", x));
    if (before == SQUARES) TARE_TRY(ONNX_CALL(c, &x, "operator.mul", x, x));
    TARE_TRY(apply(c, &r, false, "torch.sum", &x, &y));
    if (after != NULL) TARE_TRY(ONNX_CALL(c, &y, after, y));
    return tare__onnx_finish(c, &y, dtype);
}

static tare_status translate_reduce_l1(onnx_call *c) {
    return reduce_around(c, MAGNITUDES, NULL);
}
static tare_status translate_reduce_l2(onnx_call *c) {
    return reduce_around(c, SQUARES, "torch.sqrt");
}
static tare_status translate_reduce_sum_square(onnx_call *c) {
    return reduce_around(c, SQUARES, NULL);
}
static tare_status translate_reduce_log_sum(onnx_call *c) {
    return reduce_around(c, AROUND_NOTHING, "torch.log");
}
static tare_status translate_reduce_log_sum_exp(onnx_call *c) {
    return reduce_by(c, 18, false, "torch.logsumexp");
}

static const onnx_rule read_rows[] = {
    {"ReduceL1", .translate = translate_reduce_l1},
    {"ReduceL2", .translate = translate_reduce_l2},
    {"ReduceLogSum", .translate = translate_reduce_log_sum},
    {"ReduceLogSumExp", .translate = translate_reduce_log_sum_exp},
    {"ReduceMax", .translate = translate_reduce_max},
    {"ReduceMean", .translate = translate_reduce_mean},
    {"ReduceMin", .translate = translate_reduce_min},
    {"ReduceProd", .translate = translate_reduce_prod},
    {"ReduceSum", .translate = translate_reduce_sum},
    {"ReduceSumSquare", .translate = translate_reduce_sum_square},
};

// --- writing ---

typedef struct reduced_dims {
    int64_t axes[TARE_MAX_DIMS];
    size_t count;
    bool keeps;
} reduced_dims;

// An empty list means all dimensions.
static reduced_dims read_dims(onnx_out *o, size_t dims, size_t keepdim) {
    const tare_tensor *x = tare__out_meta(o, 0);
    reduced_dims r = {.count = 0};
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
    const reduced_dims r = read_dims(o, 1, 2);
    const tare_tensor *y = tare__out_result_meta(o);
    const char *x = tare__out_operand(o, 0, y->q != NULL ? TARE_FLOAT32 : y->dtype);
    tare__out_result(o,
                     r.count == 0 ? x : tare__out_reduce(o, op_type, x, r.axes, r.count, r.keeps));
}
static void write_mean(onnx_out *o) {
    reduce(o, "ReduceMean");
}
static void write_sum(onnx_out *o) {
    reduce(o, "ReduceSum");
}
static void write_amax(onnx_out *o) {
    reduce(o, "ReduceMax");
}
static void write_amin(onnx_out *o) {
    reduce(o, "ReduceMin");
}
static void write_prod(onnx_out *o) {
    reduce(o, "ReduceProd");
}
static void write_logsumexp(onnx_out *o) {
    reduce(o, "ReduceLogSumExp");
}

// ONNX reduces bools only from opset 20 on, so they are converted to integers.
static void quantifier(onnx_out *o, const char *op_type) {
    const reduced_dims r = read_dims(o, 1, 2);
    const char *x = tare__out_operand(o, 0, TARE_BOOL);
    x = tare__out_cast(o, x, TARE_BOOL, TARE_INT32);
    x = tare__out_reduce(o, op_type, x, r.axes, r.count, r.keeps);
    tare__out_result(o, tare__out_cast(o, x, TARE_INT32, tare__out_result_meta(o)->dtype));
}
static void write_any(onnx_out *o) {
    quantifier(o, "ReduceMax");
}
static void write_all(onnx_out *o) {
    quantifier(o, "ReduceMin");
}

// --- spread ---

static const char *variance(onnx_out *o) {
    const tare_tensor *t = tare__out_meta(o, 0), *other = NULL;
    const reduced_dims r = read_dims(o, 1, 2);
    double correction = tare__out_bool(o, 3, true) ? 1 : 0, count = 1;
    if (tare__out_given(o, 4)) correction = tare__out_double(o, 4, 1);
    other = tare__out_result_other(o);
    for (size_t i = 0; i < r.count; i++) {
        count *= (double)t->shape[r.axes[i]];
        if (r.axes[i] == 0 && other != NULL && correction != 0)
            tare__out_refuse(o, "a correction that depends on the batch size is not written");
    }
    const char *x = tare__out_input(o, 0);
    const char *centered =
        OUT(o, "Sub", x, tare__out_reduce(o, "ReduceMean", x, r.axes, r.count, true));
    const char *y = tare__out_reduce(o, "ReduceMean", OUT(o, "Mul", centered, centered), r.axes,
                                     r.count, r.keeps);
    if (correction == 0) return y;
    return OUT(o, "Mul", y, tare__out_number(o, TARE_FLOAT32, count / (count - correction)));
}
static void write_var(onnx_out *o) {
    tare__out_result(o, variance(o));
}
static void write_std(onnx_out *o) {
    tare__out_result(o, OUT(o, "Sqrt", variance(o)));
}

static void write_vector_norm(onnx_out *o) {
    const reduced_dims r = read_dims(o, 2, 3);
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

// --- indices of extremes ---

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
static void write_argmax(onnx_out *o) {
    arg(o, "ArgMax");
}
static void write_argmin(onnx_out *o) {
    arg(o, "ArgMin");
}

// max(x), max(x, other) and max(x, dim).
static void extreme(onnx_out *o, const char *binary, const char *reduces, const char *arg_type) {
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
        const reduced_dims r = read_dims(o, 1, 2);
        tare__out_result(
            o, tare__out_reduce(o, reduces, tare__out_input(o, 0), r.axes, r.count, false));
        return;
    }
    const int64_t axis = tare__out_dim(o, 1, 0, t->ndim);
    const bool keeps = tare__out_bool(o, 2, false);
    const char *x = tare__out_input(o, 0);
    tare__out_result_item(o, 0, tare__out_reduce(o, reduces, x, &axis, 1, keeps));
    tare__out_result_item(o, 1, arg_of(o, arg_type, x, axis, keeps));
}
static void write_greatest(onnx_out *o) {
    extreme(o, "Max", "ReduceMax", "ArgMax");
}
static void write_least(onnx_out *o) {
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

static void write_topk(onnx_out *o) {
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
        tare__out_refuse(o, "sorting along the batch is not written");
    if (!tare__out_failed(o))
        top(o, t->ndim > 0 ? t->shape[axis] : 1, axis, tare__out_bool(o, 2, false), true, both);
}

static void write_sort(onnx_out *o) {
    const char *both[2];
    sorted(o, both);
    tare__out_result_item(o, 0, both[0]);
    tare__out_result_item(o, 1, both[1]);
}

static void write_argsort(onnx_out *o) {
    const char *both[2];
    sorted(o, both);
    tare__out_result(o, both[1]);
}

// --- along a dimension ---

static void write_cumsum(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_meta(o, 0)->ndim);
    const tare_tensor *y = tare__out_result_meta(o);
    tare__out_result(o, OUT(o, "CumSum", tare__out_operand(o, 0, y->dtype),
                            tare__out_number(o, TARE_INT64, (double)axis)));
}

static void triangle(onnx_out *o, bool is_upper) {
    const tare_tensor *t = tare__out_meta(o, 0);
    if (tare__out_opset(o) < 14) tare__out_refuse(o, "Trilu comes with opset 14");
    const char *y = OUT(o, "Trilu", tare__out_quantized(o, t),
                        tare__out_number(o, TARE_INT64, (double)tare__out_int(o, 1, 0)));
    tare__out_attr_int(o, "upper", is_upper);
    tare__out_result(o, y);
}
static void write_tril(onnx_out *o) {
    triangle(o, false);
}
static void write_triu(onnx_out *o) {
    triangle(o, true);
}

static const onnx_write_rule write_rows[] = {
    {"all", "ReduceMin", .write = write_all},
    {"amax", "ReduceMax", .write = write_amax},
    {"amin", "ReduceMin", .write = write_amin},
    {"any", "ReduceMax", .write = write_any},
    {"argmax", "ArgMax", .write = write_argmax},
    {"argmin", "ArgMin", .write = write_argmin},
    {"argsort", "TopK", .write = write_argsort},
    {"cumsum", "CumSum", .write = write_cumsum},
    {"logsumexp", "ReduceLogSumExp", .write = write_logsumexp},
    {"max", "Max, ReduceMax, ArgMax", .write = write_greatest},
    {"mean", "ReduceMean", .write = write_mean},
    {"min", "Min, ReduceMin, ArgMin", .write = write_least},
    {"prod", "ReduceProd", .write = write_prod},
    {"sort", "TopK", .write = write_sort},
    {"std", "ReduceMean, Sqrt", .write = write_std},
    {"sum", "ReduceSum", .write = write_sum},
    {"topk", "TopK", .write = write_topk},
    {"tril", "Trilu", 14, .write = write_tril},
    {"triu", "Trilu", 14, .write = write_triu},
    {"var", "ReduceMean", .write = write_var},
    {"vector_norm", "ReduceL1, ReduceL2", .write = write_vector_norm},
};

const onnx_family tare__onnx_reduce_family = {.read = ONNX_RULES(read_rows),
                                              .write = ONNX_WRITE_RULES(write_rows)};
