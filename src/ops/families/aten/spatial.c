// SPDX-License-Identifier: Apache-2.0
// Max unpooling, sampling grids, block-diagonal matrices and Cartesian products.
#include <string.h>

#include "ops/compose.h"
#include "ops/families/families.h"
#include "ops/rules.h"

#define P(i) tare__compose_param(c, i)

// max_unpoolNd(input, indices, output_size): writes each value at its index in the plane; the rest
// is 0.
static value max_unpool(composer *c, int dims) {
    const tare_tensor *x = tare__compose_need(c, 0), *indices = tare__compose_need(c, 1);
    int64_t size[3] = {1, 1, 1}, out[TARE_MAX_DIMS], plane = 1, from = 1;
    op_call call = *c->call;
    if (x == NULL || indices == NULL) return P(0);
    c->status = tare__call_ints(&call, 2, (size_t)dims, 1, size);
    const bool fits = x->ndim > dims && x->ndim <= dims + 2 && x->ndim == indices->ndim &&
                      memcmp(x->shape, indices->shape, (size_t)x->ndim * sizeof *out) == 0;
    for (int d = 0; d < dims; d++) {
        if (size[d] < 1 || size[d] > INT32_MAX)
            (void)tare__compose_fail(c, "output_size is out of range");
        plane = tare__size_product(plane, size[d]);
    }
    if (!fits) (void)tare__compose_fail(c, "needs an image, and an index for each of its elements");
    if (c->status != TARE_OK) return P(0);
    const int before = x->ndim - dims;
    memcpy(out, x->shape, sizeof out);
    for (int d = 0; d < dims; d++) from *= x->shape[before + d];
    out[before] = from;
    const value planes = tare__compose_ints(c, out, (size_t)before + 1);
    const value values = COMPOSE(c, "view", P(0), planes), at = COMPOSE(c, "view", P(1), planes);
    out[before] = plane;
    const value empty = COMPOSE(c, "full", tare__compose_ints(c, out, (size_t)before + 1),
                                tare__int(0), tare__dtype_value(x->dtype));
    const value made = COMPOSE(c, "scatter", empty, tare__int(-1), at, values);
    for (int d = 0; d < dims; d++) out[before + d] = size[d];
    return COMPOSE(c, "view", made, tare__compose_ints(c, out, (size_t)x->ndim));
}

static value max_unpool2d(composer *c) {
    return max_unpool(c, 2);
}
static value max_unpool3d(composer *c) {
    return max_unpool(c, 3);
}

// --- affine_grid_generator(theta, size, align_corners): points from -1 to 1, in homogeneous
// coordinates, times theta [N][d][d + 1] ---

// Coordinates along dimension d: the centres of `count` pixels, or points from edge to edge
// (aligns), expanded to `sizes`.
static value axis(composer *c, int64_t count, bool aligns, const int64_t *sizes, int dims, int d) {
    int64_t shape[4] = {1, 1, 1, 1};
    value row = COMPOSE(c, "linspace", tare__int(-1), tare__int(1), tare__int(count));
    if (count == 1) row = COMPOSE(c, "full", tare__compose_ints(c, &count, 1), tare__float(0));
    if (!aligns && count > 1)
        row = COMPOSE(c, "mul", row, tare__float((double)(count - 1) / (double)count));
    shape[d] = count;
    row = COMPOSE(c, "view", row, tare__compose_ints(c, shape, (size_t)dims));
    return COMPOSE(c, "expand", row, tare__compose_ints(c, sizes, (size_t)dims));
}

static value affine_grid(composer *c) {
    const tare_tensor *theta = tare__compose_need(c, 0);
    int64_t size[5];
    size_t count = 0;
    op_call call = *c->call;
    const bool aligns = tare__compose_bool(c, 2, false);
    if (theta == NULL) return P(0);
    c->status = tare__call_int_list(&call, 1, 5, size, &count);
    const int dims = (int)count - 2;
    bool fits = c->status == TARE_OK && (dims == 2 || dims == 3) && theta->ndim == 3 &&
                theta->shape[1] == dims && theta->shape[2] == dims + 1 &&
                theta->shape[0] == size[0];
    for (size_t i = 0; fits && i < count; i++) fits = size[i] > 0 && size[i] <= INT32_MAX;
    if (!fits)
        (void)tare__compose_fail(
            c, "needs a size of 4 or 5 numbers, and theta [N][2][3] or [N][3][4]");
    if (c->status != TARE_OK) return P(0);
    const int64_t *const sizes = size + 2;
    const value columns = tare__compose_list(c, (size_t)dims + 1);
    for (int d = 0; d < dims && c->status == TARE_OK; d++) // innermost dimension first
        columns.as.items[d] = axis(c, sizes[dims - 1 - d], aligns, sizes, dims, dims - 1 - d);
    if (c->status == TARE_OK)
        columns.as.items[dims] =
            COMPOSE(c, "full", tare__compose_ints(c, sizes, (size_t)dims), tare__float(1));
    int64_t points = 1, flat[2] = {0, dims + 1}, made[5];
    for (int d = 0; d < dims; d++) points = tare__size_product(points, sizes[d]);
    flat[0] = points;
    const value base = COMPOSE(c, "view", COMPOSE(c, "stack", columns, tare__int(-1)),
                               tare__compose_ints(c, flat, 2));
    const value grid =
        COMPOSE(c, "matmul", base, COMPOSE(c, "transpose", P(0), tare__int(1), tare__int(2)));
    made[0] = size[0];
    for (int d = 0; d < dims; d++) made[1 + d] = sizes[d];
    made[dims + 1] = dims;
    return COMPOSE(c, "view", grid, tare__compose_ints(c, made, count));
}

