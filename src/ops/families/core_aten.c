// SPDX-License-Identifier: Apache-2.0
// Operators of aten that are composed of others, or have another form than the functions in torch:
// one name for all convolutions.
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/tensor/tensor.h"
#include "ops/compose.h"
#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/rules.h"

#define P(i) tare__compose_param(c, i)

// --- convolution: the weight determines the number of dimensions ---

enum { STRIDE = 3, PADDING, DILATION, TRANSPOSED, OUTPUT_PADDING, GROUPS };

// Turns the call into one of the row for these dimensions.
static tare_status convolution_shape(op_call *call) {
    const tare_tensor *w;
    bool transposed;
    TARE_TRY(tare__call_need_tensor(call, 1, &w));
    TARE_TRY(tare__call_bool(call, TRANSPOSED, false, &transposed));
    const op_info *row = tare__op_by_id(transposed ? "conv_transpose" : "conv", w->ndim - 2);
    if (w->ndim < 3 || row == NULL)
        return tare__call_fail(call, "weight has %d dimensions, expected 3 to 5", w->ndim);
    const value *given[OP_MAX_PARAMS];
    memcpy(given, call->param, sizeof given);
    memset(call->param + PADDING + 1, 0, sizeof given - (PADDING + 1) * sizeof *given);
    call->op = row;
    call->param_count = tare__op_param_count(row);
    call->param[tare__op_param_index(row, "dilation")] = given[DILATION];
    call->param[tare__op_param_index(row, "groups")] = given[GROUPS];
    if (transposed)
        call->param[tare__op_param_index(row, "output_padding")] = given[OUTPUT_PADDING];
    return row->shape(call);
}

// Used if tensors were converted to float first; the shape rule has replaced the row by then.
static tare_status convolution_reference(op_call *call) {
    return call->op->reference(call);
}

static bool is_one(value v) {
    double number;
    return v.kind == VALUE_NONE || (tare__value_number(&v, &number) && number == 1);
}

// --- addcmul, addcdiv: input + value * a (* or /) b, as torch rounds it ---

static value add_scaled(composer *c, const char *combine) {
    const value scaled = is_one(P(3)) ? P(1) : COMPOSE(c, "mul", P(1), P(3));
    return COMPOSE(c, "add", P(0), COMPOSE(c, combine, scaled, P(2)));
}
static value addcmul(composer *c) {
    return add_scaled(c, "mul");
}
static value addcdiv(composer *c) {
    return add_scaled(c, "div");
}

// --- addmm, baddbmm, addmv: beta * input + alpha * (mat1 @ mat2) ---

static value scaled(composer *c, value x, value factor) {
    return is_one(factor) ? x : COMPOSE(c, "mul", x, factor);
}

// If beta is 0, torch does not read the input, which may contain NaN.
static value addmm(composer *c) {
    const double beta = tare__compose_double(c, 3, 1);
    const value product = scaled(c, COMPOSE(c, "matmul", P(1), P(2)), P(4));
    const tare_tensor *input = tare__compose_need(c, 0), *y = tare__compose_tensor(c, product);
    if (c->status != TARE_OK || beta == 0) return product;
    const value sum = COMPOSE(c, "add", scaled(c, P(0), P(3)), product);
    const tare_tensor *all = tare__compose_tensor(c, sum);
    if (all != NULL && (all->ndim != y->ndim || all->count != y->count)) {
        op_call call = *c->call;
        c->status =
            tare__call_fail(&call, "input of shape %s does not broadcast to %s",
                            tare__call_shape_text(&call, input), tare__call_shape_text(&call, y));
    }
    return sum;
}

static int64_t addmm_macs(const op_call *call) {
    op_call product = *call;
    product.param[0] = call->param[1];
    return tare__matmul_macs(&product);
}

// --- clamp between tensors ---

static value clamp_tensors(composer *c) {
    value x = P(0);
    if (P(1).kind == VALUE_NONE && P(2).kind == VALUE_NONE)
        (void)tare__compose_fail(c, "needs a least or a greatest value");
    if (P(1).kind != VALUE_NONE) x = COMPOSE(c, "maximum", x, P(1));
    if (P(2).kind != VALUE_NONE) x = COMPOSE(c, "minimum", x, P(2));
    return x;
}

// Clamps at one bound, a number or a tensor.
static value clamp_by(composer *c, value least, value most) {
    const bool is_tensor = P(1).kind == VALUE_TENSOR;
    return COMPOSE(c, is_tensor ? "clamp_tensors" : "clamp", P(0), least, most);
}

static value clamp_min(composer *c) {
    return clamp_by(c, P(1), tare__none());
}

static value clamp_max(composer *c) {
    return clamp_by(c, tare__none(), P(1));
}

// --- lerp: computed from the nearer end ---

