// SPDX-License-Identifier: Apache-2.0
// Reads and writes along one dimension, at indices that a tensor has: slices, or an element for
// each index.
#include <math.h>
#include <string.h>

#include "ops/families/families.h"
#include "ops/families/index/elements.h"
#include "ops/layer_call.h"
#include "ops/parts.h"
#include "ops/rules.h"

// --- index_select: whole slices along one dimension ---

typedef struct line_indices {
    const tare_tensor *x, *indices;
    int dim;
} line_indices;

static tare_status read_line(op_call *call, line_indices *s) {
    TARE_TRY(tare__call_need_tensor(call, 0, &s->x));
    TARE_TRY(tare__call_need_tensor(call, 2, &s->indices));
    TARE_TRY(tare__call_dim(call, 1, 0, s->x->ndim, &s->dim));
    return need_indices(call, s->indices);
}

static tare_status index_select_shape(op_call *call) {
    line_indices s;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(read_line(call, &s));
    if (s.indices->ndim > 1 || s.x->ndim == 0)
        return tare__call_fail(call, "needs an index of 1 dimension, found shape %s",
                               tare__call_shape_text(call, s.indices));
    memcpy(shape, s.x->shape, sizeof shape);
    shape[s.dim] = s.indices->count;
    return tare__call_result(call, s.x->dtype, s.x->ndim, shape, s.x->q);
}

static tare_status index_select_reference(op_call *call) {
    line_indices s;
    TARE_TRY(read_line(call, &s));
    tare_tensor *y = tare__call_out(call);
    const int64_t inner = tare__inner_count(s.x, s.dim), count = s.indices->count;
    const int64_t outer = y->count / (inner * count);
    for (int64_t k = 0; k < count; k++) {
        int64_t at;
        TARE_TRY(index_at(call, s.indices, k, s.x->shape[s.dim], &at));
        for (int64_t o = 0; o < outer; o++)
            copy_elements(s.x, (o * s.x->shape[s.dim] + at) * inner, y, (o * count + k) * inner,
                          inner);
    }
    return TARE_OK;
}

// --- gather and scatter: an index per element along `dim`; other coordinates are the same ---

// As torch, requires that the indices are no larger than the input, except along `dim`.
static tare_status check_elements(op_call *call, const line_indices *s, const tare_tensor *bound) {
    bool fits = s->indices->ndim == s->x->ndim && s->indices->ndim == bound->ndim;
    for (int d = 0; fits && d < s->x->ndim; d++)
        fits = (d == s->dim || s->indices->shape[d] <= s->x->shape[d]) &&
               (bound == s->x || s->indices->shape[d] <= bound->shape[d]);
    if (fits) return TARE_OK;
    return tare__call_fail(call, "indices of shape %s do not fit shapes %s and %s",
                           tare__call_shape_text(call, s->indices),
                           tare__call_shape_text(call, s->x), tare__call_shape_text(call, bound));
}

// The offsets in x and in a tensor of the source's shape that belong to index i.
static tare_status partner_of(op_call *call, const line_indices *s, int64_t i, int64_t *in_x,
                              const tare_tensor *source, int64_t *in_source) {
    int64_t rest = i, x_step = 1, source_step = 1, index;
    TARE_TRY(index_at(call, s->indices, i, s->x->ndim > 0 ? s->x->shape[s->dim] : 1, &index));
    *in_x = s->x->ndim == 0 ? index : 0;
    *in_source = 0;
    for (int d = s->x->ndim - 1; d >= 0; d--) {
        const int64_t own = rest % s->indices->shape[d];
        rest /= s->indices->shape[d];
        *in_x += (d == s->dim ? index : own) * x_step;
        x_step *= s->x->shape[d];
        if (source == NULL) continue;
        *in_source += own * source_step;
        source_step *= source->shape[d];
    }
    return TARE_OK;
}

static tare_status gather_shape(op_call *call) {
    line_indices s;
    TARE_TRY(read_line(call, &s));
    TARE_TRY(check_elements(call, &s, s.x));
    return tare__call_result(call, s.x->dtype, s.indices->ndim, s.indices->shape, s.x->q);
}

// At most PART_BLOCK elements of a row of the indices along their last dimension, from element
// `first` of the row on, which begins at `row`.
static tare_status gather_block(op_call *call, const line_indices *s, int64_t row, int64_t first,
                                int64_t count, int64_t from) {
    const tare_tensor *x = s->x, *indices = s->indices;
    const int64_t size = x->ndim > 0 ? x->shape[s->dim] : 1;
    const int64_t step = x->ndim > 0 ? tare__inner_count(x, s->dim) : 1;
    const int64_t own = s->dim == x->ndim - 1 || x->ndim == 0 ? 0 : 1, at = row + first;
    int64_t offsets[PART_BLOCK], read[PART_BLOCK], unused;
    const int64_t *given = read;
    if (indices->dtype == TARE_INT64)
        given = (const int64_t *)indices->data + at;
    else
        for (int64_t k = 0; k < count; k++) read[k] = tare__tensor_get_int(indices, at + k);
    for (int64_t k = 0; k < count; k++) offsets[k] = k * own;
    if (!add_offsets(given, count, size, step, offsets))
        for (int64_t k = 0; k < count; k++)
            TARE_TRY(index_at(call, indices, at + k, size, &unused));
    pick_elements(x, from + first * own, offsets, count, tare__call_out(call), at);
    return TARE_OK;
}

