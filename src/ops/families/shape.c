// SPDX-License-Identifier: Apache-2.0
// Operators that change the shape of a tensor or the order of its elements.
#include <string.h>

#include "ops/families/families.h"
#include "ops/families/gather.h"
#include "ops/rules.h"

// --- shapes ---

static tare_status reshape_to(op_call *call, const tare_tensor *x, int ndim, const int64_t *shape) {
    tare_tensor *t = NULL;
    int64_t count;
    if (!tare__shape_count(ndim, shape, &count) || count != x->count) {
        const tare_tensor wanted = {.ndim = ndim, .shape = {0}};
        tare_tensor named = wanted;
        memcpy(named.shape, shape, (size_t)ndim * sizeof *shape);
        return tare__call_fail(call, "shape %s cannot become %s", tare__call_shape_text(call, x),
                               tare__call_shape_text(call, &named));
    }
    TARE_TRY(tare__call_at(call, tare__tensor_reshape(x, ndim, shape, &t, call->err)));
    call->result = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    return TARE_OK;
}

// Computes a size of -1 from the others; there may be one.
static tare_status fill_in(op_call *call, const tare_tensor *x, size_t ndim, int64_t *shape) {
    int64_t known = 1;
    int open = -1;
    for (size_t d = 0; d < ndim; d++) {
        if (shape[d] == -1 && open < 0)
            open = (int)d;
        else if (shape[d] < 0)
            return tare__call_fail(call, "size %lld is negative", (long long)shape[d]);
        else if (shape[d] > 0 && known > INT64_MAX / shape[d])
            return tare__call_fail(call, "sizes are out of range");
        else
            known *= shape[d];
    }
    if (open >= 0) shape[open] = known > 0 && x->count % known == 0 ? x->count / known : 0;
    return TARE_OK;
}

static tare_status view_shape(op_call *call) {
    const tare_tensor *x;
    int64_t shape[TARE_MAX_DIMS];
    size_t ndim = 0;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (call->param[1] != NULL) TARE_TRY(tare__call_int_list(call, 1, TARE_MAX_DIMS, shape, &ndim));
    TARE_TRY(fill_in(call, x, ndim, shape));
    return reshape_to(call, x, (int)ndim, shape);
}

static tare_status view_as_shape(op_call *call) {
    const tare_tensor *x, *other;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_need_tensor(call, 1, &other));
    return reshape_to(call, x, other->ndim, other->shape);
}

static tare_status ravel_shape(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    return reshape_to(call, x, 1, &x->count);
}

static tare_status flatten_shape(op_call *call) {
    const tare_tensor *x;
    int64_t shape[TARE_MAX_DIMS] = {0};
    int first, last, ndim = 0;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_dim(call, 1, 0, x->ndim, &first));
    TARE_TRY(tare__call_dim(call, 2, -1, x->ndim, &last));
    if (first > last) return tare__call_fail(call, "start_dim comes after end_dim");
    for (int d = 0; d < x->ndim; d++) {
        if (d > first && d <= last)
            shape[ndim - 1] *= x->shape[d];
        else
            shape[ndim++] = x->shape[d];
    }
    if (x->ndim == 0) shape[ndim++] = 1;
    return reshape_to(call, x, ndim, shape);
}

static tare_status unflatten_shape(op_call *call) {
    const tare_tensor *x;
    int64_t sizes[TARE_MAX_DIMS], shape[2 * TARE_MAX_DIMS];
    size_t count;
    int dim, ndim = 0;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_dim(call, 1, 0, x->ndim, &dim));
    TARE_TRY(tare__call_int_list(call, 2, TARE_MAX_DIMS, sizes, &count));
    if (x->ndim + (int)count - 1 > TARE_MAX_DIMS)
        return tare__call_fail(call, "too many dimensions");
    for (int d = 0; d < x->ndim; d++) {
        if (d != dim)
            shape[ndim++] = x->shape[d];
        else
            for (size_t i = 0; i < count; i++) shape[ndim++] = sizes[i];
    }
    TARE_TRY(fill_in(call, x, (size_t)ndim, shape));
    return reshape_to(call, x, ndim, shape);
}