static value lerp(composer *c) {
    const value way = COMPOSE(c, "sub", P(1), P(0)), share = P(2);
    const value from_start = COMPOSE(c, "add", P(0), COMPOSE(c, "mul", share, way));
    const value left = COMPOSE(c, "rsub", share, tare__int(1));
    const value from_end = COMPOSE(c, "sub", P(1), COMPOSE(c, "mul", left, way));
    double number;
    if (share.kind != VALUE_TENSOR && tare__value_number(&share, &number))
        return fabs(number) < 0.5 ? from_start : from_end;
    const value is_small = COMPOSE(c, "lt", COMPOSE(c, "abs", share), tare__float(0.5));
    return COMPOSE(c, "where", is_small, from_start, from_end);
}

// --- isclose(input, other, rtol, atol, equal_nan) ---

static value isclose(composer *c) {
    const double relative = tare__compose_double(c, 2, 1e-5);
    const double absolute = tare__compose_double(c, 3, 1e-8);
    value close = COMPOSE(c, "eq", P(0), P(1));
    if (tare__compose_bool(c, 4, false))
        close = COMPOSE(
            c, "logical_or", close,
            COMPOSE(c, "logical_and", COMPOSE(c, "isnan", P(0)), COMPOSE(c, "isnan", P(1))));
    if (relative == 0 && absolute == 0) return close;
    const value size = COMPOSE(c, "abs", COMPOSE(c, "mul", P(1), tare__float(relative)));
    const value allowed = COMPOSE(c, "add", size, tare__float(absolute));
    const value distance = COMPOSE(c, "abs", COMPOSE(c, "sub", P(0), P(1)));
    const value is_near = COMPOSE(c, "le", distance, allowed);
    const value is_finite = COMPOSE(c, "isfinite", distance);
    return COMPOSE(c, "logical_or", close, COMPOSE(c, "logical_and", is_near, is_finite));
}

// --- nan_to_num(input, nan, posinf, neginf) ---

static double greatest_of(tare_dtype dtype) {
    switch (dtype) {
    case TARE_FLOAT64:
        return DBL_MAX;
    case TARE_FLOAT16:
        return 65504;
    case TARE_BFLOAT16:
        return 0x1.fep127;
    default:
        return (double)FLT_MAX;
    }
}

static value nan_to_num(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    if (x == NULL || !tare__dtype(x->dtype)->is_float) return P(0);
    const double most = greatest_of(x->dtype);
    const value high = tare__compose_param_or(c, 2, tare__float(most));
    const value low = tare__compose_param_or(c, 3, tare__float(-most));
    const value nan = tare__compose_param_or(c, 1, tare__float(0));
    const value made = COMPOSE(c, "where", COMPOSE(c, "isnan", P(0)), nan, P(0));
    const value cut = COMPOSE(c, "where", COMPOSE(c, "isposinf", P(0)), high, made);
    return COMPOSE(c, "where", COMPOSE(c, "isneginf", P(0)), low, cut);
}

// --- angles, logit, sinc ---

static const double pi = 3.14159265358979323846;

static value deg2rad(composer *c) {
    return COMPOSE(c, "mul", P(0), tare__float(pi / 180));
}
static value rad2deg(composer *c) {
    return COMPOSE(c, "mul", P(0), tare__float(180 / pi));
}

static value logit(composer *c) {
    const value one = tare__int(1);
    value x = P(0);
    if (P(1).kind != VALUE_NONE) {
        const double eps = tare__compose_double(c, 1, 0);
        const value low = tare__float(eps), high = tare__float(1 - eps);
        x = COMPOSE(c, "mul", x, tare__float(1)); // integers become floats
        const value cut = COMPOSE(c, "where", COMPOSE(c, "gt", x, high), high, x);
        x = COMPOSE(c, "where", COMPOSE(c, "lt", x, low), low, cut);
    }
    return COMPOSE(c, "log", COMPOSE(c, "div", x, COMPOSE(c, "rsub", x, one)));
}

static value sinc(composer *c) {
    const value angle = COMPOSE(c, "mul", P(0), tare__float(pi));
    const value made = COMPOSE(c, "div", COMPOSE(c, "sin", angle), angle);
    return COMPOSE(c, "where", COMPOSE(c, "eq", P(0), tare__int(0)), tare__float(1), made);
}

// --- diff(input, n, dim, prepend, append) ---

static value extend(composer *c, value x, value dim) {
    value operands = tare__compose_list(c, 3);
    if (c->status != TARE_OK) return x;
    operands.count = 0;
    if (P(3).kind != VALUE_NONE) operands.as.items[operands.count++] = P(3);
    operands.as.items[operands.count++] = x;
    if (P(4).kind != VALUE_NONE) operands.as.items[operands.count++] = P(4);
    return operands.count > 1 ? COMPOSE(c, "cat", operands, dim) : x;
}

