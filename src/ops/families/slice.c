// SPDX-License-Identifier: Apache-2.0
// Slices of a tensor at constant indices, and tensors with such a slice replaced: the form of
// x[a:b] and of assignments to it in exported programs.
#include <string.h>

#include "ops/families/families.h"
#include "ops/families/gather.h"
#include "ops/families/index/index.h"
#include "ops/rules.h"

// --- the slice ---

// Plans a slice from the parameters dim, start, end and step, which begin at index `at`.
static tare_status plan_slice_at(op_call *call, gather *g, size_t at) {
    int dim;
    int64_t start, step, count;
    value bounds[3] = {{0}};
    const value slice = {.kind = VALUE_SLICE, .count = 3, .as.items = bounds};
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_dim(call, at, 0, g->ndim, &dim));
    if (g->ndim == 0) return tare__call_fail(call, "the input has no dimensions");
    for (size_t i = 0; i < 3; i++)
        if (call->param[at + 1 + i] != NULL) bounds[i] = *call->param[at + 1 + i];
    TARE_TRY(tare__slice_of(call, &slice, g->size[dim], &start, &step, &count));
    g->offset += start * g->stride[dim];
    g->size[dim] = g->out_shape[dim] = count;
    if (count > 1) g->stride[dim] *= step;
    return TARE_OK;
}

static tare_status plan_slice(op_call *call, gather *g) {
    return plan_slice_at(call, g, 1);
}
static tare_status plan_slice_scatter(op_call *call, gather *g) {
    return plan_slice_at(call, g, 2);
}

static tare_status plan_select_scatter(op_call *call, gather *g) {
    int dim;
    int64_t index;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_dim(call, 2, 0, g->ndim, &dim));
    TARE_TRY(tare__call_int(call, 3, 0, &index));
    if (g->ndim == 0 || index < -g->size[dim] || index >= g->size[dim])
        return tare__call_fail(call, "index %lld is out of range of the dimension",
                               (long long)index);
    g->offset += (index < 0 ? index + g->size[dim] : index) * g->stride[dim];
    tare__gather_drop(g, dim);
    g->out_ndim = g->ndim;
    memcpy(g->out_shape, g->size, sizeof g->out_shape);
    return TARE_OK;
}

// Plans a diagonal, which becomes the last dimension, from the parameters offset, dim1 and dim2,
// which begin at index `at`.
static tare_status plan_diagonal_of(op_call *call, gather *g, size_t at, int first, int second) {
    int64_t offset;
    int a, b;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_int(call, at, 0, &offset));
    TARE_TRY(tare__call_dim(call, at + 1, first, g->ndim, &a));
    TARE_TRY(tare__call_dim(call, at + 2, second, g->ndim, &b));
    if (g->ndim < 2 || a == b) return tare__call_fail(call, "needs two different dimensions");
    const int64_t rows = g->size[a], columns = g->size[b];
    // Limits the offset so that sums with sizes cannot overflow.
    if (offset > columns) offset = columns;
    if (offset < -rows) offset = -rows;
    const int64_t down = offset < 0 ? -offset : 0, right = offset > 0 ? offset : 0;
    const int64_t below = rows - down, beside = columns - right;
    const int64_t stride = g->stride[a] + g->stride[b];
    const int64_t count = below < beside ? below : beside;
    if (count > 0) g->offset += down * g->stride[a] + right * g->stride[b];
    tare__gather_drop(g, a > b ? a : b);
    tare__gather_drop(g, a > b ? b : a);
    g->size[g->ndim] = count;
    g->stride[g->ndim++] = stride;
    g->out_ndim = g->ndim;
    memcpy(g->out_shape, g->size, sizeof g->out_shape);
    return TARE_OK;
}

