// SPDX-License-Identifier: Apache-2.0
// Operators that compare the elements of a row: maximum and minimum, their indices, sorting and
// searching.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/families/arithmetic.h"
#include "ops/families/families.h"
#include "ops/parts.h"
#include "ops/rules.h"

// Reads the rows along a dimension. Without one (dim < 0) the tensor is a single row.
static tare_status read_rows(op_call *call, size_t dim_at, int64_t otherwise, rows_along *r) {
    TARE_TRY(tare__call_need_tensor(call, 0, &r->x));
    if (r->x->q != NULL)
        return tare__call_fail(call, "has no form for %s", tare_dtype_name(r->x->dtype));
    return tare__rows_along(call, dim_at, otherwise, r);
}

// Sets the result to (values, indices).
static tare_status pair_result(op_call *call, const tare_tensor *x, int ndim,
                               const int64_t *shape) {
    return tare__call_result_pair(call, x->dtype, TARE_INT64, ndim, shape);
}

// NaN is greater than everything, as in torch.
static bool is_greater(double a, double b) {
    return a > b || (isnan(a) && !isnan(b));
}

static bool is_better(double a, double b, bool largest) {
    return isnan(a) || isnan(b) ? is_greater(a, b) : largest ? a > b : a < b;
}

// The first maximum (or minimum) of a row, and its index.
static int64_t find_extreme(const rows_along *l, int64_t start, bool largest, double *found) {
    double block[PART_BLOCK];
    int64_t best = 0;
    for (int64_t at = 0, count; at < l->length; at += count) {
        count = l->length - at < PART_BLOCK ? l->length - at : PART_BLOCK;
        tare__tensor_load(l->x, start + at * l->inner, l->inner, count, block);
        if (at == 0) *found = block[0];
        for (int64_t i = 0; i < count; i++)
            if (is_better(block[i], *found, largest)) {
                *found = block[i];
                best = at + i;
            }
    }
    return best;
}

// --- argmax, argmin: of a row, or of all elements ---

static tare_status read_arg(op_call *call, rows_along *l, bool *keeps) {
    *keeps = false;
    if (tare__call_given(call, 1)) {
        TARE_TRY(read_rows(call, 1, 0, l));
        TARE_TRY(tare__call_bool(call, 2, false, keeps));
    } else {
        TARE_TRY(tare__call_need_tensor(call, 0, &l->x));
        *l = (rows_along){.x = l->x, .dim = -1, .length = l->x->count, .inner = 1};
    }
    return l->length > 0 ? TARE_OK : tare__call_fail(call, "there is nothing to compare");
}

static tare_status arg_shape(op_call *call) {
    rows_along l;
    bool keeps;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(read_arg(call, &l, &keeps));
    const int ndim = l.dim < 0 ? 0 : tare__row_shape(&l, keeps, shape);
    return tare__call_result(call, TARE_INT64, ndim, shape, NULL);
}

// A part is a row.
static tare_status arg_part(op_call *call, bool largest, int64_t first, int64_t end) {
    rows_along l;
    bool keeps;
    double unused;
    TARE_TRY(read_arg(call, &l, &keeps));
    for (int64_t i = first; i < end; i++)
        tare__tensor_set_int(tare__call_out(call), i,
                             find_extreme(&l, tare__row_start(&l, i), largest, &unused));
    return TARE_OK;
}

static tare_status parts_of_rows(const rows_along *l,
                                 tare_status (*run)(op_call *, int64_t, int64_t), call_parts *out) {
    *out = (call_parts){.count = l->x->count / l->length, .work = l->length, .run = run};
    return TARE_OK;
}

#define ARG(name, largest)                                                                         \
    static tare_status name##_part(op_call *call, int64_t first, int64_t end) {                    \
        return arg_part(call, largest, first, end);                                                \
    }                                                                                              \
    static tare_status name##_parts(op_call *call, call_parts *out) {                              \
        rows_along l;                                                                              \
        bool keeps;                                                                                \
        TARE_TRY(read_arg(call, &l, &keeps));                                                      \
        return parts_of_rows(&l, name##_part, out);                                                \
    }                                                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        return tare__run_parts(call, name##_parts);                                                \
    }