// Removes all dimensions of size 1, or only given ones if their size is 1.
static tare_status squeeze_shape(op_call *call) {
    const tare_tensor *x;
    int64_t dims[TARE_MAX_DIMS], shape[TARE_MAX_DIMS];
    size_t count = 0;
    bool named[TARE_MAX_DIMS] = {false};
    int ndim = 0;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    const bool all = !tare__call_given(call, 1);
    if (!all) TARE_TRY(tare__call_int_list(call, 1, TARE_MAX_DIMS, dims, &count));
    for (size_t i = 0; i < count; i++) {
        const int64_t d = dims[i] < 0 ? dims[i] + x->ndim : dims[i];
        if (x->ndim == 0 && (dims[i] == 0 || dims[i] == -1)) continue; // torch allows it
        if (d < 0 || d >= x->ndim)
            return tare__call_fail(call, "dimension %lld does not exist", (long long)dims[i]);
        named[d] = true;
    }
    for (int d = 0; d < x->ndim; d++)
        if (x->shape[d] != 1 || !(all || named[d])) shape[ndim++] = x->shape[d];
    return reshape_to(call, x, ndim, shape);
}

static tare_status unsqueeze_shape(op_call *call) {
    const tare_tensor *x;
    int64_t shape[TARE_MAX_DIMS + 1];
    int dim;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_dim(call, 1, 0, x->ndim + 1, &dim));
    for (int d = 0; d <= x->ndim; d++)
        shape[d] = d < dim ? x->shape[d] : d == dim ? 1 : x->shape[d - 1];
    return reshape_to(call, x, x->ndim + 1, shape);
}

// --- order ---

static void swap_dims(gather *g, int a, int b) {
    const int64_t size = g->size[a], stride = g->stride[a];
    g->size[a] = g->size[b];
    g->stride[a] = g->stride[b];
    g->size[b] = size;
    g->stride[b] = stride;
    memcpy(g->out_shape, g->size, sizeof g->out_shape);
}

static tare_status plan_transpose(op_call *call, gather *g) {
    int a, b;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_dim(call, 1, 0, g->ndim, &a));
    TARE_TRY(tare__call_dim(call, 2, 1, g->ndim, &b));
    if (g->ndim > 0) swap_dims(g, a, b);
    return TARE_OK;
}

static tare_status plan_t(op_call *call, gather *g) {
    TARE_TRY(tare__gather_begin(call, g));
    if (g->ndim > 2) return tare__call_fail(call, "input must have at most 2 dimensions");
    if (g->ndim == 2) swap_dims(g, 0, 1);
    return TARE_OK;
}

// aten's operator for x.mT; Python's x.mT is a getattr.
static tare_status plan_matrix_transpose(op_call *call, gather *g) {
    TARE_TRY(tare__gather_begin(call, g));
    if (g->ndim < 2) return tare__call_fail(call, "input must have at least 2 dimensions");
    swap_dims(g, g->ndim - 2, g->ndim - 1);
    return TARE_OK;
}

static tare_status plan_permute(op_call *call, gather *g) {
    int64_t order[TARE_MAX_DIMS];
    size_t count;
    bool used[TARE_MAX_DIMS] = {false};
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_int_list(call, 1, TARE_MAX_DIMS, order, &count));
    const gather dense = *g;
    if ((int)count != g->ndim)
        return tare__call_fail(call, "%zu dimensions given for %d", count, g->ndim);
    for (size_t i = 0; i < count; i++) {
        const int64_t d = order[i] < 0 ? order[i] + g->ndim : order[i];
        if (d < 0 || d >= g->ndim || used[d])
            return tare__call_fail(call, "the dimensions are no permutation");
        used[d] = true;
        g->size[i] = g->out_shape[i] = dense.size[d];
        g->stride[i] = dense.stride[d];
    }
    return TARE_OK;
}

static tare_status position_of_dim(op_call *call, const gather *g, int64_t dim, bool *taken,
                                   int64_t *out) {
    *out = dim < 0 ? dim + g->ndim : dim;
    if (*out < 0 || *out >= g->ndim || taken[*out])
        return tare__call_fail(call, "dimension %lld does not exist, or is named twice",
                               (long long)dim);
    taken[*out] = true;
    return TARE_OK;
}

