// SPDX-License-Identifier: Apache-2.0
// Selection and marking of elements by indices and masks, composed of gather and scatter operators.
#include <string.h>

#include "ops/compose.h"
#include "ops/families/families.h"
#include "ops/rules.h"

#define P(i) tare__compose_param(c, i)

static value flat(composer *c, value x) {
    const int64_t all = -1;
    return COMPOSE(c, "reshape", x, tare__compose_ints(c, &all, 1));
}

static value in_shape_of(composer *c, value x, const tare_tensor *like) {
    return COMPOSE(c, "view", x, tare__compose_ints(c, like->shape, (size_t)like->ndim));
}

// take(input, index): elements of the flattened input at the indices, in their shape.
static value take(composer *c) {
    const tare_tensor *index = tare__compose_need(c, 1);
    if (index == NULL) return P(0);
    const value row = COMPOSE(c, "index_select", flat(c, P(0)), tare__int(0), flat(c, P(1)));
    return in_shape_of(c, row, index);
}

// take_along_dim(input, indices, dim): gather, with both broadcast except along the dimension.
static value take_along_dim(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0), *index = tare__compose_need(c, 1);
    if (x == NULL || index == NULL) return P(0);
    if (P(2).kind == VALUE_NONE)
        return COMPOSE(c, "gather", flat(c, P(0)), tare__int(0), flat(c, P(1)));
    int64_t dim = tare__compose_int(c, 2, 0), both[2][TARE_MAX_DIMS];
    dim = dim < 0 ? dim + x->ndim : dim;
    if (x->ndim != index->ndim || dim < 0 || dim >= x->ndim) {
        (void)tare__compose_fail(c, "needs indices of as many dimensions, and one of them");
        return P(0);
    }
    for (int d = 0; d < x->ndim; d++) {
        const int64_t common = x->shape[d] == 1 ? index->shape[d] : x->shape[d];
        both[0][d] = d == dim ? x->shape[d] : common;
        both[1][d] = d == dim ? index->shape[d] : common;
    }
    const size_t ndim = (size_t)x->ndim;
    return COMPOSE(c, "gather", COMPOSE(c, "expand", P(0), tare__compose_ints(c, both[0], ndim)),
                   tare__int(dim),
                   COMPOSE(c, "expand", P(1), tare__compose_ints(c, both[1], ndim)));
}

// index_fill(input, dim, index, value)
static value index_fill(composer *c) {
    const value slices = COMPOSE(c, "index_select", P(0), P(1), P(2));
    return COMPOSE(c, "index_copy", P(0), P(1), P(2), COMPOSE(c, "full_like", slices, P(3)));
}

// index_reduce(input, dim, index, source, reduce, include_self): combines slices of the input at
// the indices with slices of source.
static value index_reduce(composer *c) {
    const tare_tensor *source = tare__compose_need(c, 3), *index = tare__compose_need(c, 2);
    if (source == NULL || index == NULL) return P(0);
    int64_t shape[TARE_MAX_DIMS], dim = tare__compose_int(c, 1, 0);
    dim = dim < 0 ? dim + source->ndim : dim;
    if (dim < 0 || dim >= source->ndim || index->count != source->shape[dim]) {
        (void)tare__compose_fail(c, "needs an index for each slice of the source");
        return P(0);
    }
    for (int d = 0; d < source->ndim; d++) shape[d] = d == dim ? index->count : 1;
    const size_t ndim = (size_t)source->ndim;
    const value row = COMPOSE(c, "view", P(2), tare__compose_ints(c, shape, ndim));
    const value all = COMPOSE(c, "expand", row, tare__compose_ints(c, source->shape, ndim));
    return COMPOSE(c, "scatter_reduce", P(0), tare__int(dim), all, P(3), P(4),
                   tare__bool(tare__compose_bool(c, 5, true)));
}

