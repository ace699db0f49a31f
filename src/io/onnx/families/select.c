// SPDX-License-Identifier: Apache-2.0
// Slices of tensors, tensors joined, and padding, in ONNX.
#include <stdlib.h>
#include <string.h>

#include "core/math/float_to_int.h"
#include "io/onnx/families/families.h"
#include "io/onnx/read/rules_common.h"
#include "io/onnx/read/sizes.h"

// --- reading ---

static tare_status translate_concat(onnx_call *c) {
    const size_t count = tare__onnx_input_count(c);
    value list;
    const tare_tensor *t = NULL;
    int64_t axis;
    value *items = tare__arena_array(tare__onnx_arena(c), count + 1, sizeof *items);
    if (items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    for (size_t i = 0; i < count; i++) TARE_TRY(tare__onnx_need_input(c, i, "inputs", &items[i]));
    TARE_TRY(tare__onnx_need_meta(c, 0, "inputs", &t));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", 0, t->ndim, &axis));
    if (count == 1) return tare__onnx_give(c, &items[0]);
    TARE_TRY(tare__onnx_list(c, items, count, &list));
    const value args[] = {list, tare__int(axis)};
    return tare__onnx_one(c, "torch.cat", 2, args);
}

// The sizes of the slices: the attribute before opset 13, then an input; without either they are
// equal, but the last, which may be smaller.
static tare_status read_parts(onnx_call *c, int64_t total, size_t outputs, int64_t *sizes,
                              bool *equal) {
    size_t count = 0;
    bool given = false;
    int64_t declared = (int64_t)outputs;
    if (tare__onnx_opset(c) < 13)
        TARE_TRY(tare__onnx_attr_ints(c, "split", outputs, sizes, &count, &given));
    else
        TARE_TRY(tare__onnx_input_ints(c, 1, "split", outputs, sizes, &count, &given));
    if (tare__onnx_opset(c) >= 18)
        TARE_TRY(tare__onnx_attr_int(c, "num_outputs", declared, &declared));
    if (declared != (int64_t)outputs || (given && count != outputs))
        return tare__onnx_malformed(c, "%lld slices for %zu outputs",
                                    given ? (long long)count : (long long)declared, outputs);
    const int64_t each = (total + declared - 1) / declared;
    int64_t left = total;
    *equal = true;
    for (size_t i = 0; i < outputs; i++) {
        if (!given) sizes[i] = left < each ? left : each;
        *equal = *equal && sizes[i] == sizes[0];
        left -= sizes[i];
    }
    return TARE_OK;
}

// Slices of open sizes, or of an open dimension.
static tare_status split_open(onnx_call *c, const value *x, int64_t axis, value *slices) {
    value sizes[ONNX_MOST_SIZES], list;
    size_t count = 0;
    bool given = false;
    const size_t outputs = tare__onnx_output_count(c);
    if (tare__onnx_opset(c) >= 13)
        TARE_TRY(tare__onnx_input_sizes(c, 1, "split", ONNX_MOST_SIZES, sizes, &count, &given));
    if (!given || count != outputs)
        return tare__onnx_fail(c, "slices of an open size must be given by its input 'split'");
    TARE_TRY(tare__onnx_list(c, sizes, count, &list));
    return ONNX_CALL(c, slices, "torch.split", *x, list, tare__int(axis));
}

static bool has_open_parts(const onnx_call *c, const value *x, int64_t axis) {
    const value split = tare__onnx_input(c, 1);
    return tare__onnx_holds_open(c->in, &split) ||
           (tare__onnx_size_is_open(c, x, (int)axis) && split.kind != VALUE_NONE);
}

static tare_status split_known(onnx_call *c, const value *x, int64_t total, int64_t axis,
                               value *slices) {
    value list;
    bool equal = false;
    const size_t outputs = tare__onnx_output_count(c);
    int64_t *sizes = tare__arena_array(tare__onnx_arena(c), outputs + 1, sizeof *sizes);
    if (sizes == NULL) return tare__out_of_memory(tare__onnx_error(c));
    TARE_TRY(read_parts(c, total, outputs, sizes, &equal));
    if (tare__onnx_size_is_open(c, x, (int)axis) || (equal && sizes[0] > 0))
        return ONNX_CALL(c, slices, "torch.chunk", *x, tare__int((int64_t)outputs),
                         tare__int(axis));
    TARE_TRY(tare__onnx_ints(c, sizes, outputs, &list));
    return ONNX_CALL(c, slices, "torch.split", *x, list, tare__int(axis));
}

static tare_status translate_split(onnx_call *c) {
    value x, slices;
    const tare_tensor *t = NULL;
    int64_t axis;
    const size_t outputs = tare__onnx_output_count(c);
    TARE_TRY(tare__onnx_need_first(c, "input", &x, &t));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", 0, t->ndim, &axis));
    if (outputs == 0) return tare__onnx_malformed(c, "there are no outputs");
    if (has_open_parts(c, &x, axis))
        TARE_TRY(split_open(c, &x, axis, &slices));
    else
        TARE_TRY(split_known(c, &x, t->shape[axis], axis, &slices));
    for (size_t i = 0; i < outputs; i++) {
        if (!tare__onnx_wants_output(c, i)) continue;
        value slice;
        TARE_TRY(tare__onnx_item(c, &slices, (int64_t)i, &slice));
        tare__onnx_set_output(c, i, &slice);
    }
    return TARE_OK;
}

// --- Slice ---

typedef struct cut {
    value start, stop; // None: from the first, to the last
    int64_t step;      // > 0, counted on the flipped dimension where `flipped`
    bool flipped;
} cut;

static int64_t bounded(int64_t i, int64_t least, int64_t most) {
    return i < least ? least : i > most ? most : i;
}

// Python's rule for one dimension; a negative step runs over the flipped dimension.
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

// The same where the dimension or a bound is open: what the file says is what Python would say.
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
        return tare__onnx_fail(c, "a slice of an open dimension the other way round is not "
                                  "supported");
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
        return tare__onnx_malformed(c, "starts, ends, axes and steps differ in length");
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

// start:stop:step as Python would write it: what is the default is left out.
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

// --- Pad ---

enum { MOST_AMOUNTS = 2 * TARE_MAX_DIMS };

static bool is_zero(const value *v) {
    return v->kind == VALUE_INT && v->as.integer == 0;
}

// [begin of each axis.., end of each axis..] becomes torch's pairs, the last dimension first;
// dimensions in front that are not padded are left out.
static tare_status read_pads(onnx_call *c, const tare_tensor *t, value *amounts, size_t *count) {
    value pads[MOST_AMOUNTS];
    int64_t axes[TARE_MAX_DIMS];
    size_t pad_count, axis_count = 0;
    bool has_axes = false;
    TARE_TRY(tare__onnx_input_sizes(c, 1, "pads", MOST_AMOUNTS, pads, &pad_count, NULL));
    if (tare__onnx_opset(c) >= 18)
        TARE_TRY(tare__onnx_input_ints(c, 3, "axes", TARE_MAX_DIMS, axes, &axis_count, &has_axes));
    for (int d = 0; !has_axes && d < t->ndim; d++) axes[axis_count++] = d;
    if (pad_count != 2 * axis_count)
        return tare__onnx_malformed(c, "%zu pads for %zu axes", pad_count, axis_count);
    for (size_t i = 0; i < MOST_AMOUNTS; i++) amounts[i] = tare__int(0);
    *count = 0;
    for (size_t i = 0; i < axis_count; i++) {
        int64_t axis;
        TARE_TRY(tare__onnx_axis(c, axes[i], t->ndim, &axis));
        const size_t pair = (size_t)(t->ndim - 1 - (int)axis);
        amounts[2 * pair] = pads[i];
        amounts[2 * pair + 1] = pads[axis_count + i];
        const bool pads_any = !is_zero(&pads[i]) || !is_zero(&pads[axis_count + i]);
        if (pads_any && *count < 2 * pair + 2) *count = 2 * pair + 2;
    }
    return TARE_OK;
}

static tare_status translate_pad(onnx_call *c) {
    static const char *const modes[] = {"constant", "reflect", "replicate", "circular"};
    value args[4], amounts[MOST_AMOUNTS];
    const tare_tensor *t = NULL;
    size_t count = 0, mode = 0;
    double fill;
    TARE_TRY(tare__onnx_need_first(c, "data", &args[0], &t));
    const bool is_float = tare__dtype(t->dtype)->is_float;
    TARE_TRY(ONNX_CHOICE(c, "mode", "constant", &mode, "constant", "reflect", "edge", "wrap"));
    TARE_TRY(read_pads(c, t, amounts, &count));
    TARE_TRY(tare__onnx_input_number(c, 2, "constant_value", 0, &fill));
    if (count == 0) return tare__onnx_give(c, &args[0]);
    args[1] = tare__value_sequence(tare__onnx_arena(c), VALUE_TUPLE, (uint32_t)count);
    if (args[1].as.items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    memcpy(args[1].as.items, amounts, count * sizeof *amounts);
    args[2] = tare__string(modes[mode]);
    args[3] = is_float ? tare__float(fill) : tare__int(tare__cut_int64(fill));
    return tare__onnx_one(c, "torch.nn.functional.pad", mode == 0 ? 4 : 3, args);
}

// --- CenterCropPad: every axis is cut, or padded with zeros, around its middle ---

static tare_status crop_or_pad(onnx_call *c, value *x, int64_t axis, int64_t wanted) {
    const tare_tensor *t = tare__onnx_meta(c, x);
    const int64_t size = t->shape[axis], ndim = t->ndim;
    if (tare__onnx_size_is_open(c, x, (int)axis))
        return tare__onnx_fail(c, "an open dimension is cut or padded to a size");
    if (size >= wanted)
        return size == wanted ? TARE_OK
                              : ONNX_CALL(c, x, "torch.narrow", *x, tare__int(axis),
                                          tare__int((size - wanted) / 2), tare__int(wanted));
    int64_t amounts[MOST_AMOUNTS] = {0};
    value list;
    const size_t pair = (size_t)(ndim - 1 - axis);
    amounts[2 * pair] = (wanted - size) / 2;
    amounts[2 * pair + 1] = wanted - size - (wanted - size) / 2;
    TARE_TRY(tare__onnx_int_tuple(c, amounts, 2 * pair + 2, &list));
    return ONNX_CALL(c, x, "torch.nn.functional.pad", *x, list);
}

static tare_status translate_center_crop_pad(onnx_call *c) {
    value x;
    const tare_tensor *t = NULL;
    int64_t wanted[TARE_MAX_DIMS], axes[TARE_MAX_DIMS];
    size_t count, axis_count = 0;
    bool has_axes = false;
    TARE_TRY(tare__onnx_need_first(c, "input_data", &x, &t));
    const int ndim = t->ndim;
    TARE_TRY(tare__onnx_input_ints(c, 1, "shape", TARE_MAX_DIMS, wanted, &count, NULL));
    TARE_TRY(tare__onnx_attr_ints(c, "axes", TARE_MAX_DIMS, axes, &axis_count, &has_axes));
    for (int d = 0; !has_axes && d < ndim; d++) axes[axis_count++] = d;
    if (axis_count != count)
        return tare__onnx_malformed(c, "%zu sizes for %zu axes", count, axis_count);
    for (size_t i = 0; i < count; i++) {
        int64_t axis;
        TARE_TRY(tare__onnx_axis(c, axes[i], ndim, &axis));
        if (wanted[i] < 0)
            return tare__onnx_malformed(c, "size %zu is %lld, expected one from 0 up", i,
                                        (long long)wanted[i]);
        TARE_TRY(crop_or_pad(c, &x, axis, wanted[i]));
    }
    return tare__onnx_give(c, &x);
}

static const onnx_rule read_rows[] = {
    {"CenterCropPad", 18, .translate = translate_center_crop_pad},
    {"Concat", .translate = translate_concat},
    {"Pad", .translate = translate_pad},
    {"Slice", .translate = translate_slice},
    {"Split", .translate = translate_split},
};

// --- writing ---

enum { MOST_LISTED = 256 };

// --- slices of several dimensions at once ---

typedef struct slices {
    int64_t start[TARE_MAX_DIMS], end[TARE_MAX_DIMS], axis[TARE_MAX_DIMS], step[TARE_MAX_DIMS];
    int64_t other_start[TARE_MAX_DIMS], other_end[TARE_MAX_DIMS]; // for the other batch
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

// other: the same for the other batch.
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

// What an index does to the input's dimensions.
typedef struct index_plan {
    slices cuts;
    int64_t taken[TARE_MAX_DIMS], at[TARE_MAX_DIMS]; // ints, and the dimensions they take
    int64_t other_taken[TARE_MAX_DIMS];              // the ints for the other batch
    size_t taken_count;
    int64_t put[TARE_MAX_DIMS]; // dimensions of the result that are put in
    size_t put_count;
    const tare_tensor *chosen[TARE_MAX_DIMS]; // tensors of indices, and their dimensions
    int64_t chosen_at[TARE_MAX_DIMS];
    size_t chosen_count;
    int next, made; // dimensions of the input and of the result so far
} index_plan;

static void keep_dims(index_plan *p, int count) {
    p->next += count > 0 ? count : 0;
    p->made += count > 0 ? count : 0;
}

// [0, 2, 1] is a tensor of indices.
static const tare_tensor *tensor_of_list(onnx_out *o, const value *list) {
    int64_t ints[MOST_LISTED];
    for (uint32_t i = 0; i < list->count && i < MOST_LISTED; i++)
        if (list->as.items[i].kind == VALUE_BOOL ||
            !tare__call_integer(&list->as.items[i], &ints[i]))
            tare__out_refuse(o, "a list of anything but ints as an index");
    if (list->count > MOST_LISTED) tare__out_refuse(o, "a list of %u indices", list->count);
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
        tare__out_refuse(o, "a mask as an index makes a result whose size depends on the data");
    const char *x = tare__out_quantized(o, t);
    return t->dtype == TARE_INT32 ? x : tare__out_cast(o, x, t->dtype, TARE_INT64);
}

// Indices of the first dimensions, side by side in a new last one.
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
            tare__out_refuse(o, "tensors of indices that are not the first ones");
    return OUT(o, "GatherND", x, stacked(o, p));
}

static const char *take(onnx_out *o, const char *x, int64_t i, int64_t axis) {
    const char *y = OUT(o, "Gather", x, tare__out_number(o, TARE_INT64, (double)i));
    tare__out_attr_int(o, "axis", axis);
    return y;
}

// The same where the int follows the batch.
static const char *take_open(onnx_out *o, const char *x, int64_t i, int64_t other, int64_t axis) {
    const int64_t only = 0;
    if (i == other) return take(o, x, i, axis);
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
        tare__out_refuse(o, "an index of tensors together with ints or None");
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

// aten.index: None keeps a dimension, as a full slice does.
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

// x.T and its kin.
static void write_attribute(onnx_out *o) {
    const char *name = tare__out_text(o, 1, "");
    const int ndim = tare__out_meta(o, 0)->ndim;
    const char *x = tare__out_input(o, 0);
    int64_t order[TARE_MAX_DIMS];
    for (int d = 0; d < ndim; d++) order[d] = ndim - 1 - d;
    if (strcmp(name, "T") == 0 || strcmp(name, "H") == 0)
        tare__out_result(o, tare__out_transpose(o, x, order, (size_t)ndim));
    else if (ndim >= 2 && (strcmp(name, "mT") == 0 || strcmp(name, "mH") == 0))
        tare__out_result(o, tare__out_swap(o, x, ndim, ndim - 2, ndim - 1));
    else
        tare__out_refuse(o, "the attribute '%s' is not written", name);
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
    tare__out_result(o, take(o, tare__out_input(o, 0), tare__out_int(o, 2, 0), axis));
}

static void write_slice(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_meta(o, 0)->ndim);
    tare__out_result(o, tare__out_slice(o, tare__out_input(o, 0), axis, tare__out_int(o, 2, 0),
                                        tare__out_int(o, 3, INT64_MAX), tare__out_int(o, 4, 1)));
}

// --- a slice replaced ---

// Joins the elements before the slice, the slice, and those behind it.
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
    if (tare__out_int(o, 5, 1) != 1) tare__out_refuse(o, "slices with steps are not put back");
    if (is_batch(o, axis) && (start != 0 || end != size))
        tare__out_refuse(o, "a slice of the batch is not put back");
    replace(o, tare__out_input(o, 1), axis, start, end, size);
}

static void write_select_scatter(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t axis = tare__out_dim(o, 2, 0, x->ndim);
    if (tare__out_failed(o)) return;
    const int64_t start = from_front(tare__out_int(o, 3, 0), x->shape[axis]);
    if (is_batch(o, axis)) tare__out_refuse(o, "a slice of the batch is not put back");
    replace(o, tare__out_unsqueeze(o, tare__out_input(o, 1), &axis, 1), axis, start, start + 1,
            x->shape[axis]);
}

// --- a tuple of slices ---

static bool other_sizes_differ(onnx_out *o, int64_t axis) {
    const value *other = tare__out_results_other(o), *own = &tare__out_call(o)->result;
    if (other == NULL) return false;
    if (other->count != own->count) return true;
    for (uint32_t i = 0; i < own->count; i++) {
        const value *a = &own->as.items[i], *b = &other->as.items[i];
        if (a->kind == VALUE_TENSOR && b->kind == VALUE_TENSOR && axis < a->as.tensor->ndim &&
            a->as.tensor->ndim == b->as.tensor->ndim && own->count > 1 &&
            a->as.tensor->shape[axis] != b->as.tensor->shape[axis])
            return true;
    }
    return false;
}

static void parts_of(onnx_out *o, size_t dim_at, bool drops_dim) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t axis = tare__out_dim(o, dim_at, 0, x->ndim);
    const value *result = &tare__out_call(o)->result;
    const char *in = tare__out_input(o, 0);
    int64_t start = 0;
    if (!drops_dim && other_sizes_differ(o, axis))
        tare__out_refuse(o, "slices of the batch are not written");
    for (uint32_t i = 0; i < result->count && !tare__out_failed(o); i++) {
        const tare_tensor *slice = result->as.items[i].as.tensor;
        const int64_t size = drops_dim ? 1 : slice->shape[axis];
        tare__out_result_item(o, i,
                              drops_dim ? take(o, in, start, axis)
                                        : tare__out_slice(o, in, axis, start, start + size, 1));
        start += size;
    }
}
static void write_split(onnx_out *o) {
    parts_of(o, 2, false);
}
static void write_unbind(onnx_out *o) {
    parts_of(o, 1, true);
}

