// SPDX-License-Identifier: Apache-2.0
// Linear algebra in exported programs: norms, products, determinants and linear systems.
// Decompositions (svd, eigh, qr) are refused by name (ops/refused.c).
#include <math.h>
#include <string.h>

#include "ops/compose.h"
#include "ops/families/families.h"
#include "ops/rules.h"

#define P(i) tare__compose_param(c, i)

// --- Gaussian elimination with partial pivoting, in double (Golub and Van Loan, Matrix
// Computations, 3.4) ---

// A batch of square matrices, and the right-hand sides of a system: [..][n][columns].
typedef struct systems {
    const tare_tensor *a, *b; // b NULL: none
    int64_t n, columns, count;
} systems;

static tare_status read_square(op_call *call, systems *s) {
    *s = (systems){.count = 1};
    TARE_TRY(tare__need_float(call, 0, &s->a));
    const int ndim = s->a->ndim;
    if (ndim < 2 || s->a->shape[ndim - 1] != s->a->shape[ndim - 2])
        return tare__call_fail(call, "needs square matrices, found shape %s",
                               tare__call_shape_text(call, s->a));
    s->n = s->a->shape[ndim - 1];
    for (int d = 0; d < ndim - 2; d++) s->count *= s->a->shape[d];
    return TARE_OK;
}

// A copy of matrix i in double; `to` is allocated if NULL.
static double *matrix_at(op_call *call, const systems *s, int64_t i, double *to) {
    const int64_t size = s->n * s->n;
    if (to == NULL) to = tare__arena_array(call->memory, (size_t)size + 1, sizeof *to);
    for (int64_t k = 0; to != NULL && k < size; k++) to[k] = (double)tare__f32(s->a)[i * size + k];
    return to;
}

static void swap_rows(double *m, int64_t columns, int64_t i, int64_t k) {
    for (int64_t j = 0; i != k && j < columns; j++) {
        const double kept = m[i * columns + j];
        m[i * columns + j] = m[k * columns + j];
        m[k * columns + j] = kept;
    }
}

static int64_t pivot_of(const double *a, int64_t n, int64_t column) {
    int64_t best = column;
    for (int64_t i = column + 1; i < n; i++)
        if (fabs(a[i * n + column]) > fabs(a[best * n + column])) best = i;
    return best;
}

// Makes a upper triangular and applies the same operations to b. Returns the sign of the row
// permutation, which the determinant needs; 0 if a pivot is 0.
static double eliminate(double *a, int64_t n, double *b, int64_t columns) {
    double sign = 1;
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = pivot_of(a, n, k);
        if (a[at * n + k] == 0) return 0;
        if (at != k) sign = -sign;
        swap_rows(a, n, k, at);
        swap_rows(b, columns, k, at);
        for (int64_t i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
            for (int64_t j = 0; j < columns; j++) b[i * columns + j] -= factor * b[k * columns + j];
        }
    }
    return sign;
}

static void substitute(const double *a, int64_t n, double *b, int64_t columns) {
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t j = 0; j < columns; j++) {
            for (int64_t k = i + 1; k < n; k++)
                b[i * columns + j] -= a[i * n + k] * b[k * columns + j];
            b[i * columns + j] /= a[i * n + i];
        }
}

// --- det, slogdet ---

static tare_status det_shape(op_call *call) {
    systems s;
    TARE_TRY(read_square(call, &s));
    return tare__call_result(call, TARE_FLOAT32, s.a->ndim - 2, s.a->shape, NULL);
}

static tare_status det_reference(op_call *call) {
    systems s;
    double *a = NULL;
    TARE_TRY(read_square(call, &s));
    for (int64_t i = 0; i < s.count; i++) {
        a = matrix_at(call, &s, i, a);
        if (a == NULL) return tare__out_of_memory(call->err);
        double product = eliminate(a, s.n, NULL, 0);
        for (int64_t k = 0; k < s.n; k++) product *= a[k * s.n + k];
        tare__f32(tare__call_out(call))[i] = (float)product;
    }
    return TARE_OK;
}