// Elements [first, end) of such a row.
static tare_status gather_row(op_call *call, const line_indices *s, int64_t row, int64_t first,
                              int64_t end) {
    const tare_tensor *x = s->x, *indices = s->indices;
    const int last = x->ndim - 1;
    int64_t from = 0, x_step = x->ndim > 0 ? x->shape[last] : 1, rest = row;
    if (x->ndim > 0) rest /= indices->shape[last];
    for (int d = last - 1; d >= 0; d--) {
        if (d != s->dim) from += rest % indices->shape[d] * x_step;
        rest /= indices->shape[d];
        x_step *= x->shape[d];
    }
    for (int64_t k = first; k < end; k += PART_BLOCK)
        TARE_TRY(gather_block(call, s, row, k, end - k < PART_BLOCK ? end - k : PART_BLOCK, from));
    return TARE_OK;
}

static tare_status gather_part(op_call *call, int64_t first, int64_t end) {
    line_indices s;
    TARE_TRY(read_line(call, &s));
    const int64_t length = s.indices->ndim > 0 ? s.indices->shape[s.indices->ndim - 1] : 1;
    for (int64_t i = first; i < end;) {
        const int64_t row = i / length * length, next = row + length < end ? row + length : end;
        TARE_TRY(gather_row(call, &s, row, i - row, next - row));
        i = next;
    }
    return TARE_OK;
}

static tare_status gather_parts(op_call *call, call_parts *out) {
    return tare__element_parts(call, gather_part, out);
}

static tare_status gather_reference(op_call *call) {
    return tare__run_parts(call, gather_parts);
}

typedef double (*combine)(double old, double x);
static double replaced(double old, double x) {
    (void)old;
    return x;
}
static double added(double old, double x) {
    return old + x;
}
static double multiplied(double old, double x) {
    return old * x;
}
static double larger(double old, double x) {
    return x > old || isnan(x) ? x : old;
}
static double smaller(double old, double x) {
    return x < old || isnan(x) ? x : old;
}

// "mean" is a sum, which is divided later.
static tare_status combine_named(op_call *call, const char *name, combine *out) {
    static const struct {
        const char *name;
        combine f;
    } all[] = {{"", replaced},       {"add", added},   {"sum", added},    {"multiply", multiplied},
               {"prod", multiplied}, {"amax", larger}, {"amin", smaller}, {"mean", added}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0) {
            *out = all[i].f;
            return TARE_OK;
        }
    return tare__call_fail(call, "reduce '%s' is not supported", name);
}

enum { SOURCE = 3, REDUCE, INCLUDE_SELF };

static tare_status read_scatter(op_call *call, line_indices *s, const tare_tensor **source,
                                double *number) {
    TARE_TRY(read_line(call, s));
    *source = tare__call_tensor(call, SOURCE);
    *number = 0;
    if (*source == NULL) {
        if (call->param[SOURCE] == NULL)
            return tare__call_fail(call, "needs a tensor or a number to put");
        TARE_TRY(tare__call_double(call, SOURCE, 0, number));
    }
    if (*source != NULL && (*source)->dtype != s->x->dtype)
        return tare__call_fail(call, "src is %s, but input %s", tare_dtype_name((*source)->dtype),
                               tare_dtype_name(s->x->dtype));
    return check_elements(call, s, *source != NULL ? *source : s->x);
}

static tare_status read_self(op_call *call, bool *includes_self) {
    *includes_self = true;
    if (!tare__op_param_is(call->op, INCLUDE_SELF, "include_self")) return TARE_OK;
    return tare__call_bool(call, INCLUDE_SELF, true, includes_self);
}

static tare_status scatter_shape(op_call *call) {
    line_indices s;
    const tare_tensor *source;
    double number;
    bool includes_self;
    TARE_TRY(read_scatter(call, &s, &source, &number));
    TARE_TRY(read_self(call, &includes_self));
    return tare__shape_same(call);
}

