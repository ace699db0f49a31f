// SPDX-License-Identifier: Apache-2.0
// What compares the elements of a line: the greatest and the least, where they are, and sorting.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/families/families.h"
#include "ops/rules.h"

// A tensor seen as lines along one dimension; without one (dim < 0) it is one line.
typedef struct lines {
    const tare_tensor *x;
    int dim;
    int64_t length, inner; // elements of a line, and between its neighbours
} lines;

static tare_status read_lines(op_call *call, size_t dim_at, int64_t otherwise, lines *l) {
    TARE_TRY(tare__call_need_tensor(call, 0, &l->x));
    if (l->x->q != NULL)
        return tare__call_fail(call, "has no form for %s", tare_dtype_name(l->x->dtype));
    TARE_TRY(tare__call_dim(call, dim_at, otherwise, l->x->ndim, &l->dim));
    l->length = l->x->ndim > 0 ? l->x->shape[l->dim] : 1;
    l->inner = tare__inner_count(l->x, l->dim);
    return TARE_OK;
}

// Where line i of them begins.
static int64_t line_start(const lines *l, int64_t i) {
    return i / l->inner * l->length * l->inner + i % l->inner;
}

static tare_status meta(op_call *call, tare_dtype dtype, int ndim, const int64_t *shape,
                        value *out) {
    tare_tensor *t = NULL;
    TARE_TRY(tare__call_at(call, tare__tensor_meta(dtype, ndim, shape, NULL, &t, call->err)));
    *out = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    return TARE_OK;
}

// (values, indices)
static tare_status pair_result(op_call *call, const tare_tensor *x, int ndim,
                               const int64_t *shape) {
    TARE_TRY(tare__call_result_tuple(call, 2));
    TARE_TRY(meta(call, x->dtype, ndim, shape, &call->result.as.items[0]));
    return meta(call, TARE_INT64, ndim, shape, &call->result.as.items[1]);
}

// NaN is greater than everything, as in torch.
static bool is_greater(double a, double b) {
    return a > b || (isnan(a) && !isnan(b));
}

// The first of the greatest (or least) elements.
static int64_t find_extreme(const lines *l, int64_t start, bool largest) {
    int64_t best = 0;
    for (int64_t i = 1; i < l->length; i++) {
        const double a = tare__tensor_get(l->x, start + i * l->inner);
        const double b = tare__tensor_get(l->x, start + best * l->inner);
        const bool better = isnan(a) || isnan(b) ? is_greater(a, b) : largest ? a > b : a < b;
        if (better) best = i;
    }
    return best;
}

// The input's shape with the lines' dimension dropped, or of size 1.
static int reduced_shape(const lines *l, bool keeps, int64_t *shape) {
    int ndim = 0;
    for (int d = 0; d < l->x->ndim; d++) {
        if (d != l->dim) shape[ndim++] = l->x->shape[d];
        if (d == l->dim && keeps) shape[ndim++] = 1;
    }
    return ndim;
}

// --- argmax, argmin: of a line, or of all elements ---

static tare_status read_arg(op_call *call, lines *l, bool *keeps) {
    *keeps = false;
    if (tare__call_given(call, 1)) {
        TARE_TRY(read_lines(call, 1, 0, l));
        TARE_TRY(tare__call_bool(call, 2, false, keeps));
    } else {
        TARE_TRY(tare__call_need_tensor(call, 0, &l->x));
        *l = (lines){.x = l->x, .dim = -1, .length = l->x->count, .inner = 1};
    }
    return l->length > 0 ? TARE_OK : tare__call_fail(call, "there is nothing to compare");
}

static tare_status arg_shape(op_call *call) {
    lines l;
    bool keeps;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(read_arg(call, &l, &keeps));
    const int ndim = l.dim < 0 ? 0 : reduced_shape(&l, keeps, shape);
    return tare__call_result(call, TARE_INT64, ndim, shape, NULL);
}