// unfold(dimension, size, step): windows along a dimension, whose elements become the last
// dimension.
static tare_status plan_unfold(op_call *call, gather *g) {
    int dim;
    int64_t size, step;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_dim(call, 1, 0, g->ndim, &dim));
    TARE_TRY(tare__call_int(call, 2, 1, &size));
    TARE_TRY(tare__call_int(call, 3, 1, &step));
    if (g->ndim == 0 || g->ndim == TARE_MAX_DIMS || size < 0 || size > g->size[dim] || step < 1)
        return tare__call_fail(call, "windows of %lld elements at steps of %lld do not fit %s",
                               (long long)size, (long long)step, tare__call_shape_text(call, g->x));
    const int64_t stride = g->stride[dim], count = (g->size[dim] - size) / step + 1;
    g->size[dim] = count;
    if (count > 1) g->stride[dim] *= step;
    g->size[g->ndim] = size;
    g->stride[g->ndim++] = stride;
    g->out_ndim = g->ndim;
    memcpy(g->out_shape, g->size, sizeof g->out_shape);
    return TARE_OK;
}

static tare_status plan_diagonal(op_call *call, gather *g) {
    return plan_diagonal_of(call, g, 1, 0, 1);
}
static tare_status plan_linalg_diagonal(op_call *call, gather *g) {
    return plan_diagonal_of(call, g, 1, -2, -1);
}
static tare_status plan_diagonal_scatter(op_call *call, gather *g) {
    return plan_diagonal_of(call, g, 2, 0, 1);
}

GATHER_OPERATOR(slice, plan_slice)
GATHER_OPERATOR(diagonal, plan_diagonal)
GATHER_OPERATOR(unfold, plan_unfold)
GATHER_OPERATOR(linalg_diagonal, plan_linalg_diagonal)

// --- as_strided ---

// Checks that the last element is inside of the input.
static tare_status check_reach(op_call *call, const gather *g) {
    int64_t last = g->offset;
    for (int d = 0; d < g->ndim; d++) {
        if (g->size[d] == 0) return TARE_OK;
        const int64_t reach = tare__size_product(g->size[d] - 1, g->stride[d]);
        if (reach > INT64_MAX - last)
            last = INT64_MAX;
        else
            last += reach;
    }
    return last < g->x->count ? TARE_OK
                              : tare__call_fail(call, "the strides reach beyond the input");
}

static tare_status plan_as_strided(op_call *call, gather *g) {
    int64_t size[TARE_MAX_DIMS], stride[TARE_MAX_DIMS];
    size_t size_count, stride_count;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_int_list(call, 1, TARE_MAX_DIMS, size, &size_count));
    TARE_TRY(tare__call_int_list(call, 2, TARE_MAX_DIMS, stride, &stride_count));
    TARE_TRY(tare__call_int(call, 3, 0, &g->offset));
    bool fits = size_count == stride_count && g->offset >= 0;
    for (size_t i = 0; i < size_count && fits; i++) fits = size[i] >= 0 && stride[i] >= 0;
    if (!fits) return tare__call_fail(call, "needs a size and a stride >= 0 for each dimension");
    g->ndim = g->out_ndim = (int)size_count;
    memcpy(g->size, size, size_count * sizeof *size);
    memcpy(g->out_shape, size, size_count * sizeof *size);
    memcpy(g->stride, stride, size_count * sizeof *stride);
    return check_reach(call, g);
}

GATHER_OPERATOR(as_strided, plan_as_strided)

// --- a slice of param[0] replaced by param[1] ---

static tare_status scatter_shape(op_call *call, gather_planner plan) {
    gather g;
    const tare_tensor *src;
    TARE_TRY(plan(call, &g));
    TARE_TRY(tare__call_need_tensor(call, 1, &src));
    if (src->ndim != g.out_ndim || src->dtype != g.x->dtype ||
        memcmp(src->shape, g.out_shape, (size_t)src->ndim * sizeof *src->shape) != 0)
        return tare__call_fail(call, "src of shape %s (or its dtype) does not fit its place in %s",
                               tare__call_shape_text(call, src), tare__call_shape_text(call, g.x));
    return tare__shape_same(call);
}

