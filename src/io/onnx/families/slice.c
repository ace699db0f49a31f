// SPDX-License-Identifier: Apache-2.0
// Slicing, indexing (x[..]) and slice assignment, in ONNX.
#include <string.h>

#include "io/onnx/families/families.h"
#include "io/onnx/read/rules_common.h"
#include "io/onnx/read/sizes.h"

// --- reading ---

// --- Slice ---

typedef struct cut {
    value start, stop; // None: the first element, the end
    int64_t step;      // > 0; along the flipped dimension if `flipped`
    bool flipped;
} cut;

static int64_t bounded(int64_t i, int64_t least, int64_t most) {
    return i < least ? least : i > most ? most : i;
}

// Applies Python's rules for bounds. A negative step becomes a positive one on the flipped
// dimension.
static void cut_dim(int64_t size, int64_t start, int64_t stop, int64_t step, cut *out) {
    if (start < 0) start = start < -size ? -1 : start + size;
    if (stop < 0) stop = stop < -size ? -1 : stop + size;
    *out = (cut){.flipped = step < 0, .step = step < 0 ? -step : step};
    if (step > 0) {
        start = bounded(start, 0, size);
        stop = bounded(stop, 0, size);
    } else {
        start = size - 1 - bounded(start, -1, size - 1);
        stop = size - 1 - bounded(stop, -1, size - 1);
    }
    if (start > 0) out->start = tare__int(start);
    if (stop < size) out->stop = tare__int(stop);
}

// The same for an open dimension or bound: the bounds stay as in the file.
static tare_status cut_open(onnx_call *c, const value *size, const value *start, const value *stop,
                            int64_t step, cut *out) {
    const bool is_first = start->kind == VALUE_INT && start->as.integer == 0;
    const bool is_last = tare__onnx_same_size(c, stop, size) ||
                         (stop->kind == VALUE_INT && stop->as.integer >= INT32_MAX);
    *out = (cut){.step = step};
    if (step > 0) {
        if (!is_first) out->start = *start;
        if (!is_last) out->stop = *stop;
        return TARE_OK;
    }
    if (step != -1 || start->kind != VALUE_INT || start->as.integer != -1 ||
        stop->kind != VALUE_INT || stop->as.integer > -INT32_MAX) {
        tare__onnx_blame(c->in, size);
        return tare__onnx_fail(
            c, "a slice of an open dimension with a negative step is not supported");
    }
    *out = (cut){.step = 1, .flipped = true};
    return TARE_OK;
}

static bool is_plain(const value *v) {
    return v->kind == VALUE_INT;
}

static tare_status read_cuts(onnx_call *c, const value *x, const tare_tensor *t, cut *cuts) {
    value starts[TARE_MAX_DIMS], ends[TARE_MAX_DIMS];
    int64_t axes[TARE_MAX_DIMS], steps[TARE_MAX_DIMS];
    size_t count, end_count, axis_count, step_count;
    bool has_axes, has_steps;
    TARE_TRY(tare__onnx_input_sizes(c, 1, "starts", TARE_MAX_DIMS, starts, &count, NULL));
    TARE_TRY(tare__onnx_input_sizes(c, 2, "ends", TARE_MAX_DIMS, ends, &end_count, NULL));
    TARE_TRY(tare__onnx_input_ints(c, 3, "axes", TARE_MAX_DIMS, axes, &axis_count, &has_axes));
    TARE_TRY(tare__onnx_input_ints(c, 4, "steps", TARE_MAX_DIMS, steps, &step_count, &has_steps));
    if (end_count != count || (has_axes && axis_count != count) ||
        (has_steps && step_count != count) || count > (size_t)t->ndim)
        return tare__onnx_malformed(c, "starts, ends, axes and steps have different lengths");
    for (size_t i = 0; i < count; i++) {
        value size;
        int64_t axis = (int64_t)i;
        if (has_axes) TARE_TRY(tare__onnx_axis(c, axes[i], t->ndim, &axis));
        const int64_t step = has_steps ? steps[i] : 1;
        if (step == 0 || step == INT64_MIN)
            return tare__onnx_malformed(c, "step %zu is %lld, which is out of range", i,
                                        (long long)step);
        TARE_TRY(tare__onnx_size(c, x, (int)axis, &size));
        if (is_plain(&size) && is_plain(&starts[i]) && is_plain(&ends[i]))
            cut_dim(size.as.integer, starts[i].as.integer, ends[i].as.integer, step, &cuts[axis]);
        else
            TARE_TRY(cut_open(c, &size, &starts[i], &ends[i], step, &cuts[axis]));
    }
    return TARE_OK;
}

