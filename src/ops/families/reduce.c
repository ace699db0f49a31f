// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Reductions over some or all dimensions.
#include <math.h>
#include <string.h>

#include "core/math/f32.h"
#include "core/math/f64.h"
#include "core/math/rows.h"
#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/parts.h"
#include "ops/rules.h"

typedef struct reduce_plan {
    const tare_tensor *x;
    bool reduced[TARE_MAX_DIMS];
    int ndim; // of the result
    int64_t shape[TARE_MAX_DIMS];
    int64_t each; // input elements per result element
} reduce_plan;

static tare_status read_dims(op_call *call, reduce_plan *p) {
    int64_t dims[TARE_MAX_DIMS];
    size_t count = 0;
    if (tare__call_given(call, 1))
        TARE_TRY(tare__call_int_list(call, 1, TARE_MAX_DIMS, dims, &count));
    for (int d = 0; d < p->x->ndim && count == 0; d++) p->reduced[d] = true; // without dims: all
    for (size_t i = 0; i < count; i++) {
        const int64_t d = dims[i] < 0 ? dims[i] + p->x->ndim : dims[i];
        if (p->x->ndim == 0 && (dims[i] == 0 || dims[i] == -1)) continue; // torch allows it
        if (d < 0 || d >= p->x->ndim)
            return tare__call_fail(call, "dimension %lld does not exist", (long long)dims[i]);
        p->reduced[d] = true;
    }
    return TARE_OK;
}

static tare_status read_reduce(op_call *call, reduce_plan *p) {
    bool keeps;
    *p = (reduce_plan){.each = 1};
    TARE_TRY(tare__call_need_tensor(call, 0, &p->x));
    TARE_TRY(read_dims(call, p));
    TARE_TRY(tare__call_bool(call, 2, false, &keeps));
    for (int d = 0; d < p->x->ndim; d++) {
        if (p->reduced[d]) p->each *= p->x->shape[d];
        if (!p->reduced[d])
            p->shape[p->ndim++] = p->x->shape[d];
        else if (keeps)
            p->shape[p->ndim++] = 1;
    }
    return TARE_OK;
}

static tare_status reduce_shape(op_call *call) {
    reduce_plan p;
    TARE_TRY(read_reduce(call, &p));
    tare_dtype dtype;
    TARE_TRY(tare__call_dtype(call, 3, p.x->dtype, &dtype));
    return tare__call_result(call, dtype, p.ndim, p.shape, NULL);
}

// Sums of integers are int64, as in torch.
static tare_status sum_shape(op_call *call) {
    reduce_plan p;
    TARE_TRY(read_reduce(call, &p));
    const bool is_float = tare__dtype(p.x->dtype)->is_float;
    tare_dtype dtype;
    TARE_TRY(tare__call_dtype(call, 3, is_float ? p.x->dtype : TARE_INT64, &dtype));
    return tare__call_result(call, dtype, p.ndim, p.shape, NULL);
}

// any and all return bool, but uint8 for uint8, as in torch.
static tare_status any_shape(op_call *call) {
    reduce_plan p;
    TARE_TRY(read_reduce(call, &p));
    return tare__call_result(call, p.x->dtype == TARE_UINT8 ? TARE_UINT8 : TARE_BOOL, p.ndim,
                             p.shape, NULL);
}

// --- iterating over the input ---

// Contiguous elements of the input, and their positions in the result: element k belongs to `to` +
// k * `step`.
typedef struct block {
    int64_t first, count;
    int64_t to;
    int64_t step; // 0: all belong to one element; 1: contiguous, too
    double x[PART_BLOCK];
} block;

// The position in the result of element i of the input.
static int64_t index_of(const reduce_plan *p, int64_t i) {
    int64_t to = 0, step = 1;
    for (int d = p->x->ndim - 1; d >= 0; d--) {
        if (!p->reduced[d]) {
            to += i % p->x->shape[d] * step;
            step *= p->x->shape[d];
        }
        i /= p->x->shape[d];
    }
    return to;
}

// The count of elements in the trailing dimensions that are all reduced (*step = 0) or all kept
// (*step = 1).
static int64_t alike(const reduce_plan *p, int64_t *step) {
    const int ndim = p->x->ndim;
    int64_t count = 1;
    *step = ndim == 0 || p->reduced[ndim - 1] ? 0 : 1;
    for (int d = ndim - 1; d >= 0 && p->reduced[d] == (*step == 0); d--) count *= p->x->shape[d];
    return count;
}

