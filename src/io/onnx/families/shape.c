// SPDX-License-Identifier: Apache-2.0
// Operators that change the shape or the order of elements, in ONNX. A size that depends on the
// batch is left to Reshape (-1) or computed from an input.
#include <stdlib.h>
#include <string.h>

#include "core/math/float_to_int.h"
#include "io/onnx/families/families.h"
#include "io/onnx/read/rules_common.h"
#include "io/onnx/read/sizes.h"

// --- reading ---

// --- Reshape, Flatten ---

static tare_status translate_reshape(onnx_call *c) {
    value x, y;
    const tare_tensor *t = NULL;
    bool allow_zero;
    TARE_TRY(tare__onnx_need_first(c, "data", &x, &t));
    TARE_TRY(tare__onnx_attr_bool(c, "allowzero", false, &allow_zero));
    TARE_TRY(tare__onnx_reshape_by(c, &x, 1, allow_zero, &y));
    return tare__onnx_give(c, &y);
}

// The leading sizes are multiplied in the graph.
static tare_status flatten_open(onnx_call *c, const value *x, int64_t axis) {
    value dims[2] = {tare__int(1), tare__int(-1)}, y;
    for (int d = 0; d < axis; d++) {
        value factors[2] = {dims[0]};
        TARE_TRY(tare__onnx_size(c, x, d, &factors[1]));
        TARE_TRY(tare__onnx_scalar(c, "operator.mul", factors, 2, &dims[0]));
    }
    TARE_TRY(tare__onnx_reshape_to(c, x, dims, 2, &y));
    return tare__onnx_give(c, &y);
}

static tare_status translate_flatten(onnx_call *c) {
    value x, y;
    const tare_tensor *t = NULL;
    int64_t axis = 0, dims[2] = {1, -1};
    bool open = false;
    TARE_TRY(tare__onnx_need_first(c, "input", &x, &t));
    TARE_TRY(tare__onnx_attr_int(c, "axis", 1, &axis));
    if (axis != t->ndim) TARE_TRY(tare__onnx_axis(c, axis, t->ndim, &axis)); // ndim is valid, too
    if (axis == 1 && t->ndim >= 2) {
        const value args[] = {x, tare__int(1)};
        return tare__onnx_one(c, "torch.flatten", 2, args);
    }
    for (int d = 0; d < axis; d++) open |= tare__onnx_size_is_open(c, &x, d);
    if (open) return flatten_open(c, &x, axis);
    for (int64_t d = 0; d < axis; d++) dims[0] *= t->shape[d];
    if (dims[0] == 0) {
        dims[1] = 1;
        for (int d = (int)axis; d < t->ndim; d++) dims[1] *= t->shape[d];
    }
    TARE_TRY(tare__onnx_reshape(c, &x, dims, 2, &y));
    return tare__onnx_give(c, &y);
}

// --- Squeeze, Unsqueeze ---

static tare_status translate_squeeze(onnx_call *c) {
    value x, dims;
    const tare_tensor *t = NULL;
    int64_t axes[TARE_MAX_DIMS];
    size_t count = 0;
    bool given = false;
    TARE_TRY(tare__onnx_need_first(c, "data", &x, &t));
    TARE_TRY(tare__onnx_axes(c, 13, 1, t->ndim, axes, &count, &given));
    for (int d = 0; !given && d < t->ndim; d++)
        if (t->shape[d] == 1) axes[count++] = d;
    for (size_t i = 0; i < count; i++)
        if (t->shape[axes[i]] != 1)
            return tare__onnx_malformed(c, "dimension %lld has size %lld, expected 1",
                                        (long long)axes[i], (long long)t->shape[axes[i]]);
    if (count == 0) return tare__onnx_give(c, &x);
    dims = tare__int(axes[0]);
    if (count > 1) TARE_TRY(tare__onnx_int_tuple(c, axes, count, &dims));
    const value args[] = {x, dims};
    return tare__onnx_one(c, "torch.squeeze", 2, args);
}

