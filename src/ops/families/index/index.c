// SPDX-License-Identifier: Apache-2.0
// Indexing with tensors and masks: x[i, :, j], and assignments to it.
#include "ops/families/index/index.h"

#include <string.h>

#include "ops/families/families.h"
#include "ops/families/index/elements.h"
#include "ops/parts.h"
#include "ops/rules.h"

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

// Runs of the result in order: of its dimensions before those of the indices, of what the indices
// choose, and of those behind.
typedef struct index_loop {
    int ndim;
    int64_t size[TARE_MAX_DIMS], step[TARE_MAX_DIMS]; // step: in x
    int64_t count;
} index_loop;
typedef struct index_walk {
    int64_t run;   // elements
    int64_t start; // offset in x of the first slices and of the ints
    index_loop before, behind;
    int64_t many, first_chosen;
    const int64_t *chosen; // offsets in x of what the indices choose, from the first that is read
} index_walk;

static int64_t many_of(const index_plan *p) {
    int64_t many = 1;
    for (int d = 0; d < p->many_ndim; d++) many *= p->many[d];
    return many;
}

static void add_loop(index_loop *l, int64_t size, int64_t step) {
    l->size[l->ndim] = size;
    l->step[l->ndim++] = step;
    l->count *= size;
}

static void find_loops(const index_plan *p, index_walk *w) {
    int kept = 0; // dimensions of the result that do not come from indices
    for (int d = 0; d < p->x->ndim; d++) {
        const indexed_dim *in = &p->dim[d];
        const int64_t step = tare__inner_count(p->x, d);
        kept += p->made[d];
        if (in->index != NULL) continue;
        w->start += in->start * step;
        if (!in->is_slice) continue;
        add_loop(kept < p->many_at ? &w->before : &w->behind, in->count, in->step * step);
        kept++;
    }
    // A run covers the last dimensions.
    index_loop *last = &w->behind;
    for (int64_t covered = 1; covered < w->run && last->ndim > 0;) {
        covered *= last->size[--last->ndim];
        last->count /= last->size[last->ndim];
    }
}

// Adds what an index chooses to the offsets, which are of no use where it fails.
static tare_status add_chosen(op_call *call, const index_plan *p, int d, int64_t first,
                              int64_t count, int64_t *offsets) {
    const indexed_dim *in = &p->dim[d];
    const int64_t size = p->x->shape[d], step = tare__inner_count(p->x, d);
    const bool is_plain = in->index->count == many_of(p);
    const int64_t *indices = in->index->data;
    if (is_plain && in->index->dtype == TARE_INT64 &&
        add_offsets(indices + first, count, size, step, offsets))
        return TARE_OK;
    for (int64_t i = 0; i < count; i++) {
        int64_t at, from = first + i;
        if (!is_plain) from = tare__strided_offset(p->many_ndim, p->many, in->stride, from);
        TARE_TRY(index_at(call, in->index, from, size, &at));
        offsets[i] += at * step;
    }
    return TARE_OK;
}

// For runs [first, end) of the result, at least one.
static tare_status begin_walk(op_call *call, const index_plan *p, int64_t run, int64_t first,
                              int64_t end, index_walk *w) {
    *w = (index_walk){.run = run, .before.count = 1, .behind.count = 1, .many = many_of(p)};
    find_loops(p, w);
    const int64_t m = first / w->behind.count, last = (end - 1) / w->behind.count;
    const bool is_part = m / w->many == last / w->many;
    const int64_t count = is_part ? last - m + 1 : w->many;
    w->first_chosen = is_part ? m % w->many : 0;
    int64_t *offsets = tare__arena_array(call->memory, (size_t)count, sizeof *offsets);
    if (offsets == NULL) return tare__out_of_memory(call->err);
    memset(offsets, 0, (size_t)count * sizeof *offsets);
    for (int d = 0; d < p->x->ndim; d++)
        if (p->dim[d].index != NULL)
            TARE_TRY(add_chosen(call, p, d, w->first_chosen, count, offsets));
    w->chosen = offsets;
    return TARE_OK;
}