// Loads the next contiguous elements of the input; false at the end. b is zero before the first
// call.
static bool next_block(const reduce_plan *p, block *b) {
    b->first += b->count;
    if (b->first >= p->x->count) return false;
    const int64_t count = alike(p, &b->step), left = count - b->first % count;
    b->to = index_of(p, b->first);
    b->count = left < PART_BLOCK ? left : PART_BLOCK;
    tare__tensor_load(p->x, b->first, 1, b->count, b->x);
    return true;
}

// --- folds ---

// Folds x[k] into to[k * step]; step: 0 or 1.
typedef void (*fold)(double *restrict to, int64_t step, const double *restrict x, int64_t count);

#define FOLD(name, value)                                                                          \
    static void name(double *restrict to, int64_t step, const double *restrict x, int64_t count) { \
        double so_far = to[0];                                                                     \
        for (int64_t k = 0; k < count; k++) {                                                      \
            const double a = step == 0 ? so_far : to[k], b = x[k];                                 \
            so_far = (value);                                                                      \
            if (step != 0) to[k] = so_far;                                                         \
        }                                                                                          \
        if (step == 0) to[0] = so_far;                                                             \
    }

FOLD(plus, a + b)
FOLD(times, a *b)
FOLD(plus_magnitude, a + fabs(b))
FOLD(plus_square, a + b * b)
FOLD(plus_nonzero, a + (b != 0))
FOLD(larger, b > a || b != b ? b : a)
FOLD(smaller, b < a || b != b ? b : a)
FOLD(larger_magnitude, fabs(b) > a || b != b ? fabs(b) : a)
FOLD(smaller_magnitude, fabs(b) < a || b != b ? fabs(b) : a)
FOLD(either, a != 0 || b != 0)
FOLD(both, a != 0 && b != 0)

// torch converts to the result's dtype first.
static bool cuts_fractions(const reduce_plan *p, const tare_tensor *y) {
    return tare__dtype(p->x->dtype)->is_float && !tare__dtype(y->dtype)->is_float &&
           y->dtype != TARE_BOOL;
}

// Accumulates in double, so that the order of a long sum hardly matters.
static tare_status fold_all(op_call *call, const reduce_plan *p, fold f, double start,
                            double **out) {
    const int64_t count = tare__call_out(call)->count;
    const bool cuts = cuts_fractions(p, tare__call_out(call));
    double *sums = tare__arena_array(call->memory, (size_t)count + 1, sizeof *sums);
    if (sums == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < count; i++) sums[i] = start;
    for (block b = {0}; next_block(p, &b);) {
        for (int64_t k = 0; k < b.count && cuts; k++) b.x[k] = trunc(b.x[k]);
        f(sums + b.to, b.step, b.x, b.count);
    }
    *out = sums;
    return TARE_OK;
}

// What is folded, and from what value on; divides: by the number of elements, at last.
typedef struct folding {
    fold f;
    double start;
    bool divides;
} folding;

// x as [outer][far][middle][near][inner], where far and near are reduced; the result is
// [outer][middle][inner].
typedef struct fold_shape {
    int64_t far, middle, near, inner;
} fold_shape;

static int64_t take_alike(const reduce_plan *p, bool is_reduced, int *d) {
    int64_t count = 1;
    for (; *d >= 0 && (p->reduced[*d] == is_reduced || p->x->shape[*d] == 1); --*d)
        count *= p->x->shape[*d];
    return count;
}

// False if the reduced dimensions are more than two groups.
static bool read_groups(const reduce_plan *p, fold_shape *g) {
    int d = p->x->ndim - 1;
    g->inner = take_alike(p, false, &d);
    g->near = take_alike(p, true, &d);
    g->middle = take_alike(p, false, &d);
    g->far = take_alike(p, true, &d);
    (void)take_alike(p, false, &d);
    return d < 0;
}

// Neighbouring elements of the result from `at` to at most `end`; returns their number. *from: the
// offset in x of their first element.
static int64_t next_columns(const fold_shape *g, int64_t at, int64_t end, int64_t *from) {
    const int64_t within = at % g->inner, left = g->inner - within, row = at / g->inner;
    const int64_t outer = row / g->middle, middle = row % g->middle;
    *from = ((outer * g->far * g->middle + middle) * g->near) * g->inner + within;
    const int64_t count = end - at < left ? end - at : left;
    return count < PART_BLOCK ? count : PART_BLOCK;
}