// Turns sums into means; means of integers are rounded down.
static void divide_by_counts(tare_tensor *y, const int64_t *counts, bool includes_self) {
    const bool is_float = tare__dtype(y->dtype)->is_float;
    for (int64_t i = 0; i < y->count; i++) {
        if (counts[i] == 0) continue;
        const double mean = tare__tensor_get(y, i) / (double)(counts[i] + (includes_self ? 1 : 0));
        tare__tensor_set(y, i, is_float ? mean : floor(mean));
    }
}

static tare_status scatter_by(op_call *call, combine f, bool is_mean) {
    bool includes_self;
    line_indices s;
    const tare_tensor *source;
    double number;
    TARE_TRY(read_scatter(call, &s, &source, &number));
    tare_tensor *y = tare__call_out(call);
    TARE_TRY(read_self(call, &includes_self));
    int64_t *counts = NULL; // contributions to each element, if needed
    if (is_mean || !includes_self) {
        counts = tare__arena_array(call->memory, (size_t)y->count + 1, sizeof *counts);
        if (counts == NULL) return tare__out_of_memory(call->err);
    }
    memcpy(y->data, s.x->data, tare__tensor_bytes(y));
    for (int64_t i = 0; i < s.indices->count; i++) {
        int64_t to, from;
        TARE_TRY(partner_of(call, &s, i, &to, source, &from));
        const bool is_first = counts != NULL && counts[to]++ == 0 && !includes_self;
        if ((f == replaced || is_first) && source != NULL)
            copy_elements(source, from, y, to, 1);
        else
            tare__tensor_set(y, to,
                             f(tare__tensor_get(y, to),
                               source != NULL ? tare__tensor_get(source, from) : number));
    }
    if (is_mean) divide_by_counts(y, counts, includes_self);
    return TARE_OK;
}

static tare_status scatter_reference(op_call *call) {
    const char *name;
    combine f = replaced;
    TARE_TRY(tare__call_text(call, REDUCE, "", &name));
    TARE_TRY(combine_named(call, name, &f));
    return scatter_by(call, f, strcmp(name, "mean") == 0);
}

static tare_status scatter_add_reference(op_call *call) {
    return scatter_by(call, added, false);
}

// --- index_add, index_copy: slices written at indices along a dimension ---

static tare_status read_slices(op_call *call, line_indices *s, const tare_tensor **source) {
    TARE_TRY(read_line(call, s));
    TARE_TRY(tare__call_need_tensor(call, 3, source));
    bool fits = s->x->ndim > 0 && s->indices->ndim <= 1 && (*source)->ndim == s->x->ndim &&
                (*source)->dtype == s->x->dtype && s->x->q == NULL;
    for (int d = 0; fits && d < s->x->ndim; d++)
        fits = (*source)->shape[d] == (d == s->dim ? s->indices->count : s->x->shape[d]);
    if (fits) return TARE_OK;
    return tare__call_fail(call, "source of shape %s (or its dtype) does not fit %s",
                           tare__call_shape_text(call, *source), tare__call_shape_text(call, s->x));
}

static tare_status index_slices_shape(op_call *call) {
    line_indices s;
    const tare_tensor *source;
    TARE_TRY(read_slices(call, &s, &source));
    return tare__shape_same(call);
}

static tare_status read_copied(op_call *call, slices_call *out) {
    line_indices s;
    *out = (slices_call){0};
    TARE_TRY(read_slices(call, &s, &out->source));
    out->x = s.x;
    out->indices = s.indices;
    out->dim = s.dim;
    out->count = s.indices->count;
    out->size = s.x->shape[s.dim];
    out->inner = tare__inner_count(s.x, s.dim);
    out->outer = 1;
    for (int d = 0; d < s.dim; d++) out->outer *= s.x->shape[d];
    return TARE_OK;
}

tare_status tare__slices_put(op_call *call, const slices_call *s, void *y) {
    const size_t bytes = (size_t)s->inner * tare_dtype_size(s->x->dtype);
    int64_t at;
    for (int64_t k = 0; k < s->count; k++) TARE_TRY(index_at(call, s->indices, k, s->size, &at));
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t k = 0; k < s->count; k++) {
            TARE_TRY(index_at(call, s->indices, k, s->size, &at));
            memcpy((char *)y + (size_t)(o * s->size + at) * bytes,
                   (const char *)s->source->data + (size_t)(o * s->count + k) * bytes, bytes);
        }
    return TARE_OK;
}

static tare_status index_add_reference(op_call *call) {
    double factor;
    slices_call s;
    TARE_TRY(read_copied(call, &s));
    TARE_TRY(tare__call_double(call, 4, 1, &factor));
    tare_tensor *y = tare__call_out(call);
    memcpy(y->data, s.x->data, tare__tensor_bytes(y));
    for (int64_t i = 0; i < s.source->count; i++) {
        int64_t at;
        TARE_TRY(index_at(call, s.indices, i / s.inner % s.count, s.size, &at));
        const int64_t to = (i / s.inner / s.count * s.size + at) * s.inner + i % s.inner;
        tare__tensor_set(y, to, tare__tensor_get(y, to) + factor * tare__tensor_get(s.source, i));
    }
    return TARE_OK;
}