// --- together ---

static const char *join(onnx_out *o, const char *op_type, int64_t axis, bool stacks) {
    const op_call *call = tare__out_call(o);
    const value *list = call->param[0];
    const tare_tensor *y = tare__out_result_meta(o);
    const tare_dtype dtype = y->q != NULL ? TARE_FLOAT32 : y->dtype;
    if (list == NULL || !tare__value_has_items(list) || list->count == 0) {
        tare__out_refuse(o, "its tensors are missing");
        return "";
    }
    const char **operands = tare__arena_array(call->memory, list->count, sizeof *operands);
    size_t count = 0;
    if (operands == NULL) {
        tare__out_try(o, tare__out_of_memory(call->err));
        return "";
    }
    for (uint32_t i = 0; i < list->count && !tare__out_failed(o); i++) {
        const value *v = &list->as.items[i];
        if (v->kind != VALUE_TENSOR) {
            tare__out_refuse(o, "an item is not a tensor");
            break;
        }
        const tare_tensor *t = v->as.tensor;
        if (!stacks && t->ndim == 1 && t->count == 0 && y->ndim > 1) continue; // as torch has it
        const char *x = tare__out_cast(o, tare__out_tensor(o, t),
                                       t->q != NULL ? TARE_FLOAT32 : t->dtype, dtype);
        operands[count++] = stacks ? tare__out_unsqueeze(o, x, &axis, 1) : x;
    }
    if (tare__out_failed(o)) return "";
    const char *made = tare__out_node(o, op_type, operands, count);
    tare__out_attr_int(o, "axis", axis);
    return made;
}