static value slogdet(composer *c) {
    const value det = COMPOSE(c, "det", P(0));
    return tare__compose_pair(c, COMPOSE(c, "sign", det),
                              COMPOSE(c, "log", COMPOSE(c, "abs", det)));
}

// Also has results for the decomposition, which only a backward pass would use.
static value det_parts(composer *c) {
    return tare__compose_with_nones(c, COMPOSE(c, "det", P(0)), 3);
}

static value slogdet_parts(composer *c) {
    const value both = slogdet(c);
    const value results = tare__compose_with_nones(c, tare__compose_item(c, both, 0), 4);
    if (c->status == TARE_OK) results.as.items[1] = tare__compose_item(c, both, 1);
    return results;
}

// --- solve(A, B): B is [..][n][columns], or vectors [..][n] ---

// True if b has one dimension, or the shape of a without its last dimension: a vector for each
// system.
static bool is_vector(const tare_tensor *a, const tare_tensor *b) {
    if (b->ndim == 1) return true;
    bool same = b->ndim == a->ndim - 1;
    for (int d = 0; same && d < b->ndim; d++) same = b->shape[d] == a->shape[d];
    return same;
}

static tare_status read_systems(op_call *call, systems *s) {
    TARE_TRY(read_square(call, s));
    TARE_TRY(tare__need_float(call, 1, &s->b));
    const int ndim = s->b->ndim;
    const bool one = is_vector(s->a, s->b);
    bool fits = ndim == s->a->ndim - (one ? 1 : 0);
    for (int d = 0; fits && d < s->a->ndim - 1; d++) fits = s->b->shape[d] == s->a->shape[d];
    s->columns = one || !fits ? 1 : s->b->shape[ndim - 1];
    return fits ? TARE_OK
                : tare__call_fail(call, "right-hand sides of shape %s do not fit matrices of %s",
                                  tare__call_shape_text(call, s->b),
                                  tare__call_shape_text(call, s->a));
}

static tare_status solve_shape(op_call *call) {
    systems s;
    bool left;
    TARE_TRY(read_systems(call, &s));
    TARE_TRY(tare__call_bool(call, 2, true, &left));
    if (!left) return tare__call_fail(call, "left=False is not supported: transpose both sides");
    return tare__call_result(call, TARE_FLOAT32, s.b->ndim, s.b->shape, NULL);
}

static tare_status solve_all(op_call *call, const systems *s, const float *right) {
    const int64_t size = s->n * s->columns;
    double *a = NULL, *b = tare__arena_array(call->memory, (size_t)size + 1, sizeof *b);
    if (b == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < s->count; i++) {
        a = matrix_at(call, s, i, a);
        if (a == NULL) return tare__out_of_memory(call->err);
        for (int64_t k = 0; k < size; k++)
            b[k] = right != NULL ? (double)right[i * size + k] : k / s->n == k % s->n;
        if (eliminate(a, s->n, b, s->columns) == 0)
            return tare__call_fail(call, "matrix %lld is singular", (long long)i);
        substitute(a, s->n, b, s->columns);
        for (int64_t k = 0; k < size; k++)
            tare__f32(tare__call_out(call))[i * size + k] = (float)b[k];
    }
    return TARE_OK;
}

static tare_status solve_reference(op_call *call) {
    systems s;
    TARE_TRY(read_systems(call, &s));
    return solve_all(call, &s, tare__f32(s.b));
}

static tare_status inv_shape(op_call *call) {
    systems s;
    TARE_TRY(read_square(call, &s));
    return tare__call_result(call, TARE_FLOAT32, s.a->ndim, s.a->shape, NULL);
}

static tare_status inv_reference(op_call *call) {
    systems s;
    TARE_TRY(read_square(call, &s));
    s.columns = s.n;
    return solve_all(call, &s, NULL);
}