// The offsets in x of runs from i on, up to PART_BLOCK of them and to `end`. Returns their number.
static int64_t next_offsets(const index_walk *w, int64_t i, int64_t end, int64_t *out) {
    const index_loop *before = &w->before, *behind = &w->behind;
    const int64_t most = end - i < PART_BLOCK ? end - i : PART_BLOCK;
    int64_t count = 0;
    while (count < most) {
        const int64_t at = i + count, m = at / behind->count % w->many;
        const int64_t *chosen = w->chosen + m - w->first_chosen;
        const int64_t base =
            w->start + tare__strided_offset(before->ndim, before->size, before->step,
                                            at / behind->count / w->many);
        if (behind->count == 1) {
            for (int64_t k = 0; count < most && k < w->many - m; k++)
                out[count++] = base + chosen[k];
            continue;
        }
        for (int64_t k = at % behind->count; count < most && k < behind->count; k++)
            out[count++] =
                base + *chosen + tare__strided_offset(behind->ndim, behind->size, behind->step, k);
    }
    return count;
}

tare_status tare__index_shape(op_call *call) {
    index_plan p;
    TARE_TRY(plan_index(call, call->param[1], &p));
    return tare__call_result(call, p.x->dtype, p.ndim, p.shape, p.x->q);
}

// A part is a run of contiguous elements.
static tare_status index_part(op_call *call, int64_t first, int64_t end) {
    index_plan p;
    index_walk w;
    int64_t offsets[PART_BLOCK];
    tare_tensor *y = tare__call_out(call);
    if (first == end) return TARE_OK;
    TARE_TRY(plan_index(call, call->param[1], &p));
    TARE_TRY(begin_walk(call, &p, run_of(&p), first, end, &w));
    for (int64_t i = first, count; i < end; i += count) {
        count = next_offsets(&w, i, end, offsets);
        if (w.run == 1)
            pick_elements(p.x, 0, offsets, count, y, i);
        else
            for (int64_t k = 0; k < count; k++)
                copy_elements(p.x, offsets[k], y, (i + k) * w.run, w.run);
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
static tare_status put_runs(op_call *call, const index_plan *p, const tare_tensor *values,
                            bool accumulates, int64_t run, int64_t count) {
    index_walk w;
    int64_t offsets[PART_BLOCK], stride[TARE_MAX_DIMS];
    tare_tensor *y = tare__call_out(call);
    TARE_TRY(begin_walk(call, p, run, 0, count, &w));
    tare__broadcast_strides(values, p->ndim, p->shape, stride);
    const bool is_whole = values->count == count * run;
    for (int64_t i = 0, found; i < count; i += found) {
        found = next_offsets(&w, i, count, offsets);
        if (is_whole && run == 1 && !accumulates) {
            put_elements(values, i, offsets, found, y);
            continue;
        }
        for (int64_t k = 0; k < found; k++) {
            const int64_t to = offsets[k],
                          from = is_whole ? (i + k) * run
                                          : tare__strided_offset(p->ndim, p->shape, stride, i + k);
            if (accumulates)
                tare__tensor_set(y, to, tare__tensor_get(y, to) + tare__tensor_get(values, from));
            else
                copy_elements(values, from, y, to, run);
        }
    }
    return TARE_OK;
}

static tare_status index_put_reference(op_call *call) {
    index_plan p;
    const tare_tensor *values;
    int64_t count;
    bool accumulates;
    TARE_TRY(plan_put(call, &p, &values));
    TARE_TRY(tare__call_bool(call, 3, false, &accumulates));
    tare_tensor *y = tare__call_out(call);
    memcpy(y->data, p.x->data, tare__tensor_bytes(y));
    if (!tare__shape_count(p.ndim, p.shape, &count))
        return tare__call_fail(call, "the indices are too many");
    const int64_t run = values->count == count && !accumulates ? run_of(&p) : 1;
    return count > 0 ? put_runs(call, &p, values, accumulates, run, count / run) : TARE_OK;
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
    {.id = "masked_scatter", .functions = "torch.masked_scatter" ATEN("masked_scatter.default") ATEN("masked_scatter_.default"), .methods = "masked_scatter|masked_scatter_",
     .params = "input/self|mask|source", .shape = masked_scatter_shape, .reference = masked_scatter_reference},
    {.id = "index", .functions = "torch.ops.aten.index.Tensor", .params = "input/self|indices", .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS,
     .shape = index_list_shape, .reference = tare__index_reference, .parts = tare__index_parts},
    {.id = "index_put", .functions = "torch.index_put" ATEN("index_put.default") ATEN("index_put_.default"), .methods = "index_put|index_put_",
     .params = "input/self|indices|values|accumulate", .shape = index_put_shape, .reference = index_put_reference},
    {.id = "nonzero", .functions = "torch.nonzero" ATEN("nonzero.default") "|torch.argwhere" ATEN("argwhere.default"), .methods = "nonzero|argwhere", .params = "input/self", .shape = nonzero_shape, .reference = nonzero_reference},
};
// clang-format on

const op_table tare__index_ops = OP_TABLE(rows);