// Contiguous elements of x that are folded into one element of the result (inner == 1) or into
// neighbouring ones: how many such runs there are, and the offset of each from the first.
static int64_t run_count(const fold_shape *g) {
    return g->far * (g->inner == 1 ? 1 : g->near);
}
static int64_t run_offset(const fold_shape *g, int64_t i) {
    const int64_t near = g->inner == 1 ? 1 : g->near;
    return i / near * g->middle * g->near * g->inner + i % near * g->inner;
}

// Folds `count` neighbouring elements of the result; first: the offset in x of their first element.
static void fold_columns(const reduce_plan *p, const folding *r, bool cuts, const fold_shape *g,
                         int64_t first, int64_t count, double *sums) {
    double x[PART_BLOCK];
    const int64_t steps = g->inner == 1 ? g->near : count, runs = run_count(g);
    for (int64_t k = 0; k < count; k++) sums[k] = r->start;
    for (int64_t i = 0; i < runs; i++)
        for (int64_t at = 0, n; at < steps; at += n) {
            n = steps - at < PART_BLOCK ? steps - at : PART_BLOCK;
            tare__tensor_load(p->x, first + run_offset(g, i) + at, 1, n, x);
            for (int64_t k = 0; k < n && cuts; k++) x[k] = trunc(x[k]);
            r->f(g->inner == 1 ? sums : sums + at, g->inner == 1 ? 0 : 1, x, n);
        }
}

// Extremes of floats, and sums of two, which are rounded to the same float in either precision.
static bool folds_floats(const reduce_plan *p, const folding *r, const tare_tensor *y,
                         const fold_shape *g) {
    const bool is_float = p->x->dtype == TARE_FLOAT32 && y->dtype == TARE_FLOAT32;
    return is_float && g->inner > 1 && g->far == 1 && p->each > 0 &&
           (r->f == larger || r->f == smaller || (r->f == plus && !r->divides && p->each == 2));
}

static void fold_floats(const folding *r, const float *x, int64_t each, int64_t inner,
                        int64_t count, float *restrict y) {
    for (int64_t k = 0; k < count; k++) y[k] = r->f == plus ? 0.0F + x[k] : x[k]; // 0 + -0 is 0
    for (int64_t i = 1; i < each; i++) {
        const float *restrict from = x + i * inner;
        if (r->f == plus)
            for (int64_t k = 0; k < count; k++) y[k] += from[k];
        else if (r->f == larger)
            for (int64_t k = 0; k < count; k++)
                y[k] = from[k] > y[k] || from[k] != from[k] ? from[k] : y[k];
        else
            for (int64_t k = 0; k < count; k++)
                y[k] = from[k] < y[k] || from[k] != from[k] ? from[k] : y[k];
    }
}

static tare_status reduce_part(op_call *call, const folding *r, int64_t first, int64_t end) {
    reduce_plan p;
    fold_shape g;
    TARE_TRY(read_reduce(call, &p));
    tare_tensor *y = tare__call_out(call);
    (void)read_groups(&p, &g);
    const bool cuts = cuts_fractions(&p, y), is_of_floats = folds_floats(&p, r, y, &g);
    for (int64_t at = first, count; at < end; at += count) {
        int64_t from;
        double sums[PART_BLOCK];
        count = next_columns(&g, at, end, &from);
        if (is_of_floats) {
            fold_floats(r, tare__f32(p.x) + from, p.each, g.inner, count, tare__f32(y) + at);
            continue;
        }
        fold_columns(&p, r, cuts, &g, from, count, sums);
        for (int64_t k = 0; k < count && r->divides; k++) sums[k] /= (double)p.each;
        tare__tensor_store(y, at, count, sums);
    }
    return TARE_OK;
}

static tare_status reduce_parts(op_call *call, tare_status (*run)(op_call *, int64_t, int64_t),
                                call_parts *out) {
    reduce_plan p;
    fold_shape g;
    TARE_TRY(read_reduce(call, &p));
    if (!read_groups(&p, &g)) return TARE_OK;
    *out = (call_parts){.count = tare__call_out(call)->count, .work = p.each, .run = run};
    return TARE_OK;
}