// Takes elements [start, start + length) along dim.
static value cut(composer *c, value x, value dim, int64_t start, int64_t length) {
    return COMPOSE(c, "narrow", x, dim, tare__int(start), tare__int(length));
}

static value diff(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    const int64_t times = tare__compose_int(c, 1, 1), at = tare__compose_int(c, 2, -1);
    const value dim = tare__int(at);
    if (times == 0) return P(0); // torch does not extend it then
    value so_far = x != NULL ? extend(c, P(0), dim) : P(0);
    const tare_tensor *t = tare__compose_tensor(c, so_far);
    const int64_t d = t != NULL && at < 0 ? at + t->ndim : at;
    if (t == NULL || d < 0 || d >= t->ndim || times < 0) {
        (void)tare__compose_fail(c, "expected an order >= 0 and a dimension of the input");
        return so_far;
    }
    const char *minus = t->dtype == TARE_BOOL ? "ne" : "sub";
    int64_t size = t->shape[d];
    if (times >= size) return cut(c, so_far, dim, 0, 0);
    for (int64_t i = 0; i < times && c->status == TARE_OK; i++, size--) {
        const value left = cut(c, so_far, dim, 0, size - 1);
        so_far = COMPOSE(c, minus, cut(c, so_far, dim, 1, size - 1), left);
    }
    return so_far;
}

// --- _weight_norm(v, g, dim): the rows of v scaled to the norms g ---

// All dimensions except dim; -1: all.
static value other_dims(composer *c, int ndim, int64_t dim) {
    int64_t dims[TARE_MAX_DIMS];
    size_t count = 0;
    for (int d = 0; d < ndim; d++)
        if (d != dim) dims[count++] = d;
    return tare__compose_ints(c, dims, count);
}

static value weight_norm_of(composer *c, value *norm) {
    const tare_tensor *v = tare__compose_need(c, 0);
    const int64_t dim = tare__compose_int(c, 2, 0);
    if (v == NULL) return P(0);
    if (dim < -1 || dim >= v->ndim)
        (void)tare__compose_fail(c, "expected -1 or a dimension of v as dim");
    *norm = COMPOSE(c, "vector_norm", P(0), tare__int(2), other_dims(c, v->ndim, dim),
                    tare__bool(dim >= 0));
    return COMPOSE(c, "mul", P(0), COMPOSE(c, "div", P(1), *norm));
}

static value weight_norm(composer *c) {
    value norm = tare__none();
    return weight_norm_of(c, &norm);
}

static value weight_norm_interface(composer *c) {
    value norm = tare__none();
    const value w = weight_norm_of(c, &norm);
    return tare__compose_pair(c, w, norm);
}

// --- distances ---

static value at_least(composer *c, value x, double least) {
    return COMPOSE(c, "clamp", x, tare__float(least));
}

static value cosine_similarity(composer *c) {
    const value dim = tare__int(tare__compose_int(c, 2, 1)), keep = tare__bool(true);
    const double eps = tare__compose_double(c, 3, 1e-8);
    const value both = tare__compose_pair(c, P(0), P(1)),
                even = COMPOSE(c, "broadcast_tensors", both);
    value side[2] = {tare__compose_item(c, even, 0), tare__compose_item(c, even, 1)};
    for (size_t i = 0; i < 2; i++) {
        const value norm = COMPOSE(c, "vector_norm", side[i], tare__int(2), dim, keep);
        side[i] = COMPOSE(c, "div", side[i], at_least(c, norm, eps));
    }
    return COMPOSE(c, "sum", COMPOSE(c, "mul", side[0], side[1]), dim);
}

static value pairwise_distance(composer *c) {
    const value order = tare__float(tare__compose_double(c, 2, 2));
    const value eps = tare__float(tare__compose_double(c, 3, 1e-6));
    const value apart = COMPOSE(c, "add", COMPOSE(c, "sub", P(0), P(1)), eps);
    return COMPOSE(c, "vector_norm", apart, order, tare__int(-1),
                   tare__bool(tare__compose_bool(c, 4, false)));
}

// Distances between all vectors of the first and all of the second tensor.
static value cdist(composer *c) {
    const tare_tensor *a = tare__compose_need(c, 0), *b = tare__compose_need(c, 1);
    const value order = tare__float(tare__compose_double(c, 2, 2));
    if (a == NULL || b == NULL) return P(0);
    if (a->ndim < 2 || b->ndim < 2) (void)tare__compose_fail(c, "needs matrices");
    const value rows = COMPOSE(c, "unsqueeze", P(0), tare__int(-2));
    const value columns = COMPOSE(c, "unsqueeze", P(1), tare__int(-3));
    return COMPOSE(c, "vector_norm", COMPOSE(c, "sub", rows, columns), order, tare__int(-1));
}