// --- block_diag(tensors) ---

static value padded(composer *c, value block, int64_t left, int64_t right) {
    const int64_t both[] = {left, right};
    return COMPOSE(c, "pad", block, tare__compose_ints(c, both, 2));
}

// Numbers and vectors are matrices of one row.
static value block_diag(composer *c) {
    const value given = P(0);
    if (given.kind != VALUE_LIST && given.kind != VALUE_TUPLE)
        (void)tare__compose_fail(c, "expected tensors");
    const value rows = tare__compose_list(c, c->status == TARE_OK ? given.count : 0);
    int64_t width = 0, before = 0;
    for (uint32_t i = 0; i < rows.count && c->status == TARE_OK; i++) {
        const tare_tensor *t = tare__compose_tensor(c, given.as.items[i]);
        if (t == NULL) break;
        const int64_t row[] = {1, t->count};
        if (t->ndim > 2) (void)tare__compose_fail(c, "takes matrices");
        rows.as.items[i] =
            t->ndim < 2 ? COMPOSE(c, "view", given.as.items[i], tare__compose_ints(c, row, 2))
                        : given.as.items[i];
        width += t->ndim < 2 ? t->count : t->shape[1];
    }
    for (uint32_t i = 0; i < rows.count && c->status == TARE_OK; i++) {
        const tare_tensor *t = tare__compose_tensor(c, rows.as.items[i]);
        if (t == NULL) break;
        const int64_t own = t->shape[1];
        rows.as.items[i] = padded(c, rows.as.items[i], before, width - before - own);
        before += own;
    }
    return COMPOSE(c, "cat", rows, tare__int(0));
}

// cartesian_prod(tensors): a row for each combination of elements; a single vector is returned as
// it is.
static value cartesian_prod(composer *c) {
    const value given = P(0);
    if ((given.kind != VALUE_LIST && given.kind != VALUE_TUPLE) || given.count < 1 ||
        given.count > TARE_MAX_DIMS) {
        (void)tare__compose_fail(c, "expected vectors, 1 to 8");
        return tare__none();
    }
    if (given.count == 1) return given.as.items[0];
    const value columns = tare__compose_list(c, given.count);
    int64_t sizes[TARE_MAX_DIMS];
    const int64_t all = -1;
    for (uint32_t i = 0; i < given.count && c->status == TARE_OK; i++) {
        const tare_tensor *t = tare__compose_tensor(c, given.as.items[i]);
        if (t != NULL && t->ndim != 1) (void)tare__compose_fail(c, "expected vectors, 1 to 8");
        sizes[i] = t != NULL ? t->count : 0;
    }
    for (uint32_t i = 0; i < given.count && c->status == TARE_OK; i++) {
        int64_t shape[TARE_MAX_DIMS];
        for (uint32_t d = 0; d < given.count; d++) shape[d] = d == i ? sizes[i] : 1;
        const value row =
            COMPOSE(c, "view", given.as.items[i], tare__compose_ints(c, shape, given.count));
        const value spread = COMPOSE(c, "expand", row, tare__compose_ints(c, sizes, given.count));
        columns.as.items[i] = COMPOSE(c, "reshape", spread, tare__compose_ints(c, &all, 1));
    }
    return COMPOSE(c, "stack", columns, tare__int(1));
}

// --- rows ---

#define ATEN(name) "|torch.ops.aten." name ".default"

// clang-format off
static const op_info rows[] = {
    COMPOSED_ROW(max_unpool2d, "torch._C._nn.max_unpool2d" ATEN("max_unpool2d"), NULL, "input/self|indices|output_size"),
    COMPOSED_ROW(max_unpool3d, "torch._C._nn.max_unpool3d" ATEN("max_unpool3d"), NULL, "input/self|indices|output_size|stride|padding"),
    COMPOSED_ROW(block_diag, "torch.block_diag|torch.functional.block_diag" ATEN("block_diag"), NULL, "*tensors"),
    COMPOSED_ROW(cartesian_prod, "torch.cartesian_prod|torch.functional.cartesian_prod" ATEN("cartesian_prod"), NULL, "*tensors"),
    COMPOSED_ROW(affine_grid, "torch.affine_grid_generator|torch.nn.functional.affine_grid" ATEN("affine_grid_generator"), NULL, "input/theta|size|align_corners"),
};
// clang-format on

const op_table tare__spatial_ops = OP_TABLE(rows);
