// SPDX-License-Identifier: Apache-2.0
// ONNX reductions.
#include <string.h>

#include "io/onnx/read/rules_common.h"

typedef struct reduction {
    value x;
    const tare_tensor *t;
    tare_dtype dtype;
    int64_t axes[TARE_MAX_DIMS];
    size_t count;
    bool keeps;
    bool is_nothing; // no axes, and the file asks for none
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

// f(x, axes, keepdim); one axis is a plain int. Output 0 has the input's dtype.
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

static tare_status reduce_sum(onnx_call *c) {
    return reduce_by(c, 13, false, "torch.sum");
}
static tare_status reduce_max(onnx_call *c) {
    return reduce_by(c, 18, false, "torch.amax");
}
static tare_status reduce_min(onnx_call *c) {
    return reduce_by(c, 18, false, "torch.amin");
}

// What averages whole images and keeps their dimensions is a pool, and x.mean(axes) everything
// else.
static bool is_global_pool(const reduction *r) {
    const int ndim = r->t->ndim;
    if (!r->keeps || ndim < 4 || ndim > 5 || r->count != (size_t)ndim - 2) return false;
    bool named[TARE_MAX_DIMS] = {false};
    for (size_t i = 0; i < r->count; i++) named[r->axes[i]] = true;
    for (int d = 2; d < ndim; d++)
        if (!named[d]) return false;
    return true;
}

static tare_status reduce_mean(onnx_call *c) {
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

// torch multiplies along one dimension at a time; from the last one, so that the others keep their
// numbers.
static tare_status reduce_prod(onnx_call *c) {
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

static tare_status reduce_l1(onnx_call *c) {
    return reduce_around(c, MAGNITUDES, NULL);
}
static tare_status reduce_l2(onnx_call *c) {
    return reduce_around(c, SQUARES, "torch.sqrt");
}
static tare_status reduce_sum_square(onnx_call *c) {
    return reduce_around(c, SQUARES, NULL);
}
static tare_status reduce_log_sum(onnx_call *c) {
    return reduce_around(c, AROUND_NOTHING, "torch.log");
}
static tare_status reduce_log_sum_exp(onnx_call *c) {
    return reduce_by(c, 18, false, "torch.logsumexp");
}

static const onnx_rule rows[] = {
    {"ReduceL1", .translate = reduce_l1},
    {"ReduceL2", .translate = reduce_l2},
    {"ReduceLogSum", .translate = reduce_log_sum},
    {"ReduceLogSumExp", .translate = reduce_log_sum_exp},
    {"ReduceMax", .translate = reduce_max},
    {"ReduceMean", .translate = reduce_mean},
    {"ReduceMin", .translate = reduce_min},
    {"ReduceProd", .translate = reduce_prod},
    {"ReduceSum", .translate = reduce_sum},
    {"ReduceSumSquare", .translate = reduce_sum_square},
};

const onnx_rule_table tare__onnx_reduce_rules = ONNX_RULES(rows);
