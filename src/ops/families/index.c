// SPDX-License-Identifier: Apache-2.0
// Reads and writes elements at indices that are given by tensors.
#include "ops/families/index.h"

#include <math.h>
#include <string.h>

#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/parts.h"
#include "ops/rules.h"

enum { INDEX_WORK = 8 }; // finding an element takes as long as copying so many

static tare_status need_indices(op_call *call, const tare_tensor *t) {
    if (t->dtype == TARE_INT64 || t->dtype == TARE_INT32) return TARE_OK;
    return tare__call_fail(call, "indices must be torch.int64 or torch.int32, found %s",
                           tare_dtype_name(t->dtype));
}

// Reads index i for a dimension of `size` elements; negative indices count from its end.
static tare_status index_at(op_call *call, const tare_tensor *indices, int64_t i, int64_t size,
                            int64_t *out) {
    const int64_t index = indices->dtype == TARE_INT64 ? ((const int64_t *)indices->data)[i]
                                                       : tare__tensor_get_int(indices, i);
    *out = index < 0 ? index + size : index;
    if (*out >= 0 && *out < size) return TARE_OK;
    return tare__call_fail(call, "index %lld is outside of a dimension of %lld", (long long)index,
                           (long long)size);
}

static void copy_elements(const tare_tensor *from, int64_t i, tare_tensor *to, int64_t k,
                          int64_t count) {
    const size_t size = tare_dtype_size(to->dtype);
    if (count == 1 && size == sizeof(uint32_t)) { // a fixed size becomes one move
        memcpy((uint32_t *)to->data + k, (const uint32_t *)from->data + i, sizeof(uint32_t));
        return;
    }
    memcpy((char *)to->data + (size_t)k * size, (const char *)from->data + (size_t)i * size,
           (size_t)count * size);
}

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

