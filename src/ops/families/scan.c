// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Cumulative sums and products along a dimension, and triangles of matrices.
#include <math.h>
#include <string.h>

#include "core/math/f64.h"
#include "ops/families/families.h"
#include "ops/parts.h"
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

// Rows [first, end) that lie side by side, in double, so that long sums stay accurate.
static void scan_rows(const rows_along *s, tare_tensor *y, int64_t start, int64_t count,
                      bool multiplies) {
    double so_far[PART_BLOCK], next[PART_BLOCK];
    for (int64_t k = 0; k < count; k++) so_far[k] = multiplies ? 1 : 0;
    for (int64_t i = 0; i < s->length; i++) {
        tare__tensor_load(s->x, start + i * s->inner, 1, count, next);
        for (int64_t k = 0; k < count; k++)
            so_far[k] = multiplies ? so_far[k] * next[k] : so_far[k] + next[k];
        tare__tensor_store(y, start + i * s->inner, count, so_far);
    }
}

// A row whose elements lie one behind the other.
static void scan_row(const rows_along *s, tare_tensor *y, int64_t start, bool multiplies) {
    double so_far = multiplies ? 1 : 0, block[PART_BLOCK];
    for (int64_t at = 0, count; at < s->length; at += count) {
        count = s->length - at < PART_BLOCK ? s->length - at : PART_BLOCK;
        tare__tensor_load(s->x, start + at, 1, count, block);
        for (int64_t i = 0; i < count; i++)
            block[i] = so_far = multiplies ? so_far * block[i] : so_far + block[i];
        tare__tensor_store(y, start + at, count, block);
    }
}

static tare_status scan(op_call *call, bool multiplies, int64_t first, int64_t end) {
    rows_along s;
    TARE_TRY(tare__rows_along(call, 1, 0, &s));
    for (int64_t row = first, count; row < end; row += count) {
        const int64_t start = tare__row_start(&s, row), left = s.inner - row % s.inner;
        count = end - row < PART_BLOCK ? end - row : PART_BLOCK;
        if (count > left) count = left;
        if (s.inner == 1)
            scan_row(&s, tare__call_out(call), start, multiplies);
        else
            scan_rows(&s, tare__call_out(call), start, count, multiplies);
    }
    return TARE_OK;
}

static tare_status scan_parts(op_call *call, tare_status (*run)(op_call *, int64_t, int64_t),
                              call_parts *out) {
    rows_along s;
    TARE_TRY(tare__rows_along(call, 1, 0, &s));
    *out = (call_parts){
        .count = s.x->count > 0 ? s.x->count / s.length : 0, .work = s.length, .run = run};
    return TARE_OK;
}

#define SCAN(name, multiplies)                                                                     \
    static tare_status name##_part(op_call *call, int64_t first, int64_t end) {                    \
        return scan(call, multiplies, first, end);                                                 \
    }                                                                                              \
    static tare_status name##_parts(op_call *call, call_parts *out) {                              \
        return scan_parts(call, name##_part, out);                                                 \
    }                                                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        return tare__run_parts(call, name##_parts);                                                \
    }
SCAN(cumsum, false)
SCAN(cumprod, true)

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

#define ROW(name, parameters, rule, by)                                                            \
    {                                                                                              \
        .id = #name, .functions = "torch." #name "|torch.ops.aten." #name ".default",              \
        .methods = #name "|" #name "_", .params = parameters, .shape = rule,                       \
        .reference = name##_reference, .parts = by                                                 \
    }

static const op_info rows[] = {
    ROW(cumsum, "input/self|dim/axis|dtype", scan_shape, cumsum_parts),
    ROW(cumprod, "input/self|dim/axis|dtype", scan_shape, cumprod_parts),
    ROW(cummax, "input/self|dim", extremes_shape, NULL),
    ROW(cummin, "input/self|dim", extremes_shape, NULL),
    ROW(logcumsumexp, "input/self|dim", tare__shape_same_float, NULL),
    ROW(tril, "input/self|diagonal", triangle_shape, NULL),
    ROW(triu, "input/self|diagonal", triangle_shape, NULL),
};

const op_table tare__scan_ops = OP_TABLE(rows);