static int by_number(const void *left, const void *right) {
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

// The axes count dimensions of the result.
static tare_status translate_unsqueeze(onnx_call *c) {
    value x;
    const tare_tensor *t = NULL;
    int64_t axes[TARE_MAX_DIMS];
    size_t count = 0;
    TARE_TRY(tare__onnx_need_first(c, "data", &x, &t));
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
    return tare__onnx_give(c, &x);
}

// --- Transpose ---

static tare_status translate_transpose(onnx_call *c) {
    value x, y;
    const tare_tensor *t = NULL;
    int64_t order[TARE_MAX_DIMS];
    size_t count = 0;
    bool given = false, seen[TARE_MAX_DIMS] = {false};
    TARE_TRY(tare__onnx_need_first(c, "data", &x, &t));
    TARE_TRY(tare__onnx_attr_ints(c, "perm", TARE_MAX_DIMS, order, &count, &given));
    for (int d = 0; !given && d < t->ndim; d++) order[count++] = t->ndim - 1 - d;
    bool fits = count == (size_t)t->ndim;
    for (size_t i = 0; fits && i < count; i++) {
        fits = order[i] >= 0 && order[i] < t->ndim && !seen[order[i]];
        if (fits) seen[order[i]] = true;
    }
    if (!fits) {
        char found[200];
        tare__shape_text((int)count, order, found, sizeof found);
        return tare__onnx_malformed(c, "perm is %s, expected each of 0 to %d once", found,
                                    t->ndim - 1);
    }
    TARE_TRY(tare__onnx_permute(c, &x, order, count, &y));
    return tare__onnx_give(c, &y);
}

// --- Expand, Tile ---

// Combines the size of x's dimension (1 if x has none) with the requested size. -1 keeps x's size.
static tare_status expand_dim(onnx_call *c, const value *own, const value *asked, bool exists,
                              value *out) {
    const bool is_one = own->kind == VALUE_INT && own->as.integer == 1;
    const bool asks_one = asked->kind == VALUE_INT && asked->as.integer == 1;
    if (!is_one && !asks_one && !tare__onnx_may_be_same_size(c, own, asked))
        return tare__onnx_malformed(c, "a size of %lld cannot be expanded to %lld",
                                    (long long)tare__onnx_stand_in(c, own),
                                    (long long)tare__onnx_stand_in(c, asked));
    *out = exists && (asks_one || tare__onnx_same_size(c, own, asked)) ? tare__int(-1) : *asked;
    return TARE_OK;
}

// True if the number or one of the sizes is open.
static bool is_open(const onnx_call *c, const value *number, const value *sizes, size_t count) {
    for (size_t d = 0; d < count; d++)
        if (sizes[d].kind == VALUE_NODE) return true;
    return tare__onnx_holds_open(c->in, number);
}

static tare_status translate_expand(onnx_call *c) {
    value args[TARE_MAX_DIMS + 1], wanted[TARE_MAX_DIMS], y;
    const tare_tensor *t = NULL;
    size_t count;
    TARE_TRY(tare__onnx_need_first(c, "input", &args[0], &t));
    TARE_TRY(tare__onnx_input_sizes(c, 1, "shape", TARE_MAX_DIMS, wanted, &count, NULL));
    const size_t rank = (size_t)t->ndim, ndim = count > rank ? count : rank;
    bool changes = ndim > rank;
    for (size_t d = 0; d < ndim; d++) {
        const size_t from_end = ndim - d;
        value own = tare__int(1), asked = tare__int(1);
        if (from_end <= rank) TARE_TRY(tare__onnx_size(c, &args[0], (int)(rank - from_end), &own));
        if (from_end <= count) asked = wanted[count - from_end];
        TARE_TRY(expand_dim(c, &own, &asked, from_end <= rank, &args[d + 1]));
        changes = changes || args[d + 1].kind != VALUE_INT || args[d + 1].as.integer != -1;
    }
    if (!changes) return tare__onnx_give(c, &args[0]);
    if (rank == 0 && args[0].kind == VALUE_TENSOR && is_open(c, &args[0], args + 1, ndim)) {
        const value number = tare__onnx_entry(c->in, args[0].as.tensor, 0);
        TARE_TRY(tare__onnx_full(c, args + 1, ndim, t->dtype, &number, &y));
        return tare__onnx_give(c, &y);
    }
    TARE_TRY(tare__onnx_call(c, true, "expand", args, ndim + 1, &y));
    return tare__onnx_give(c, &y);
}

static tare_status translate_tile(onnx_call *c) {
    value args[TARE_MAX_DIMS + 1], y;
    const tare_tensor *t = NULL;
    size_t count;
    TARE_TRY(tare__onnx_need_first(c, "input", &args[0], &t));
    TARE_TRY(tare__onnx_input_sizes(c, 1, "repeats", TARE_MAX_DIMS, args + 1, &count, NULL));
    if (count != (size_t)t->ndim)
        return tare__onnx_malformed(c, "%zu repeats for %d dimensions", count, t->ndim);
    if (count == 0) return tare__onnx_give(c, &args[0]);
    TARE_TRY(tare__onnx_call(c, true, "repeat", args, count + 1, &y));
    return tare__onnx_give(c, &y);
}

// --- DepthToSpace, SpaceToDepth ---

// Views x as six dimensions, permutes them, and views the result as four.
static tare_status shuffle(onnx_call *c, value x, const value six[6], const int64_t order[6],
                           const value four[4]) {
    TARE_TRY(tare__onnx_reshape_to(c, &x, six, 6, &x));
    TARE_TRY(tare__onnx_permute(c, &x, order, 6, &x));
    TARE_TRY(tare__onnx_reshape_to(c, &x, four, 4, &x));
    return tare__onnx_give(c, &x);
}

// A size of x times `by`, or divided by -by if `by` is negative.
static tare_status scaled_size(onnx_call *c, const value *x, int d, int64_t by, value *out) {
    value args[2] = {tare__none(), tare__int(by < 0 ? -by : by)};
    TARE_TRY(tare__onnx_size(c, x, d, &args[0]));
    if (args[0].kind == VALUE_NODE)
        return tare__onnx_scalar(c, by < 0 ? "operator.floordiv" : "operator.mul", args, 2, out);
    *out = tare__int(by < 0 ? args[0].as.integer / -by : args[0].as.integer * by);
    return TARE_OK;
}

static tare_status read_block(onnx_call *c, value *x, const tare_tensor **t, int64_t *r) {
    TARE_TRY(tare__onnx_need_first(c, "input", x, t));
    TARE_TRY(tare__onnx_attr_int(c, "blocksize", 0, r));
    if ((*t)->ndim != 4 || *r < 1 || *r > INT16_MAX)
        return tare__onnx_malformed(c,
                                    "expected 4 dimensions and a positive blocksize, found %d "
                                    "and %lld",
                                    (*t)->ndim, (long long)*r);
    return TARE_OK;
}

static tare_status translate_depth_to_space(onnx_call *c) {
    value x;
    const tare_tensor *t = NULL;
    int64_t r;
    size_t mode = 0;
    TARE_TRY(read_block(c, &x, &t, &r));
    TARE_TRY(ONNX_CHOICE(c, "mode", "DCR", &mode, "DCR", "CRD"));
    const value args[] = {x, tare__int(r)};
    if (mode == 1) return tare__onnx_one(c, "torch.nn.functional.pixel_shuffle", 2, args);
    const int64_t order[] = {0, 3, 4, 1, 5, 2};
    const value block = tare__int(r), depth = tare__int(t->shape[1] / (r * r));
    value six[] = {block, block, block, depth, block, block};
    value four[] = {block, depth, block, block};
    TARE_TRY(tare__onnx_size(c, &x, 0, &six[0]));
    TARE_TRY(tare__onnx_size(c, &x, 2, &six[4]));
    TARE_TRY(tare__onnx_size(c, &x, 3, &six[5]));
    four[0] = six[0];
    TARE_TRY(scaled_size(c, &x, 2, r, &four[2]));
    TARE_TRY(scaled_size(c, &x, 3, r, &four[3]));
    return shuffle(c, x, six, order, four);
}

static tare_status translate_space_to_depth(onnx_call *c) {
    value x;
    const tare_tensor *t = NULL;
    int64_t r;
    TARE_TRY(read_block(c, &x, &t, &r));
    const int64_t order[] = {0, 3, 5, 1, 2, 4};
    const value block = tare__int(r), depth = tare__int(t->shape[1]);
    value six[] = {block, depth, block, block, block, block};
    value four[] = {block, tare__int(t->shape[1] * r * r), block, block};
    TARE_TRY(tare__onnx_size(c, &x, 0, &six[0]));
    TARE_TRY(scaled_size(c, &x, 2, -r, &six[2]));
    TARE_TRY(scaled_size(c, &x, 3, -r, &six[4]));
    four[0] = six[0];
    four[2] = six[2];
    four[3] = six[4];
    return shuffle(c, x, six, order, four);
}

static const onnx_rule read_rows[] = {
    {"DepthToSpace", .translate = translate_depth_to_space},
    {"Expand", .translate = translate_expand},
    {"Flatten", .translate = translate_flatten},
    {"Reshape", .translate = translate_reshape},
    {"SpaceToDepth", .translate = translate_space_to_depth},
    {"Squeeze", .translate = translate_squeeze},
    {"Tile", .translate = translate_tile},
    {"Transpose", .translate = translate_transpose},
    {"Unsqueeze", .translate = translate_unsqueeze},
};

// --- writing ---

// --- reshape ---

// The shape input of Reshape. If exactly one size depends on the batch, it is -1.
static const char *reshape_sizes(onnx_out *o) {
    const tare_tensor *y = tare__out_result_meta(o), *other = tare__out_result_other(o);
    int64_t sizes[TARE_MAX_DIMS];
    int open = 0;
    for (int d = 0; d < y->ndim; d++) {
        const bool follows = other != NULL && other->shape[d] != y->shape[d];
        sizes[d] = follows ? -1 : y->shape[d];
        open += follows;
    }
    if (open <= 1 && y->count > 0) return tare__out_ints(o, sizes, (size_t)y->ndim);
    return tare__out_sizes_but_one(o, y->shape, other != NULL ? other->shape : NULL,
                                   (size_t)y->ndim);
}

static void write_reshape(onnx_out *o) {
    tare__out_result(o, OUT(o, "Reshape", tare__out_input(o, 0), reshape_sizes(o)));
}

// view_back(whole, part): reshapes `part` to the shape of `whole`.
static void write_view_back(onnx_out *o) {
    tare__out_result(o, OUT(o, "Reshape", tare__out_input(o, 1), reshape_sizes(o)));
}

static void write_unsqueeze(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_meta(o, 0)->ndim + 1);
    tare__out_result(o, tare__out_unsqueeze(o, tare__out_input(o, 0), &axis, 1));
}