// (inverse, info), where info is 0 for each matrix; singular matrices fail.
static value with_info(composer *c, value made) {
    const tare_tensor *a = tare__compose_need(c, 0);
    const size_t ndim = a != NULL && a->ndim >= 2 ? (size_t)a->ndim - 2 : 0;
    const value shape = tare__compose_ints(c, a != NULL ? a->shape : NULL, ndim);
    return tare__compose_pair(
        c, made, COMPOSE(c, "full", shape, tare__int(0), tare__dtype_value(TARE_INT32)));
}

static value inv_ex(composer *c) {
    return with_info(c, COMPOSE(c, "inv", P(0)));
}

static value solve_ex(composer *c) {
    return with_info(c, COMPOSE(c, "solve", P(0), P(1), P(2)));
}

static value solve_parts(composer *c) {
    return tare__compose_with_nones(c, COMPOSE(c, "solve", P(0), P(1), P(2)), 4);
}

// --- powers and products ---

static value matrix_power(composer *c) {
    const tare_tensor *a = tare__compose_need(c, 0);
    const int64_t n = tare__compose_int(c, 1, 1);
    if (a == NULL) return P(0);
    if (a->ndim < 2 || n < -1024 || n > 1024)
        (void)tare__compose_fail(c, "needs matrices and a power of -1024 to 1024");
    if (c->status != TARE_OK) return P(0);
    const value one = COMPOSE(c, "eye", tare__int(a->shape[a->ndim - 1]));
    value power = COMPOSE(c, "expand", one, tare__compose_ints(c, a->shape, (size_t)a->ndim));
    value square = n < 0 ? COMPOSE(c, "inv", P(0)) : P(0);
    bool is_one = true;
    for (int64_t left = n < 0 ? -n : n; left > 0 && c->status == TARE_OK; left /= 2) {
        if (left % 2 != 0) {
            power = is_one ? COMPOSE(c, "mul", square, tare__int(1))
                           : COMPOSE(c, "matmul", power, square);
            is_one = false;
        }
        if (left > 1) square = COMPOSE(c, "matmul", square, square);
    }
    return power;
}

// Multiplies from left to right: another order changes only the cost and rounding errors.
static value multi_dot(composer *c) {
    const value all = P(0);
    value product = tare__compose_item(c, all, 0);
    for (uint32_t i = 1; i < all.count && c->status == TARE_OK; i++)
        product = COMPOSE(c, "matmul", product, all.as.items[i]);
    return product;
}

// Inner products along the last dimension of both.
static value inner(composer *c) {
    const tare_tensor *a = tare__compose_need(c, 0), *b = tare__compose_need(c, 1);
    if (a == NULL || b == NULL) return P(0);
    if (a->ndim == 0 || b->ndim == 0) return COMPOSE(c, "mul", P(0), P(1));
    const int64_t last = -1;
    const value along = tare__compose_ints(c, &last, 1);
    return COMPOSE(c, "tensordot", P(0), P(1), along, along);
}

static value vecdot(composer *c) {
    const value dim = tare__int(tare__compose_int(c, 2, -1));
    return COMPOSE(c, "sum", COMPOSE(c, "mul", P(0), P(1)), dim);
}

// beta * input + alpha * product. If beta is 0, torch does not read the input.
static value plus_scaled(composer *c, value product) {
    const value beta = tare__compose_param_or(c, 3, tare__int(1));
    const value alpha = tare__compose_param_or(c, 4, tare__int(1));
    const value scaled = COMPOSE(c, "mul", product, alpha);
    double number = 1;
    if (tare__value_number(&beta, &number) && number == 0) return scaled;
    return COMPOSE(c, "add", COMPOSE(c, "mul", P(0), beta), scaled);
}

static value addr(composer *c) {
    return plus_scaled(c, COMPOSE(c, "outer", P(1), P(2)));
}

static value addbmm(composer *c) {
    const value products = COMPOSE(c, "matmul", P(1), P(2));
    return plus_scaled(c, COMPOSE(c, "sum", products, tare__int(0)));
}