static void write_cat(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_result_meta(o)->ndim);
    tare__out_result(o, join(o, "Concat", axis, false));
}

static void write_stack(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_result_meta(o)->ndim);
    tare__out_result(o, join(o, "Concat", axis, true));
}

// --- padding ---

typedef struct pad_sizes {
    int64_t pads[2 * TARE_MAX_DIMS]; // before every dimension, then behind
} pad_sizes;

// torch counts from the last dimension, in pairs.
static pad_sizes torch_pads(onnx_out *o, bool other) {
    const tare_tensor *x = tare__out_meta(o, 0);
    int64_t given[2 * TARE_MAX_DIMS];
    size_t count = 0;
    pad_sizes p = {{0}};
    tare__out_try(
        o, tare__call_int_list(tare__out_call(o), 1, sizeof given / sizeof *given, given, &count));
    if (other && !tare__out_other_ints(o, 1, sizeof given / sizeof *given, given, count)) return p;
    if (count == 1 && x->ndim > 2) // of modules: the same on every side behind the channels
        for (; count < 2 * ((size_t)x->ndim - 2); count++) given[count] = given[0];
    for (size_t i = 0; i + 1 < count && i / 2 < (size_t)x->ndim; i += 2) {
        const int d = x->ndim - 1 - (int)(i / 2);
        p.pads[d] = given[i];
        p.pads[x->ndim + d] = given[i + 1];
    }
    return p;
}