// Moves dimensions `source` to the positions `destination`; the others keep their order.
static tare_status plan_movedim(op_call *call, gather *g) {
    int64_t from[TARE_MAX_DIMS], to[TARE_MAX_DIMS], order[TARE_MAX_DIMS];
    size_t from_count, to_count;
    bool leaves[TARE_MAX_DIMS] = {false}, filled[TARE_MAX_DIMS] = {false};
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_int_list(call, 1, TARE_MAX_DIMS, from, &from_count));
    TARE_TRY(tare__call_int_list(call, 2, TARE_MAX_DIMS, to, &to_count));
    if (from_count != to_count)
        return tare__call_fail(call, "%zu dimensions cannot go to %zu places", from_count,
                               to_count);
    if (g->ndim == 0) return TARE_OK;
    const gather dense = *g;
    for (size_t i = 0; i < from_count; i++) {
        TARE_TRY(position_of_dim(call, g, from[i], leaves, &from[i]));
        TARE_TRY(position_of_dim(call, g, to[i], filled, &to[i]));
        order[to[i]] = from[i];
    }
    for (int d = 0, position = 0; d < g->ndim; d++) {
        if (leaves[d]) continue;
        while (filled[position]) position++;
        order[position++] = d;
    }
    for (int d = 0; d < g->ndim; d++) {
        g->size[d] = g->out_shape[d] = dense.size[order[d]];
        g->stride[d] = dense.stride[order[d]];
    }
    return TARE_OK;
}

// Reads the second parameter: a number for each dimension and for `more` new ones in front.
static tare_status read_per_dim(op_call *call, gather *g, int64_t *numbers, int *more) {
    size_t count;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_int_list(call, 1, TARE_MAX_DIMS, numbers, &count));
    *more = (int)count - g->ndim;
    if (*more >= 0) return TARE_OK;
    return tare__call_fail(call, "%zu numbers given for %d dimensions", count, g->ndim);
}

// Expands to `wanted` sizes, of which the first `more` are new dimensions. -1 keeps a size.
static tare_status expand_to(op_call *call, gather *g, const int64_t *wanted, int more) {
    const gather dense = *g;
    g->ndim = g->out_ndim = dense.ndim + more;
    for (int d = 0; d < g->ndim; d++) {
        const int64_t old = d < more ? 1 : dense.size[d - more];
        const int64_t size = wanted[d] == -1 && d >= more ? old : wanted[d];
        if (size < 0 || (old != 1 && size != old))
            return tare__call_fail(call, "a size of %lld cannot be expanded to %lld",
                                   (long long)old, (long long)size);
        g->size[d] = g->out_shape[d] = size;
        g->stride[d] = old == size && d >= more ? dense.stride[d - more] : 0;
    }
    return TARE_OK;
}

static tare_status plan_expand(op_call *call, gather *g) {
    int64_t wanted[TARE_MAX_DIMS];
    int more;
    TARE_TRY(read_per_dim(call, g, wanted, &more));
    return expand_to(call, g, wanted, more);
}

static tare_status plan_expand_as(op_call *call, gather *g) {
    const tare_tensor *other;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_need_tensor(call, 1, &other));
    if (other->ndim < g->ndim)
        return tare__call_fail(call, "%d dimensions cannot be expanded to %d", g->ndim,
                               other->ndim);
    return expand_to(call, g, other->shape, other->ndim - g->ndim);
}

// The box has two dimensions for each of the output's: the copy, and the position in it.
static tare_status repeat_by(op_call *call, gather *g, const int64_t *times, int more) {
    const gather dense = *g;
    g->out_ndim = dense.ndim + more;
    g->ndim = 2 * g->out_ndim;
    for (int d = 0; d < g->out_ndim; d++) {
        if (times[d] < 0 || times[d] > INT32_MAX)
            return tare__call_fail(call, "repeats are out of range");
        const int copy = 2 * d, position = copy + 1;
        g->size[copy] = times[d];
        g->stride[copy] = 0;
        g->size[position] = d < more ? 1 : dense.size[d - more];
        g->stride[position] = d < more ? 0 : dense.stride[d - more];
        g->out_shape[d] = tare__size_product(times[d], g->size[position]);
    }
    return TARE_OK;
}

static tare_status plan_repeat(op_call *call, gather *g) {
    int64_t times[TARE_MAX_DIMS];
    int more;
    TARE_TRY(read_per_dim(call, g, times, &more));
    return repeat_by(call, g, times, more);
}

// Like repeat, but there may be fewer numbers than dimensions: the leading dimensions are not
// repeated.
static tare_status plan_tile(op_call *call, gather *g) {
    int64_t times[TARE_MAX_DIMS];
    size_t count;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_int_list(call, 1, TARE_MAX_DIMS, times, &count));
    const int missing = g->ndim > (int)count ? g->ndim - (int)count : 0;
    memmove(times + missing, times, count * sizeof *times);
    for (int d = 0; d < missing; d++) times[d] = 1;
    return repeat_by(call, g, times, (int)count + missing - g->ndim);
}