// start:stop:step, without default values.
static tare_status slice_value(onnx_call *c, const cut *k, value *out) {
    *out = tare__value_sequence(tare__onnx_arena(c), VALUE_SLICE, 3);
    if (out->as.items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    out->as.items[0] = k->start;
    out->as.items[1] = k->stop;
    if (k->step > 1) out->as.items[2] = tare__int(k->step);
    return TARE_OK;
}

static bool takes_all(const cut *k) {
    return k->start.kind == VALUE_NONE && k->stop.kind == VALUE_NONE && k->step <= 1;
}

static tare_status flip_dims(onnx_call *c, const cut *cuts, int ndim, value *x) {
    int64_t dims[TARE_MAX_DIMS];
    size_t count = 0;
    value list;
    for (int d = 0; d < ndim; d++)
        if (cuts[d].flipped) dims[count++] = d;
    if (count == 0) return TARE_OK;
    TARE_TRY(tare__onnx_ints(c, dims, count, &list));
    return ONNX_CALL(c, x, "torch.flip", *x, list);
}

static tare_status translate_slice(onnx_call *c) {
    value x, items[TARE_MAX_DIMS], index;
    const tare_tensor *t = NULL;
    cut cuts[TARE_MAX_DIMS] = {0};
    size_t count = 0;
    TARE_TRY(tare__onnx_need_first(c, "data", &x, &t));
    const int ndim = t->ndim;
    TARE_TRY(read_cuts(c, &x, t, cuts));
    TARE_TRY(flip_dims(c, cuts, ndim, &x));
    for (int d = 0; d < ndim; d++)
        if (!takes_all(&cuts[d])) count = (size_t)d + 1;
    if (count == 0) return tare__onnx_give(c, &x);
    for (size_t i = 0; i < count; i++) TARE_TRY(slice_value(c, &cuts[i], &items[i]));
    index = items[0];
    if (count > 1) {
        index = tare__value_sequence(tare__onnx_arena(c), VALUE_TUPLE, (uint32_t)count);
        if (index.as.items == NULL) return tare__out_of_memory(tare__onnx_error(c));
        memcpy(index.as.items, items, count * sizeof *items);
    }
    const value args[] = {x, index};
    return tare__onnx_one(c, "operator.getitem", 2, args);
}

static const onnx_rule read_rows[] = {
    {"Slice", .translate = translate_slice},
};

// --- writing ---

enum { MOST_LISTED = 256 };

// --- slices of several dimensions at once ---

typedef struct slices {
    int64_t start[TARE_MAX_DIMS], end[TARE_MAX_DIMS], axis[TARE_MAX_DIMS], step[TARE_MAX_DIMS];
    int64_t other_start[TARE_MAX_DIMS], other_end[TARE_MAX_DIMS]; // for the other batch size
    size_t count;
} slices;

static const char *cut_slices(onnx_out *o, const slices *s, const char *x) {
    if (s->count == 0) return x;
    return OUT(o, "Slice", x, tare__out_sizes(o, s->start, s->other_start, s->count),
               tare__out_sizes(o, s->end, s->other_end, s->count),
               tare__out_ints(o, s->axis, s->count), tare__out_ints(o, s->step, s->count));
}

static int64_t bound(onnx_out *o, const value *v, int64_t otherwise) {
    int64_t i = otherwise;
    if (v->kind != VALUE_NONE && !tare__call_integer(v, &i))
        tare__out_refuse(o, "a slice's bound is not an int");
    return i;
}

// other: the slice for the other batch size.
static void add_slice(onnx_out *o, slices *s, const value *slice, const value *other,
                      int64_t axis) {
    const value *items = slice->as.items;
    const bool follows = other != NULL && other->kind == VALUE_SLICE;
    const value *others = follows ? other->as.items : items;
    if (items[0].kind == VALUE_NONE && items[1].kind == VALUE_NONE && items[2].kind == VALUE_NONE)
        return;
    s->start[s->count] = bound(o, &items[0], 0);
    s->end[s->count] = bound(o, &items[1], INT64_MAX);
    s->other_start[s->count] = bound(o, &others[0], 0);
    s->other_end[s->count] = bound(o, &others[1], INT64_MAX);
    s->step[s->count] = bound(o, &items[2], 1);
    s->axis[s->count++] = axis;
}

// --- x[..] ---

// The effect of an index on the input's dimensions.
typedef struct index_plan {
    slices cuts;
    int64_t taken[TARE_MAX_DIMS], at[TARE_MAX_DIMS]; // int indices, and the dimensions they remove
    int64_t other_taken[TARE_MAX_DIMS];              // the same ints for the other batch size
    size_t taken_count;
    int64_t put[TARE_MAX_DIMS]; // new dimensions in the result
    size_t put_count;
    const tare_tensor *chosen[TARE_MAX_DIMS]; // tensor indices, and their dimensions
    int64_t chosen_at[TARE_MAX_DIMS];
    size_t chosen_count;
    int next, made; // dimensions of the input and of the result handled so far
} index_plan;

static void keep_dims(index_plan *p, int count) {
    p->next += count > 0 ? count : 0;
    p->made += count > 0 ? count : 0;
}

// A list of ints such as [0, 2, 1] indexes like a tensor.
static const tare_tensor *tensor_of_list(onnx_out *o, const value *list) {
    int64_t ints[MOST_LISTED];
    for (uint32_t i = 0; i < list->count && i < MOST_LISTED; i++)
        if (list->as.items[i].kind == VALUE_BOOL ||
            !tare__call_integer(&list->as.items[i], &ints[i]))
            tare__out_refuse(o, "an index list must contain ints only");
    if (list->count > MOST_LISTED)
        tare__out_refuse(o, "an index list of %u items is too long", list->count);
    return tare__out_int_tensor(o, ints, list->count);
}

static void plan_item(onnx_out *o, index_plan *p, const value *v, const value *other, int open) {
    int64_t i, j;
    const bool is_full = p->next >= TARE_MAX_DIMS || p->put_count >= TARE_MAX_DIMS;
    if (is_full) {
        tare__out_refuse(o, "too many dimensions");
    } else if (v->kind == VALUE_NONE) {
        p->put[p->put_count++] = p->made++;
    } else if (v->kind == VALUE_ELLIPSIS) {
        keep_dims(p, open);
    } else if (v->kind == VALUE_SLICE) {
        add_slice(o, &p->cuts, v, other, p->next);
        keep_dims(p, 1);
    } else if (v->kind == VALUE_TENSOR && v->as.tensor->ndim > 0) {
        p->chosen[p->chosen_count] = v->as.tensor;
        p->chosen_at[p->chosen_count++] = p->next++;
    } else if (v->kind == VALUE_LIST) {
        p->chosen[p->chosen_count] = tensor_of_list(o, v);
        p->chosen_at[p->chosen_count++] = p->next++;
    } else if (v->kind != VALUE_BOOL && tare__call_integer(v, &i)) {
        p->other_taken[p->taken_count] = other != NULL && tare__call_integer(other, &j) ? j : i;
        p->taken[p->taken_count] = i;
        p->at[p->taken_count++] = p->next++;
    } else {
        tare__out_refuse(o, "an index is neither an int, a slice, None nor a tensor");
    }
}

static void plan_index(onnx_out *o, const value *index, const value *other, int ndim,
                       index_plan *p) {
    const bool is_list = index->kind == VALUE_TUPLE || index->kind == VALUE_LIST;
    const value *items = is_list ? index->as.items : index;
    const uint32_t count = is_list ? index->count : 1;
    int open = ndim;
    for (uint32_t i = 0; i < count; i++)
        open -= items[i].kind != VALUE_NONE && items[i].kind != VALUE_ELLIPSIS;
    const value *others = NULL;
    if (other != NULL && other->kind == index->kind) others = is_list ? other->as.items : other;
    if (is_list && others != NULL && other->count != count) others = NULL;
    for (uint32_t i = 0; i < count; i++)
        plan_item(o, p, &items[i], others != NULL ? &others[i] : NULL, open);
}

static const char *integers(onnx_out *o, const tare_tensor *t) {
    if (t->dtype == TARE_BOOL || t->dtype == TARE_UINT8)
        tare__out_refuse(
            o, "indexing with a mask is not written: the size of the result depends on the data");
    const char *x = tare__out_quantized(o, t);
    return t->dtype == TARE_INT32 ? x : tare__out_cast(o, x, t->dtype, TARE_INT64);
}

// The indices of the first dimensions, stacked along a new last dimension.
static const char *stacked(onnx_out *o, const index_plan *p) {
    const char *operands[TARE_MAX_DIMS];
    const int64_t last = -1;
    const tare_tensor *largest = p->chosen[0];
    for (size_t i = 1; i < p->chosen_count; i++)
        if (p->chosen[i]->count > largest->count) largest = p->chosen[i];
    for (size_t i = 0; i < p->chosen_count; i++) {
        const char *x =
            tare__out_cast(o, integers(o, p->chosen[i]), p->chosen[i]->dtype, TARE_INT64);
        if (p->chosen[i] != largest)
            x = OUT(o, "Expand", x, OUT(o, "Shape", tare__out_quantized(o, largest)));
        operands[i] = tare__out_unsqueeze(o, x, &last, 1);
    }
    if (p->chosen_count == 1) return operands[0];
    const char *y = tare__out_node(o, "Concat", operands, p->chosen_count);
    tare__out_attr_int(o, "axis", -1);
    return y;
}

static const char *choose(onnx_out *o, const index_plan *p, const char *x) {
    if (p->chosen_count == 0) return x;
    if (p->chosen_count == 1) {
        const char *y = OUT(o, "Gather", x, integers(o, p->chosen[0]));
        tare__out_attr_int(o, "axis", p->chosen_at[0]);
        return y;
    }
    for (size_t i = 0; i < p->chosen_count; i++)
        if (p->chosen_at[i] != (int64_t)i)
            tare__out_refuse(o, "index tensors must index the first dimensions");
    return OUT(o, "GatherND", x, stacked(o, p));
}

// The same if the index depends on the batch size.
static const char *take_open(onnx_out *o, const char *x, int64_t i, int64_t other, int64_t axis) {
    const int64_t only = 0;
    if (i == other) return tare__out_take(o, x, i, axis);
    const char *at = tare__out_squeeze(o, tare__out_sizes(o, &i, &other, 1), &only, 1);
    const char *y = OUT(o, "Gather", x, at);
    tare__out_attr_int(o, "axis", axis);
    return y;
}

static void index_by(onnx_out *o, const value *index, const value *other) {
    index_plan p = {.next = 0};
    const tare_tensor *x = tare__out_meta(o, 0);
    if (index == NULL) tare__out_refuse(o, "its index is missing");
    if (tare__out_failed(o)) return;
    plan_index(o, index, other, x->ndim, &p);
    if (tare__out_failed(o)) return;
    if (p.chosen_count > 0 && p.taken_count + p.put_count > 0)
        tare__out_refuse(o, "an index with tensors together with ints or None is not written");
    const char *y = cut_slices(o, &p.cuts, tare__out_input(o, 0));
    y = choose(o, &p, y);
    for (size_t i = p.taken_count; i-- > 0;)
        y = take_open(o, y, p.taken[i], p.other_taken[i], p.at[i]);
    if (p.put_count > 0) y = tare__out_unsqueeze(o, y, p.put, p.put_count);
    tare__out_result(o, y == tare__out_input(o, 0) ? OUT(o, "Identity", y) : y);
}

static void write_getitem(onnx_out *o) {
    index_by(o, tare__out_call(o)->param[1], tare__out_other_param(o, 1));
}

// aten.index: None is a full slice.
static void write_index_list(onnx_out *o) {
    const value *given = tare__out_call(o)->param[1];
    op_call *call = tare__out_call(o);
    if (given == NULL || !tare__value_has_items(given)) {
        tare__out_refuse(o, "its indices are missing");
        return;
    }
    value list = tare__value_sequence(call->memory, VALUE_TUPLE, given->count);
    value whole = tare__value_sequence(call->memory, VALUE_SLICE, 3);
    if (list.as.items == NULL || whole.as.items == NULL) {
        tare__out_try(o, tare__out_of_memory(call->err));
        return;
    }
    for (uint32_t i = 0; i < given->count; i++)
        list.as.items[i] = given->as.items[i].kind == VALUE_NONE ? whole : given->as.items[i];
    index_by(o, &list, NULL);
}

// --- one slice ---

static void write_narrow(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t axis = tare__out_dim(o, 1, 0, x->ndim), start = tare__out_int(o, 2, 0);
    const int64_t end = start + tare__out_int(o, 3, 0);
    tare__out_result(o, tare__out_slice(o, tare__out_input(o, 0), axis, start,
                                        start < 0 && end >= 0 ? INT64_MAX : end, 1));
}

static void write_select_one(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_meta(o, 0)->ndim);
    tare__out_result(o, tare__out_take(o, tare__out_input(o, 0), tare__out_int(o, 2, 0), axis));
}

