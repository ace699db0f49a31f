// SPDX-License-Identifier: Apache-2.0
// Operators that arrange elements as ONNX. Where a size follows the batch it is left to Reshape, or
// computed from an input.
#include <string.h>

#include "io/onnx/write/rules.h"

// --- reshape ---

// Sizes for Reshape: -1 where exactly one follows the batch, which is then whatever is left.
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
    return tare__out_sizes(o, y->shape, other != NULL ? other->shape : NULL, (size_t)y->ndim);
}

static void reshape(onnx_out *o) {
    tare__out_result(o, OUT(o, "Reshape", tare__out_input(o, 0), reshape_sizes(o)));
}

// view_back(whole, part): the part, as large as the whole.
static void view_back(onnx_out *o) {
    tare__out_result(o, OUT(o, "Reshape", tare__out_input(o, 1), reshape_sizes(o)));
}

static void unsqueeze(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_meta(o, 0)->ndim + 1);
    tare__out_result(o, tare__out_unsqueeze(o, tare__out_input(o, 0), &axis, 1));
}

// --- order of dimensions ---

static void permute(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    int64_t order[TARE_MAX_DIMS];
    size_t count = 0;
    tare__out_try(o, tare__call_int_list(tare__out_call(o), 1, TARE_MAX_DIMS, order, &count));
    for (size_t i = 0; i < count; i++)
        if (order[i] < 0) order[i] += x->ndim;
    tare__out_result(o, tare__out_transpose(o, tare__out_input(o, 0), order, count));
}

static void transpose(onnx_out *o) {
    const int ndim = tare__out_meta(o, 0)->ndim;
    const int a = (int)tare__out_dim(o, 1, 0, ndim), b = (int)tare__out_dim(o, 2, 0, ndim);
    int64_t order[TARE_MAX_DIMS];
    for (int d = 0; d < ndim; d++) order[d] = d == a ? b : d == b ? a : d;
    tare__out_result(o, tare__out_transpose(o, tare__out_input(o, 0), order, (size_t)ndim));
}

static void turn(onnx_out *o) {
    const int ndim = tare__out_meta(o, 0)->ndim;
    const int64_t order[] = {1, 0};
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, ndim == 2 ? tare__out_transpose(o, x, order, 2) : OUT(o, "Identity", x));
}

// --- more of the same ---