// Repeats each element `repeats` times along a dimension, or of the flattened input if none is
// given.
static tare_status plan_repeat_interleave(op_call *call, gather *g) {
    int64_t repeats;
    int dim = 0;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_int(call, 1, 1, &repeats));
    if (repeats < 0 || repeats > INT32_MAX)
        return tare__call_fail(call, "repeats are out of range");
    if (tare__call_given(call, 2)) TARE_TRY(tare__call_dim(call, 2, 0, g->ndim, &dim));
    if (!tare__call_given(call, 2) || g->ndim == 0) {
        g->ndim = g->out_ndim = 1;
        g->size[0] = g->out_shape[0] = g->x->count;
        g->stride[0] = 1;
    }
    for (int d = g->ndim; d > dim + 1; d--) {
        g->size[d] = g->size[d - 1];
        g->stride[d] = g->stride[d - 1];
    }
    g->ndim++;
    g->size[dim + 1] = repeats;
    g->stride[dim + 1] = 0;
    g->out_shape[dim] = tare__size_product(g->out_shape[dim], repeats);
    return TARE_OK;
}

enum { MOST_SHUFFLED = 1 << 15 }; // the square is an int64

// [N][C*r*r][H][W] -> [N][C][H*r][W*r]
static tare_status plan_pixel_shuffle(op_call *call, gather *g) {
    int64_t r;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_int(call, 1, 1, &r));
    const gather x = *g;
    const int n = x.ndim - 3; // dimensions before the channels
    if (n < 0 || r < 1 || r > MOST_SHUFFLED || x.size[n] % (r * r) != 0)
        return tare__call_fail(call, "shape %s cannot be shuffled by %lld",
                               tare__call_shape_text(call, x.x), (long long)r);
    const int64_t channels = x.size[n] / (r * r), plane = x.stride[n];
    const int64_t size[] = {channels, x.size[n + 1], r, x.size[n + 2], r};
    const int64_t stride[] = {r * r * plane, x.stride[n + 1], r * plane, 1, plane};
    memcpy(&g->size[n], size, sizeof size);
    memcpy(&g->stride[n], stride, sizeof stride);
    g->ndim = n + 5;
    g->out_shape[n] = channels;
    g->out_shape[n + 1] = tare__size_product(x.size[n + 1], r);
    g->out_shape[n + 2] = tare__size_product(x.size[n + 2], r);
    return TARE_OK;
}

// [N][C][H*r][W*r] -> [N][C*r*r][H][W]
static tare_status plan_pixel_unshuffle(op_call *call, gather *g) {
    int64_t r;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_int(call, 1, 1, &r));
    const gather x = *g;
    const int n = x.ndim - 3;
    if (n < 0 || r < 1 || r > MOST_SHUFFLED || x.size[n + 1] % r != 0 || x.size[n + 2] % r != 0)
        return tare__call_fail(call, "shape %s cannot be shuffled by %lld",
                               tare__call_shape_text(call, x.x), (long long)r);
    const int64_t row = x.stride[n + 1];
    const int64_t size[] = {x.size[n], r, r, x.size[n + 1] / r, x.size[n + 2] / r};
    const int64_t stride[] = {x.stride[n], row, 1, r * row, r};
    memcpy(&g->size[n], size, sizeof size);
    memcpy(&g->stride[n], stride, sizeof stride);
    g->ndim = n + 5;
    g->out_shape[n] = tare__size_product(x.size[n], r * r);
    g->out_shape[n + 1] = size[3];
    g->out_shape[n + 2] = size[4];
    return TARE_OK;
}

// Channels [groups][C / groups] become [C / groups][groups].
static tare_status plan_channel_shuffle(op_call *call, gather *g) {
    int64_t groups;
    TARE_TRY(tare__gather_begin(call, g));
    TARE_TRY(tare__call_int(call, 1, 1, &groups));
    if (g->ndim < 2 || groups < 1 || g->size[1] % groups != 0)
        return tare__call_fail(call, "shape %s has no %lld groups of channels",
                               tare__call_shape_text(call, g->x), (long long)groups);
    const int64_t each = g->size[1] / groups, stride = g->stride[1];
    for (int d = g->ndim; d > 2; d--) {
        g->size[d] = g->size[d - 1];
        g->stride[d] = g->stride[d - 1];
    }
    g->ndim++;
    g->size[1] = each;
    g->stride[1] = stride;
    g->size[2] = groups;
    g->stride[2] = each * stride;
    return TARE_OK;
}