ARG(argmax, true)
ARG(argmin, false)

// --- max, min: of all elements; along a dimension, with its index; of two tensors ---

// torch.max(x, other), a binary function: the row of arithmetic with this id.
static op_call as_row(const op_call *call, const char *id) {
    op_call other = *call;
    other.op = tare__op_of_family(&tare__arithmetic_ops, id);
    other.param_count = 2;
    return other;
}

static bool is_of_two(const op_call *call) {
    return call->param[1] != NULL && call->param[1]->kind == VALUE_TENSOR;
}

static tare_status extreme_shape(op_call *call, const char *of_two) {
    rows_along l;
    bool keeps;
    int64_t shape[TARE_MAX_DIMS];
    if (is_of_two(call)) {
        op_call other = as_row(call, of_two);
        TARE_TRY(other.op->shape(&other));
        call->result = other.result;
        return TARE_OK;
    }
    TARE_TRY(read_arg(call, &l, &keeps));
    if (l.dim < 0) return tare__call_result(call, l.x->dtype, 0, shape, NULL);
    return pair_result(call, l.x, tare__row_shape(&l, keeps, shape), shape);
}

static tare_status extreme_part(op_call *call, bool largest, int64_t first, int64_t end) {
    rows_along l;
    bool keeps;
    TARE_TRY(read_arg(call, &l, &keeps));
    const bool is_pair = l.dim >= 0;
    tare_tensor *y = is_pair ? call->result.as.items[0].as.tensor : tare__call_out(call);
    for (int64_t i = first; i < end; i++) {
        double found = 0;
        const int64_t best = find_extreme(&l, tare__row_start(&l, i), largest, &found);
        tare__tensor_set(y, i, found);
        if (is_pair) tare__tensor_set_int(call->result.as.items[1].as.tensor, i, best);
    }
    return TARE_OK;
}

static tare_status extreme_parts(op_call *call, const char *of_two,
                                 tare_status (*run)(op_call *, int64_t, int64_t), call_parts *out) {
    rows_along l;
    bool keeps;
    if (is_of_two(call)) {
        op_call other = as_row(call, of_two);
        return other.op->parts(&other, out);
    }
    TARE_TRY(read_arg(call, &l, &keeps));
    return parts_of_rows(&l, run, out);
}

#define EXTREME(name, of_two, largest)                                                             \
    static tare_status name##_shape(op_call *call) {                                               \
        return extreme_shape(call, of_two);                                                        \
    }                                                                                              \
    static tare_status name##_part(op_call *call, int64_t first, int64_t end) {                    \
        return extreme_part(call, largest, first, end);                                            \
    }                                                                                              \
    static tare_status name##_parts(op_call *call, call_parts *out) {                              \
        return extreme_parts(call, of_two, name##_part, out);                                      \
    }                                                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        return tare__run_parts(call, name##_parts);                                                \
    }
EXTREME(max, "maximum", true)
EXTREME(min, "minimum", false)

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

// Sorts rows [first, end) and writes the first `count` elements of each and their indices (NULL:
// not needed).
static tare_status sort_rows(op_call *call, const rows_along *l, int64_t first, int64_t end,
                             int64_t count, bool descending, tare_tensor *values,
                             tare_tensor *indices) {
    ranked *row = tare__arena_array(call->memory, (size_t)l->length + 1, sizeof *row);
    if (row == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = first; i < end; i++) {
        const int64_t start = tare__row_start(l, i);
        for (int64_t k = 0; k < l->length; k++)
            row[k] = (ranked){tare__tensor_get(l->x, start + k * l->inner), k};
        qsort(row, (size_t)l->length, sizeof *row, descending ? falling : rising);
        const int64_t to = i / l->inner * count * l->inner + i % l->inner;
        for (int64_t k = 0; k < count; k++) {
            if (values != NULL) tare__tensor_set(values, to + k * l->inner, row[k].value);
            if (indices != NULL) tare__tensor_set_int(indices, to + k * l->inner, row[k].index);
        }
    }
    return TARE_OK;
}