// Elements [first, end) of a row of the indices along their last dimension, which begins at `row`.
static tare_status gather_row(op_call *call, const line_indices *s, int64_t row, int64_t first,
                              int64_t end) {
    const tare_tensor *x = s->x, *indices = s->indices;
    const int last = x->ndim - 1;
    const int64_t size = x->ndim > 0 ? x->shape[s->dim] : 1;
    const int64_t step = x->ndim > 0 ? tare__inner_count(x, s->dim) : 1;
    int64_t from = 0, x_step = x->ndim > 0 ? x->shape[last] : 1, rest = row;
    if (x->ndim > 0) rest /= indices->shape[last];
    for (int d = last - 1; d >= 0; d--) {
        if (d != s->dim) from += rest % indices->shape[d] * x_step;
        rest /= indices->shape[d];
        x_step *= x->shape[d];
    }
    for (int64_t k = first; k < end; k++) {
        int64_t at;
        TARE_TRY(index_at(call, indices, row + k, size, &at));
        copy_elements(x, from + at * step + (s->dim == last || x->ndim == 0 ? 0 : k),
                      tare__call_out(call), row + k, 1);
    }
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

// --- indexing with tensors: x[i, :, j] ---

// How one dimension of x is indexed: by a tensor, an int or a slice.
typedef struct indexed_dim {
    const tare_tensor *index;      // NULL: an int or a slice
    int64_t stride[TARE_MAX_DIMS]; // of the index in the indices' broadcast shape
    bool is_slice;
    int64_t start, step, count; // of a slice; start: also the index if it is an int
} indexed_dim;

typedef struct index_plan {
    const tare_tensor *x;
    indexed_dim dim[TARE_MAX_DIMS];
    int made[TARE_MAX_DIMS + 1]; // number of new dimensions of size 1 before each
    int many_ndim;               // the broadcast shape of the indices
    int64_t many[TARE_MAX_DIMS];
    int many_at; // position of that shape in the result's dimensions
    int ndim;
    int64_t shape[2 * TARE_MAX_DIMS];
} index_plan;

// True for a list such as [0, 2, 1], which is treated like a tensor.
static bool is_int_list(const value *v) {
    if (v->kind != VALUE_LIST) return false;
    for (uint32_t i = 0; i < v->count; i++)
        if (v->as.items[i].kind != VALUE_INT) return false;
    return v->count > 0;
}

static bool is_many(const value *v) {
    return is_int_list(v) || (v->kind == VALUE_TENSOR && v->as.tensor->ndim > 0);
}

bool tare__index_has_tensor(const value *index) {
    if (index == NULL) return false;
    if (is_many(index)) return true;
    const bool is_list = index->kind == VALUE_TUPLE || index->kind == VALUE_LIST;
    for (uint32_t i = 0; is_list && i < index->count; i++)
        if (is_many(&index->as.items[i])) return true;
    return false;
}

// Converts a list to a tensor. It and its data are in the call's memory and need no reference.
static tare_status tensor_of_list(op_call *call, const value *list, const tare_tensor **out) {
    tare_tensor *t = tare__arena_alloc(call->memory, sizeof *t);
    int64_t *data = tare__arena_array(call->memory, list->count, sizeof *data);
    if (t == NULL || data == NULL) return tare__out_of_memory(call->err);
    *t = (tare_tensor){.dtype = TARE_INT64, .ndim = 1, .count = list->count, .data = data};
    t->shape[0] = list->count;
    for (uint32_t i = 0; i < list->count; i++) data[i] = list->as.items[i].as.integer;
    *out = t;
    return TARE_OK;
}

static tare_status read_item(op_call *call, const value *v, int64_t size, indexed_dim *out) {
    if (v->kind == VALUE_SLICE) {
        out->is_slice = true;
        return tare__slice_of(call, v, size, &out->start, &out->step, &out->count);
    }
    if (is_int_list(v)) return tensor_of_list(call, v, &out->index);
    if (v->kind == VALUE_TENSOR) {
        out->index = v->as.tensor;
        if (out->index->dtype == TARE_BOOL || out->index->dtype == TARE_UINT8)
            return tare__call_fail(call, "a mask as index must be torch.bool and have dimensions");
        return need_indices(call, out->index);
    }
    if (v->kind == VALUE_BOOL || !tare__call_integer(v, &out->start) || out->start < -size ||
        out->start >= size)
        return tare__call_fail(call, "an index must be a tensor, an int inside of the dimension, a "
                                     "slice, None or Ellipsis");
    if (out->start < 0) out->start += size;
    return TARE_OK;
}

static void keep_dim(const tare_tensor *x, int d, indexed_dim *out) {
    *out = (indexed_dim){.is_slice = true, .step = 1, .count = x->shape[d]};
}

static bool is_mask(const value *v) {
    return v->kind == VALUE_TENSOR && v->as.tensor->dtype == TARE_BOOL && v->as.tensor->ndim > 0;
}

// Replaces a mask by index tensors, one for each of its dimensions, of the elements that it
// selects.
static tare_status read_mask(op_call *call, const tare_tensor *mask, const tare_tensor *x, int at,
                             indexed_dim *out) {
    int64_t count = 0;
    if (mask->ndim > x->ndim - at ||
        memcmp(mask->shape, x->shape + at, (size_t)mask->ndim * sizeof *mask->shape) != 0)
        return tare__call_fail(call, "a mask of shape %s does not fit %s",
                               tare__call_shape_text(call, mask), tare__call_shape_text(call, x));
    if (mask->data == NULL)
        return tare__call_fail(call, "how many elements a mask marks depends on the data");
    for (int64_t i = 0; i < mask->count; i++) count += tare__tensor_get_int(mask, i) != 0;
    for (int d = 0; d < mask->ndim; d++) {
        tare_tensor *t = tare__arena_alloc(call->memory, sizeof *t);
        int64_t *indices = tare__arena_array(call->memory, (size_t)count + 1, sizeof *indices);
        if (t == NULL || indices == NULL) return tare__out_of_memory(call->err);
        *t = (tare_tensor){.dtype = TARE_INT64, .ndim = 1, .count = count, .data = indices};
        t->shape[0] = count;
        const int64_t inner = tare__inner_count(mask, d);
        for (int64_t i = 0; i < mask->count; i++)
            if (tare__tensor_get_int(mask, i) != 0) *indices++ = i / inner % mask->shape[d];
        out[d] = (indexed_dim){.index = t};
    }
    return TARE_OK;
}

static tare_status read_items(op_call *call, const value *items, uint32_t count, index_plan *p) {
    int consumed = 0, next = 0, made = 0;
    for (uint32_t i = 0; i < count; i++)
        consumed += is_mask(&items[i])
                        ? items[i].as.tensor->ndim
                        : items[i].kind != VALUE_NONE && items[i].kind != VALUE_ELLIPSIS;
    if (consumed > p->x->ndim) return tare__call_fail(call, "too many indices");
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].kind == VALUE_NONE) {
            p->made[next]++;
            made++;
        } else if (items[i].kind == VALUE_ELLIPSIS) {
            for (int k = p->x->ndim - consumed; k > 0 && next < p->x->ndim; k--, next++)
                keep_dim(p->x, next, &p->dim[next]);
            consumed = p->x->ndim; // a second one has no effect
        } else if (next >= p->x->ndim) {
            return tare__call_fail(call, "too many indices");
        } else if (is_mask(&items[i])) {
            TARE_TRY(read_mask(call, items[i].as.tensor, p->x, next, &p->dim[next]));
            next += items[i].as.tensor->ndim;
        } else {
            TARE_TRY(read_item(call, &items[i], p->x->shape[next], &p->dim[next]));
            next++;
        }
    }
    for (; next < p->x->ndim; next++) keep_dim(p->x, next, &p->dim[next]);
    return p->x->ndim + made <= TARE_MAX_DIMS ? TARE_OK
                                              : tare__call_fail(call, "too many dimensions");
}