static tare_status arg_reference(op_call *call, bool largest) {
    lines l;
    bool keeps;
    TARE_TRY(read_arg(call, &l, &keeps));
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++)
        tare__tensor_set_int(y, i, find_extreme(&l, line_start(&l, i), largest));
    return TARE_OK;
}

static tare_status argmax_reference(op_call *call) {
    return arg_reference(call, true);
}
static tare_status argmin_reference(op_call *call) {
    return arg_reference(call, false);
}

// --- max, min: of all elements; of a line, with its place; of two tensors ---

// torch.max(x, other) is another function: the row of arithmetic with this id.
static tare_status as_row(op_call *call, const char *id, bool compute) {
    op_call other = *call;
    other.op = tare__op_of_family(&tare__arithmetic_ops, id);
    other.param_count = 2;
    const tare_status status = compute ? other.op->reference(&other) : other.op->shape(&other);
    call->result = other.result;
    return status;
}

static bool is_of_two(const op_call *call) {
    return call->param[1] != NULL && call->param[1]->kind == VALUE_TENSOR &&
           call->param[1]->as.tensor->ndim > 0;
}

static tare_status extreme_shape(op_call *call, const char *of_two) {
    lines l;
    bool keeps;
    int64_t shape[TARE_MAX_DIMS];
    if (is_of_two(call)) return as_row(call, of_two, false);
    TARE_TRY(read_arg(call, &l, &keeps));
    if (l.dim < 0) return tare__call_result(call, l.x->dtype, 0, shape, NULL);
    return pair_result(call, l.x, reduced_shape(&l, keeps, shape), shape);
}

static tare_status extreme_reference(op_call *call, const char *of_two, bool largest) {
    lines l;
    bool keeps;
    if (is_of_two(call)) return as_row(call, of_two, true);
    TARE_TRY(read_arg(call, &l, &keeps));
    const bool is_pair = l.dim >= 0;
    tare_tensor *y = is_pair ? call->result.as.items[0].as.tensor : tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t start = line_start(&l, i), best = find_extreme(&l, start, largest);
        tare__tensor_set(y, i, tare__tensor_get(l.x, start + best * l.inner));
        if (is_pair) tare__tensor_set_int(call->result.as.items[1].as.tensor, i, best);
    }
    return TARE_OK;
}

static tare_status max_shape(op_call *call) {
    return extreme_shape(call, "maximum");
}
static tare_status max_reference(op_call *call) {
    return extreme_reference(call, "maximum", true);
}
static tare_status min_shape(op_call *call) {
    return extreme_shape(call, "minimum");
}
static tare_status min_reference(op_call *call) {
    return extreme_reference(call, "minimum", false);
}

// --- sorting: topk, sort, argsort; equal elements keep their order ---

typedef struct ranked {
    double value;
    int64_t index;
} ranked;

static int rising(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    if (is_greater(a->value, b->value)) return 1;
    if (is_greater(b->value, a->value)) return -1;
    return (a->index > b->index) - (a->index < b->index);
}

static int falling(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    if (is_greater(a->value, b->value)) return -1;
    if (is_greater(b->value, a->value)) return 1;
    return (a->index > b->index) - (a->index < b->index);
}

// The first `count` of every line in order, into either of the tensors (NULL: not wanted).
static tare_status sort_lines(op_call *call, const lines *l, int64_t count, bool descending,
                              tare_tensor *values, tare_tensor *indices) {
    ranked *line = tare__arena_array(call->memory, (size_t)l->length + 1, sizeof *line);
    if (line == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < l->x->count / l->length; i++) {
        const int64_t start = line_start(l, i);
        for (int64_t k = 0; k < l->length; k++)
            line[k] = (ranked){tare__tensor_get(l->x, start + k * l->inner), k};
        qsort(line, (size_t)l->length, sizeof *line, descending ? falling : rising);
        const int64_t to = i / l->inner * count * l->inner + i % l->inner;
        for (int64_t k = 0; k < count; k++) {
            if (values != NULL) tare__tensor_set(values, to + k * l->inner, line[k].value);
            if (indices != NULL) tare__tensor_set_int(indices, to + k * l->inner, line[k].index);
        }
    }
    return TARE_OK;
}