static tare_status reduce(op_call *call, const folding *r) {
    reduce_plan p;
    fold_shape g;
    double *sums = NULL;
    tare_tensor *y = tare__call_out(call);
    TARE_TRY(read_reduce(call, &p));
    if (read_groups(&p, &g)) return reduce_part(call, r, 0, y->count);
    TARE_TRY(fold_all(call, &p, r->f, r->start, &sums));
    for (int64_t i = 0; i < y->count && r->divides; i++) sums[i] /= (double)p.each;
    tare__tensor_store(y, 0, y->count, sums);
    return TARE_OK;
}

// True if exactly the last dimensions are reduced, so that rows are contiguous.
static bool are_rows(const reduce_plan *p) {
    int d = p->x->ndim;
    while (d > 0 && p->reduced[d - 1]) d--;
    for (int k = 0; k < d; k++)
        if (p->reduced[k]) return false;
    return d > 0;
}

// Rows of floats are summed in the order of torch.
static void run_sum(const row_call *c, const row_functions *k, const float *x, float *y) {
    k->total(x, (size_t)c->count, y);
}
static void run_mean(const row_call *c, const row_functions *k, const float *x, float *y) {
    k->total(x, (size_t)c->count, y);
    *y /= (float)c->count;
}

static tare_status read_sum_rows(op_call *call, row_call *out) {
    reduce_plan p;
    tare_dtype dtype;
    TARE_TRY(read_reduce(call, &p));
    TARE_TRY(tare__call_dtype(call, 3, p.x->dtype, &dtype));
    *out = (row_call){.x = p.x, .count = p.each, .results = 1};
    if (are_rows(&p) && p.x->dtype == TARE_FLOAT32 && dtype == TARE_FLOAT32) out->run = run_sum;
    return TARE_OK;
}

static tare_status read_mean_rows(op_call *call, row_call *out) {
    TARE_TRY(read_sum_rows(call, out));
    if (out->run != NULL) out->run = run_mean;
    return TARE_OK;
}

static tare_status reduce_rows(op_call *call, const row_call *rows) {
    tare_tensor *y = tare__call_out(call);
    tare__row_call_run(rows, &tare__scalar_rows, (size_t)y->count, tare__f32(rows->x),
                       tare__f32(y));
    return TARE_OK;
}

#define REDUCTION(name, f, start, divides)                                                         \
    static const folding name##_folding = {f, start, divides};                                     \
    static tare_status name##_part(op_call *call, int64_t first, int64_t end) {                    \
        return reduce_part(call, &name##_folding, first, end);                                     \
    }                                                                                              \
    static tare_status name##_parts(op_call *call, call_parts *out) {                              \
        return reduce_parts(call, name##_part, out);                                               \
    }
#define FOLDED(name, f, start)                                                                     \
    REDUCTION(name, f, start, false)                                                               \
    static tare_status name##_reference(op_call *call) {                                           \
        return reduce(call, &name##_folding);                                                      \
    }
FOLDED(amax, larger, (double)-INFINITY)
FOLDED(amin, smaller, (double)INFINITY)
FOLDED(prod, times, 1)
FOLDED(any, either, 0)
FOLDED(all, both, 1)