static tare_status read_topk(op_call *call, rows_along *l, int64_t *k) {
    TARE_TRY(read_rows(call, 2, -1, l));
    TARE_TRY(tare__call_int(call, 1, -1, k));
    if (*k >= 0 && *k <= l->length) return TARE_OK;
    return tare__call_fail(call, "k=%lld is not within a dimension of %lld", (long long)*k,
                           (long long)l->length);
}

static tare_status topk_shape(op_call *call) {
    rows_along l;
    int64_t k, shape[TARE_MAX_DIMS];
    TARE_TRY(read_topk(call, &l, &k));
    memcpy(shape, l.x->shape, sizeof shape);
    shape[l.dim] = k;
    return pair_result(call, l.x, l.x->ndim, shape);
}

static tare_status topk_part(op_call *call, int64_t first, int64_t end) {
    rows_along l;
    int64_t k;
    bool largest;
    TARE_TRY(read_topk(call, &l, &k));
    TARE_TRY(tare__call_bool(call, 3, true, &largest));
    return sort_rows(call, &l, first, end, k, largest, call->result.as.items[0].as.tensor,
                     call->result.as.items[1].as.tensor);
}

static tare_status topk_parts(op_call *call, call_parts *out) {
    rows_along l;
    int64_t k;
    TARE_TRY(read_topk(call, &l, &k));
    return l.length > 0 ? parts_of_rows(&l, topk_part, out) : TARE_OK;
}

static tare_status topk_reference(op_call *call) {
    return tare__run_parts(call, topk_parts);
}

static tare_status sort_shape(op_call *call) {
    rows_along l;
    TARE_TRY(read_rows(call, 1, -1, &l));
    return pair_result(call, l.x, l.x->ndim, l.x->shape);
}

static tare_status argsort_shape(op_call *call) {
    rows_along l;
    TARE_TRY(read_rows(call, 1, -1, &l));
    return tare__call_result(call, TARE_INT64, l.x->ndim, l.x->shape, NULL);
}

static tare_status sort_part(op_call *call, int64_t first, int64_t end) {
    const value *made = &call->result;
    const bool is_pair = made->kind != VALUE_TENSOR;
    rows_along l;
    bool descending;
    TARE_TRY(read_rows(call, 1, -1, &l));
    TARE_TRY(tare__call_bool(call, 2, false, &descending));
    return sort_rows(call, &l, first, end, l.length, descending,
                     is_pair ? made->as.items[0].as.tensor : NULL,
                     is_pair ? made->as.items[1].as.tensor : made->as.tensor);
}

static tare_status sort_parts(op_call *call, call_parts *out) {
    rows_along l;
    TARE_TRY(read_rows(call, 1, -1, &l));
    return l.length > 0 ? parts_of_rows(&l, sort_part, out) : TARE_OK;
}

static tare_status sort_reference(op_call *call) {
    return tare__run_parts(call, sort_parts);
}

// --- isin ---

typedef struct sorted_numbers {
    double *at;
    int64_t count;
} sorted_numbers;

static int by_value(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return is_greater(a, b) - is_greater(b, a);
}