static tare_status read_topk(op_call *call, lines *l, int64_t *k) {
    TARE_TRY(read_lines(call, 2, -1, l));
    TARE_TRY(tare__call_int(call, 1, -1, k));
    if (*k >= 0 && *k <= l->length) return TARE_OK;
    return tare__call_fail(call, "k=%lld is not within a dimension of %lld", (long long)*k,
                           (long long)l->length);
}

static tare_status topk_shape(op_call *call) {
    lines l;
    int64_t k, shape[TARE_MAX_DIMS];
    TARE_TRY(read_topk(call, &l, &k));
    memcpy(shape, l.x->shape, sizeof shape);
    shape[l.dim] = k;
    return pair_result(call, l.x, l.x->ndim, shape);
}

static tare_status topk_reference(op_call *call) {
    lines l;
    int64_t k;
    bool largest;
    TARE_TRY(read_topk(call, &l, &k));
    TARE_TRY(tare__call_bool(call, 3, true, &largest));
    return sort_lines(call, &l, k, largest, call->result.as.items[0].as.tensor,
                      call->result.as.items[1].as.tensor);
}

static tare_status sort_shape(op_call *call) {
    lines l;
    TARE_TRY(read_lines(call, 1, -1, &l));
    return pair_result(call, l.x, l.x->ndim, l.x->shape);
}

static tare_status sort_reference(op_call *call) {
    lines l;
    bool descending;
    TARE_TRY(read_lines(call, 1, -1, &l));
    TARE_TRY(tare__call_bool(call, 2, false, &descending));
    return sort_lines(call, &l, l.length, descending, call->result.as.items[0].as.tensor,
                      call->result.as.items[1].as.tensor);
}

static tare_status argsort_shape(op_call *call) {
    lines l;
    TARE_TRY(read_lines(call, 1, -1, &l));
    return tare__call_result(call, TARE_INT64, l.x->ndim, l.x->shape, NULL);
}

static tare_status argsort_reference(op_call *call) {
    lines l;
    bool descending;
    TARE_TRY(read_lines(call, 1, -1, &l));
    TARE_TRY(tare__call_bool(call, 2, false, &descending));
    return sort_lines(call, &l, l.length, descending, NULL, tare__call_out(call));
}

// --- rows ---

#define ROW(name, names, parameters, rule)                                                         \
    {                                                                                              \
        .id = #name, .functions = "torch." #name names, .methods = #name, .params = parameters,    \
        .shape = rule, .reference = name##_reference                                               \
    }

static const op_info rows[] = {
    ROW(argmax, "|torch.ops.aten.argmax.default", "input/self|dim/axis|keepdim", arg_shape),
    ROW(argmin, "|torch.ops.aten.argmin.default", "input/self|dim/axis|keepdim", arg_shape),
    ROW(max, "|torch.ops.aten.max.default|torch.ops.aten.max.dim|torch.ops.aten.max.other",
        "input/self|dim/other|keepdim", max_shape),
    ROW(min, "|torch.ops.aten.min.default|torch.ops.aten.min.dim|torch.ops.aten.min.other",
        "input/self|dim/other|keepdim", min_shape),
    ROW(topk, "|torch.ops.aten.topk.default", "input/self|k|dim|largest|sorted", topk_shape),
    ROW(sort, "|torch.ops.aten.sort.default|torch.ops.aten.sort.stable",
        "input/self|dim|descending|stable", sort_shape),
    ROW(argsort, "|torch.ops.aten.argsort.default", "input/self|dim|descending|stable",
        argsort_shape),
};

const op_table tare__order_ops = OP_TABLE(rows);