// Each element of the left matrix times the right matrix: [a0 b0][a1 b1]..
static value kron(composer *c) {
    const tare_tensor *a = tare__compose_need(c, 0), *b = tare__compose_need(c, 1);
    int64_t left[2 * TARE_MAX_DIMS], right[2 * TARE_MAX_DIMS], made[TARE_MAX_DIMS];
    if (a == NULL || b == NULL) return P(0);
    const size_t of_a = (size_t)a->ndim, of_b = (size_t)b->ndim, ndim = of_a > of_b ? of_a : of_b;
    if (2 * ndim > TARE_MAX_DIMS) {
        (void)tare__compose_fail(c, "takes at most 4 dimensions");
        return P(0);
    }
    for (size_t d = 0; d < ndim; d++) {
        left[2 * d] = d + of_a >= ndim ? a->shape[d + of_a - ndim] : 1;
        right[2 * d + 1] = d + of_b >= ndim ? b->shape[d + of_b - ndim] : 1;
        left[2 * d + 1] = right[2 * d] = 1;
        made[d] = left[2 * d] * right[2 * d + 1];
    }
    const value x = COMPOSE(c, "view", P(0), tare__compose_ints(c, left, 2 * ndim));
    const value y = COMPOSE(c, "view", P(1), tare__compose_ints(c, right, 2 * ndim));
    return COMPOSE(c, "view", COMPOSE(c, "mul", x, y), tare__compose_ints(c, made, ndim));
}

// x1 [..][in1], x2 [..][in2], weight [out][in1][in2], bias [out]
static value bilinear(composer *c) {
    const tare_tensor *w = tare__compose_need(c, 2), *x = tare__compose_need(c, 0);
    if (w == NULL || x == NULL) return P(0);
    if (w->ndim != 3 || x->ndim < 1) {
        (void)tare__compose_fail(c, "needs a weight of 3 dimensions");
        return P(0);
    }
    // [..][1][1][in1] times [out][in1][in2] is [..][out][1][in2].
    const value row =
        COMPOSE(c, "unsqueeze", COMPOSE(c, "unsqueeze", P(0), tare__int(-2)), tare__int(-2));
    const value half = COMPOSE(c, "squeeze", COMPOSE(c, "matmul", row, P(2)), tare__int(-2));
    const value other = COMPOSE(c, "unsqueeze", P(1), tare__int(-1));
    const value made = COMPOSE(c, "squeeze", COMPOSE(c, "matmul", half, other), tare__int(-1));
    return P(3).kind == VALUE_NONE ? made : COMPOSE(c, "add", made, P(3));
}

// --- cross: of vectors of 3 elements along a dimension ---

static value cross_along(composer *c, int64_t dim) {
    const value along = tare__int(dim), one = tare__int(-1), two = tare__int(-2);
    const value first = COMPOSE(c, "mul", COMPOSE(c, "roll", P(0), one, along),
                                COMPOSE(c, "roll", P(1), two, along));
    const value second = COMPOSE(c, "mul", COMPOSE(c, "roll", P(0), two, along),
                                 COMPOSE(c, "roll", P(1), one, along));
    return COMPOSE(c, "sub", first, second);
}

static value cross_of(composer *c, bool finds_dim) {
    const tare_tensor *a = tare__compose_need(c, 0), *b = tare__compose_need(c, 1);
    int64_t dim = tare__compose_int(c, 2, -1);
    if (a == NULL || b == NULL) return P(0);
    const int ndim = a->ndim;
    // Without a dimension torch.cross uses the first one of size 3.
    for (int d = ndim - 1; finds_dim && P(2).kind == VALUE_NONE && d >= 0; d--)
        if (a->shape[d] == 3) dim = d;
    const int64_t at = dim < 0 ? dim + ndim : dim;
    if (b->ndim != ndim || at < 0 || at >= ndim || a->shape[at] != 3 || b->shape[at] != 3) {
        (void)tare__compose_fail(c, "needs two tensors with a dimension of 3 elements");
        return P(0);
    }
    return cross_along(c, at);
}
static value cross(composer *c) {
    return cross_of(c, true);
}
static value linalg_cross(composer *c) {
    return cross_of(c, false);
}

// --- matrix norms, except those of singular values, which are refused ---