// Rows of floats have a sum of their own.
#define SUMMED(name, divides)                                                                      \
    REDUCTION(name, plus, 0, divides)                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        row_call rows;                                                                             \
        TARE_TRY(read_##name##_rows(call, &rows));                                                 \
        return rows.run != NULL ? reduce_rows(call, &rows) : reduce(call, &name##_folding);        \
    }
SUMMED(sum, false)
SUMMED(mean, true)

// --- logsumexp: relative to the maximum, so that nothing overflows ---

static float infinite_or_nan(const float *x, int64_t count, float infinite) {
    for (int64_t i = 0; i < count; i++)
        if (isnan(x[i])) return x[i];
    return infinite;
}

// Rows of floats, in blocks whose sums are added in order.
static void run_logsumexp(const row_call *c, const row_functions *k, const float *x, float *y) {
    float exponentials[PART_BLOCK], top, sum = 0;
    k->greatest(x, (size_t)c->count, &top);
    if (isinf(top)) {
        *y = infinite_or_nan(x, c->count, top);
        return;
    }
    for (int64_t at = 0, count; at < c->count; at += count) {
        float more;
        count = c->count - at < PART_BLOCK ? c->count - at : PART_BLOCK;
        k->exponentials(x + at, (size_t)count, top, exponentials, &more);
        sum += more;
    }
    *y = tare__logf(sum) + top;
}

static tare_status read_logsumexp_rows(op_call *call, row_call *out) {
    TARE_TRY(read_sum_rows(call, out));
    if (out->run != NULL) out->run = out->count > 0 ? run_logsumexp : NULL;
    return TARE_OK;
}

static tare_status logsumexp_reference(op_call *call) {
    row_call rows;
    TARE_TRY(read_logsumexp_rows(call, &rows));
    if (rows.run != NULL) return reduce_rows(call, &rows);
    reduce_plan p;
    double *top = NULL;
    TARE_TRY(read_reduce(call, &p));
    TARE_TRY(fold_all(call, &p, larger, (double)-INFINITY, &top));
    tare_tensor *y = tare__call_out(call);
    double *sums = tare__arena_array(call->memory, (size_t)y->count + 1, sizeof *sums);
    if (sums == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < y->count; i++) top[i] = isinf(top[i]) ? 0 : top[i];
    for (block b = {0}; next_block(&p, &b);)
        for (int64_t k = 0, to = b.to; k < b.count; k++, to += b.step)
            sums[to] += tare__exp(b.x[k] - top[to]);
    for (int64_t i = 0; i < y->count; i++) tare__tensor_set(y, i, tare__log(sums[i]) + top[i]);
    return TARE_OK;
}

// --- var, std: in two passes, with differences from the mean ---

static tare_status spread_shape(op_call *call) {
    reduce_plan p;
    TARE_TRY(read_reduce(call, &p));
    if (!tare__dtype(p.x->dtype)->is_float)
        return tare__call_fail(call, "has no form for %s", tare_dtype_name(p.x->dtype));
    return tare__call_result(call, p.x->dtype, p.ndim, p.shape, NULL);
}

// As torch, divides by the count minus `correction`, or by the count if unbiased=False.
static tare_status read_spread(op_call *call, reduce_plan *p, double *divisor) {
    double correction;
    bool unbiased;
    TARE_TRY(read_reduce(call, p));
    TARE_TRY(tare__call_bool(call, 3, true, &unbiased));
    TARE_TRY(tare__call_double(call, 4, unbiased ? 1 : 0, &correction));
    const double count = (double)p->each - correction;
    *divisor = count > 0 ? count : 0;
    return TARE_OK;
}

// Adds the squares of the distances to the means to `squares`, which are `step` (0 or 1) apart.
static void add_squares(const double *x, int64_t count, const double *means, int64_t step,
                        double *squares) {
    for (int64_t k = 0; k < count; k++) {
        const double distance = x[k] - means[k * step];
        squares[k * step] += distance * distance;
    }
}

static void end_spread(bool takes_root, double divisor, int64_t count, double *squares) {
    for (int64_t k = 0; k < count; k++) squares[k] /= divisor;
    for (int64_t k = 0; k < count && takes_root; k++) squares[k] = sqrt(squares[k]);
}

// `count` neighbouring elements of the result; first: the offset in x of their first element.
static void spread_columns(const reduce_plan *p, const fold_shape *g, int64_t first, int64_t count,
                           double *squares) {
    static const folding sum = {plus, 0, false};
    double means[PART_BLOCK], x[PART_BLOCK];
    const bool is_one = g->inner == 1;
    const int64_t steps = is_one ? g->near : count, runs = run_count(g);
    fold_columns(p, &sum, false, g, first, count, means);
    for (int64_t k = 0; k < count; k++) {
        means[k] /= (double)p->each;
        squares[k] = 0;
    }
    for (int64_t i = 0; i < runs; i++)
        for (int64_t at = 0, n; at < steps; at += n) {
            n = steps - at < PART_BLOCK ? steps - at : PART_BLOCK;
            tare__tensor_load(p->x, first + run_offset(g, i) + at, 1, n, x);
            add_squares(x, n, is_one ? means : means + at, is_one ? 0 : 1,
                        is_one ? squares : squares + at);
        }
}

static tare_status spread_part(op_call *call, bool takes_root, int64_t first, int64_t end) {
    reduce_plan p;
    fold_shape g;
    double divisor;
    TARE_TRY(read_spread(call, &p, &divisor));
    (void)read_groups(&p, &g);
    for (int64_t at = first, count; at < end; at += count) {
        int64_t from;
        double squares[PART_BLOCK];
        count = next_columns(&g, at, end, &from);
        spread_columns(&p, &g, from, count, squares);
        end_spread(takes_root, divisor, count, squares);
        tare__tensor_store(tare__call_out(call), at, count, squares);
    }
    return TARE_OK;
}

static tare_status spread(op_call *call, bool takes_root) {
    reduce_plan p;
    fold_shape g;
    double *mean = NULL, divisor;
    tare_tensor *y = tare__call_out(call);
    TARE_TRY(read_spread(call, &p, &divisor));
    if (read_groups(&p, &g)) return spread_part(call, takes_root, 0, y->count);
    TARE_TRY(fold_all(call, &p, plus, 0, &mean));
    double *squares = tare__arena_array(call->memory, (size_t)y->count + 1, sizeof *squares);
    if (squares == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < y->count; i++) mean[i] /= (double)p.each;
    for (block b = {0}; next_block(&p, &b);)
        add_squares(b.x, b.count, mean + b.to, b.step, squares + b.to);
    end_spread(takes_root, divisor, y->count, squares);
    tare__tensor_store(y, 0, y->count, squares);
    return TARE_OK;
}

#define SPREAD_BY(name, takes_root)                                                                \
    static tare_status name##_part(op_call *call, int64_t first, int64_t end) {                    \
        return spread_part(call, takes_root, first, end);                                          \
    }                                                                                              \
    static tare_status name##_parts(op_call *call, call_parts *out) {                              \
        return reduce_parts(call, name##_part, out);                                               \
    }                                                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        return spread(call, takes_root);                                                           \
    }
