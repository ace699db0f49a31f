// SPDX-License-Identifier: Apache-2.0
// Cumulative sums and products along a dimension, and triangles of matrices.
#include <math.h>
#include <string.h>

#include "core/math/f64.h"
#include "ops/families/families.h"
#include "ops/rules.h"

// --- cumsum, cumprod ---

// For integers and bools the result is int64, as in torch.
static tare_status scan_shape(op_call *call) {
    const tare_tensor *x;
    int dim;
    tare_dtype dtype;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_dim(call, 1, 0, x->ndim, &dim));
    if (!tare__call_given(call, 1)) return tare__call_fail(call, "the dimension is missing");
    const bool is_float = tare__dtype(x->dtype)->is_float;
    TARE_TRY(tare__call_dtype(call, 2, is_float ? x->dtype : TARE_INT64, &dtype));
    return tare__call_result(call, dtype, x->ndim, x->shape, NULL);
}

static tare_status scan(op_call *call, bool multiplies) {
    rows_along s;
    TARE_TRY(tare__rows_along(call, 1, 0, &s));
    tare_tensor *y = tare__call_out(call);
    for (int64_t row = 0; row < s.x->count / s.length; row++) {
        const int64_t start = tare__row_start(&s, row);
        double so_far = multiplies ? 1 : 0; // in double, so that long sums stay accurate
        for (int64_t i = 0; i < s.length; i++) {
            const double v = tare__tensor_get(s.x, start + i * s.inner);
            so_far = multiplies ? so_far * v : so_far + v;
            tare__tensor_set(y, start + i * s.inner, so_far);
        }
    }
    return TARE_OK;
}

static tare_status cumsum_reference(op_call *call) {
    return scan(call, false);
}
static tare_status cumprod_reference(op_call *call) {
    return scan(call, true);
}

// --- cummax, cummin: (values, indices); the last of equal values counts, and NaN is both greatest
// and least ---

static tare_status extremes_shape(op_call *call) {
    const tare_tensor *x;
    int dim;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_dim(call, 1, 0, x->ndim, &dim));
    if (x->q != NULL) return tare__call_fail(call, "has no form for %s", tare_dtype_name(x->dtype));
    return tare__call_result_pair(call, x->dtype, TARE_INT64, x->ndim, x->shape);
}

static tare_status extremes(op_call *call, bool largest) {
    rows_along s;
    TARE_TRY(tare__rows_along(call, 1, 0, &s));
    tare_tensor *y = call->result.as.items[0].as.tensor, *at = call->result.as.items[1].as.tensor;
    for (int64_t row = 0; row < s.x->count / s.length; row++) {
        const int64_t start = tare__row_start(&s, row);
        int64_t best = 0;
        for (int64_t i = 0; i < s.length; i++) {
            const double v = tare__tensor_get(s.x, start + i * s.inner);
            const double so_far = tare__tensor_get(s.x, start + best * s.inner);
            if (isnan(v) || (largest ? v >= so_far : v <= so_far)) best = i;
            tare__tensor_set(y, start + i * s.inner, tare__tensor_get(s.x, start + best * s.inner));
            tare__tensor_set_int(at, start + i * s.inner, best);
        }
    }
    return TARE_OK;
}

static tare_status cummax_reference(op_call *call) {
    return extremes(call, true);
}
static tare_status cummin_reference(op_call *call) {
    return extremes(call, false);
}

// --- logcumsumexp: relative to the greater of two terms ---

static tare_status logcumsumexp_reference(op_call *call) {
    rows_along s;
    TARE_TRY(tare__rows_along(call, 1, 0, &s));
    tare_tensor *y = tare__call_out(call);
    for (int64_t row = 0; row < s.x->count / s.length; row++) {
        const int64_t start = tare__row_start(&s, row);
        double so_far = (double)-INFINITY;
        for (int64_t i = 0; i < s.length; i++) {
            const double v = tare__tensor_get(s.x, start + i * s.inner);
            const double high = v > so_far || isnan(v) ? v : so_far, low = v > so_far ? so_far : v;
            // The difference of equal infinities would be NaN.
            so_far = isinf(high) ? high : high + tare__log1p(tare__exp(low - high));
            tare__tensor_set(y, start + i * s.inner, so_far);
        }
    }
    return TARE_OK;
}

// --- tril, triu: the other triangle becomes zero ---

static tare_status triangle_shape(op_call *call) {
    const tare_tensor *x;
    int64_t diagonal;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_int(call, 1, 0, &diagonal));
    if (x->ndim < 2)
        return tare__call_fail(call, "input must have at least 2 dimensions, found shape %s",
                               tare__call_shape_text(call, x));
    if (x->q != NULL) return tare__call_fail(call, "has no form for %s", tare_dtype_name(x->dtype));
    return tare__shape_same(call);
}

static tare_status triangle(op_call *call, bool lower) {
    const tare_tensor *x;
    int64_t diagonal;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_int(call, 1, 0, &diagonal));
    tare_tensor *y = tare__call_out(call);
    const int64_t rows = x->shape[x->ndim - 2], columns = x->shape[x->ndim - 1];
    const size_t size = tare_dtype_size(x->dtype);
    // Limits the diagonal so that sums with a row cannot overflow.
    if (diagonal > columns) diagonal = columns;
    if (diagonal < -rows) diagonal = -rows;
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t row = i / columns % rows, column = i % columns;
        const bool kept = lower ? column <= row + diagonal : column >= row + diagonal;
        if (kept)
            memcpy((char *)y->data + (size_t)i * size, (const char *)x->data + (size_t)i * size,
                   size);
    }
    return TARE_OK;
}

static tare_status tril_reference(op_call *call) {
    return triangle(call, true);
}
static tare_status triu_reference(op_call *call) {
    return triangle(call, false);
}

// --- rows ---

#define ROW(name, parameters, rule)                                                                \
    {                                                                                              \
        .id = #name, .functions = "torch." #name "|torch.ops.aten." #name ".default",              \
        .methods = #name "|" #name "_", .params = parameters, .shape = rule,                       \
        .reference = name##_reference                                                              \
    }

static const op_info rows[] = {
    ROW(cumsum, "input/self|dim/axis|dtype", scan_shape),
    ROW(cumprod, "input/self|dim/axis|dtype", scan_shape),
    ROW(cummax, "input/self|dim", extremes_shape),
    ROW(cummin, "input/self|dim", extremes_shape),
    ROW(logcumsumexp, "input/self|dim", tare__shape_same_float),
    ROW(tril, "input/self|diagonal", triangle_shape),
    ROW(triu, "input/self|diagonal", triangle_shape),
};

const op_table tare__scan_ops = OP_TABLE(rows);