static value matrix_norm_along(composer *c, double order, int64_t rows, int64_t columns, int ndim,
                               bool keeps) {
    rows = rows < 0 ? rows + ndim : rows;
    columns = columns < 0 ? columns + ndim : columns;
    const bool by_columns = fabs(order) == 1; // sums of columns; else of rows
    const int64_t summed = by_columns ? rows : columns, other = by_columns ? columns : rows;
    if (!by_columns && !isinf(order)) {
        (void)tare__compose_fail(c, "of matrices only the orders 'fro', 1, -1, inf and -inf are "
                                    "supported, others need singular values");
        return P(0);
    }
    const value keep = tare__bool(keeps);
    const value sums = COMPOSE(c, "sum", COMPOSE(c, "abs", P(0)), tare__int(summed), keep);
    const int64_t left = keeps || other < summed ? other : other - 1;
    return COMPOSE(c, order > 0 ? "amax" : "amin", sums, tare__int(left), keep);
}

// input|ord|dim|keepdim|dtype. A norm of the elements, unless ord or dim (or of_matrices) select a
// matrix norm.
static value norm_of(composer *c, bool of_matrices) {
    const tare_tensor *x = tare__compose_need(c, 0);
    int64_t dims[2] = {-2, -1};
    size_t count = 2;
    op_call call = *c->call;
    const value order = P(1), keep = tare__bool(tare__compose_bool(c, 3, false));
    if (x == NULL) return P(0);
    if (P(2).kind != VALUE_NONE) c->status = tare__call_int_list(&call, 2, 2, dims, &count);
    const bool is_word = order.kind == VALUE_STRING;
    const bool is_frobenius = is_word && strcmp(order.as.text, "fro") == 0;
    double number = 2;
    if (is_word && !is_frobenius) (void)tare__compose_fail(c, "order 'nuc' is not supported");
    if (!is_word && order.kind != VALUE_NONE) number = tare__compose_double(c, 1, 2);
    if (c->status != TARE_OK) return P(0);
    const bool chosen = P(2).kind != VALUE_NONE || order.kind != VALUE_NONE;
    const bool is_matrix =
        of_matrices || (chosen && count == 2 && (P(2).kind != VALUE_NONE || x->ndim == 2));
    if (is_matrix && x->ndim < 2) (void)tare__compose_fail(c, "needs matrices");
    if (is_matrix && !is_frobenius && order.kind != VALUE_NONE)
        return matrix_norm_along(c, number, dims[0], dims[1], x->ndim, keep.as.boolean);
    const value along = is_matrix ? tare__compose_ints(c, dims, count) : P(2);
    return COMPOSE(c, "vector_norm", P(0), tare__float(number), along, keep);
}
static value matrix_norm(composer *c) {
    return norm_of(c, true);
}
static value linalg_norm(composer *c) {
    return norm_of(c, false);
}

// --- diagonals ---

// The last dimension becomes the diagonal of a matrix along dim1 and dim2.
static value diag_embed(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    const int64_t offset = tare__compose_int(c, 1, 0);
    int64_t first = tare__compose_int(c, 2, -2), second = tare__compose_int(c, 3, -1);
    int64_t shape[TARE_MAX_DIMS + 1];
    if (x == NULL) return P(0);
    const int ndim = x->ndim + 1;
    first = first < 0 ? first + ndim : first;
    second = second < 0 ? second + ndim : second;
    const bool fits = x->ndim > 0 && ndim <= TARE_MAX_DIMS && first >= 0 && first < ndim &&
                      second >= 0 && second < ndim && first != second && offset > -INT32_MAX &&
                      offset < INT32_MAX;
    if (!fits) (void)tare__compose_fail(c, "needs two different dimensions of the result");
    if (c->status != TARE_OK) return P(0);
    const int64_t side = x->shape[x->ndim - 1] + (offset < 0 ? -offset : offset);
    for (int d = 0, from = 0; d < ndim; d++)
        shape[d] = d == first || d == second ? side : x->shape[from++];
    const value empty = COMPOSE(c, "full", tare__compose_ints(c, shape, (size_t)ndim), tare__int(0),
                                tare__dtype_value(x->dtype));
    return COMPOSE(c, "diagonal_scatter", empty, P(0), tare__int(offset), tare__int(first),
                   tare__int(second));
}

