// SPDX-License-Identifier: Apache-2.0
// Elements of a given rank along a dimension: medians, the k-th value, quantiles. All are read from
// sorted rows, in which NaN is last.
#include <math.h>
#include <string.h>

#include "ops/compose.h"
#include "ops/families/families.h"
#include "ops/rules.h"

#define P(i) tare__compose_param(c, i)

// A tensor sorted along a dimension; without one it is flattened.
typedef struct sorted_rows {
    value x, values, indices;
    int64_t dim, size;
    bool is_float, keeps, is_scalar; // is_scalar: no dimensions
} sorted_rows;

static sorted_rows sort_along(composer *c, value dim, bool keeps) {
    sorted_rows s = {.x = P(0), .keeps = keeps};
    const int64_t whole = -1;
    const tare_tensor *x = tare__compose_need(c, 0);
    if (x == NULL) return s;
    s.is_scalar = x->ndim == 0;
    if (dim.kind == VALUE_NONE || x->ndim == 0)
        s.x = COMPOSE(c, "reshape", s.x, tare__compose_ints(c, &whole, 1));
    const tare_tensor *rows = tare__compose_tensor(c, s.x);
    if (rows == NULL) return s;
    if (x->ndim > 0 && dim.kind == VALUE_INT) s.dim = dim.as.integer;
    if (s.dim < 0) s.dim += rows->ndim;
    if (s.dim < 0 || s.dim >= rows->ndim || rows->count == 0) {
        (void)tare__compose_fail(c, "needs a dimension of the input with elements");
        return s;
    }
    s.size = rows->shape[s.dim];
    s.is_float = tare__dtype(rows->dtype)->is_float;
    const value both = COMPOSE(c, "sort", s.x, tare__int(s.dim));
    s.values = tare__compose_item(c, both, 0);
    s.indices = tare__compose_item(c, both, 1);
    return s;
}

// The elements of one rank, with the dimension (keeps) or without.
static value ranked(composer *c, const sorted_rows *s, value from, int64_t rank) {
    if (s->is_scalar) return COMPOSE(c, "view", from, tare__compose_ints(c, NULL, 0));
    return s->keeps ? COMPOSE(c, "narrow", from, tare__int(s->dim), tare__int(rank), tare__int(1))
                    : COMPOSE(c, "select", from, tare__int(s->dim), tare__int(rank));
}

// (values, indices) of a rank. nan_wins: NaN in rows that contain it.
static value pair_of_rank(composer *c, const sorted_rows *s, int64_t rank, bool nan_wins) {
    value found = ranked(c, s, s->values, rank), at = ranked(c, s, s->indices, rank);
    if (nan_wins && s->is_float) {
        const value last = ranked(c, s, s->values, s->size - 1);
        const value is_nan = COMPOSE(c, "isnan", last);
        found = COMPOSE(c, "where", is_nan, last, found);
        at = COMPOSE(c, "where", is_nan, ranked(c, s, s->indices, s->size - 1), at);
    }
    return tare__compose_pair(c, found, at);
}

static value kthvalue(composer *c) {
    const value dim = tare__int(tare__compose_int(c, 2, -1));
    const sorted_rows s = sort_along(c, dim, tare__compose_bool(c, 3, false));
    const int64_t k = tare__compose_int(c, 1, 1);
    if (k < 1 || k > s.size) (void)tare__compose_fail(c, "k is not within the dimension");
    return c->status == TARE_OK ? pair_of_rank(c, &s, k - 1, false) : tare__none();
}

// --- median: the lower of two ---

static value median(composer *c) {
    const sorted_rows s = sort_along(c, P(1), tare__compose_bool(c, 2, false));
    const value both =
        c->status == TARE_OK ? pair_of_rank(c, &s, (s.size - 1) / 2, true) : tare__none();
    return P(1).kind == VALUE_NONE ? tare__compose_item(c, both, 0) : both;
}

// The rank in each row is determined by the number of elements that are not NaN.
static value nanmedian(composer *c) {
    const sorted_rows s = sort_along(c, P(1), tare__compose_bool(c, 2, false));
    if (c->status != TARE_OK) return tare__none();
    const value dim = tare__int(s.dim);
    const value known = COMPOSE(c, "logical_not", COMPOSE(c, "isnan", s.values));
    const value count = COMPOSE(c, "sum", known, dim, tare__bool(true));
    const value middle =
        COMPOSE(c, "floor_divide", COMPOSE(c, "sub", count, tare__int(1)), tare__int(2));
    const value rank = COMPOSE(c, "clamp", middle, tare__int(0));
    value pair[] = {s.values, s.indices};
    for (size_t i = 0; i < 2; i++) {
        pair[i] = COMPOSE(c, "gather", pair[i], dim, rank);
        if (s.is_scalar)
            pair[i] = COMPOSE(c, "view", pair[i], tare__compose_ints(c, NULL, 0));
        else if (!s.keeps)
            pair[i] = COMPOSE(c, "squeeze", pair[i], dim);
    }
    return P(1).kind == VALUE_NONE ? pair[0] : tare__compose_pair(c, pair[0], pair[1]);
}