// --- order of dimensions ---

static void write_permute(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    int64_t order[TARE_MAX_DIMS];
    size_t count = 0;
    tare__out_try(o, tare__call_int_list(tare__out_call(o), 1, TARE_MAX_DIMS, order, &count));
    for (size_t i = 0; i < count; i++)
        if (order[i] < 0) order[i] += x->ndim;
    tare__out_result(o, tare__out_transpose(o, tare__out_input(o, 0), order, count));
}

static void write_transpose(onnx_out *o) {
    const int ndim = tare__out_meta(o, 0)->ndim;
    const int a = (int)tare__out_dim(o, 1, 0, ndim), b = (int)tare__out_dim(o, 2, 0, ndim);
    int64_t order[TARE_MAX_DIMS];
    for (int d = 0; d < ndim; d++) order[d] = d == a ? b : d == b ? a : d;
    tare__out_result(o, tare__out_transpose(o, tare__out_input(o, 0), order, (size_t)ndim));
}

static void write_turn(onnx_out *o) {
    const int ndim = tare__out_meta(o, 0)->ndim;
    const int64_t order[] = {1, 0};
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, ndim == 2 ? tare__out_transpose(o, x, order, 2) : OUT(o, "Identity", x));
}

// x.T, x.H, x.mT and x.mH.
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