// A diagonal matrix from a vector, or the diagonal of a matrix.
static value diag(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    const value offset = tare__int(tare__compose_int(c, 1, 0));
    if (x == NULL) return P(0);
    if (x->ndim < 1 || x->ndim > 2) (void)tare__compose_fail(c, "needs a vector or a matrix");
    return x->ndim == 1 ? COMPOSE(c, "diag_embed", P(0), offset)
                        : COMPOSE(c, "diagonal", P(0), offset);
}

static value diagflat(composer *c) {
    const int64_t all = -1;
    const value flat = COMPOSE(c, "reshape", P(0), tare__compose_ints(c, &all, 1));
    return COMPOSE(c, "diag_embed", flat, tare__int(tare__compose_int(c, 1, 0)));
}

// --- tril_indices, triu_indices(row, col, offset): [2][count] ---

static tare_status read_triangle(op_call *call, int64_t *rows, int64_t *columns, int64_t *offset) {
    TARE_TRY(tare__call_int(call, 0, 0, rows));
    TARE_TRY(tare__call_int(call, 1, 0, columns));
    TARE_TRY(tare__call_int(call, 2, 0, offset));
    const int64_t most = INT32_MAX;
    if (*rows < 0 || *columns < 0 || *rows > most || *columns > most)
        return tare__call_fail(call, "the sizes are out of range");
    if (*offset > *columns) *offset = *columns;
    if (*offset < -*rows) *offset = -*rows;
    return TARE_OK;
}

// The columns of a row that belong to the triangle: [*from, *to).
static void columns_of(int64_t row, int64_t columns, int64_t offset, bool lower, int64_t *from,
                       int64_t *to) {
    const int64_t edge = row + offset + (lower ? 1 : 0);
    const int64_t inside = edge < 0 ? 0 : edge < columns ? edge : columns;
    *from = lower ? 0 : inside;
    *to = lower ? inside : columns;
}

static tare_status indices_shape(op_call *call, bool lower) {
    int64_t rows, columns, offset, shape[] = {2, 0}, from, to;
    TARE_TRY(read_triangle(call, &rows, &columns, &offset));
    for (int64_t row = 0; row < rows; row++) {
        columns_of(row, columns, offset, lower, &from, &to);
        shape[1] += to - from;
    }
    return tare__call_result(call, TARE_INT64, 2, shape, NULL);
}

static tare_status indices_reference(op_call *call, bool lower) {
    int64_t rows, columns, offset, from, to;
    TARE_TRY(read_triangle(call, &rows, &columns, &offset));
    tare_tensor *y = tare__call_out(call);
    int64_t *at = y->data;
    for (int64_t row = 0; row < rows; row++) {
        columns_of(row, columns, offset, lower, &from, &to);
        for (int64_t column = from; column < to; column++, at++) {
            at[0] = row;
            at[y->shape[1]] = column;
        }
    }
    return TARE_OK;
}

static tare_status tril_indices_shape(op_call *call) {
    return indices_shape(call, true);
}
static tare_status tril_indices_reference(op_call *call) {
    return indices_reference(call, true);
}
static tare_status triu_indices_shape(op_call *call) {
    return indices_shape(call, false);
}
static tare_status triu_indices_reference(op_call *call) {
    return indices_reference(call, false);
}

// --- rows ---

#define ATEN(name)      "|torch.ops.aten." name ".default"
#define ONLY_ATEN(name) "torch.ops.aten." name
#define LINALG(name)    "torch.linalg." name "|torch._C._linalg.linalg_" name ATEN("linalg_" name)
#define NORM_PARAMS     "input/A/x/self|ord|dim|keepdim|dtype"
#define INDICES(name)                                                                              \
    {                                                                                              \
        .id = #name, .functions = "torch." #name ATEN(#name),                                      \
        .params = "row|col|offset|dtype|layout|device|pin_memory", .shape = name##_shape,          \
        .reference = name##_reference                                                              \
    }