static tare_status plan_flip(op_call *call, gather *g) {
    int64_t dims[TARE_MAX_DIMS];
    size_t count = 0;
    TARE_TRY(tare__gather_begin(call, g));
    if (call->param[1] != NULL) TARE_TRY(tare__call_int_list(call, 1, TARE_MAX_DIMS, dims, &count));
    for (size_t i = 0; i < count; i++) {
        const int64_t d = dims[i] < 0 ? dims[i] + g->ndim : dims[i];
        if (d < 0 || d >= g->ndim || g->stride[d] < 0)
            return tare__call_fail(call, "dimension %lld does not exist, or is named twice",
                                   (long long)dims[i]);
        if (g->size[d] < 2) continue;
        g->offset += (g->size[d] - 1) * g->stride[d];
        g->stride[d] = -g->stride[d];
    }
    return TARE_OK;
}

// --- roll ---

typedef struct roll_plan {
    const tare_tensor *x;
    int64_t shift[TARE_MAX_DIMS]; // in [0, size)
    int ndim;                     // 1 if no dimension is given: x is flattened
    int64_t shape[TARE_MAX_DIMS];
} roll_plan;

static tare_status read_roll(op_call *call, roll_plan *p) {
    int64_t shifts[TARE_MAX_DIMS], dims[TARE_MAX_DIMS] = {0};
    size_t count = 0, dim_count = 0;
    *p = (roll_plan){.ndim = 1};
    TARE_TRY(tare__call_need_tensor(call, 0, &p->x));
    TARE_TRY(tare__call_int_list(call, 1, TARE_MAX_DIMS, shifts, &count));
    if (tare__call_given(call, 2))
        TARE_TRY(tare__call_int_list(call, 2, TARE_MAX_DIMS, dims, &dim_count));
    const bool whole = dim_count == 0;
    if (whole ? count != 1 : count != dim_count)
        return tare__call_fail(call, "%zu shifts for %zu dimensions", count, dim_count);
    p->shape[0] = p->x->count;
    if (!whole) {
        p->ndim = p->x->ndim;
        memcpy(p->shape, p->x->shape, sizeof p->shape);
    }
    for (size_t i = 0; i < count; i++) {
        const int64_t d = dims[i] < 0 ? dims[i] + p->ndim : dims[i];
        if (d < 0 || d >= p->ndim)
            return tare__call_fail(call, "dimension %lld does not exist", (long long)dims[i]);
        if (p->shape[d] == 0) continue;
        // Both terms are smaller than the size, so the sum does not overflow.
        const int64_t sum = p->shift[d] + shifts[i] % p->shape[d];
        p->shift[d] = (sum % p->shape[d] + p->shape[d]) % p->shape[d];
    }
    return TARE_OK;
}

static tare_status roll_shape(op_call *call) {
    roll_plan p;
    TARE_TRY(read_roll(call, &p));
    return tare__shape_same(call);
}

static tare_status roll_reference(op_call *call) {
    roll_plan p;
    TARE_TRY(read_roll(call, &p));
    const tare_tensor *x = p.x;
    const size_t size = tare_dtype_size(x->dtype);
    int last = p.ndim - 1; // last rolled dimension; later ones are copied as one block
    while (last > 0 && p.shift[last] == 0) last--;
    int64_t inner = 1;
    for (int d = last + 1; d < p.ndim; d++) inner *= p.shape[d];
    char *y = tare__call_out(call)->data;
    for (int64_t i = 0; i < x->count / inner; i++) {
        int64_t rest = i, to = 0, step = 1;
        for (int d = last; d >= 0; d--) {
            to += (rest % p.shape[d] + p.shift[d]) % p.shape[d] * step;
            rest /= p.shape[d];
            step *= p.shape[d];
        }
        memcpy(y + (size_t)(to * inner) * size, (const char *)x->data + (size_t)(i * inner) * size,
               (size_t)inner * size);
    }
    return TARE_OK;
}