SPREAD_BY(var, false)
SPREAD_BY(std, true)

// --- vector_norm(x, ord, dim, keepdim) ---

static tare_status read_norm(op_call *call, op_call *reduction, double *order) {
    const value *given = call->param[1];
    *order = 2;
    if (given == NULL || given->kind != VALUE_STRING || strcmp(given->as.text, "fro") != 0)
        TARE_TRY(tare__call_double(call, 1, 2, order));
    *reduction = *call;
    for (size_t i = 1; i < 3; i++) reduction->param[i] = call->param[i + 1];
    reduction->param[3] = NULL;
    return isnan(*order) ? tare__call_fail(call, "the order of the norm is NaN") : TARE_OK;
}

static tare_status norm_shape(op_call *call) {
    op_call reduction;
    reduce_plan p;
    double order;
    const tare_tensor *x;
    TARE_TRY(tare__need_float(call, 0, &x));
    TARE_TRY(read_norm(call, &reduction, &order));
    TARE_TRY(read_reduce(&reduction, &p));
    return tare__call_result(call, TARE_FLOAT32, p.ndim, p.shape, NULL);
}

// The p-norm from a sum of powers, for orders other than 0, 1, 2 and infinity.
static tare_status power_norm(op_call *call, const reduce_plan *p, double order) {
    tare_tensor *y = tare__call_out(call);
    double *sums = tare__arena_array(call->memory, (size_t)y->count + 1, sizeof *sums);
    if (sums == NULL) return tare__out_of_memory(call->err);
    for (block b = {0}; next_block(p, &b);)
        for (int64_t k = 0, to = b.to; k < b.count; k++, to += b.step)
            sums[to] += tare__pow(fabs(b.x[k]), order);
    for (int64_t i = 0; i < y->count; i++) tare__tensor_set(y, i, tare__pow(sums[i], 1 / order));
    return TARE_OK;
}

static void run_norm(const row_call *c, const row_functions *k, const float *x, float *y) {
    k->square_total(x, (size_t)c->count, y);
    *y = sqrtf(*y);
}

static row_call rows_of_norm(const reduce_plan *p, double order) {
    const bool is_known = order == 2 && are_rows(p) && p->x->dtype == TARE_FLOAT32;
    return (row_call){.x = p->x, .count = p->each, .results = 1, .run = is_known ? run_norm : NULL};
}

static tare_status read_norm_rows(op_call *call, row_call *out) {
    op_call reduction;
    reduce_plan p;
    double order;
    TARE_TRY(read_norm(call, &reduction, &order));
    TARE_TRY(read_reduce(&reduction, &p));
    *out = rows_of_norm(&p, order);
    return TARE_OK;
}