static void pad_by(onnx_out *o, const char *mode, const char *number) {
    const pad_sizes p = torch_pads(o, false);
    const bool follows = tare__out_other_param(o, 1) != NULL;
    const pad_sizes others = follows ? torch_pads(o, true) : p;
    const size_t count = 2 * (size_t)tare__out_meta(o, 0)->ndim;
    const char *y = OUT(o, "Pad", tare__out_input(o, 0),
                        tare__out_sizes(o, p.pads, others.pads, count), number);
    tare__out_attr_text(o, "mode", mode);
    tare__out_result(o, y);
}

// What is at the end stands before the beginning, and the other way round.
static void wrap(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const char *y = tare__out_input(o, 0), *operands[3];
    pad_sizes p = torch_pads(o, false);
    const pad_sizes others = torch_pads(o, tare__out_other_param(o, 1) != NULL);
    if (memcmp(&p, &others, sizeof p) != 0)
        tare__out_refuse(o, "padding of open sizes that wraps around");
    for (int d = 0; d < x->ndim && !tare__out_failed(o); d++) {
        const int64_t before = p.pads[d], after = p.pads[x->ndim + d];
        size_t count = 0;
        if (before < 0 || after < 0) tare__out_refuse(o, "negative padding that wraps around");
        if (before == 0 && after == 0) continue;
        if (before > 0) operands[count++] = tare__out_slice(o, y, d, -before, INT64_MAX, 1);
        operands[count++] = y;
        if (after > 0) operands[count++] = tare__out_slice(o, y, d, 0, after, 1);
        y = tare__out_node(o, "Concat", operands, count);
        tare__out_attr_int(o, "axis", d);
    }
    tare__out_result(o, y);
}