// The count of numbers less than v, or less than or equal to v (also_equal).
static int64_t count_before(const sorted_numbers *s, double v, bool also_equal) {
    int64_t low = 0, high = s->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const double at = s->at[middle];
        if (also_equal ? !is_greater(at, v) : is_greater(v, at))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static tare_status read_numbers(op_call *call, size_t i, int64_t start, int64_t count,
                                sorted_numbers *out) {
    operand all;
    TARE_TRY(tare__read_operand(call, i, &all));
    *out = (sorted_numbers){.count = count};
    out->at = tare__arena_array(call->memory, (size_t)count + 1, sizeof *out->at);
    if (out->at == NULL) return tare__out_of_memory(call->err);
    for (int64_t k = 0; k < count; k++) out->at[k] = tare__operand_at(&all, start + k);
    return TARE_OK;
}

static tare_status shape_of_operand(op_call *call, size_t i, tare_dtype dtype) {
    operand x;
    TARE_TRY(tare__read_operand(call, i, &x));
    const tare_tensor scalar = {0}, *t = x.t != NULL ? x.t : &scalar;
    return tare__call_result(call, dtype, t->ndim, t->shape, NULL);
}

static tare_status isin_shape(op_call *call) {
    operand among;
    TARE_TRY(tare__read_operand(call, 1, &among));
    return shape_of_operand(call, 0, TARE_BOOL);
}

static tare_status isin_reference(op_call *call) {
    operand x, among;
    bool inverts;
    sorted_numbers all;
    TARE_TRY(tare__read_operand(call, 0, &x));
    TARE_TRY(tare__read_operand(call, 1, &among));
    TARE_TRY(tare__call_bool(call, 3, false, &inverts));
    TARE_TRY(read_numbers(call, 1, 0, among.t != NULL ? among.t->count : 1, &all));
    qsort(all.at, (size_t)all.count, sizeof *all.at, by_value);
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++) {
        const double v = tare__operand_at(&x, i);
        const int64_t at = count_before(&all, v, false);
        const bool found = at < all.count && all.at[at] == v;
        tare__tensor_set_int(y, i, found != inverts);
    }
    return TARE_OK;
}

// --- bucketize, searchsorted: insertion points in sorted numbers ---

// `sorted` and `x` of the functions below: indices of the parameters with the sorted numbers and
// the numbers to search for. Both tensors may have several rows.
typedef struct search {
    const tare_tensor *sorted;
    operand x;
    int64_t length, each; // elements of a row of `sorted`, and of x
    bool right, is_short;
} search;

static tare_status read_search(op_call *call, size_t sorted, size_t x, search *s) {
    const char *side;
    TARE_TRY(tare__call_need_tensor(call, sorted, &s->sorted));
    TARE_TRY(tare__read_operand(call, x, &s->x));
    TARE_TRY(tare__call_bool(call, 2, false, &s->is_short));
    TARE_TRY(tare__call_bool(call, 3, false, &s->right));
    TARE_TRY(tare__call_text(call, 4, s->right ? "right" : "left", &side));
    if (tare__call_given(call, 5)) return tare__call_fail(call, "a sorter is not supported");
    s->right = strcmp(side, "right") == 0;
    const tare_tensor *t = s->x.t, *among = s->sorted;
    bool fits = among->ndim >= 1 && among->q == NULL;
    s->length = fits ? among->shape[among->ndim - 1] : 0;
    s->each = t == NULL ? 1 : t->count;
    if (fits && among->ndim > 1) {
        fits = t != NULL && t->ndim == among->ndim;
        for (int d = 0; fits && d + 1 < t->ndim; d++) fits = t->shape[d] == among->shape[d];
        if (fits) s->each = t->shape[t->ndim - 1];
    }
    return fits ? TARE_OK
                : tare__call_fail(call, "values do not fit sorted ones of shape %s",
                                  tare__call_shape_text(call, among));
}

static tare_status search_shape(op_call *call, size_t sorted, size_t x) {
    search s;
    TARE_TRY(read_search(call, sorted, x, &s));
    return shape_of_operand(call, x, s.is_short ? TARE_INT32 : TARE_INT64);
}

static tare_status search_reference(op_call *call, size_t sorted, size_t x) {
    search s;
    sorted_numbers numbers = {0};
    TARE_TRY(read_search(call, sorted, x, &s));
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++) {
        if (i % s.each == 0)
            TARE_TRY(read_numbers(call, sorted, s.sorted->ndim > 1 ? i / s.each * s.length : 0,
                                  s.length, &numbers));
        tare__tensor_set_int(y, i, count_before(&numbers, tare__operand_at(&s.x, i), s.right));
    }
    return TARE_OK;
}