static tare_status norm_reference(op_call *call) {
    op_call reduction;
    reduce_plan p;
    double order, *sums = NULL;
    TARE_TRY(read_norm(call, &reduction, &order));
    TARE_TRY(read_reduce(&reduction, &p));
    const row_call rows = rows_of_norm(&p, order);
    if (rows.run != NULL) return reduce_rows(call, &rows);
    if (order != 0 && order != 1 && order != 2 && !isinf(order)) return power_norm(call, &p, order);
    const fold f = order == 0   ? plus_nonzero
                   : order == 1 ? plus_magnitude
                   : order == 2 ? plus_square
                   : order > 0  ? larger_magnitude
                                : smaller_magnitude;
    TARE_TRY(fold_all(&reduction, &p, f, order < 0 ? (double)INFINITY : 0, &sums));
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++)
        tare__tensor_set(y, i, order == 2 ? sqrt(sums[i]) : sums[i]);
    return TARE_OK;
}

// --- rows ---

#define REDUCE(name, names, method_names, more, rule, by_rows, by_parts)                           \
    {                                                                                              \
        .id = #name, .functions = names, .methods = method_names,                                  \
        .params = "input/self|dim/axis|keepdim|dtype", .traits = more, .shape = rule,              \
        .reference = name##_reference, .row_function = by_rows, .parts = by_parts                  \
    }

#define SPREAD "input/self|dim/axis|keepdim|unbiased|correction"
#define SPREAD_OVERLOADS(name)                                                                     \
    "torch.ops.aten." name ".default "                                                             \
    "torch.ops.aten." name ".dim"

// clang-format off
static const op_info rows[] = {
    REDUCE(mean, "torch.mean|torch.ops.aten.mean.default|torch.ops.aten.mean.dim", "mean", OP_KEEPS_QPARAMS | OP_ON_QUANTIZED | OP_BY_SAMPLE, reduce_shape, read_mean_rows, mean_parts),
    REDUCE(sum, "torch.sum|torch.ops.aten.sum.default|torch.ops.aten.sum.dim_IntList", "sum", 0, sum_shape, read_sum_rows, sum_parts),
    REDUCE(amax, "torch.amax|torch.ops.aten.amax.default", "amax", OP_KEEPS_QPARAMS, reduce_shape, NULL, amax_parts),
    REDUCE(amin, "torch.amin|torch.ops.aten.amin.default", "amin", OP_KEEPS_QPARAMS, reduce_shape, NULL, amin_parts),
    REDUCE(prod, "torch.prod|torch.ops.aten.prod.default|torch.ops.aten.prod.dim_int", "prod", 0, sum_shape, NULL, prod_parts),
    REDUCE(any, "torch.any|torch.ops.aten.any.default|torch.ops.aten.any.dim|torch.ops.aten.any.dims|torch.ops.aten._is_any_true.default", "any", 0, any_shape, NULL, any_parts),
    REDUCE(all, "torch.all|torch.ops.aten.all.default|torch.ops.aten.all.dim|torch.ops.aten.all.dims|torch.ops.aten._is_all_true.default", "all", 0, any_shape, NULL, all_parts),
    REDUCE(logsumexp, "torch.logsumexp|torch.ops.aten.logsumexp.default", "logsumexp", 0, spread_shape, read_logsumexp_rows, NULL),
    {.id = "var", .functions = "torch.var|torch.ops.aten.var.correction", .overloads = SPREAD_OVERLOADS("var"), .methods = "var", .params = SPREAD, .shape = spread_shape, .reference = var_reference, .parts = var_parts},
    {.id = "std", .functions = "torch.std|torch.ops.aten.std.correction", .overloads = SPREAD_OVERLOADS("std"), .methods = "std", .params = SPREAD, .shape = spread_shape, .reference = std_reference, .parts = std_parts},
    {.id = "vector_norm", .functions = "torch.linalg.vector_norm|torch._C._linalg.linalg_vector_norm|torch.norm|torch.functional.norm|torch.ops.aten.linalg_vector_norm.default",
     .methods = "norm", .params = "input/x/self/A|ord/p|dim/axis|keepdim|dtype|out", .shape = norm_shape, .reference = norm_reference, .row_function = read_norm_rows},
};
// clang-format on

const op_table tare__reduce_ops = OP_TABLE(rows);