static tare_status broadcast_indices(op_call *call, index_plan *p) {
    tare_tensor so_far = {0};
    for (int d = 0; d < p->x->ndim; d++)
        if (p->dim[d].index != NULL) {
            TARE_TRY(tare__broadcast(call, &so_far, p->dim[d].index, &p->many_ndim, p->many));
            so_far.ndim = p->many_ndim;
            memcpy(so_far.shape, p->many, sizeof p->many);
        }
    for (int d = 0; d < p->x->ndim; d++)
        if (p->dim[d].index != NULL)
            tare__broadcast_strides(p->dim[d].index, p->many_ndim, p->many, p->dim[d].stride);
    return TARE_OK;
}

// Chooses the position of the indices' dimensions in the result: that of the indexed dimensions if
// these are adjacent, else the front.
static void arrange_indices(index_plan *p) {
    int position = 0, first = -1;
    bool apart = false;
    for (int d = 0; d < p->x->ndim; d++) {
        position += p->made[d];
        if (p->dim[d].is_slice) {
            position++;
            continue;
        }
        if (first < 0) first = position;
        apart = apart || position != first;
    }
    p->many_at = apart || first < 0 ? 0 : first;
}

static tare_status index_result(op_call *call, index_plan *p) {
    int64_t kept[2 * TARE_MAX_DIMS];
    int count = 0;
    arrange_indices(p);
    for (int d = 0; d <= p->x->ndim; d++) {
        for (int i = 0; i < p->made[d]; i++) kept[count++] = 1;
        if (d < p->x->ndim && p->dim[d].is_slice) kept[count++] = p->dim[d].count;
    }
    if (count + p->many_ndim > TARE_MAX_DIMS) return tare__call_fail(call, "too many dimensions");
    for (int i = 0; i < p->many_at; i++) p->shape[p->ndim++] = kept[i];
    for (int i = 0; i < p->many_ndim; i++) p->shape[p->ndim++] = p->many[i];
    for (int i = p->many_at; i < count; i++) p->shape[p->ndim++] = kept[i];
    return TARE_OK;
}

static tare_status plan_index(op_call *call, const value *index, index_plan *p) {
    *p = (index_plan){0};
    TARE_TRY(tare__call_need_tensor(call, 0, &p->x));
    if (p->x->q != NULL && !tare__qscheme_is_per_tensor(p->x->q->scheme))
        return tare__call_fail(call, "has no form for tensors quantized per channel");
    const bool is_list =
        (index->kind == VALUE_TUPLE || index->kind == VALUE_LIST) && !is_int_list(index);
    TARE_TRY(read_items(call, is_list ? index->as.items : index, is_list ? index->count : 1, p));
    TARE_TRY(broadcast_indices(call, p));
    return index_result(call, p);
}

// The position in the result of its element i.
static void position_of(const index_plan *p, int64_t i, int64_t position[2 * TARE_MAX_DIMS]) {
    for (int d = p->ndim - 1; d >= 0; d--) {
        position[d] = i % p->shape[d];
        i /= p->shape[d];
    }
}