static void write_slice(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_meta(o, 0)->ndim);
    tare__out_result(o, tare__out_slice(o, tare__out_input(o, 0), axis, tare__out_int(o, 2, 0),
                                        tare__out_int(o, 3, INT64_MAX), tare__out_int(o, 4, 1)));
}

// --- a slice replaced ---

// Concatenates the elements before the slice, the new slice, and the elements after it.
static void replace(onnx_out *o, const char *slice, int64_t axis, int64_t start, int64_t end,
                    int64_t size) {
    const char *x = tare__out_input(o, 0), *operands[3];
    size_t count = 0;
    if (start > 0) operands[count++] = tare__out_slice(o, x, axis, 0, start, 1);
    operands[count++] = slice;
    if (end < size) operands[count++] = tare__out_slice(o, x, axis, end, INT64_MAX, 1);
    const char *y = tare__out_node(o, count == 1 ? "Identity" : "Concat", operands, count);
    if (count > 1) tare__out_attr_int(o, "axis", axis);
    tare__out_result(o, y);
}

static int64_t from_front(int64_t i, int64_t size) {
    const int64_t at = i < 0 ? i + size : i;
    return at < 0 ? 0 : at > size ? size : at;
}

static bool is_batch(onnx_out *o, int64_t axis) {
    const tare_tensor *other = tare__out_result_other(o), *y = tare__out_result_meta(o);
    return other != NULL && axis < y->ndim && other->shape[axis] != y->shape[axis];
}