static tare_status scatter_reference(op_call *call, gather_planner plan) {
    gather g;
    const tare_tensor *src;
    tare_tensor *y = tare__call_out(call);
    const size_t size = tare_dtype_size(y->dtype);
    TARE_TRY(plan(call, &g));
    TARE_TRY(tare__call_need_tensor(call, 1, &src));
    memcpy(y->data, g.x->data, tare__tensor_bytes(y));
    for (int64_t i = 0; i < src->count; i++) {
        const int64_t to = g.offset + tare__strided_offset(g.ndim, g.size, g.stride, i);
        memcpy((char *)y->data + (size_t)to * size, (const char *)src->data + (size_t)i * size,
               size);
    }
    return TARE_OK;
}

#define SCATTER_OPERATOR(name)                                                                     \
    static tare_status name##_shape(op_call *call) {                                               \
        return scatter_shape(call, plan_##name);                                                   \
    }                                                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        return scatter_reference(call, plan_##name);                                               \
    }
SCATTER_OPERATOR(slice_scatter)
SCATTER_OPERATOR(select_scatter)
SCATTER_OPERATOR(diagonal_scatter)

// put_back of a view in another shape: src in the shape of the base.
static tare_status view_back_shape(op_call *call) {
    const tare_tensor *whole, *src;
    tare_tensor *t = NULL;
    TARE_TRY(tare__call_need_tensor(call, 0, &whole));
    TARE_TRY(tare__call_need_tensor(call, 1, &src));
    TARE_TRY(
        tare__call_at(call, tare__tensor_reshape(src, whole->ndim, whole->shape, &t, call->err)));
    call->result = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    return TARE_OK;
}

// --- rows ---

#define ROW(name, parameters, more)                                                                \
    {                                                                                              \
        .id = #name, .functions = "torch.ops.aten." #name more, .params = parameters,              \
        .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS, .shape = name##_shape,                         \
        .reference = name##_reference, .place = plan_##name                                        \
    }

static const op_info rows[] = {
    {.id = "slice",
     .functions = "torch.ops.aten.slice.Tensor",
     .params = "input/self|dim|start|end|step",
     .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS,
     .put_back = "slice_scatter",
     .shape = slice_shape,
     .reference = slice_reference,
     .box = slice_box},
    {.id = "diagonal",
     .functions =
         "torch.diagonal|torch.ops.aten.diagonal.default|torch.ops.aten.diagonal_copy.default",
     .methods = "diagonal",
     .params = "input/self|offset|dim1|dim2",
     .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS,
     .put_back = "diagonal_scatter",
     .shape = diagonal_shape,
     .reference = diagonal_reference,
     .box = diagonal_box},
    {.id = "unfold",
     .functions = "torch.ops.aten.unfold.default|torch.ops.aten.unfold_copy.default",
     .methods = "unfold",
     .params = "input/self|dim/dimension|length/size|step",
     .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS,
     .shape = unfold_shape,
     .reference = unfold_reference,
     .box = unfold_box},
    {.id = "linalg_diagonal",
     .functions = "torch.linalg.diagonal|torch.ops.aten.linalg_diagonal.default",
     .params = "input/A|offset|dim1|dim2",
     .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS,
     .shape = linalg_diagonal_shape,
     .reference = linalg_diagonal_reference,
     .box = linalg_diagonal_box},
    {.id = "as_strided",
     .functions = "torch.ops.aten.as_strided.default|torch.as_strided",
     .methods = "as_strided",
     .params = "input/self|size|stride|storage_offset",
     .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS,
     .shape = as_strided_shape,
     .reference = as_strided_reference,
     .box = as_strided_box},
    ROW(slice_scatter, "input/self|src|dim|start|end|step", ".default|torch.slice_scatter"),
    ROW(diagonal_scatter, "input/self|src|offset|dim1|dim2", ".default|torch.diagonal_scatter"),
    ROW(select_scatter, "input/self|src|dim|index", ".default|torch.select_scatter"),
    {.id = "view_back",
     .params = "input|part|*rest",
     .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS,
     .shape = view_back_shape},
};

const op_table tare__slice_ops = OP_TABLE(rows);