// --- more of the same ---

// A size of 1 keeps a dimension; only dimensions that grow get their size.
static void write_expand(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *y = tare__out_result_meta(o);
    const tare_tensor *other = tare__out_result_other(o);
    int64_t sizes[TARE_MAX_DIMS], others[TARE_MAX_DIMS];
    const int more = y->ndim - x->ndim;
    for (int d = 0; d < y->ndim; d++) {
        const bool grows = d < more || x->shape[d - more] == 1;
        sizes[d] = grows ? y->shape[d] : 1;
        others[d] = grows && other != NULL ? other->shape[d] : sizes[d];
    }
    tare__out_result(o, OUT(o, "Expand", tare__out_input(o, 0),
                            tare__out_sizes(o, sizes, others, (size_t)y->ndim)));
}

// copy(x, source): source, broadcast to the shape of x.
static void write_copy(onnx_out *o) {
    const tare_tensor *y = tare__out_result_meta(o), *other = tare__out_result_other(o);
    const char *from = tare__out_operand(o, 1, y->dtype);
    tare__out_result(
        o, OUT(o, "Expand", from,
               tare__out_sizes(o, y->shape, other != NULL ? other->shape : NULL, (size_t)y->ndim)));
}

static void write_repeat(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *y = tare__out_result_meta(o);
    const char *in = tare__out_input(o, 0);
    int64_t shape[TARE_MAX_DIMS], times[TARE_MAX_DIMS], others[TARE_MAX_DIMS], count = 0;
    size_t given = 0;
    tare__out_try(o, tare__call_int_list(tare__out_call(o), 1, TARE_MAX_DIMS, times, &given));
    const bool follows = tare__out_other_ints(o, 1, TARE_MAX_DIMS, others, given);
    const int more = y->ndim - x->ndim;
    for (int d = 0; d < more; d++) shape[count++] = d;
    if (more > 0) in = tare__out_unsqueeze(o, in, shape, (size_t)more);
    tare__out_result(o,
                     OUT(o, "Tile", in, tare__out_sizes(o, times, follows ? others : NULL, given)));
}