static tare_status bucketize_shape(op_call *call) {
    return search_shape(call, 1, 0);
}
static tare_status bucketize_reference(op_call *call) {
    return search_reference(call, 1, 0);
}
static tare_status searchsorted_shape(op_call *call) {
    return search_shape(call, 0, 1);
}
static tare_status searchsorted_reference(op_call *call) {
    return search_reference(call, 0, 1);
}

// --- histc(input, bins, min, max) ---

static tare_status histc_shape(op_call *call) {
    const tare_tensor *x;
    int64_t bins;
    TARE_TRY(tare__need_float(call, 0, &x));
    TARE_TRY(tare__call_int(call, 1, 100, &bins));
    if (bins < 1) return tare__call_fail(call, "needs at least one bin");
    return tare__call_result(call, TARE_FLOAT32, 1, &bins, NULL);
}

static tare_status histc_reference(op_call *call) {
    const tare_tensor *x;
    double low, high;
    tare_tensor *y = tare__call_out(call);
    TARE_TRY(tare__need_float(call, 0, &x));
    TARE_TRY(tare__call_double(call, 2, 0, &low));
    TARE_TRY(tare__call_double(call, 3, 0, &high));
    float least = (float)low, most = (float)high;
    if (least == most) tare__find_range(x, &least, &most);
    if (least == most) {
        least -= 1;
        most += 1;
    }
    if (!(least < most) || isinf(least) || isinf(most))
        return tare__call_fail(call, "the range from %g to %g has no bins", (double)least,
                               (double)most);
    float *counts = tare__f32(y);
    memset(counts, 0, tare__tensor_bytes(y));
    for (int64_t i = 0; i < x->count; i++) {
        const float v = tare__f32(x)[i];
        if (!(v >= least && v <= most)) continue;
        const int64_t at = (int64_t)((v - least) * (float)y->count / (most - least));
        counts[at < y->count ? at : y->count - 1]++;
    }
    return TARE_OK;
}

// --- rows ---

#define ROW(name, names, parameters, rule)                                                         \
    {                                                                                              \
        .id = #name, .functions = "torch." #name names, .methods = #name, .params = parameters,    \
        .shape = rule, .reference = name##_reference, .parts = name##_parts                        \
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
    {.id = "isin",
     .functions = "torch.isin|torch.ops.aten.isin.Tensor_Tensor|torch.ops.aten.isin.Tensor_Scalar|"
                  "torch.ops.aten.isin.Scalar_Tensor",
     .params = "input/elements/element|other/test_elements/test_element|assume_unique|invert",
     .shape = isin_shape,
     .reference = isin_reference},
    {.id = "bucketize",
     .functions = "torch.bucketize|torch.ops.aten.bucketize.Tensor|torch.ops.aten.bucketize.Scalar",
     .params = "input/self|boundaries|out_int32|right",
     .shape = bucketize_shape,
     .reference = bucketize_reference},
    {.id = "searchsorted",
     .functions = "torch.searchsorted|torch.ops.aten.searchsorted.Tensor|"
                  "torch.ops.aten.searchsorted.Scalar",
     .params = "boundaries/sorted_sequence|input/self|out_int32|right|side|sorter",
     .shape = searchsorted_shape,
     .reference = searchsorted_reference},
    {.id = "histc",
     .functions = "torch.histc|torch.ops.aten.histc.default",
     .methods = "histc",
     .params = "input/self|bins|min|max",
     .shape = histc_shape,
     .reference = histc_reference},
    {.id = "argsort",
     .functions = "torch.argsort|torch.ops.aten.argsort.default",
     .overloads = "torch.ops.aten.argsort.stable",
     .methods = "argsort",
     .params = "input/self|dim|descending|stable",
     .shape = argsort_shape,
     .reference = sort_reference,
     .parts = sort_parts},
};

const op_table tare__order_ops = OP_TABLE(rows);