static void write_pad(onnx_out *o) {
    const char *mode = tare__out_text(o, 2, "constant");
    const tare_tensor *x = tare__out_meta(o, 0);
    if (strcmp(mode, "constant") == 0) {
        const tare_dtype dtype = x->q != NULL ? TARE_FLOAT32 : x->dtype;
        const bool given = tare__out_given(o, 3) && tare__out_double(o, 3, 0) != 0;
        pad_by(o, "constant", given ? tare__out_operand(o, 3, dtype) : "");
    } else if (strcmp(mode, "reflect") == 0) {
        pad_by(o, "reflect", "");
    } else if (strcmp(mode, "replicate") == 0) {
        pad_by(o, "edge", "");
    } else if (strcmp(mode, "circular") == 0) {
        wrap(o);
    } else {
        tare__out_refuse(o, "Pad has no mode for '%s'", mode);
    }
}

static void write_zero_pad(onnx_out *o) {
    pad_by(o, "constant", "");
}

static const onnx_write_rule write_rows[] = {
    {"cat", "Concat", .write = write_cat},
    {"chunk", "Slice", .write = write_split},
    {"getattr", "Transpose", .write = write_attribute},
    {"getitem", "Slice, Gather, Unsqueeze", .takes_open_sizes = true, .write = write_getitem},
    {"index", "Gather, GatherND", .write = write_index_list},
    {"narrow", "Slice", .write = write_narrow},
    {"pad", "Pad", .takes_open_sizes = true, .write = write_pad},
    {"select", "Gather", .write = write_select_one},
    {"select_scatter", "Slice, Concat", .write = write_select_scatter},
    {"slice", "Slice", .write = write_slice},
    {"slice_scatter", "Slice, Concat", .write = write_slice_scatter},
    {"split", "Slice", .write = write_split},
    {"stack", "Unsqueeze, Concat", .write = write_stack},
    {"unbind", "Gather", .write = write_unbind},
    {"zero_pad", "Pad", .write = write_zero_pad},
};

const onnx_family tare__onnx_select_family = {.read = ONNX_RULES(read_rows),
                                              .write = ONNX_WRITE_RULES(write_rows)};