GATHER_OPERATOR(flip, plan_flip)
GATHER_OPERATOR(transpose, plan_transpose)
GATHER_OPERATOR(swapaxes, plan_transpose)
GATHER_OPERATOR(t, plan_t)
GATHER_OPERATOR(reverse_dims, tare__gather_reverse)
GATHER_OPERATOR(matrix_transpose, plan_matrix_transpose)
GATHER_OPERATOR(permute, plan_permute)
GATHER_OPERATOR(movedim, plan_movedim)
GATHER_OPERATOR(expand, plan_expand)
GATHER_OPERATOR(expand_as, plan_expand_as)
GATHER_OPERATOR(repeat, plan_repeat)
GATHER_OPERATOR(tile, plan_tile)
GATHER_OPERATOR(repeat_interleave, plan_repeat_interleave)
GATHER_OPERATOR(pixel_shuffle, plan_pixel_shuffle)
GATHER_OPERATOR(pixel_unshuffle, plan_pixel_unshuffle)
GATHER_OPERATOR(channel_shuffle, plan_channel_shuffle)

// --- rows ---

#define ATEN(name) "torch.ops.aten." name
#define SAME(name, names, method_names, parameters, rule)                                          \
    {                                                                                              \
        .id = name, .functions = names, .methods = method_names, .params = parameters,             \
        .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS | OP_BY_SAMPLE, .shape = rule                   \
    }
#define VIEW(name, names, method_names, parameters, rule)                                          \
    {                                                                                              \
        .id = name, .functions = names, .methods = method_names, .params = parameters,             \
        .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS | OP_BY_SAMPLE, .put_back = "view_back",        \
        .shape = rule                                                                              \
    }
#define MOVE_OF(name, more_traits, names, method_names, parameters)                                \
    {                                                                                              \
        .id = #name, .functions = names, .methods = method_names, .params = parameters,            \
        .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS | (more_traits), .shape = name##_shape,         \
        .reference = name##_reference, .box = name##_box                                           \
    }
#define MOVE(name, names, method_names, parameters)                                                \
    MOVE_OF(name, 0, names, method_names, parameters)
// Rows that permute dimensions, or elements within a sample. Shapes tell which dimension is the
// batch (OP_BY_SAMPLE).
#define TURN(name, names, method_names, parameters)                                                \
    MOVE_OF(name, OP_BY_SAMPLE, names, method_names, parameters)