// Repeats each element `repeats` times: expands a new dimension and merges it with the one before.
static void write_repeat_interleave(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t times = tare__out_int(o, 1, 1);
    const char *in = tare__out_input(o, 0);
    int64_t sizes[TARE_MAX_DIMS + 1];
    const int64_t flat = -1;
    int dim = 0, ndim = x->ndim;
    if (tare__out_given(o, 2))
        dim = (int)tare__out_dim(o, 2, 0, x->ndim);
    else {
        in = tare__out_reshape(o, in, &flat, 1);
        ndim = 1;
    }
    const int64_t behind = dim + 1;
    for (int d = 0; d <= ndim; d++) sizes[d] = d == behind ? times : 1;
    in = OUT(o, "Expand", tare__out_unsqueeze(o, in, &behind, 1),
             tare__out_ints(o, sizes, (size_t)ndim + 1));
    tare__out_result(o, OUT(o, "Reshape", in, reshape_sizes(o)));
}

// --- reversed ---

static void write_flip(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const char *in = tare__out_input(o, 0);
    int64_t dims[TARE_MAX_DIMS];
    size_t count = 0;
    tare__out_try(o, tare__call_int_list(tare__out_call(o), 1, TARE_MAX_DIMS, dims, &count));
    for (size_t i = 0; i < count; i++)
        in = tare__out_slice(o, in, dims[i] < 0 ? dims[i] + x->ndim : dims[i], -1, INT64_MIN + 1,
                             -1);
    tare__out_result(o, in);
}

static const char *roll_one(onnx_out *o, const char *x, int64_t axis, int64_t size, int64_t shift) {
    const int64_t cut = size > 0 ? ((-shift) % size + size) % size : 0;
    if (cut == 0) return x;
    const char *y = OUT(o, "Concat", tare__out_slice(o, x, axis, cut, INT64_MAX, 1),
                        tare__out_slice(o, x, axis, 0, cut, 1));
    tare__out_attr_int(o, "axis", axis);
    return y;
}

static void write_roll(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    int64_t shifts[TARE_MAX_DIMS], dims[TARE_MAX_DIMS];
    size_t shift_count = 0, count = 0;
    op_call *call = tare__out_call(o);
    tare__out_try(o, tare__call_int_list(call, 1, TARE_MAX_DIMS, shifts, &shift_count));
    if (!tare__out_given(o, 2))
        tare__out_refuse(o, "a roll over the flattened tensor is not written");
    if (tare__out_failed(o)) return;
    tare__out_try(o, tare__call_int_list(call, 2, TARE_MAX_DIMS, dims, &count));
    const char *y = tare__out_input(o, 0);
    for (size_t i = 0; i < count && i < shift_count && !tare__out_failed(o); i++) {
        const int64_t axis = dims[i] < 0 ? dims[i] + x->ndim : dims[i];
        if (axis == 0 && tare__out_result_other(o) != NULL)
            tare__out_refuse(o, "a roll along the batch is not written");
        y = roll_one(o, y, axis, x->shape[axis], shifts[i]);
    }
    tare__out_result(o, y);
}