static value msort(composer *c) {
    return tare__compose_item(c, COMPOSE(c, "sort", P(0), tare__int(0)), 0);
}

// --- quantile(input, q, dim, keepdim, interpolation): a vector q adds a dimension in front ---

// Interpolates between the values of two ranks.
static value between(composer *c, value low, value high, value share, const char *how) {
    if (strcmp(how, "lower") == 0) return low;
    if (strcmp(how, "higher") == 0) return high;
    if (strcmp(how, "midpoint") == 0) return COMPOSE(c, "lerp", low, high, tare__float(0.5));
    return COMPOSE(c, "lerp", low, high, share);
}

// The sorted rows, with their dimension moved to the front.
static value rows_in_front(composer *c, const sorted_rows *s) {
    return s->dim == 0 ? s->values
                       : COMPOSE(c, "movedim", s->values, tare__int(s->dim), tare__int(0));
}

static value rank_of(composer *c, value q, int64_t size, const char *how) {
    const value rank = COMPOSE(c, "mul", q, tare__int(size - 1));
    return strcmp(how, "nearest") == 0 ? COMPOSE(c, "round", rank) : rank;
}

static value quantile(composer *c) {
    const char *how = "linear";
    op_call call = *c->call;
    const int64_t all = -1;
    const bool keeps = tare__compose_bool(c, 3, false);
    if (c->status == TARE_OK) c->status = tare__call_text(&call, 4, how, &how);
    const sorted_rows s = sort_along(c, P(2), false);
    const value given =
        P(1).kind == VALUE_TENSOR ? P(1) : COMPOSE(c, "full", tare__compose_ints(c, NULL, 0), P(1));
    const tare_tensor *q = tare__compose_tensor(c, given), *x = tare__compose_need(c, 0);
    if (q == NULL || x == NULL) return tare__none();
    if (q->ndim > 1 || !s.is_float)
        (void)tare__compose_fail(c, "needs floats, and q as a number or a vector");
    const value rank =
        rank_of(c, COMPOSE(c, "reshape", given, tare__compose_ints(c, &all, 1)), s.size, how);
    const value low = COMPOSE(c, "floor", rank), high = COMPOSE(c, "ceil", rank);
    const value rows = rows_in_front(c, &s), zero = tare__int(0);
    const tare_tensor *front = tare__compose_tensor(c, rows);
    if (front == NULL) return tare__none();
    int64_t column[TARE_MAX_DIMS] = {q->count, 1, 1, 1, 1, 1, 1, 1};
    const value share = COMPOSE(c, "view", COMPOSE(c, "sub", rank, low),
                                tare__compose_ints(c, column, (size_t)front->ndim));
    const value integer = tare__dtype_value(TARE_INT64);
    const value below = COMPOSE(c, "index_select", rows, zero, COMPOSE(c, "to", low, integer));
    const value above = COMPOSE(c, "index_select", rows, zero, COMPOSE(c, "to", high, integer));
    value made = between(c, below, above, share, how);
    const value last = COMPOSE(c, "narrow", rows, zero, tare__int(s.size - 1), tare__int(1));
    made = COMPOSE(c, "where", COMPOSE(c, "isnan", last), last, made);
    if (keeps && P(2).kind != VALUE_NONE)
        made = COMPOSE(c, "unsqueeze", made, tare__int(s.dim + 1));
    for (int d = 0; keeps && P(2).kind == VALUE_NONE && d < x->ndim; d++)
        made = COMPOSE(c, "unsqueeze", made, tare__int(-1));
    return q->ndim == 0 ? COMPOSE(c, "squeeze", made, zero) : made;
}

// --- rows ---

#define ATEN(name) "|torch.ops.aten." name

// clang-format off
static const op_info rows[] = {
    COMPOSED_ROW(kthvalue, "torch.kthvalue" ATEN("kthvalue.default"), "kthvalue", "input/self|k|dim|keepdim"),
    COMPOSED_ROW(median, "torch.median" ATEN("median.default") ATEN("median.dim"), "median", "input/self|dim|keepdim"),
    COMPOSED_ROW(nanmedian, "torch.nanmedian" ATEN("nanmedian.default") ATEN("nanmedian.dim"), "nanmedian", "input/self|dim|keepdim"),
    COMPOSED_ROW(msort, "torch.msort" ATEN("msort.default"), "msort", "input/self"),
    COMPOSED_ROW(quantile, "torch.quantile" ATEN("quantile.default") ATEN("quantile.scalar"), "quantile", "input/self|q|dim|keepdim|interpolation"),
};
// clang-format on

const op_table tare__rank_ops = OP_TABLE(rows);