// clang-format off
static const op_info rows[] = {
    VIEW("view", ATEN("view.default") "|" ATEN("_unsafe_view.default") "|" ATEN("view_copy.default"), "view|resize_", "input/self|*size/shape", view_shape),
    VIEW("reshape", "torch.reshape|" ATEN("reshape.default"), "reshape", "input/self|*shape", view_shape),
    VIEW("view_as", ATEN("view_as.default") "|" ATEN("reshape_as.default"), "view_as|reshape_as", "input/self|other", view_as_shape),
    VIEW("ravel", "torch.ravel|" ATEN("ravel.default"), "ravel", "input/self", ravel_shape),
    VIEW("flatten", "torch.flatten|" ATEN("flatten.using_ints"), "flatten", "input/self|start_dim|end_dim", flatten_shape),
    VIEW("unflatten", "torch.unflatten|" ATEN("unflatten.int"), "unflatten", "input/self|dim|sizes/unflattened_size", unflatten_shape),
    VIEW("squeeze", "torch.squeeze|" ATEN("squeeze.default") "|" ATEN("squeeze_copy.default") "|" ATEN("squeeze.dim") "|" ATEN("squeeze_copy.dim") "|" ATEN("squeeze.dims") "|" ATEN("squeeze_copy.dims") "|" ATEN("squeeze_.default") "|" ATEN("squeeze_.dim") "|" ATEN("squeeze_.dims"), "squeeze|squeeze_", "input/self|dim", squeeze_shape),
    VIEW("unsqueeze", "torch.unsqueeze|" ATEN("unsqueeze.default") "|" ATEN("unsqueeze_copy.default") "|" ATEN("unsqueeze_.default"), "unsqueeze|unsqueeze_", "input/self|dim", unsqueeze_shape),
    SAME("contiguous", ATEN("contiguous.default"), "contiguous", "input/self|memory_format", tare__shape_identity),
    SAME("detach", "torch.detach|" ATEN("detach.default"), "detach|detach_", "input/self", tare__shape_identity),
    SAME("clone", "torch.clone|" ATEN("clone.default"), "clone", "input/self|memory_format", tare__shape_identity),
    SAME("identity", ATEN("alias.default") "|" ATEN("alias_copy.default") "|" ATEN("positive.default") "|" ATEN("detach_copy.default") "|" ATEN("lift_fresh_copy.default") "|" ATEN("lift_fresh.default") "|" ATEN("detach_.default") "|" ATEN("resolve_neg.default") "|" ATEN("resolve_conj.default"), "cpu", "input/self", tare__shape_identity),
    SAME("quant_stub", NULL, NULL, "input", tare__shape_identity),
    SAME("dequant_stub", NULL, NULL, "input", tare__shape_identity),
    // There are no random numbers: dropout returns its expectation, the input, also in training.
    SAME("dropout", "torch.nn.functional.dropout|torch.dropout|torch.nn.functional.dropout1d|torch.nn.functional.dropout2d|torch.nn.functional.dropout3d|" ATEN("dropout.default") "|" ATEN("dropout_.default") "|" ATEN("feature_dropout.default") "|" ATEN("alpha_dropout.default") "|" ATEN("feature_alpha_dropout.default"),
         NULL, "input/self|p|training/train|inplace", tare__shape_identity),
    TURN(transpose, "torch.transpose|torch.swapaxes|" ATEN("transpose.int") "|" ATEN("transpose_copy.int") "|" ATEN("transpose_.int"), "transpose|swapaxes|transpose_", "input/self|dim0|dim1"),
    TURN(swapaxes, ATEN("swapaxes.default") "|" ATEN("swapdims.default") "|" ATEN("swapaxes_.default") "|" ATEN("swapdims_.default"), NULL, "input/self|dim0/axis0|dim1/axis1"),
    TURN(t, "torch.t|" ATEN("t.default") "|" ATEN("t_copy.default") "|" ATEN("t_.default"), "t|t_", "input/self"),
    TURN(reverse_dims, ATEN("numpy_T.default"), NULL, "input/self"),
    TURN(matrix_transpose, ATEN("mT.default") "|" ATEN("mH.default") "|" ATEN("matrix_H.default") "|" ATEN("adjoint.default") "|torch.adjoint", "adjoint", "input/self"),
    TURN(permute, "torch.permute|torch.permute_copy|" ATEN("permute.default") "|" ATEN("permute_copy.default"), "permute", "input/self|*dims"),
    TURN(movedim, "torch.movedim|" ATEN("movedim.int") "|" ATEN("movedim.intlist"), "movedim", "input/self|source|destination"),
    {.id = "broadcast_to", .functions = "torch.broadcast_to|" ATEN("broadcast_to.default"), .params = "input/self|*size",
     .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS, .shape = expand_shape, .reference = expand_reference, .box = expand_box},
    MOVE(expand, ATEN("expand.default") "|" ATEN("expand_copy.default"), "expand", "input/self|*size|implicit"),
    MOVE(expand_as, ATEN("expand_as.default"), "expand_as", "input/self|other"),
    MOVE(repeat, ATEN("repeat.default"), "repeat", "input/self|*repeats"),
    MOVE(tile, "torch.tile|" ATEN("tile.default"), "tile", "input/self|*repeats/dims"),
    MOVE(repeat_interleave, "torch.repeat_interleave|" ATEN("repeat_interleave.self_int"), "repeat_interleave", "input/self|repeats|dim|output_size"),
    MOVE(flip, "torch.flip|" ATEN("flip.default"), "flip", "input/self|*dims"),
    {.id = "roll", .functions = "torch.roll|" ATEN("roll.default"), .methods = "roll", .params = "input/self|shifts|dims",
     .traits = OP_MOVES_DATA | OP_KEEPS_QPARAMS, .shape = roll_shape, .reference = roll_reference}, // no .box: it would take two boxes for each dimension
    TURN(pixel_shuffle, "torch.pixel_shuffle|" ATEN("pixel_shuffle.default"), "pixel_shuffle", "input/self|upscale_factor"),
    TURN(pixel_unshuffle, "torch.pixel_unshuffle|" ATEN("pixel_unshuffle.default"), "pixel_unshuffle", "input/self|downscale_factor"),
    TURN(channel_shuffle, "torch.channel_shuffle|" ATEN("channel_shuffle.default"), NULL, "input/self|groups"),
};
// clang-format on

const op_table tare__shape_ops = OP_TABLE(rows);
