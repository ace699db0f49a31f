// SPDX-License-Identifier: Apache-2.0
// ONNX operators that give the same elements another shape or order, or take parts of them.
#include <stdlib.h>
#include <string.h>

#include "core/math/float_to_int.h"
#include "io/onnx/read/rules_common.h"

static tare_status need(onnx_call *c, const char *name, value *x, const tare_tensor **t) {
    TARE_TRY(tare__onnx_need_input(c, 0, name, x));
    return tare__onnx_need_meta(c, 0, name, t);
}

static tare_status give(onnx_call *c, const value *v) {
    tare__onnx_set_output(c, 0, v);
    return TARE_OK;
}

// --- Reshape, Flatten ---

static tare_status reshape(onnx_call *c) {
    value x, y;
    const tare_tensor *t = NULL;
    bool allow_zero;
    TARE_TRY(need(c, "data", &x, &t));
    TARE_TRY(tare__onnx_attr_bool(c, "allowzero", false, &allow_zero));
    TARE_TRY(tare__onnx_reshape_by(c, &x, 1, allow_zero, &y));
    return give(c, &y);
}

static tare_status flatten(onnx_call *c) {
    value x, y;
    const tare_tensor *t = NULL;
    int64_t axis = 0, dims[2] = {1, -1};
    TARE_TRY(need(c, "input", &x, &t));
    TARE_TRY(tare__onnx_attr_int(c, "axis", 1, &axis));
    if (axis != t->ndim) TARE_TRY(tare__onnx_axis(c, axis, t->ndim, &axis)); // ndim is allowed too
    if (axis == 1 && t->ndim >= 2) {
        const value args[] = {x, tare__int(1)};
        return tare__onnx_one(c, "torch.flatten", 2, args);
    }
    for (int64_t d = 0; d < axis; d++) dims[0] *= t->shape[d];
    if (dims[0] == 0) {
        dims[1] = 1;
        for (int d = (int)axis; d < t->ndim; d++) dims[1] *= t->shape[d];
    }
    TARE_TRY(tare__onnx_reshape(c, &x, dims, 2, &y));
    return give(c, &y);
}

// --- Squeeze, Unsqueeze ---

static tare_status squeeze(onnx_call *c) {
    value x, dims;
    const tare_tensor *t = NULL;
    int64_t axes[TARE_MAX_DIMS];
    size_t count = 0;
    bool given = false;
    TARE_TRY(need(c, "data", &x, &t));
    TARE_TRY(tare__onnx_axes(c, 13, 1, t->ndim, axes, &count, &given));
    for (int d = 0; !given && d < t->ndim; d++)
        if (t->shape[d] == 1) axes[count++] = d;
    for (size_t i = 0; i < count; i++)
        if (t->shape[axes[i]] != 1)
            return tare__onnx_malformed(c, "dimension %lld has size %lld, expected 1",
                                        (long long)axes[i], (long long)t->shape[axes[i]]);
    if (count == 0) return give(c, &x);
    dims = tare__int(axes[0]);
    if (count > 1) TARE_TRY(tare__onnx_int_tuple(c, axes, count, &dims));
    const value args[] = {x, dims};
    return tare__onnx_one(c, "torch.squeeze", 2, args);
}

static int by_number(const void *left, const void *right) {
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

// The axes count the result's dimensions.
static tare_status unsqueeze(onnx_call *c) {
    value x;
    const tare_tensor *t = NULL;
    int64_t axes[TARE_MAX_DIMS];
    size_t count = 0;
    TARE_TRY(need(c, "data", &x, &t));
    if (tare__onnx_opset(c) < 13)
        TARE_TRY(tare__onnx_attr_ints(c, "axes", TARE_MAX_DIMS, axes, &count, NULL));
    else
        TARE_TRY(tare__onnx_input_ints(c, 1, "axes", TARE_MAX_DIMS, axes, &count, NULL));
    const int ndim = t->ndim + (int)count;
    if (ndim > TARE_MAX_DIMS)
        return tare__onnx_fail(c, "%d dimensions are not supported, at most %d are", ndim,
                               TARE_MAX_DIMS);
    for (size_t i = 0; i < count; i++) TARE_TRY(tare__onnx_axis(c, axes[i], ndim, &axes[i]));
    qsort(axes, count, sizeof *axes, by_number);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && axes[i] == axes[i - 1])
            return tare__onnx_malformed(c, "axis %lld is given twice", (long long)axes[i]);
        TARE_TRY(ONNX_CALL(c, &x, "torch.unsqueeze", x, tare__int(axes[i])));
    }
    return give(c, &x);
}