// put(input, index, source, accumulate): writes elements of the flattened input at the indices.
static value put(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    if (x == NULL) return P(0);
    const value indices = tare__compose_list(c, 1), source = flat(c, P(2));
    if (c->status != TARE_OK) return P(0);
    indices.as.items[0] = flat(c, P(1));
    const value made = COMPOSE(c, "index_put", flat(c, P(0)), indices, source,
                               tare__bool(tare__compose_bool(c, 3, false)));
    return in_shape_of(c, made, x);
}

// masked_select(input, mask): both broadcast; the number of elements depends on the data.
typedef struct picking {
    const tare_tensor *x, *mask;
    int ndim;
    int64_t shape[TARE_MAX_DIMS], x_stride[TARE_MAX_DIMS], mask_stride[TARE_MAX_DIMS], whole;
} picking;

static tare_status read_picking(op_call *call, picking *p) {
    TARE_TRY(tare__call_need_tensor(call, 0, &p->x));
    TARE_TRY(tare__call_need_tensor(call, 1, &p->mask));
    TARE_TRY(tare__broadcast(call, p->x, p->mask, &p->ndim, p->shape));
    if (p->mask->dtype != TARE_BOOL || p->mask->data == NULL)
        return tare__call_fail(call, "needs a mask of torch.bool, whose data say how many elements "
                                     "there are");
    if (p->x->q != NULL && p->x->q->axis >= 0)
        return tare__call_fail(call, "takes no channels with parameters of their own");
    tare__broadcast_strides(p->x, p->ndim, p->shape, p->x_stride);
    tare__broadcast_strides(p->mask, p->ndim, p->shape, p->mask_stride);
    p->whole = 1;
    for (int d = 0; d < p->ndim; d++) p->whole *= p->shape[d];
    return TARE_OK;
}

static bool is_picked(const picking *p, int64_t i) {
    const int64_t at = tare__strided_offset(p->ndim, p->shape, p->mask_stride, i);
    return tare__tensor_get_int(p->mask, at) != 0;
}

static tare_status masked_select_shape(op_call *call) {
    picking p;
    int64_t count = 0;
    TARE_TRY(read_picking(call, &p));
    for (int64_t i = 0; i < p.whole; i++) count += is_picked(&p, i);
    return tare__call_result(call, p.x->dtype, 1, &count, p.x->q);
}

static tare_status masked_select_reference(op_call *call) {
    picking p;
    TARE_TRY(read_picking(call, &p));
    const size_t size = tare_dtype_size(p.x->dtype);
    char *to = tare__call_out(call)->data;
    for (int64_t i = 0; i < p.whole; i++) {
        if (!is_picked(&p, i)) continue;
        const int64_t at = tare__strided_offset(p.ndim, p.shape, p.x_stride, i);
        memcpy(to, (const char *)p.x->data + (size_t)at * size, size);
        to += size;
    }
    return TARE_OK;
}

// The number of classes: `given`, or one more than the greatest value. Constant data are checked.
static int64_t count_classes(composer *c, const tare_tensor *x, int64_t given) {
    int64_t greatest = -1;
    if (given < 0 && x->data == NULL)
        (void)tare__compose_fail(
            c, "how many classes there are depends on the data: give num_classes");
    for (int64_t i = 0; x->data != NULL && i < x->count; i++) {
        const int64_t class = tare__tensor_get_int(x, i);
        if (class < 0 || class > INT32_MAX || (given >= 0 && class >= given))
            (void)tare__compose_fail(c, "a class is negative, or not below num_classes");
        greatest = class > greatest ? class : greatest;
    }
    return given >= 0 ? given : greatest + 1;
}

// one_hot(input, num_classes)
static value one_hot(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    if (x == NULL) return P(0);
    const int64_t classes = count_classes(c, x, tare__compose_int(c, 1, -1));
    const value all = COMPOSE(c, "arange", tare__int(classes));
    const value marks = COMPOSE(c, "eq", COMPOSE(c, "unsqueeze", P(0), tare__int(-1)), all);
    return COMPOSE(c, "to", marks, tare__dtype_value(TARE_INT64));
}