// outer(vector, vector), for all dtypes that mul supports.
static value outer(composer *c) {
    const tare_tensor *a = tare__compose_need(c, 0), *b = tare__compose_need(c, 1);
    if (a == NULL || b == NULL) return P(0);
    if (a->ndim != 1 || b->ndim != 1) (void)tare__compose_fail(c, "needs vectors");
    return COMPOSE(c, "mul", COMPOSE(c, "unsqueeze", P(0), tare__int(-1)), P(1));
}

// --- functions with two results ---

static value aminmax(composer *c) {
    const value keep = tare__bool(tare__compose_bool(c, 2, false));
    const value low = COMPOSE(c, "amin", P(0), P(1), keep);
    return tare__compose_pair(c, low, COMPOSE(c, "amax", P(0), P(1), keep));
}

// (spread, mean). Parameters as of var: input|dim|keepdim|unbiased|correction.
static value with_mean(composer *c, const char *spread) {
    const value made = COMPOSE(c, spread, P(0), P(1), P(2), P(3), P(4));
    return tare__compose_pair(c, made, COMPOSE(c, "mean", P(0), P(1), P(2)));
}
static value var_mean(composer *c) {
    return with_mean(c, "var");
}
static value std_mean(composer *c) {
    return with_mean(c, "std");
}

// --- sums of some elements ---

static value count_nonzero(composer *c) {
    return COMPOSE(c, "sum", COMPOSE(c, "ne", P(0), tare__int(0)), P(1));
}

static value nansum(composer *c) {
    const value known = COMPOSE(c, "masked_fill", P(0), COMPOSE(c, "isnan", P(0)), tare__int(0));
    return COMPOSE(c, "sum", known, P(1), P(2), P(3));
}

static value nanmean(composer *c) {
    const value is_nan = COMPOSE(c, "isnan", P(0));
    const value known = COMPOSE(c, "masked_fill", P(0), is_nan, tare__int(0));
    const value count = COMPOSE(c, "sum", COMPOSE(c, "logical_not", is_nan), P(1), P(2));
    return COMPOSE(c, "div", COMPOSE(c, "sum", known, P(1), P(2), P(3)), count);
}

static value trace(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    if (x != NULL && x->ndim != 2) (void)tare__compose_fail(c, "needs a matrix");
    return COMPOSE(c, "sum", COMPOSE(c, "diagonal", P(0)));
}

// --- atleast_1d, 2d, 3d ---

// Adds dimensions up to `least`: in front, but a third one at the end, as torch does. Returns a
// view even if nothing changes, because an item of a list must not be an argument.
static value with_dims(composer *c, value x, int least) {
    const tare_tensor *t = tare__compose_tensor(c, x);
    if (t == NULL) return x;
    const int64_t n = t->count, rows = t->ndim == 2 ? t->shape[0] : 1;
    const int64_t columns = t->ndim == 2 ? t->shape[1] : n;
    const int64_t wide[] = {rows, columns, 1};
    if (t->ndim >= least)
        return COMPOSE(c, "view", x, tare__compose_ints(c, t->shape, (size_t)t->ndim));
    if (least == 1) return COMPOSE(c, "view", x, tare__compose_ints(c, &n, 1));
    return COMPOSE(c, "view", x, tare__compose_ints(c, wide, (size_t)least));
}

static value each_with_dims(composer *c, int least) {
    const value given = P(0);
    if (given.kind == VALUE_TENSOR) return with_dims(c, given, least);
    if (given.kind != VALUE_LIST && given.kind != VALUE_TUPLE) {
        (void)tare__compose_fail(c, "expected tensors");
        return tare__none();
    }
    const value all = tare__compose_list(c, given.count);
    for (uint32_t i = 0; i < given.count && c->status == TARE_OK; i++)
        all.as.items[i] = with_dims(c, given.as.items[i], least);
    return all;
}

#define AT_LEAST(n)                                                                                \
    static value atleast_##n##d(composer *c) {                                                     \
        return each_with_dims(c, n);                                                               \
    }
AT_LEAST(1)
AT_LEAST(2)
AT_LEAST(3)

// --- stacks ---

static value join(composer *c, int least, int64_t dim) {
    return COMPOSE(c, "cat", each_with_dims(c, least), tare__int(dim));
}

static value hstack(composer *c) {
    const value all = each_with_dims(c, 1);
    const tare_tensor *first =
        tare__compose_tensor(c, all.kind == VALUE_LIST ? tare__compose_item(c, all, 0) : all);
    return COMPOSE(c, "cat", all, tare__int(first != NULL && first->ndim > 1 ? 1 : 0));
}
static value vstack(composer *c) {
    return join(c, 2, 0);
}
static value dstack(composer *c) {
    return join(c, 3, 2);
}