// The dimensions of the result before those that a run of elements covers.
static int dims_before(const index_plan *p, int64_t run) {
    int d = p->ndim;
    for (int64_t covered = 1; d > 0 && covered < run; d--) covered *= p->shape[d - 1];
    return d;
}

// Goes to the next run.
static void advance(const index_plan *p, int dims, int64_t position[2 * TARE_MAX_DIMS]) {
    for (int d = dims - 1; d >= 0 && ++position[d] == p->shape[d]; d--) position[d] = 0;
}

// Finds the offset in x of the element at a position in the result.
static tare_status element_at(op_call *call, const index_plan *p,
                              const int64_t position[2 * TARE_MAX_DIMS], int64_t *out) {
    int kept = 0; // dimensions of the result that do not come from indices
    *out = 0;
    for (int d = 0; d < p->x->ndim; d++) {
        const indexed_dim *in = &p->dim[d];
        int64_t at = in->start;
        kept += p->made[d];
        if (in->is_slice) {
            at += position[kept < p->many_at ? kept : kept + p->many_ndim] * in->step;
            kept++;
        } else if (in->index != NULL) {
            int64_t from = 0;
            for (int k = 0; k < p->many_ndim; k++) from += position[p->many_at + k] * in->stride[k];
            TARE_TRY(index_at(call, in->index, from, p->x->shape[d], &at));
        }
        *out = *out * p->x->shape[d] + at;
    }
    return TARE_OK;
}

// The number of elements that are contiguous in both x and the result: the last dimensions that are
// taken as a whole, and the slice of the next one.
static int64_t run_of(const index_plan *p) {
    int64_t run = 1;
    for (int d = p->x->ndim - 1; d >= 0; d--) {
        const indexed_dim *in = &p->dim[d];
        if (!in->is_slice || in->step != 1) break;
        run *= in->count;
        if (in->count != p->x->shape[d]) break;
    }
    return run > 0 ? run : 1;
}

tare_status tare__index_shape(op_call *call) {
    index_plan p;
    TARE_TRY(plan_index(call, call->param[1], &p));
    return tare__call_result(call, p.x->dtype, p.ndim, p.shape, p.x->q);
}

// A part is a run of contiguous elements.
static tare_status index_part(op_call *call, int64_t first, int64_t end) {
    index_plan p;
    int64_t position[2 * TARE_MAX_DIMS] = {0};
    TARE_TRY(plan_index(call, call->param[1], &p));
    const int64_t run = run_of(&p);
    const int dims = dims_before(&p, run);
    position_of(&p, first * run, position);
    for (int64_t i = first; i < end; i++) {
        int64_t from;
        TARE_TRY(element_at(call, &p, position, &from));
        copy_elements(p.x, from, tare__call_out(call), i * run, run);
        advance(&p, dims, position);
    }
    return TARE_OK;
}

// All runs of a call.
static tare_status index_all(op_call *call, int64_t first, int64_t end) {
    index_plan p;
    if (first == end) return TARE_OK;
    TARE_TRY(plan_index(call, call->param[1], &p));
    return index_part(call, 0, tare__call_out(call)->count / run_of(&p));
}

// Each thread reads the indices again, which takes as long as the mask is large: with one the call
// is a single part.
tare_status tare__index_parts(op_call *call, call_parts *out) {
    index_plan p;
    const value *index = call->param[1];
    bool has_mask = is_mask(index);
    TARE_TRY(plan_index(call, index, &p));
    if (tare__value_is_list(index))
        for (uint32_t i = 0; i < index->count; i++) has_mask |= is_mask(&index->as.items[i]);
    if (has_mask) {
        *out = (call_parts){
            .count = 1, .work = tare__call_out(call)->count + INDEX_WORK, .run = index_all};
        return TARE_OK;
    }
    const int64_t run = run_of(&p);
    *out = (call_parts){
        .count = tare__call_out(call)->count / run, .work = run + INDEX_WORK, .run = index_part};
    return TARE_OK;
}

tare_status tare__index_reference(op_call *call) {
    return tare__run_parts(call, tare__index_parts);
}