static void write_slice_scatter(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t axis = tare__out_dim(o, 2, 0, x->ndim);
    if (tare__out_failed(o)) return;
    const int64_t size = x->shape[axis];
    const int64_t start = from_front(tare__out_int(o, 3, 0), size);
    const int64_t end = from_front(tare__out_int(o, 4, INT64_MAX), size);
    if (tare__out_int(o, 5, 1) != 1)
        tare__out_refuse(o, "writing to a slice with a step is not supported");
    if (is_batch(o, axis) && (start != 0 || end != size))
        tare__out_refuse(o, "writing to a slice of the batch is not supported");
    replace(o, tare__out_input(o, 1), axis, start, end, size);
}

static void write_select_scatter(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t axis = tare__out_dim(o, 2, 0, x->ndim);
    if (tare__out_failed(o)) return;
    const int64_t start = from_front(tare__out_int(o, 3, 0), x->shape[axis]);
    if (is_batch(o, axis)) tare__out_refuse(o, "writing to a slice of the batch is not supported");
    replace(o, tare__out_unsqueeze(o, tare__out_input(o, 1), &axis, 1), axis, start, start + 1,
            x->shape[axis]);
}

static const onnx_write_rule write_rows[] = {
    {"getitem", "Slice, Gather, Unsqueeze", .takes_open_sizes = true, .write = write_getitem},
    {"index", "Gather, GatherND", .write = write_index_list},
    {"narrow", "Slice", .write = write_narrow},
    {"select", "Gather", .write = write_select_one},
    {"select_scatter", "Slice, Concat", .write = write_select_scatter},
    {"slice", "Slice", .write = write_slice},
    {"slice_scatter", "Slice, Concat", .write = write_slice_scatter},
};

const onnx_family tare__onnx_slice_family = {.read = ONNX_RULES(read_rows),
                                             .write = ONNX_WRITE_RULES(write_rows)};