// Joins along dimension 1; vectors become columns.
static value column_stack(composer *c) {
    const value given = P(0);
    if (given.kind != VALUE_LIST && given.kind != VALUE_TUPLE)
        (void)tare__compose_fail(c, "expected tensors");
    const value all = tare__compose_list(c, c->status == TARE_OK ? given.count : 0);
    for (uint32_t i = 0; i < all.count && c->status == TARE_OK; i++) {
        const tare_tensor *t = tare__compose_tensor(c, given.as.items[i]);
        const int64_t column[] = {t != NULL ? t->count : 0, 1};
        all.as.items[i] = t != NULL && t->ndim < 2 ? COMPOSE(c, "view", given.as.items[i],
                                                             tare__compose_ints(c, column, 2))
                                                   : given.as.items[i];
    }
    return COMPOSE(c, "cat", all, tare__int(1));
}

// --- broadcasting ---

static value common_shape(composer *c, value given) {
    tare_tensor so_far = {0};
    op_call call = *c->call;
    for (uint32_t i = 0; i < given.count && c->status == TARE_OK; i++) {
        const tare_tensor *t = tare__compose_tensor(c, given.as.items[i]);
        int ndim = 0;
        int64_t shape[TARE_MAX_DIMS] = {0};
        if (t != NULL) c->status = tare__broadcast(&call, &so_far, t, &ndim, shape);
        so_far.ndim = ndim;
        for (int d = 0; d < ndim; d++) so_far.shape[d] = shape[d];
    }
    return tare__compose_ints(c, so_far.shape, (size_t)so_far.ndim);
}

static value broadcast_tensors(composer *c) {
    const value given = P(0);
    if (given.kind != VALUE_LIST && given.kind != VALUE_TUPLE) {
        (void)tare__compose_fail(c, "expected tensors");
        return tare__none();
    }
    const value shape = common_shape(c, given), all = tare__compose_list(c, given.count);
    for (uint32_t i = 0; i < given.count && c->status == TARE_OK; i++)
        all.as.items[i] = COMPOSE(c, "expand", given.as.items[i], shape);
    return all;
}

// meshgrid(tensors, indexing): tensor i varies along dimension i; "xy" swaps the first two.
static value meshgrid(composer *c) {
    const value given = P(0), indexing = P(1);
    const bool is_list = given.kind == VALUE_LIST || given.kind == VALUE_TUPLE;
    if (!is_list || given.count == 0 || given.count > TARE_MAX_DIMS) {
        (void)tare__compose_fail(c, "expected a list of one to eight tensors");
        return tare__none();
    }
    const bool swaps =
        indexing.kind == VALUE_STRING && indexing.as.text[0] == 'x' && given.count > 1;
    const value all = tare__compose_list(c, given.count);
    int64_t whole[TARE_MAX_DIMS];
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < given.count && c->status == TARE_OK; i++) {
            const tare_tensor *t = tare__compose_tensor(c, given.as.items[i]);
            const uint32_t at = swaps && i < 2 ? 1 - i : i;
            int64_t shape[TARE_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
            whole[at] = shape[at] = t != NULL ? t->count : 1;
            if (t != NULL && t->ndim > 1) (void)tare__compose_fail(c, "needs vectors");
            if (pass == 0) continue;
            const value row =
                COMPOSE(c, "view", given.as.items[i], tare__compose_ints(c, shape, given.count));
            all.as.items[i] = COMPOSE(c, "expand", row, tare__compose_ints(c, whole, given.count));
        }
    return all;
}

// --- tensordot: contracted dimensions are last on the left, first on the right ---

typedef struct side {
    int64_t order[TARE_MAX_DIMS], matrix[2], free[TARE_MAX_DIMS];
    size_t free_count;
} side;

static side contract(composer *c, size_t at, bool is_left) {
    side s = {.matrix = {1, 1}};
    int64_t dims[TARE_MAX_DIMS];
    size_t count = 0, next = 0;
    bool taken[TARE_MAX_DIMS] = {false};
    op_call call = *c->call;
    const tare_tensor *t = tare__compose_need(c, at);
    if (t != NULL) c->status = tare__call_int_list(&call, at + 2, TARE_MAX_DIMS, dims, &count);
    if (t == NULL || c->status != TARE_OK) return s;
    for (size_t i = 0; i < count; i++) {
        dims[i] = dims[i] < 0 ? dims[i] + t->ndim : dims[i];
        if (dims[i] < 0 || dims[i] >= t->ndim || taken[dims[i]]) {
            (void)tare__compose_fail(c, "a dimension does not exist, or is named twice");
            return s;
        }
        taken[dims[i]] = true;
    }
    for (size_t i = 0; i < count && !is_left; i++) s.order[next++] = dims[i];
    for (int d = 0; d < t->ndim; d++) {
        if (taken[d]) continue;
        s.free[s.free_count++] = t->shape[d];
        s.order[next++] = d;
        s.matrix[is_left ? 0 : 1] *= t->shape[d];
    }
    for (size_t i = 0; i < count; i++) {
        if (is_left) s.order[next++] = dims[i];
        s.matrix[is_left ? 1 : 0] *= t->shape[dims[i]];
    }
    return s;
}