// clang-format off
static const op_info rows[] = {
    {.id = "det", .functions = LINALG("det") "|torch.det" ATEN("det"), .methods = "det", .params = "input/A/self", .shape = det_shape, .reference = det_reference},
    COMPOSED_ROW(det_parts, ONLY_ATEN("_linalg_det.default"), NULL, "input/A"),
    COMPOSED_ROW(slogdet, LINALG("slogdet") "|torch.slogdet" ATEN("slogdet"), "slogdet", "input/A/self"),
    COMPOSED_ROW(slogdet_parts, ONLY_ATEN("_linalg_slogdet.default"), NULL, "input/A"),
    {.id = "inv", .functions = LINALG("inv") "|torch.inverse" ATEN("inverse"), .methods = "inverse", .params = "input/A/self", .shape = inv_shape, .reference = inv_reference},
    COMPOSED_ROW(inv_ex, LINALG("inv_ex"), NULL, "input/A|check_errors"),
    {.id = "solve", .functions = LINALG("solve"), .params = "input/A|other/B|left", .shape = solve_shape, .reference = solve_reference},
    COMPOSED_ROW(solve_ex, LINALG("solve_ex"), NULL, "input/A|other/B|left|check_errors"),
    COMPOSED_ROW(solve_parts, ONLY_ATEN("_linalg_solve_ex.default"), NULL, "input/A|other/B|left|check_errors"),
    COMPOSED_ROW(matrix_power, LINALG("matrix_power") "|torch.matrix_power" ATEN("matrix_power"), "matrix_power", "input/A/self|n"),
    COMPOSED_ROW(multi_dot, LINALG("multi_dot") "|torch.chain_matmul" ATEN("chain_matmul"), NULL, "tensors/matrices"),
    COMPOSED_ROW(inner, "torch.inner" ATEN("inner"), "inner", "input/self|other"),
    COMPOSED_ROW(vecdot, LINALG("vecdot") "|torch.vdot" ATEN("vdot"), "vdot", "input/x/self|other/y|dim"),
    COMPOSED_ROW(addr, "torch.addr" ATEN("addr"), "addr", "input/self|vec1|vec2|beta|alpha"),
    COMPOSED_ROW(addbmm, "torch.addbmm" ATEN("addbmm"), "addbmm", "input/self|batch1|batch2|beta|alpha"),
    COMPOSED_ROW(kron, "torch.kron" ATEN("kron"), "kron", "input/self|other"),
    COMPOSED_ROW(bilinear, "torch.bilinear|torch.nn.functional.bilinear" ATEN("bilinear"), NULL, "input/input1|other/input2|weight|bias"),
    COMPOSED_ROW(cross, "torch.cross" ATEN("cross"), "cross", "input/self|other|dim"),
    COMPOSED_ROW(linalg_cross, LINALG("cross"), NULL, "input/self|other|dim"),
    {.id = "matrix_norm", .functions = LINALG("matrix_norm") "|" ONLY_ATEN("linalg_matrix_norm.str_ord"), .params = NORM_PARAMS,
     .forward = matrix_norm},
    {.id = "linalg_norm", .functions = LINALG("norm") "|" ONLY_ATEN("linalg_norm.ord_str"), .params = NORM_PARAMS,
     .forward = linalg_norm},
    COMPOSED_ROW(diag_embed, "torch.diag_embed" ATEN("diag_embed"), "diag_embed", "input/self|offset|dim1|dim2"),
    COMPOSED_ROW(diag, "torch.diag" ATEN("diag"), "diag", "input/self|diagonal"),
    COMPOSED_ROW(diagflat, "torch.diagflat" ATEN("diagflat"), "diagflat", "input/self|offset"),
    INDICES(tril_indices),
    INDICES(triu_indices),
};
// clang-format on

const op_table tare__matrix_ops = OP_TABLE(rows);