// repeat_interleave(input, repeats, dim): repeats element i repeats[i] times. Element j of the
// result is the first one whose cumulative sum of repeats is greater than j.
static value indices_of(composer *c, const tare_tensor *repeats, int64_t size) {
    int64_t count = 0;
    if (repeats->data == NULL)
        (void)tare__compose_fail(c, "how long the result is depends on the data");
    if (repeats->ndim > 1 || (repeats->count != 1 && repeats->count != size))
        (void)tare__compose_fail(c, "needs a repetition for each element");
    for (int64_t i = 0; c->status == TARE_OK && i < size; i++) {
        const int64_t times = tare__tensor_get_int(repeats, repeats->count == 1 ? 0 : i);
        if (times < 0 || times > UINT32_MAX || count > UINT32_MAX)
            (void)tare__compose_fail(c, "a repetition is out of range");
        count += times;
    }
    const value each = COMPOSE(c, "expand", flat(c, P(1)), tare__compose_ints(c, &size, 1));
    const value ends = COMPOSE(c, "cumsum", each, tare__int(0));
    return COMPOSE(c, "bucketize", COMPOSE(c, "arange", tare__int(count)), ends, tare__bool(false),
                   tare__bool(true));
}

static value repeat_elements(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0), *repeats = tare__compose_need(c, 1);
    const bool is_line = P(2).kind == VALUE_NONE;
    int64_t dim = tare__compose_int(c, 2, 0);
    if (x == NULL || repeats == NULL) return P(0);
    dim = dim < 0 ? dim + x->ndim : dim;
    if (!is_line && (dim < 0 || dim >= x->ndim))
        (void)tare__compose_fail(c, "there is no such dimension");
    if (c->status != TARE_OK) return P(0);
    const value indices = indices_of(c, repeats, is_line ? x->count : x->shape[dim]);
    return COMPOSE(c, "index_select", is_line ? flat(c, P(0)) : P(0), tare__int(dim), indices);
}

// --- flips and rotations ---

static value flip_along(composer *c, int64_t dim, int least) {
    const tare_tensor *x = tare__compose_need(c, 0);
    if (x != NULL && x->ndim < least) (void)tare__compose_fail(c, "has too few dimensions");
    return COMPOSE(c, "flip", P(0), tare__compose_ints(c, &dim, 1));
}
static value flipud(composer *c) {
    return flip_along(c, 0, 1);
}
static value fliplr(composer *c) {
    return flip_along(c, 1, 2);
}

// rot90(input, k, dims): k quarter turns from the first dimension towards the second.
static value rot90(composer *c) {
    int64_t dims[2] = {0, 1};
    size_t count = 2;
    op_call call = *c->call;
    const int64_t k = tare__compose_int(c, 1, 1), turns = (k % 4 + 4) % 4;
    if (P(2).kind != VALUE_NONE) c->status = tare__call_int_list(&call, 2, 2, dims, &count);
    if (count != 2) (void)tare__compose_fail(c, "needs two dimensions");
    if (c->status != TARE_OK || turns == 0) return P(0);
    if (turns == 2) return COMPOSE(c, "flip", P(0), tare__compose_ints(c, dims, 2));
    const value flipped =
        COMPOSE(c, "flip", P(0), tare__compose_ints(c, &dims[turns == 1 ? 1 : 0], 1));
    return COMPOSE(c, "transpose", flipped, tare__int(dims[0]), tare__int(dims[1]));
}

// --- vsplit, hsplit, dsplit ---

static value split_along(composer *c, int64_t dim) {
    return COMPOSE(c, "tensor_split", P(0), P(1), tare__int(dim));
}
static value hsplit(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    return split_along(c, x != NULL && x->ndim > 1 ? 1 : 0);
}
static value vsplit(composer *c) {
    return split_along(c, 0);
}
static value dsplit(composer *c) {
    return split_along(c, 2);
}