static value matrix_of(composer *c, size_t at, const side *s) {
    const tare_tensor *t = tare__compose_need(c, at);
    const value order = tare__compose_ints(c, s->order, t != NULL ? (size_t)t->ndim : 0);
    return COMPOSE(c, "view", COMPOSE(c, "permute", P(at), order),
                   tare__compose_ints(c, s->matrix, 2));
}

static value tensordot(composer *c) {
    const side a = contract(c, 0, true), b = contract(c, 1, false);
    int64_t shape[2 * TARE_MAX_DIMS];
    size_t count = 0;
    for (size_t i = 0; i < a.free_count; i++) shape[count++] = a.free[i];
    for (size_t i = 0; i < b.free_count; i++) shape[count++] = b.free[i];
    if (count > TARE_MAX_DIMS) (void)tare__compose_fail(c, "too many dimensions");
    const value product = COMPOSE(c, "matmul", matrix_of(c, 0, &a), matrix_of(c, 1, &b));
    return COMPOSE(c, "view", product, tare__compose_ints(c, shape, count));
}

// Each element of the result is a sum over the contracted dimensions.
static int64_t tensordot_macs(const op_call *call) {
    const tare_tensor *a = tare__call_tensor(call, 0), *b = tare__call_tensor(call, 1);
    op_call quiet = *call;
    int64_t dims[TARE_MAX_DIMS], contracted = 1;
    size_t count = 0;
    quiet.err = NULL;
    if (a == NULL || b == NULL ||
        tare__call_int_list(&quiet, 3, TARE_MAX_DIMS, dims, &count) != TARE_OK)
        return 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t d = dims[i] < 0 ? dims[i] + b->ndim : dims[i];
        if (d >= 0 && d < b->ndim) contracted = tare__size_product(contracted, b->shape[d]);
    }
    return contracted > 0 ? tare__size_product(a->count, b->count / contracted) : 0;
}

// --- embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
// include_last_offset, padding_idx): the other three results serve a backward pass ---

static value bags_with_offsets(composer *c) {
    static const char *const modes[] = {"sum", "mean", "max"};
    const int64_t mode = tare__compose_int(c, 4, 0);
    if (mode < 0 || mode > 2) (void)tare__compose_fail(c, "mode must be 0, 1 or 2");
    if (c->status != TARE_OK) return tare__none();
    const value bags = COMPOSE(c, "embedding_bag", P(1), P(0), P(2), tare__string(modes[mode]),
                               P(6), tare__compose_param_or(c, 7, tare__bool(false)),
                               tare__compose_param_or(c, 8, tare__int(-1)));
    return tare__compose_with_nones(c, bags, 4);
}

// --- pdist: the distances from each vector to the later ones ---

static value pdist(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    const value order = tare__float(tare__compose_double(c, 1, 2)), last = tare__int(-1);
    if (x == NULL) return P(0);
    if (x->ndim != 2) (void)tare__compose_fail(c, "needs a matrix");
    const int64_t rows = x->shape[0];
    const value norms = tare__compose_list(c, rows > 1 ? (size_t)rows - 1 : 0);
    for (int64_t i = 0; i + 1 < rows && c->status == TARE_OK; i++) {
        const value own = cut(c, P(0), tare__int(0), i, 1);
        const value others = cut(c, P(0), tare__int(0), i + 1, rows - i - 1);
        norms.as.items[i] = COMPOSE(c, "vector_norm", COMPOSE(c, "sub", own, others), order, last);
    }
    if (rows > 1) return COMPOSE(c, "cat", norms, tare__int(0));
    const int64_t none = 0;
    return COMPOSE(c, "zeros", tare__compose_ints(c, &none, 1));
}

// --- tensor_split: sections that begin at given indices, or n sections of nearly equal size ---

static value sections_from(composer *c, const int64_t *starts, size_t count, value dim,
                           int64_t size) {
    const value all = tare__compose_list(c, count + 1);
    for (size_t i = 0; i <= count && c->status == TARE_OK; i++) {
        const int64_t from = i == 0 ? 0 : starts[i - 1], to = i < count ? starts[i] : size;
        all.as.items[i] = cut(c, P(0), dim, from, to > from ? to - from : 0);
    }
    return all;
}

enum { MOST_SECTIONS = 1024 };