// --- Transpose, Concat, Split ---

static tare_status transpose(onnx_call *c) {
    value x, y;
    const tare_tensor *t = NULL;
    int64_t order[TARE_MAX_DIMS];
    size_t count = 0;
    bool given = false, seen[TARE_MAX_DIMS] = {false};
    TARE_TRY(need(c, "data", &x, &t));
    TARE_TRY(tare__onnx_attr_ints(c, "perm", TARE_MAX_DIMS, order, &count, &given));
    for (int d = 0; !given && d < t->ndim; d++) order[count++] = t->ndim - 1 - d;
    bool fits = count == (size_t)t->ndim;
    for (size_t i = 0; fits && i < count; i++) {
        fits = order[i] >= 0 && order[i] < t->ndim && !seen[order[i]];
        if (fits) seen[order[i]] = true;
    }
    if (!fits) return tare__onnx_malformed(c, "perm is no permutation of %d dimensions", t->ndim);
    TARE_TRY(tare__onnx_permute(c, &x, order, count, &y));
    return give(c, &y);
}

static tare_status concat(onnx_call *c) {
    const size_t count = tare__onnx_input_count(c);
    value list;
    const tare_tensor *t = NULL;
    int64_t axis;
    value *items = tare__arena_array(tare__onnx_arena(c), count + 1, sizeof *items);
    if (items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    for (size_t i = 0; i < count; i++) TARE_TRY(tare__onnx_need_input(c, i, "inputs", &items[i]));
    TARE_TRY(tare__onnx_need_meta(c, 0, "inputs", &t));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", 0, t->ndim, &axis));
    if (count == 1) return give(c, &items[0]);
    TARE_TRY(tare__onnx_list(c, items, count, &list));
    const value args[] = {list, tare__int(axis)};
    return tare__onnx_one(c, "torch.cat", 2, args);
}

// The sizes of the parts: the attribute before opset 13, then an input; without either they are
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
        return tare__onnx_malformed(c, "the number of parts differs from that of the %zu outputs",
                                    outputs);
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

static tare_status split(onnx_call *c) {
    value x, parts, list;
    const tare_tensor *t = NULL;
    int64_t axis;
    bool equal = false;
    const size_t outputs = tare__onnx_output_count(c);
    int64_t *sizes = tare__arena_array(tare__onnx_arena(c), outputs + 1, sizeof *sizes);
    if (sizes == NULL) return tare__out_of_memory(tare__onnx_error(c));
    TARE_TRY(need(c, "input", &x, &t));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", 0, t->ndim, &axis));
    if (outputs == 0) return tare__onnx_malformed(c, "there are no outputs");
    TARE_TRY(read_parts(c, t->shape[axis], outputs, sizes, &equal));
    if (equal && sizes[0] > 0) {
        TARE_TRY(
            ONNX_CALL(c, &parts, "torch.chunk", x, tare__int((int64_t)outputs), tare__int(axis)));
    } else {
        TARE_TRY(tare__onnx_ints(c, sizes, outputs, &list));
        TARE_TRY(ONNX_CALL(c, &parts, "torch.split", x, list, tare__int(axis)));
    }
    for (size_t i = 0; i < outputs; i++) {
        if (!tare__onnx_wants_output(c, i)) continue;
        value part;
        TARE_TRY(tare__onnx_item(c, &parts, (int64_t)i, &part));
        tare__onnx_set_output(c, i, &part);
    }
    return TARE_OK;
}

// --- Slice ---

typedef struct cut {
    int64_t start, stop, step; // step > 0, counted on the flipped dimension where `flipped`
    bool named, flipped;
} cut;

static int64_t bounded(int64_t i, int64_t least, int64_t most) {
    return i < least ? least : i > most ? most : i;
}

// Python's rule for one dimension; a negative step runs over the flipped dimension.
static void cut_dim(int64_t size, int64_t start, int64_t stop, int64_t step, cut *out) {
    if (start < 0) start = start < -size ? -1 : start + size;
    if (stop < 0) stop = stop < -size ? -1 : stop + size;
    *out = (cut){.named = true, .flipped = step < 0, .step = step < 0 ? -step : step};
    if (step > 0) {
        out->start = bounded(start, 0, size);
        out->stop = bounded(stop, 0, size);
        return;
    }
    out->start = size - 1 - bounded(start, -1, size - 1);
    out->stop = size - 1 - bounded(stop, -1, size - 1);
}

static tare_status read_cuts(onnx_call *c, const tare_tensor *t, cut *cuts) {
    int64_t starts[TARE_MAX_DIMS], ends[TARE_MAX_DIMS], axes[TARE_MAX_DIMS], steps[TARE_MAX_DIMS];
    size_t count, end_count, axis_count, step_count;
    bool has_axes, has_steps;
    TARE_TRY(tare__onnx_input_ints(c, 1, "starts", TARE_MAX_DIMS, starts, &count, NULL));
    TARE_TRY(tare__onnx_input_ints(c, 2, "ends", TARE_MAX_DIMS, ends, &end_count, NULL));
    TARE_TRY(tare__onnx_input_ints(c, 3, "axes", TARE_MAX_DIMS, axes, &axis_count, &has_axes));
    TARE_TRY(tare__onnx_input_ints(c, 4, "steps", TARE_MAX_DIMS, steps, &step_count, &has_steps));
    if (end_count != count || (has_axes && axis_count != count) ||
        (has_steps && step_count != count) || count > (size_t)t->ndim)
        return tare__onnx_malformed(c, "starts, ends, axes and steps differ in length");
    for (size_t i = 0; i < count; i++) {
        int64_t axis = (int64_t)i;
        if (has_axes) TARE_TRY(tare__onnx_axis(c, axes[i], t->ndim, &axis));
        const int64_t step = has_steps ? steps[i] : 1;
        if (step == 0 || step == INT64_MIN)
            return tare__onnx_malformed(c, "a step is out of range");
        cut_dim(t->shape[axis], starts[i], ends[i], step, &cuts[axis]);
    }
    return TARE_OK;
}

// start:stop:step as Python would write it: what is the default is left out.
static tare_status slice_value(onnx_call *c, const cut *k, int64_t size, value *out) {
    *out = tare__value_sequence(tare__onnx_arena(c), VALUE_SLICE, 3);
    if (out->as.items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    if (!k->named) return TARE_OK;
    if (k->start > 0) out->as.items[0] = tare__int(k->start);
    if (k->stop < size) out->as.items[1] = tare__int(k->stop);
    if (k->step > 1) out->as.items[2] = tare__int(k->step);
    return TARE_OK;
}

static bool takes_all(const cut *k, int64_t size) {
    return !k->named || (k->start == 0 && k->stop >= size && k->step == 1);
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

static tare_status slice(onnx_call *c) {
    value x, items[TARE_MAX_DIMS], index;
    const tare_tensor *t = NULL;
    cut cuts[TARE_MAX_DIMS] = {0};
    size_t count = 0;
    TARE_TRY(need(c, "data", &x, &t));
    const tare_tensor in = {.ndim = t->ndim, .dtype = t->dtype};
    int64_t shape[TARE_MAX_DIMS];
    memcpy(shape, t->shape, sizeof shape);
    TARE_TRY(read_cuts(c, t, cuts));
    TARE_TRY(flip_dims(c, cuts, in.ndim, &x));
    for (int d = 0; d < in.ndim; d++)
        if (!takes_all(&cuts[d], shape[d])) count = (size_t)d + 1;
    if (count == 0) return give(c, &x);
    for (size_t i = 0; i < count; i++) TARE_TRY(slice_value(c, &cuts[i], shape[i], &items[i]));
    index = items[0];
    if (count > 1) {
        index = tare__value_sequence(tare__onnx_arena(c), VALUE_TUPLE, (uint32_t)count);
        if (index.as.items == NULL) return tare__out_of_memory(tare__onnx_error(c));
        memcpy(index.as.items, items, count * sizeof *items);
    }
    const value args[] = {x, index};
    return tare__onnx_one(c, "operator.getitem", 2, args);
}

// --- Expand, Tile ---

static tare_status expand(onnx_call *c) {
    value args[TARE_MAX_DIMS + 1], y;
    const tare_tensor *t = NULL;
    int64_t wanted[TARE_MAX_DIMS];
    size_t count;
    TARE_TRY(need(c, "input", &args[0], &t));
    TARE_TRY(tare__onnx_input_ints(c, 1, "shape", TARE_MAX_DIMS, wanted, &count, NULL));
    const size_t ndim = count > (size_t)t->ndim ? count : (size_t)t->ndim;
    bool changes = ndim > (size_t)t->ndim;
    for (size_t d = 0; d < ndim; d++) {
        const size_t from_end = ndim - d;
        const int64_t own = from_end <= (size_t)t->ndim ? t->shape[(size_t)t->ndim - from_end] : 1;
        const int64_t asked = from_end <= count ? wanted[count - from_end] : 1;
        if (own != 1 && asked != 1 && own != asked)
            return tare__onnx_malformed(c, "a size of %lld cannot be expanded to %lld",
                                        (long long)own, (long long)asked);
        const bool keeps = from_end <= (size_t)t->ndim && (asked == 1 || asked == own);
        args[d + 1] = tare__int(keeps ? -1 : asked);
        changes = changes || !keeps;
    }
    if (!changes) return give(c, &args[0]);
    TARE_TRY(tare__onnx_call(c, true, "expand", args, ndim + 1, &y));
    return give(c, &y);
}

static tare_status tile(onnx_call *c) {
    value args[TARE_MAX_DIMS + 1], y;
    const tare_tensor *t = NULL;
    int64_t repeats[TARE_MAX_DIMS];
    size_t count;
    TARE_TRY(need(c, "input", &args[0], &t));
    TARE_TRY(tare__onnx_input_ints(c, 1, "repeats", TARE_MAX_DIMS, repeats, &count, NULL));
    if (count != (size_t)t->ndim)
        return tare__onnx_malformed(c, "%zu repeats for %d dimensions", count, t->ndim);
    if (count == 0) return give(c, &args[0]);
    for (size_t d = 0; d < count; d++) args[d + 1] = tare__int(repeats[d]);
    TARE_TRY(tare__onnx_call(c, true, "repeat", args, count + 1, &y));
    return give(c, &y);
}

// --- Pad ---

enum { MOST_AMOUNTS = 2 * TARE_MAX_DIMS };

// [begin of each axis.., end of each axis..] becomes torch's pairs, the last dimension first;
// dimensions in front that are not padded are left out.
static tare_status read_pads(onnx_call *c, const tare_tensor *t, int64_t *amounts, size_t *count) {
    int64_t pads[MOST_AMOUNTS], axes[TARE_MAX_DIMS];
    size_t pad_count, axis_count = 0;
    bool has_axes = false;
    TARE_TRY(tare__onnx_input_ints(c, 1, "pads", MOST_AMOUNTS, pads, &pad_count, NULL));
    if (tare__onnx_opset(c) >= 18)
        TARE_TRY(tare__onnx_input_ints(c, 3, "axes", TARE_MAX_DIMS, axes, &axis_count, &has_axes));
    for (int d = 0; !has_axes && d < t->ndim; d++) axes[axis_count++] = d;
    if (pad_count != 2 * axis_count)
        return tare__onnx_malformed(c, "%zu pads for %zu axes", pad_count, axis_count);
    memset(amounts, 0, MOST_AMOUNTS * sizeof *amounts);
    *count = 0;
    for (size_t i = 0; i < axis_count; i++) {
        int64_t axis;
        TARE_TRY(tare__onnx_axis(c, axes[i], t->ndim, &axis));
        const size_t pair = (size_t)(t->ndim - 1 - (int)axis);
        amounts[2 * pair] = pads[i];
        amounts[2 * pair + 1] = pads[axis_count + i];
        const bool pads_any = pads[i] != 0 || pads[axis_count + i] != 0;
        if (pads_any && *count < 2 * pair + 2) *count = 2 * pair + 2;
    }
    return TARE_OK;
}

static tare_status pad(onnx_call *c) {
    static const char *const modes[] = {"constant", "reflect", "replicate", "circular"};
    value args[4];
    const tare_tensor *t = NULL;
    int64_t amounts[MOST_AMOUNTS];
    size_t count = 0, mode = 0;
    double fill;
    TARE_TRY(need(c, "data", &args[0], &t));
    const bool is_float = tare__dtype(t->dtype)->is_float;
    TARE_TRY(ONNX_CHOICE(c, "mode", "constant", &mode, "constant", "reflect", "edge", "wrap"));
    TARE_TRY(read_pads(c, t, amounts, &count));
    TARE_TRY(tare__onnx_input_number(c, 2, "constant_value", 0, &fill));
    if (count == 0) return give(c, &args[0]);
    TARE_TRY(tare__onnx_int_tuple(c, amounts, count, &args[1]));
    args[2] = tare__string(modes[mode]);
    args[3] = is_float ? tare__float(fill) : tare__int(tare__cut_int64(fill));
    return tare__onnx_one(c, "torch.nn.functional.pad", mode == 0 ? 4 : 3, args);
}

// --- DepthToSpace, SpaceToDepth ---

// The steps: x as six dimensions, in another order, as four again.
static tare_status shuffle(onnx_call *c, value x, const int64_t six[6], const int64_t order[6],
                           const int64_t four[4]) {
    TARE_TRY(tare__onnx_reshape(c, &x, six, 6, &x));
    TARE_TRY(tare__onnx_permute(c, &x, order, 6, &x));
    TARE_TRY(tare__onnx_reshape(c, &x, four, 4, &x));
    return give(c, &x);
}

static tare_status read_block(onnx_call *c, value *x, const tare_tensor **t, int64_t *r) {
    TARE_TRY(need(c, "input", x, t));
    TARE_TRY(tare__onnx_attr_int(c, "blocksize", 0, r));
    if ((*t)->ndim != 4 || *r < 1 || *r > INT16_MAX)
        return tare__onnx_malformed(c,
                                    "expected 4 dimensions and a positive blocksize, found %d "
                                    "and %lld",
                                    (*t)->ndim, (long long)*r);
    return TARE_OK;
}

static tare_status depth_to_space(onnx_call *c) {
    value x;
    const tare_tensor *t = NULL;
    int64_t r;
    size_t mode = 0;
    TARE_TRY(read_block(c, &x, &t, &r));
    TARE_TRY(ONNX_CHOICE(c, "mode", "DCR", &mode, "DCR", "CRD"));
    const value args[] = {x, tare__int(r)};
    if (mode == 1) return tare__onnx_one(c, "torch.nn.functional.pixel_shuffle", 2, args);
    const int64_t *s = t->shape, depth = s[1] / (r * r);
    const int64_t order[] = {0, 3, 4, 1, 5, 2};
    const int64_t six[] = {s[0], r, r, depth, s[2], s[3]};
    const int64_t four[] = {s[0], depth, s[2] * r, s[3] * r};
    return shuffle(c, x, six, order, four);
}

static tare_status space_to_depth(onnx_call *c) {
    value x;
    const tare_tensor *t = NULL;
    int64_t r;
    TARE_TRY(read_block(c, &x, &t, &r));
    const int64_t *s = t->shape, order[] = {0, 3, 5, 1, 2, 4};
    const int64_t six[] = {s[0], s[1], s[2] / r, r, s[3] / r, r};
    const int64_t four[] = {s[0], s[1] * r * r, s[2] / r, s[3] / r};
    return shuffle(c, x, six, order, four);
}

// --- CenterCropPad: every axis is cut, or padded with zeros, around its middle ---

static tare_status crop_or_pad(onnx_call *c, value *x, int64_t axis, int64_t wanted) {
    const tare_tensor *t = tare__onnx_meta(c, x);
    const int64_t size = t->shape[axis], ndim = t->ndim;
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

static tare_status center_crop_pad(onnx_call *c) {
    value x;
    const tare_tensor *t = NULL;
    int64_t wanted[TARE_MAX_DIMS], axes[TARE_MAX_DIMS];
    size_t count, axis_count = 0;
    bool has_axes = false;
    TARE_TRY(need(c, "input_data", &x, &t));
    const int ndim = t->ndim;
    TARE_TRY(tare__onnx_input_ints(c, 1, "shape", TARE_MAX_DIMS, wanted, &count, NULL));
    TARE_TRY(tare__onnx_attr_ints(c, "axes", TARE_MAX_DIMS, axes, &axis_count, &has_axes));
    for (int d = 0; !has_axes && d < ndim; d++) axes[axis_count++] = d;
    if (axis_count != count)
        return tare__onnx_malformed(c, "%zu sizes for %zu axes", count, axis_count);
    for (size_t i = 0; i < count; i++) {
        int64_t axis;
        TARE_TRY(tare__onnx_axis(c, axes[i], ndim, &axis));
        if (wanted[i] < 0) return tare__onnx_malformed(c, "a size is negative");
        TARE_TRY(crop_or_pad(c, &x, axis, wanted[i]));
    }
    return give(c, &x);
}

static const onnx_rule rows[] = {
    {"CenterCropPad", 18, .translate = center_crop_pad},
    {"Concat", .translate = concat},
    {"DepthToSpace", .translate = depth_to_space},
    {"Expand", .translate = expand},
    {"Flatten", .translate = flatten},
    {"Pad", .translate = pad},
    {"Reshape", .translate = reshape},
    {"Slice", .translate = slice},
    {"SpaceToDepth", .translate = space_to_depth},
    {"Split", .translate = split},
    {"Squeeze", .translate = squeeze},
    {"Tile", .translate = tile},
    {"Transpose", .translate = transpose},
    {"Unsqueeze", .translate = unsqueeze},
};

const onnx_rule_table tare__onnx_shape_rules = ONNX_RULES(rows);