// 1 leaves a dimension as it is, so that only what grows has a size.
static void expand(onnx_out *o) {
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

// copy(x, source): the source, as large as x.
static void copy(onnx_out *o) {
    const tare_tensor *y = tare__out_result_meta(o), *other = tare__out_result_other(o);
    const char *from = tare__out_operand(o, 1, y->dtype);
    tare__out_result(
        o, OUT(o, "Expand", from,
               tare__out_sizes(o, y->shape, other != NULL ? other->shape : NULL, (size_t)y->ndim)));
}

static void repeat(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *y = tare__out_result_meta(o);
    const char *in = tare__out_input(o, 0);
    int64_t shape[TARE_MAX_DIMS], times[TARE_MAX_DIMS], count = 0;
    size_t given = 0;
    tare__out_try(o, tare__call_int_list(tare__out_call(o), 1, TARE_MAX_DIMS, times, &given));
    const int more = y->ndim - x->ndim;
    for (int d = 0; d < more; d++) shape[count++] = d;
    if (more > 0) in = tare__out_unsqueeze(o, in, shape, (size_t)more);
    tare__out_result(o, OUT(o, "Tile", in, tare__out_ints(o, times, given)));
}

// Each element `repeats` times: a new dimension behind it, which is then one with it.
static void repeat_interleave(onnx_out *o) {
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

// --- turned around ---

static void flip(onnx_out *o) {
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

static void roll(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    int64_t shifts[TARE_MAX_DIMS], dims[TARE_MAX_DIMS];
    size_t shift_count = 0, count = 0;
    op_call *call = tare__out_call(o);
    tare__out_try(o, tare__call_int_list(call, 1, TARE_MAX_DIMS, shifts, &shift_count));
    if (!tare__out_given(o, 2)) tare__out_refuse(o, "a roll through all dimensions is not written");
    if (tare__out_failed(o)) return;
    tare__out_try(o, tare__call_int_list(call, 2, TARE_MAX_DIMS, dims, &count));
    const char *y = tare__out_input(o, 0);
    for (size_t i = 0; i < count && i < shift_count && !tare__out_failed(o); i++) {
        const int64_t axis = dims[i] < 0 ? dims[i] + x->ndim : dims[i];
        if (axis == 0 && tare__out_result_other(o) != NULL)
            tare__out_refuse(o, "a roll of the batch is not written");
        y = roll_one(o, y, axis, x->shape[axis], shifts[i]);
    }
    tare__out_result(o, y);
}

// --- channels and pixels ---

// ONNX's mode that torch's order of channels is.
static void shuffle_pixels(onnx_out *o) {
    const int ndim = tare__out_meta(o, 0)->ndim;
    if (ndim != 4) tare__out_refuse(o, "DepthToSpace takes 4 dimensions, found %d", ndim);
    const char *y = OUT(o, "DepthToSpace", tare__out_input(o, 0));
    tare__out_attr_int(o, "blocksize", tare__out_int(o, 1, 1));
    tare__out_attr_text(o, "mode", "CRD");
    tare__out_result(o, y);
}

// [N][C][H r][W r] -> [N][C][H][r][W][r] -> [N][C r r][H][W]
static void unshuffle_pixels(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t r = tare__out_int(o, 1, 1);
    if (x->ndim != 4) tare__out_refuse(o, "4 dimensions were expected, found %d", x->ndim);
    if (tare__out_failed(o)) return;
    const int64_t parted[] = {0, x->shape[1], x->shape[2] / r, r, x->shape[3] / r, r};
    const int64_t order[] = {0, 1, 3, 5, 2, 4};
    const char *y = tare__out_reshape(o, tare__out_input(o, 0), parted, 6);
    y = tare__out_transpose(o, y, order, 6);
    tare__out_result(o, OUT(o, "Reshape", y, reshape_sizes(o)));
}

// [N][g][C / g][..] with both in the other order.
static void channel_shuffle(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t groups = tare__out_int(o, 1, 1), order[] = {0, 2, 1, 3};
    if (tare__out_failed(o)) return;
    const int64_t parted[] = {0, groups, x->shape[1] / groups, -1};
    const char *y = tare__out_reshape(o, tare__out_input(o, 0), parted, 4);
    y = tare__out_transpose(o, y, order, 4);
    tare__out_result(o, OUT(o, "Reshape", y, reshape_sizes(o)));
}

static void identity(onnx_out *o) {
    tare__out_result(o, OUT(o, "Identity", tare__out_input(o, 0)));
}

static const onnx_write_rule rows[] = {
    {"channel_shuffle", "Reshape, Transpose", .write = channel_shuffle},
    {"clone", "Identity", .write = identity},
    {"contiguous", "Identity", .write = identity},
    {"copy", "Expand", .write = copy},
    {"detach", "Identity", .write = identity},
    {"dropout", "Identity", .write = identity},
    {"expand", "Expand", .takes_sizes = true, .write = expand},
    {"expand_as", "Expand", .write = expand},
    {"flatten", "Reshape", .write = reshape},
    {"flip", "Slice", .write = flip},
    {"identity", "Identity", .write = identity},
    {"permute", "Transpose", .write = permute},
    {"pixel_shuffle", "DepthToSpace", .write = shuffle_pixels},
    {"pixel_unshuffle", "Reshape, Transpose", .write = unshuffle_pixels},
    {"repeat", "Tile", .write = repeat},
    {"repeat_interleave", "Expand, Reshape", .write = repeat_interleave},
    {"reshape", "Reshape", .takes_sizes = true, .write = reshape},
    {"roll", "Slice, Concat", .write = roll},
    {"squeeze", "Reshape", .write = reshape},
    {"t", "Transpose", .write = turn},
    {"transpose", "Transpose", .write = transpose},
    {"unflatten", "Reshape", .takes_sizes = true, .write = reshape},
    {"unsqueeze", "Unsqueeze", .write = unsqueeze},
    {"view", "Reshape", .takes_sizes = true, .write = reshape},
    {"view_as", "Reshape", .write = reshape},
    {"view_back", "Reshape", .takes_sizes = true, .write = view_back},
};

const onnx_write_table tare__onnx_write_shape_rules = ONNX_WRITE_RULES(rows);