// sum_to_size(input, size): sums over broadcast dimensions.
static value sum_to_size(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    int64_t size[TARE_MAX_DIMS], dims[TARE_MAX_DIMS];
    size_t count = 0, summed = 0;
    op_call call = *c->call;
    if (x == NULL) return P(0);
    c->status = tare__call_int_list(&call, 1, TARE_MAX_DIMS, size, &count);
    if (c->status != TARE_OK) return P(0);
    if (count > (size_t)x->ndim) (void)tare__compose_fail(c, "the size has too many dimensions");
    const int extra = x->ndim - (int)count;
    for (int d = 0; c->status == TARE_OK && d < x->ndim; d++) {
        const bool goes = d < extra || (size[d - extra] == 1 && x->shape[d] != 1);
        if (goes) dims[summed++] = d;
        if (!goes && size[d - extra] != x->shape[d])
            (void)tare__compose_fail(c, "the size does not fit");
    }
    const value sums =
        summed > 0 ? COMPOSE(c, "sum", P(0), tare__compose_ints(c, dims, summed), tare__bool(true))
                   : P(0);
    return COMPOSE(c, "view", sums, tare__compose_ints(c, size, count));
}

// --- rows ---

#define ATEN(name) "|torch.ops.aten." name

// clang-format off
static const op_info rows[] = {
    COMPOSED_ROW(take, "torch.take" ATEN("take.default"), "take", "input/self|index"),
    COMPOSED_ROW(take_along_dim, "torch.take_along_dim" ATEN("take_along_dim.default"), "take_along_dim", "input/self|indices|dim"),
    COMPOSED_ROW(index_fill, "torch.index_fill" ATEN("index_fill.int_Scalar") ATEN("index_fill.int_Tensor") ATEN("index_fill_.int_Scalar"), "index_fill|index_fill_", "input/self|dim|index|fill_value/value"),
    COMPOSED_ROW(index_reduce, "torch.index_reduce" ATEN("index_reduce.default") ATEN("index_reduce_.default"), "index_reduce|index_reduce_", "input/self|dim|index|source|reduce|include_self"),
    COMPOSED_ROW(put, "torch.put" ATEN("put.default") ATEN("put_.default"), "put|put_", "input/self|index|source|accumulate"),
    {.id = "masked_select", .functions = "torch.masked_select" ATEN("masked_select.default"), .methods = "masked_select", .params = "input/self|mask",
     .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS, .shape = masked_select_shape, .reference = masked_select_reference},
    COMPOSED_ROW(one_hot, "torch.nn.functional.one_hot|torch._C._nn.one_hot" ATEN("one_hot.default"), NULL, "input/self|num_classes"),
    COMPOSED_ROW(repeat_elements, "torch.ops.aten.repeat_interleave.self_Tensor", NULL, "input/self|repeats|dim|output_size"),
    COMPOSED_ROW(flipud, "torch.flipud" ATEN("flipud.default"), "flipud", "input/self"),
    COMPOSED_ROW(fliplr, "torch.fliplr" ATEN("fliplr.default"), "fliplr", "input/self"),
    COMPOSED_ROW(rot90, "torch.rot90" ATEN("rot90.default"), "rot90", "input/self|k|dims"),
    COMPOSED_ROW(hsplit, "torch.hsplit" ATEN("hsplit.int") ATEN("hsplit.array"), "hsplit", "input/self|chunks/sections/indices"),
    COMPOSED_ROW(vsplit, "torch.vsplit" ATEN("vsplit.int") ATEN("vsplit.array"), "vsplit", "input/self|chunks/sections/indices"),
    COMPOSED_ROW(dsplit, "torch.dsplit" ATEN("dsplit.int") ATEN("dsplit.array"), "dsplit", "input/self|chunks/sections/indices"),
    COMPOSED_ROW(sum_to_size, "torch.ops.aten.sum_to_size.default", "sum_to_size", "input/self|*size"),
};
// clang-format on

const op_table tare__picks_ops = OP_TABLE(rows);