static value tensor_split(composer *c) {
    int64_t starts[MOST_SECTIONS];
    size_t count = 0;
    op_call call = *c->call;
    const tare_tensor *x = tare__compose_need(c, 0);
    const value given = P(1), dim = tare__int(tare__compose_int(c, 2, 0));
    const int64_t d = x != NULL && dim.as.integer < 0 ? dim.as.integer + x->ndim : dim.as.integer;
    if (x == NULL || d < 0 || d >= x->ndim) {
        (void)tare__compose_fail(c, "the dimension does not exist");
        return P(0);
    }
    const int64_t size = x->shape[d];
    if (given.kind == VALUE_LIST || given.kind == VALUE_TUPLE) {
        c->status = tare__call_int_list(&call, 1, MOST_SECTIONS, starts, &count);
        for (size_t i = 0; i < count; i++) {
            const int64_t at = starts[i] < 0 ? starts[i] + size : starts[i];
            starts[i] = at < 0 ? 0 : at < size ? at : size;
        }
        return sections_from(c, starts, count, dim, size);
    }
    const int64_t sections = tare__compose_int(c, 1, 0);
    if (sections < 1 || sections > MOST_SECTIONS) {
        (void)tare__compose_fail(c, "expected 1 to 1024 sections");
        return P(0);
    }
    for (int64_t i = 1; i < sections; i++) {
        const int64_t longer = size % sections < i ? size % sections : i;
        starts[count++] = i * (size / sections) + longer;
    }
    return sections_from(c, starts, count, dim, size);
}

// --- rows ---

#define AT "torch.ops.aten."

#define ATEN(name)    "|torch.ops.aten." name
#define SPREAD_PARAMS "input/self|dim|keepdim|unbiased|correction"
#define SPREAD_MEAN(name)                                                                          \
    {                                                                                              \
        .id = #name, .functions = "torch." #name ATEN(#name ".correction"),                        \
        .overloads = "torch.ops.aten." #name ".default torch.ops.aten." #name ".dim",              \
        .params = SPREAD_PARAMS, .forward = name                                                   \
    }