// In aten's lists of indices None stands for a whole dimension, while in getitem it adds one. So
// replaces None by a full slice.
static tare_status spell_out_indices(op_call *call) {
    const value *given = call->param[1];
    if (given == NULL || (given->kind != VALUE_LIST && given->kind != VALUE_TUPLE)) return TARE_OK;
    value *list = tare__arena_alloc(call->memory, sizeof *list);
    const value whole = tare__value_sequence(call->memory, VALUE_SLICE, 3);
    if (list == NULL || whole.as.items == NULL) return tare__out_of_memory(call->err);
    *list = tare__value_sequence(call->memory, VALUE_TUPLE, given->count);
    if (list->as.items == NULL) return tare__out_of_memory(call->err);
    for (uint32_t i = 0; i < given->count; i++)
        list->as.items[i] = given->as.items[i].kind == VALUE_NONE ? whole : given->as.items[i];
    call->param[1] = list;
    return TARE_OK;
}

// --- index_put ---

// True if the data of a mask are not known yet.
static bool waits_for_mask(const value *indices) {
    const bool is_list = indices->kind == VALUE_TUPLE || indices->kind == VALUE_LIST;
    for (uint32_t i = 0; is_list && i < indices->count; i++)
        if (is_mask(&indices->as.items[i]) && indices->as.items[i].as.tensor->data == NULL)
            return true;
    return false;
}

static tare_status plan_put(op_call *call, index_plan *p, const tare_tensor **out) {
    const tare_tensor *values;
    int ndim;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(plan_index(call, call->param[1], p));
    TARE_TRY(tare__call_need_tensor(call, 2, &values));
    *out = values;
    tare_tensor named = {.ndim = p->ndim};
    memcpy(named.shape, p->shape, (size_t)p->ndim * sizeof *p->shape);
    TARE_TRY(tare__broadcast(call, &named, values, &ndim, shape));
    if (ndim != p->ndim || memcmp(shape, p->shape, (size_t)ndim * sizeof *shape) != 0 ||
        values->dtype != p->x->dtype)
        return tare__call_fail(call, "values of shape %s (or their dtype) do not fit %s",
                               tare__call_shape_text(call, values),
                               tare__call_shape_text(call, &named));
    return TARE_OK;
}

// The result has the input's shape, regardless of the number of elements that a mask selects.
static tare_status index_put_shape(op_call *call) {
    index_plan p;
    const tare_tensor *values;
    if (call->param[1] == NULL) return tare__call_fail(call, "the indices are missing");
    TARE_TRY(spell_out_indices(call));
    if (!waits_for_mask(call->param[1])) TARE_TRY(plan_put(call, &p, &values));
    return tare__shape_same(call);
}

// Values of the result's shape lie in its order, so that runs of them are copied.
static tare_status index_put_reference(op_call *call) {
    index_plan p;
    const tare_tensor *values;
    int64_t stride[TARE_MAX_DIMS], position[2 * TARE_MAX_DIMS] = {0}, count;
    bool accumulates;
    TARE_TRY(plan_put(call, &p, &values));
    TARE_TRY(tare__call_bool(call, 3, false, &accumulates));
    tare_tensor *y = tare__call_out(call);
    memcpy(y->data, p.x->data, tare__tensor_bytes(y));
    tare__broadcast_strides(values, p.ndim, p.shape, stride);
    if (!tare__shape_count(p.ndim, p.shape, &count))
        return tare__call_fail(call, "the indices are too many");
    const bool is_whole = values->count == count;
    const int64_t run = is_whole && !accumulates ? run_of(&p) : 1;
    const int dims = dims_before(&p, run);
    for (int64_t i = 0; i < count; i += run) {
        int64_t to;
        const int64_t from = is_whole ? i : tare__strided_offset(p.ndim, p.shape, stride, i);
        TARE_TRY(element_at(call, &p, position, &to));
        if (accumulates)
            tare__tensor_set(y, to, tare__tensor_get(y, to) + tare__tensor_get(values, from));
        else
            copy_elements(values, from, y, to, run);
        advance(&p, dims, position);
    }
    return TARE_OK;
}

// --- masked_scatter: the selected elements are read from source in order ---

static tare_status masked_scatter_shape(op_call *call) {
    const tare_tensor *x, *mask, *source;
    int ndim;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_need_tensor(call, 1, &mask));
    TARE_TRY(tare__call_need_tensor(call, 2, &source));
    TARE_TRY(tare__broadcast(call, x, mask, &ndim, shape));
    if (mask->dtype != TARE_BOOL || source->dtype != x->dtype || x->q != NULL)
        return tare__call_fail(call,
                               "needs a mask of torch.bool and a source of the input's dtype");
    return tare__call_result(call, x->dtype, ndim, shape, NULL);
}