static tare_status index_copy_reference(op_call *call) {
    slices_call s;
    TARE_TRY(read_copied(call, &s));
    tare_tensor *y = tare__call_out(call);
    memcpy(y->data, s.x->data, tare__tensor_bytes(y));
    return tare__slices_put(call, &s, y->data);
}

// The index vector of index_put if it is the only index and the others are None; else NULL. *dim:
// its dimension.
static const tare_tensor *only_vector(const value *indices, int *dim) {
    const tare_tensor *found = NULL;
    if (indices == NULL || !tare__value_has_items(indices)) return NULL;
    for (uint32_t i = 0; i < indices->count; i++) {
        const value *v = &indices->as.items[i];
        if (v->kind == VALUE_NONE) continue;
        if (found != NULL || v->kind != VALUE_TENSOR || v->as.tensor->ndim != 1) return NULL;
        found = v->as.tensor;
        *dim = (int)i;
    }
    const bool is_index =
        found != NULL && (found->dtype == TARE_INT64 || found->dtype == TARE_INT32);
    return is_index ? found : NULL;
}

static bool covers(const slices_call *s) {
    bool fits = s->dim < s->x->ndim && s->source->ndim == s->x->ndim &&
                s->source->dtype == s->x->dtype && s->x->q == NULL;
    for (int d = 0; fits && d < s->x->ndim; d++)
        fits = s->source->shape[d] == (d == s->dim ? s->indices->count : s->x->shape[d]);
    return fits;
}

tare_status tare__slices_read(op_call *call, slices_call *out, bool *is_known) {
    bool accumulates;
    *is_known = true;
    if (strcmp(call->op->id, "index_copy") == 0) return read_copied(call, out);
    *out = (slices_call){0};
    out->indices = only_vector(call->param[1], &out->dim);
    TARE_TRY(tare__call_need_tensor(call, 0, &out->x));
    TARE_TRY(tare__call_need_tensor(call, 2, &out->source));
    TARE_TRY(tare__call_bool(call, 3, false, &accumulates));
    *is_known = out->indices != NULL && !accumulates && covers(out);
    if (!*is_known) return TARE_OK;
    out->count = out->indices->count;
    out->size = out->x->shape[out->dim];
    out->inner = tare__inner_count(out->x, out->dim);
    out->outer = 1;
    for (int d = 0; d < out->dim; d++) out->outer *= out->x->shape[d];
    return TARE_OK;
}

// --- rows ---

#define ATEN(name) "|torch.ops.aten." name

// clang-format off
static const op_info rows[] = {
    {.id = "index_select", .functions = "torch.index_select" ATEN("index_select.default"), .methods = "index_select",
     .params = "input/self|dim|index", .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS, .shape = index_select_shape, .reference = index_select_reference},
    {.id = "gather", .functions = "torch.gather" ATEN("gather.default"), .methods = "gather", .params = "input/self|dim|index|sparse_grad",
     .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS, .shape = gather_shape, .reference = gather_reference, .parts = gather_parts},
    {.id = "scatter", .functions = "torch.scatter" ATEN("scatter.src") ATEN("scatter.value") ATEN("scatter.reduce") ATEN("scatter.value_reduce") ATEN("scatter_.src") ATEN("scatter_.value"), .methods = "scatter|scatter_",
     .params = "input/self|dim|index|src/value|reduce", .shape = scatter_shape, .reference = scatter_reference},
    {.id = "scatter_add", .functions = "torch.scatter_add" ATEN("scatter_add.default") ATEN("scatter_add_.default"), .methods = "scatter_add|scatter_add_",
     .params = "input/self|dim|index|src", .shape = scatter_shape, .reference = scatter_add_reference},
    {.id = "scatter_reduce", .functions = "torch.scatter_reduce" ATEN("scatter_reduce.two") ATEN("scatter_reduce_.two"), .methods = "scatter_reduce|scatter_reduce_",
     .params = "input/self|dim|index|src|reduce|include_self", .shape = scatter_shape, .reference = scatter_reference},
    {.id = "index_add", .functions = "torch.index_add" ATEN("index_add.default") ATEN("index_add_.default"), .methods = "index_add|index_add_",
     .params = "input/self|dim|index|source|alpha", .shape = index_slices_shape, .reference = index_add_reference},
    {.id = "index_copy", .functions = "torch.index_copy" ATEN("index_copy.default") ATEN("index_copy_.default"), .methods = "index_copy|index_copy_",
     .params = "input/self|dim|index|source", .shape = index_slices_shape, .reference = index_copy_reference},
};
// clang-format on

const op_table tare__scatter_ops = OP_TABLE(rows);