#define AT_LEAST_ROW(name)                                                                         \
    COMPOSED_ROW(name,                                                                             \
                 "torch.functional." #name "|torch." #name ATEN(#name ".default")                  \
                     ATEN(#name ".Sequence"),                                                      \
                 NULL, "tensors/self")

// clang-format off
static const op_info rows[] = {
    {.id = "convolution", .functions = AT "convolution.default|torch.convolution",
     .params = "input|weight|bias|stride|padding|dilation|transposed|output_padding|groups", .traits = OP_WEIGHTED,
     .shape = convolution_shape, .reference = convolution_reference},
    COMPOSED_ROW(addcmul, "torch.addcmul" ATEN("addcmul.default") ATEN("addcmul_.default"), "addcmul|addcmul_", "input/self|tensor1|tensor2|value"),
    COMPOSED_ROW(addcdiv, "torch.addcdiv" ATEN("addcdiv.default") ATEN("addcdiv_.default"), "addcdiv|addcdiv_", "input/self|tensor1|tensor2|value"),
    {.id = "clamp_tensors", .functions = "torch.ops.aten.clamp.Tensor" ATEN("clamp_.Tensor"),
     .overloads = "torch.ops.aten.clamp_min.Tensor torch.ops.aten.clamp_min_.Tensor "
                  "torch.ops.aten.clamp_max.Tensor torch.ops.aten.clamp_max_.Tensor",
     .params = "input/self|min|max", .forward = clamp_tensors},
    COMPOSED_ROW(clamp_max, "torch.clamp_max|torch.clamp_max_", "clamp_max|clamp_max_", "input/self|max"),
    COMPOSED_ROW(clamp_min, "torch.clamp_min|torch.clamp_min_", "clamp_min|clamp_min_", "input/self|min"),
    COMPOSED_ROW(lerp, "torch.lerp" ATEN("lerp.Scalar") ATEN("lerp.Tensor"), "lerp", "input/self|other/end|alpha/weight"),
    COMPOSED_ROW(isclose, "torch.isclose" ATEN("isclose.default"), "isclose", "input/self|other|rtol|atol|equal_nan"),
    COMPOSED_ROW(nan_to_num, "torch.nan_to_num" ATEN("nan_to_num.default") ATEN("nan_to_num_.default"), "nan_to_num|nan_to_num_", "input/self|nan|posinf|neginf"),
    COMPOSED_ROW(deg2rad, "torch.deg2rad" ATEN("deg2rad.default"), "deg2rad", "input/self"),
    COMPOSED_ROW(rad2deg, "torch.rad2deg" ATEN("rad2deg.default"), "rad2deg", "input/self"),
    COMPOSED_ROW(logit, "torch.logit|torch.special.logit" ATEN("logit.default"), "logit", "input/self|eps"),
    COMPOSED_ROW(sinc, "torch.sinc|torch.special.sinc" ATEN("sinc.default"), "sinc", "input/self"),
    COMPOSED_ROW(diff, "torch.diff" ATEN("diff.default"), "diff", "input/self|n|dim|prepend|append"),
    COMPOSED_ROW(weight_norm, "torch._weight_norm" ATEN("_weight_norm.default"), NULL, "input/v|other/g|dim"),
    COMPOSED_ROW(weight_norm_interface, "torch.ops.aten._weight_norm_interface.default", NULL, "input/v|other/g|dim"),
    COMPOSED_ROW(cosine_similarity, "torch.cosine_similarity|torch.nn.functional.cosine_similarity" ATEN("cosine_similarity.default"), NULL, "input/x1|other/x2|dim|eps"),
    COMPOSED_ROW(pairwise_distance, "torch.pairwise_distance|torch.nn.functional.pairwise_distance" ATEN("pairwise_distance.default"), NULL, "input/x1|other/x2|p|eps|keepdim"),
    COMPOSED_ROW(cdist, "torch.functional.cdist|torch.cdist" ATEN("cdist.default") ATEN("_cdist_forward.default"), NULL, "input/x1|other/x2|p|compute_mode"),
    COMPOSED_ROW(aminmax, "torch.aminmax" ATEN("aminmax.default"), "aminmax", "input/self|dim|keepdim"),
    SPREAD_MEAN(var_mean),
    SPREAD_MEAN(std_mean),
    COMPOSED_ROW(count_nonzero, "torch.count_nonzero" ATEN("count_nonzero.default") ATEN("count_nonzero.dim_IntList"), "count_nonzero", "input/self|dim"),
    COMPOSED_ROW(nansum, "torch.nansum" ATEN("nansum.default"), "nansum", "input/self|dim|keepdim|dtype"),
    COMPOSED_ROW(nanmean, "torch.nanmean" ATEN("nanmean.default"), "nanmean", "input/self|dim|keepdim|dtype"),
    {.id = "embedding_bags", .functions = "torch.ops.aten.embedding_bag.default" ATEN("embedding_bag.padding_idx") ATEN("_embedding_bag.default") ATEN("_embedding_bag_forward_only.default"),
     .params = "weight|input/indices|offsets|scale_grad_by_freq|mode|sparse|per_sample_weights|include_last_offset|padding_idx",
     .forward = bags_with_offsets},
    COMPOSED_ROW(pdist, "torch.pdist|torch.nn.functional.pdist" ATEN("pdist.default") ATEN("_pdist_forward.default"), NULL, "input/self|p"),
    COMPOSED_ROW(tensor_split, "torch.tensor_split" ATEN("tensor_split.indices") ATEN("tensor_split.sections"), "tensor_split", "input/self|chunks/indices/sections|dim"),
    COMPOSED_ROW(trace, "torch.trace" ATEN("trace.default"), "trace", "input/self"),
    AT_LEAST_ROW(atleast_1d),
    AT_LEAST_ROW(atleast_2d),
    AT_LEAST_ROW(atleast_3d),
    COMPOSED_ROW(hstack, "torch.hstack" ATEN("hstack.default"), NULL, "tensors"),
    COMPOSED_ROW(vstack, "torch.vstack" ATEN("vstack.default"), NULL, "tensors"),
    COMPOSED_ROW(dstack, "torch.dstack" ATEN("dstack.default"), NULL, "tensors"),
    COMPOSED_ROW(column_stack, "torch.column_stack" ATEN("column_stack.default"), NULL, "tensors"),
    COMPOSED_ROW(broadcast_tensors, "torch.ops.aten.broadcast_tensors.default", NULL, "tensors"),
    COMPOSED_ROW(outer, "torch.outer" ATEN("outer.default"), "outer", "input/self|vec2"),
    COMPOSED_ROW(meshgrid, "torch.functional.meshgrid|torch.meshgrid" ATEN("meshgrid.default") ATEN("meshgrid.indexing"), NULL, "*tensors|indexing"),
    {.id = "tensordot", .functions = "torch.ops.aten.tensordot.default", .params = "input/self|other|dims_self|dims_other",
     .forward = tensordot, .macs = tensordot_macs},
    {.id = "addmm", .functions = "torch.addmm|torch.ops.aten.addmm.default", .methods = "addmm", .params = "input/self|mat1|mat2|beta|alpha",
     .forward = addmm, .macs = addmm_macs},
    {.id = "baddbmm", .functions = "torch.baddbmm|torch.ops.aten.baddbmm.default", .methods = "baddbmm", .params = "input/self|batch1|batch2|beta|alpha",
     .forward = addmm, .macs = addmm_macs},
    {.id = "addmv", .functions = "torch.addmv|torch.ops.aten.addmv.default", .methods = "addmv", .params = "input/self|mat|vec|beta|alpha",
     .forward = addmm, .macs = addmm_macs},
};
// clang-format on

const op_table tare__core_aten_ops = OP_TABLE(rows);