static tare_status masked_scatter_reference(op_call *call) {
    const tare_tensor *x, *mask, *source;
    int64_t x_stride[TARE_MAX_DIMS], mask_stride[TARE_MAX_DIMS], next = 0;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_need_tensor(call, 1, &mask));
    TARE_TRY(tare__call_need_tensor(call, 2, &source));
    tare_tensor *y = tare__call_out(call);
    tare__broadcast_strides(x, y->ndim, y->shape, x_stride);
    tare__broadcast_strides(mask, y->ndim, y->shape, mask_stride);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t from = tare__strided_offset(y->ndim, y->shape, x_stride, i);
        const int64_t at = tare__strided_offset(y->ndim, y->shape, mask_stride, i);
        if (tare__tensor_get_int(mask, at) == 0) {
            copy_elements(x, from, y, i, 1);
            continue;
        }
        if (next == source->count)
            return tare__call_fail(call, "the mask marks more than the %lld elements of source",
                                   (long long)source->count);
        copy_elements(source, next++, y, i, 1);
    }
    return TARE_OK;
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

// --- aten's index: a list of tensors, None for a whole dimension ---

static tare_status index_list_shape(op_call *call) {
    TARE_TRY(spell_out_indices(call));
    return tare__index_has_tensor(call->param[1])
               ? tare__index_shape(call)
               : tare__call_fail(call, "the indices must be a list with at least one tensor");
}

// --- nonzero: the number of rows depends on the data, which must be known ---

static tare_status nonzero_shape(op_call *call) {
    const tare_tensor *x;
    int64_t count = 0;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (x->data == NULL)
        return tare__call_fail(call, "how many elements are not zero depends on the data");
    for (int64_t i = 0; i < x->count; i++) count += tare__tensor_get(x, i) != 0;
    const int64_t shape[] = {count, x->ndim};
    return tare__call_result(call, TARE_INT64, 2, shape, NULL);
}

static tare_status nonzero_reference(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    int64_t *row = tare__call_out(call)->data;
    for (int64_t i = 0; i < x->count; i++) {
        if (tare__tensor_get(x, i) == 0) continue;
        int64_t rest = i;
        for (int d = x->ndim - 1; d >= 0; d--) {
            row[d] = rest % x->shape[d];
            rest /= x->shape[d];
        }
        row += x->ndim;
    }
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
    {.id = "masked_scatter", .functions = "torch.masked_scatter" ATEN("masked_scatter.default") ATEN("masked_scatter_.default"), .methods = "masked_scatter|masked_scatter_",
     .params = "input/self|mask|source", .shape = masked_scatter_shape, .reference = masked_scatter_reference},
    {.id = "index_add", .functions = "torch.index_add" ATEN("index_add.default") ATEN("index_add_.default"), .methods = "index_add|index_add_",
     .params = "input/self|dim|index|source|alpha", .shape = index_slices_shape, .reference = index_add_reference},
    {.id = "index_copy", .functions = "torch.index_copy" ATEN("index_copy.default") ATEN("index_copy_.default"), .methods = "index_copy|index_copy_",
     .params = "input/self|dim|index|source", .shape = index_slices_shape, .reference = index_copy_reference},
    {.id = "index", .functions = "torch.ops.aten.index.Tensor", .params = "input/self|indices", .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS,
     .shape = index_list_shape, .reference = tare__index_reference, .parts = tare__index_parts},
    {.id = "index_put", .functions = "torch.index_put" ATEN("index_put.default") ATEN("index_put_.default"), .methods = "index_put|index_put_",
     .params = "input/self|indices|values|accumulate", .shape = index_put_shape, .reference = index_put_reference},
    {.id = "nonzero", .functions = "torch.nonzero" ATEN("nonzero.default") "|torch.argwhere" ATEN("argwhere.default"), .methods = "nonzero|argwhere", .params = "input/self", .shape = nonzero_shape, .reference = nonzero_reference},
};
// clang-format on

const op_table tare__index_ops = OP_TABLE(rows);
