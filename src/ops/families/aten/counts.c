// SPDX-License-Identifier: Apache-2.0
// Distinct values and their counts: bincount, mode, unique. The number of values depends on the
// data.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/families/families.h"
#include "ops/rules.h"

// An element and its index.
typedef struct sorted_element {
    double real; // of a float; else 0
    int64_t whole, at;
} sorted_element;

static int order_of(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

// NaN is last; equal values are in the order of their indices.
static int compare(const void *a, const void *b) {
    const sorted_element *x = a, *y = b;
    const int real = order_of(x->real, y->real);
    if (real != 0) return real;
    if (x->whole != y->whole) return x->whole > y->whole ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

// NaN is not equal to NaN, as in torch.
static bool is_same(const sorted_element *a, const sorted_element *b) {
    return a->real == b->real && a->whole == b->whole;
}

// Sorts `count` elements from `first` on, `step` apart.
static sorted_element *sorted(op_call *call, const tare_tensor *x, int64_t first, int64_t step,
                              int64_t count) {
    sorted_element *all = tare__arena_array(call->memory, (size_t)count + 1, sizeof *all);
    const bool is_float = tare__dtype(x->dtype)->is_float;
    for (int64_t i = 0; all != NULL && i < count; i++) {
        const int64_t at = first + i * step;
        all[i] = (sorted_element){.at = i};
        if (is_float)
            all[i].real = tare__tensor_get(x, at);
        else
            all[i].whole = tare__tensor_get_int(x, at);
    }
    if (all != NULL) qsort(all, (size_t)count, sizeof *all, compare);
    return all;
}

// --- bincount(input, weights, minlength) ---

static tare_status read_bins(op_call *call, const tare_tensor **x, const tare_tensor **weights,
                             int64_t *bins) {
    TARE_TRY(tare__call_need_tensor(call, 0, x));
    *weights = tare__call_tensor(call, 1);
    TARE_TRY(tare__call_int(call, 2, 0, bins));
    const dtype_info *info = tare__dtype((*x)->dtype);
    if ((*x)->ndim != 1 || info->is_float || info->is_quantized || (*x)->data == NULL)
        return tare__call_fail(call, "needs a vector of integers, whose data say how many bins "
                                     "there are");
    if (*bins < 0) return tare__call_fail(call, "minlength must not be negative");
    if (*weights != NULL && ((*weights)->ndim != 1 || (*weights)->count != (*x)->count))
        return tare__call_fail(call, "needs a weight for each element");
    for (int64_t i = 0; i < (*x)->count; i++) {
        const int64_t bin = tare__tensor_get_int(*x, i);
        if (bin < 0 || bin > INT32_MAX)
            return tare__call_fail(call, "element %lld is no bin: %lld", (long long)i,
                                   (long long)bin);
        *bins = bin >= *bins ? bin + 1 : *bins;
    }
    return TARE_OK;
}

static tare_status bincount_shape(op_call *call) {
    const tare_tensor *x, *weights;
    int64_t bins;
    TARE_TRY(read_bins(call, &x, &weights, &bins));
    const tare_dtype dtype = weights == NULL                  ? TARE_INT64
                             : weights->dtype == TARE_FLOAT32 ? TARE_FLOAT32
                                                              : TARE_FLOAT64;
    return tare__call_result(call, dtype, 1, &bins, NULL);
}

static tare_status bincount_reference(op_call *call) {
    const tare_tensor *x, *weights;
    int64_t bins;
    TARE_TRY(read_bins(call, &x, &weights, &bins));
    tare_tensor *y = tare__call_out(call);
    memset(y->data, 0, tare__tensor_bytes(y));
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t bin = tare__tensor_get_int(x, i);
        if (weights == NULL)
            ((int64_t *)y->data)[bin]++;
        else
            tare__tensor_set(y, bin, tare__tensor_get(y, bin) + tare__tensor_get(weights, i));
    }
    return TARE_OK;
}

// --- mode(input, dim, keepdim): the smallest of the most frequent values, and its last index ---

static tare_status read_mode(op_call *call, rows_along *r, bool *keeps) {
    TARE_TRY(tare__rows_along(call, 1, -1, r));
    TARE_TRY(tare__call_bool(call, 2, false, keeps));
    if (r->x->q != NULL || r->length == 0)
        return tare__call_fail(call, "needs a dimension with elements, of plain numbers");
    return TARE_OK;
}

static tare_status mode_shape(op_call *call) {
    rows_along r;
    bool keeps;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(read_mode(call, &r, &keeps));
    const int ndim = tare__row_shape(&r, keeps, shape);
    return tare__call_result_pair(call, r.x->dtype, TARE_INT64, ndim, shape);
}

// The index of the last element in the first of the longest runs of equal elements.
static int64_t most_frequent(const sorted_element *all, int64_t count) {
    int64_t most = 0, run = 0, found = 0;
    for (int64_t i = 0; i < count; i++) {
        run = i > 0 && is_same(&all[i], &all[i - 1]) ? run + 1 : 1;
        if (run <= most) continue;
        most = run;
        found = i;
    }
    return found;
}

static tare_status mode_reference(op_call *call) {
    rows_along r;
    bool keeps;
    TARE_TRY(read_mode(call, &r, &keeps));
    const size_t bytes = tare_dtype_size(r.x->dtype);
    tare_tensor *values = call->result.as.items[0].as.tensor;
    tare_tensor *indices = call->result.as.items[1].as.tensor;
    for (int64_t i = 0; i < indices->count; i++) {
        const int64_t first = tare__row_start(&r, i);
        const sorted_element *all = sorted(call, r.x, first, r.inner, r.length);
        if (all == NULL) return tare__out_of_memory(call->err);
        const int64_t at = all[most_frequent(all, r.length)].at;
        ((int64_t *)indices->data)[i] = at;
        memcpy((char *)values->data + (size_t)i * bytes,
               (const char *)r.x->data + (size_t)(first + at * r.inner) * bytes, bytes);
    }
    return TARE_OK;
}

// --- _unique2(input, sorted, return_inverse, return_counts): the sorted values, the index of each
// element among them, and their counts ---

static tare_status read_unique(op_call *call, const tare_tensor **x, const sorted_element **all,
                               int64_t *count) {
    TARE_TRY(tare__call_need_tensor(call, 0, x));
    if ((*x)->q != NULL || (*x)->data == NULL)
        return tare__call_fail(call, "needs plain numbers, whose data say how many values there "
                                     "are");
    *all = sorted(call, *x, 0, 1, (*x)->count);
    if (*all == NULL) return tare__out_of_memory(call->err);
    *count = 0;
    for (int64_t i = 0; i < (*x)->count; i++)
        *count += i == 0 || !is_same(&(*all)[i], &(*all)[i - 1]);
    return TARE_OK;
}

static tare_status unique_shape(op_call *call) {
    const tare_tensor *x;
    const sorted_element *all;
    int64_t count;
    bool inverse, counts;
    const int64_t none = 0;
    TARE_TRY(read_unique(call, &x, &all, &count));
    TARE_TRY(tare__call_bool(call, 2, false, &inverse));
    TARE_TRY(tare__call_bool(call, 3, false, &counts));
    TARE_TRY(tare__call_result_tuple(call, 3));
    TARE_TRY(tare__call_result_item(call, 0, x->dtype, 1, &count));
    TARE_TRY(tare__call_result_item(call, 1, TARE_INT64, inverse ? x->ndim : 1,
                                    inverse ? x->shape : &none));
    return tare__call_result_item(call, 2, TARE_INT64, 1, counts ? &count : &none);
}

static tare_status unique_reference(op_call *call) {
    const tare_tensor *x;
    const sorted_element *all;
    int64_t count, at = -1;
    bool inverse, counts;
    TARE_TRY(read_unique(call, &x, &all, &count));
    TARE_TRY(tare__call_bool(call, 2, false, &inverse));
    TARE_TRY(tare__call_bool(call, 3, false, &counts));
    const size_t bytes = tare_dtype_size(x->dtype);
    value *const items = call->result.as.items;
    int64_t *which = items[1].as.tensor->data, *often = items[2].as.tensor->data;
    for (int64_t i = 0; i < x->count; i++) {
        const bool is_new = i == 0 || !is_same(&all[i], &all[i - 1]);
        at += is_new;
        if (is_new)
            memcpy((char *)items[0].as.tensor->data + (size_t)at * bytes,
                   (const char *)x->data + (size_t)all[i].at * bytes, bytes);
        if (inverse) which[all[i].at] = at;
        if (counts) often[at] = is_new ? 1 : often[at] + 1;
    }
    return TARE_OK;
}

// --- rows ---

// clang-format off
static const op_info rows[] = {
    {.id = "bincount", .functions = "torch.bincount|torch.ops.aten.bincount.default", .methods = "bincount", .params = "input/self|weights|minlength",
     .shape = bincount_shape, .reference = bincount_reference},
    {.id = "mode", .functions = "torch.mode|torch.ops.aten.mode.default", .methods = "mode", .params = "input/self|dim|keepdim",
     .shape = mode_shape, .reference = mode_reference},
    {.id = "unique", .functions = "torch._unique2|torch.ops.aten._unique2.default", .params = "input/self|sorted|return_inverse|return_counts",
     .shape = unique_shape, .reference = unique_reference},
};
// clang-format on

const op_table tare__counts_ops = OP_TABLE(rows);