// --- channels and pixels ---

// The depth_to_space mode that corresponds to torch's channel order.
static void write_shuffle_pixels(onnx_out *o) {
    const int ndim = tare__out_meta(o, 0)->ndim;
    if (ndim != 4) tare__out_refuse(o, "DepthToSpace takes 4 dimensions, found %d", ndim);
    const char *y = OUT(o, "DepthToSpace", tare__out_input(o, 0));
    tare__out_attr_int(o, "blocksize", tare__out_int(o, 1, 1));
    tare__out_attr_text(o, "mode", "CRD");
    tare__out_result(o, y);
}

// [N][C][H r][W r] -> [N][C][H][r][W][r] -> [N][C r r][H][W]
static void write_unshuffle_pixels(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t r = tare__out_int(o, 1, 1);
    if (x->ndim != 4) tare__out_refuse(o, "expected 4 dimensions, found %d", x->ndim);
    if (tare__out_failed(o)) return;
    const int64_t parted[] = {0, x->shape[1], x->shape[2] / r, r, x->shape[3] / r, r};
    const int64_t order[] = {0, 1, 3, 5, 2, 4};
    const char *y = tare__out_reshape(o, tare__out_input(o, 0), parted, 6);
    y = tare__out_transpose(o, y, order, 6);
    tare__out_result(o, OUT(o, "Reshape", y, reshape_sizes(o)));
}

// Swaps the two dimensions of the channels [g][C / g].
static void write_channel_shuffle(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t groups = tare__out_int(o, 1, 1), order[] = {0, 2, 1, 3};
    if (tare__out_failed(o)) return;
    const int64_t parted[] = {0, groups, x->shape[1] / groups, -1};
    const char *y = tare__out_reshape(o, tare__out_input(o, 0), parted, 4);
    y = tare__out_transpose(o, y, order, 4);
    tare__out_result(o, OUT(o, "Reshape", y, reshape_sizes(o)));
}

static void write_identity(onnx_out *o) {
    tare__out_result(o, OUT(o, "Identity", tare__out_input(o, 0)));
}

static const onnx_write_rule write_rows[] = {
    {"channel_shuffle", "Reshape, Transpose", .write = write_channel_shuffle},
    {"clone", "Identity", .write = write_identity},
    {"contiguous", "Identity", .write = write_identity},
    {"copy", "Expand", .write = write_copy},
    {"detach", "Identity", .write = write_identity},
    {"dropout", "Identity", .write = write_identity},
    {"expand", "Expand", .takes_sizes = true, .write = write_expand},
    {"expand_as", "Expand", .write = write_expand},
    {"flatten", "Reshape", .write = write_reshape},
    {"flip", "Slice", .write = write_flip},
    {"getattr", "Transpose", .write = write_attribute},
    {"identity", "Identity", .write = write_identity},
    {"permute", "Transpose", .write = write_permute},
    {"pixel_shuffle", "DepthToSpace", .write = write_shuffle_pixels},
    {"pixel_unshuffle", "Reshape, Transpose", .write = write_unshuffle_pixels},
    {"repeat", "Tile", .takes_open_sizes = true, .write = write_repeat},
    {"repeat_interleave", "Expand, Reshape", .write = write_repeat_interleave},
    {"reshape", "Reshape", .takes_sizes = true, .write = write_reshape},
    {"roll", "Slice, Concat", .write = write_roll},
    {"squeeze", "Reshape", .write = write_reshape},
    {"t", "Transpose", .write = write_turn},
    {"transpose", "Transpose", .write = write_transpose},
    {"unflatten", "Reshape", .takes_sizes = true, .write = write_reshape},
    {"unsqueeze", "Unsqueeze", .write = write_unsqueeze},
    {"view", "Reshape", .takes_sizes = true, .write = write_reshape},
    {"view_as", "Reshape", .write = write_reshape},
    {"view_back", "Reshape", .takes_sizes = true, .write = write_view_back},
};

const onnx_family tare__onnx_shape_family = {.read = ONNX_RULES(read_rows),
                                             .write = ONNX_WRITE_RULES(write_rows)};
