// SPDX-License-Identifier: Apache-2.0
// Reductions over some or all dimensions.
#include <math.h>
#include <string.h>

#include "core/math/f64.h"
#include "core/math/rows.h"
#include "ops/families/families.h"
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
    for (int d = 0; d < p->x->ndim && count == 0; d++) p->reduced[d] = true; // none named: all
    for (size_t i = 0; i < count; i++) {
        const int64_t d = dims[i] < 0 ? dims[i] + p->x->ndim : dims[i];
        if (p->x->ndim == 0 && (dims[i] == 0 || dims[i] == -1)) continue; // torch lets it pass
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

// any, all: bool, but of uint8, as in torch.
static tare_status any_shape(op_call *call) {
    reduce_plan p;
    TARE_TRY(read_reduce(call, &p));
    return tare__call_result(call, p.x->dtype == TARE_UINT8 ? TARE_UINT8 : TARE_BOOL, p.ndim,
                             p.shape, NULL);
}

typedef double (*fold)(double so_far, double x);
static double plus(double a, double b) {
    return a + b;
}
static double larger(double a, double b) {
    return b > a || b != b ? b : a;
}
static double smaller(double a, double b) {
    return b < a || b != b ? b : a;
}

static double times(double a, double b) {
    return a * b;
}
static double plus_magnitude(double a, double b) {
    return a + fabs(b);
}
static double plus_square(double a, double b) {
    return a + b * b;
}
static double either(double a, double b) {
    return a != 0 || b != 0;
}
static double both(double a, double b) {
    return a != 0 && b != 0;
}

// Where element i of the input goes in the result.
static int64_t place_of(const reduce_plan *p, int64_t i) {
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

// Accumulates in double, so that the order of a long sum hardly matters.
static tare_status fold_all(op_call *call, const reduce_plan *p, fold f, double start,
                            double **out) {
    const int64_t count = tare__call_out(call)->count;
    // torch converts to the result's dtype first.
    const bool cuts = tare__dtype(p->x->dtype)->is_float &&
                      !tare__dtype(tare__call_out(call)->dtype)->is_float &&
                      tare__call_out(call)->dtype != TARE_BOOL;
    double *sums = tare__arena_array(call->memory, (size_t)count + 1, sizeof *sums);
    if (sums == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < count; i++) sums[i] = start;
    for (int64_t i = 0; i < p->x->count; i++) {
        double *to = &sums[place_of(p, i)];
        const double x = tare__tensor_get(p->x, i);
        *to = f(*to, cuts ? trunc(x) : x);
    }
    *out = sums;
    return TARE_OK;
}

// The last dimensions of floats: lines that lie side by side, which torch sums in an order of its
// own.
static bool are_lines(const reduce_plan *p) {
    int d = p->x->ndim;
    while (d > 0 && p->reduced[d - 1]) d--;
    for (int k = 0; k < d; k++)
        if (p->reduced[k]) return false;
    return p->x->dtype == TARE_FLOAT32 && d > 0;
}

static tare_status sum_lines(op_call *call, const reduce_plan *p, bool divides) {
    float *y = tare__f32(tare__call_out(call));
    for (int64_t i = 0; i < tare__call_out(call)->count; i++) {
        f32_columns__scalar(tare__f32(p->x) + i * p->each, (size_t)p->each, 1, 1, &y[i]);
        if (divides) y[i] /= (float)p->each;
    }
    return TARE_OK;
}

static tare_status reduce(op_call *call, fold f, double start, bool divides) {
    reduce_plan p;
    double *sums = NULL;
    TARE_TRY(read_reduce(call, &p));
    if (f == plus && are_lines(&p) && tare__call_out(call)->dtype == TARE_FLOAT32)
        return sum_lines(call, &p, divides);
    TARE_TRY(fold_all(call, &p, f, start, &sums));
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++)
        tare__tensor_set(y, i, divides ? sums[i] / (double)p.each : sums[i]);
    return TARE_OK;
}

static tare_status mean_reference(op_call *call) {
    return reduce(call, plus, 0, true);
}
static tare_status sum_reference(op_call *call) {
    return reduce(call, plus, 0, false);
}
static tare_status amax_reference(op_call *call) {
    return reduce(call, larger, (double)-INFINITY, false);
}
static tare_status amin_reference(op_call *call) {
    return reduce(call, smaller, (double)INFINITY, false);
}

static tare_status prod_reference(op_call *call) {
    return reduce(call, times, 1, false);
}
static tare_status any_reference(op_call *call) {
    return reduce(call, either, 0, false);
}
static tare_status all_reference(op_call *call) {
    return reduce(call, both, 1, false);
}

// --- logsumexp: shifted by the greatest, so that nothing overflows ---

static tare_status logsumexp_reference(op_call *call) {
    reduce_plan p;
    double *top = NULL;
    TARE_TRY(read_reduce(call, &p));
    TARE_TRY(fold_all(call, &p, larger, (double)-INFINITY, &top));
    tare_tensor *y = tare__call_out(call);
    double *sums = tare__arena_array(call->memory, (size_t)y->count + 1, sizeof *sums);
    if (sums == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < y->count; i++) top[i] = isinf(top[i]) ? 0 : top[i];
    for (int64_t i = 0; i < p.x->count; i++) {
        const int64_t to = place_of(&p, i);
        sums[to] += tare__exp(tare__tensor_get(p.x, i) - top[to]);
    }
    for (int64_t i = 0; i < y->count; i++) tare__tensor_set(y, i, tare__log(sums[i]) + top[i]);
    return TARE_OK;
}

// --- var, std: around the mean, in two passes ---

static tare_status spread_shape(op_call *call) {
    reduce_plan p;
    TARE_TRY(read_reduce(call, &p));
    if (!tare__dtype(p.x->dtype)->is_float)
        return tare__call_fail(call, "has no form for %s", tare_dtype_name(p.x->dtype));
    return tare__call_result(call, p.x->dtype, p.ndim, p.shape, NULL);
}

// torch divides by the count less `correction`, or by all of it with unbiased=False.
static tare_status spread(op_call *call, bool takes_root) {
    reduce_plan p;
    double *mean = NULL, correction;
    bool unbiased;
    TARE_TRY(read_reduce(call, &p));
    TARE_TRY(tare__call_bool(call, 3, true, &unbiased));
    TARE_TRY(tare__call_double(call, 4, unbiased ? 1 : 0, &correction));
    TARE_TRY(fold_all(call, &p, plus, 0, &mean));
    tare_tensor *y = tare__call_out(call);
    double *squares = tare__arena_array(call->memory, (size_t)y->count + 1, sizeof *squares);
    if (squares == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < y->count; i++) mean[i] /= (double)p.each;
    for (int64_t i = 0; i < p.x->count; i++) {
        const int64_t to = place_of(&p, i);
        const double distance = tare__tensor_get(p.x, i) - mean[to];
        squares[to] += distance * distance;
    }
    const double count = (double)p.each - correction;
    for (int64_t i = 0; i < y->count; i++) {
        const double variance = squares[i] / (count > 0 ? count : 0);
        tare__tensor_set(y, i, takes_root ? sqrt(variance) : variance);
    }
    return TARE_OK;
}

static tare_status var_reference(op_call *call) {
    return spread(call, false);
}
static tare_status std_reference(op_call *call) {
    return spread(call, true);
}

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

// The sum of powers, for any order but 0, 1, 2 and infinity.
static tare_status power_norm(op_call *call, const reduce_plan *p, double order) {
    tare_tensor *y = tare__call_out(call);
    double *sums = tare__arena_array(call->memory, (size_t)y->count + 1, sizeof *sums);
    if (sums == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < p->x->count; i++)
        sums[place_of(p, i)] += tare__pow(fabs(tare__tensor_get(p->x, i)), order);
    for (int64_t i = 0; i < y->count; i++) tare__tensor_set(y, i, tare__pow(sums[i], 1 / order));
    return TARE_OK;
}

static double plus_nonzero(double a, double b) {
    return a + (b != 0);
}
static double larger_magnitude(double a, double b) {
    return larger(a, fabs(b));
}
static double smaller_magnitude(double a, double b) {
    return smaller(a, fabs(b));
}

static tare_status norm_reference(op_call *call) {
    op_call reduction;
    reduce_plan p;
    double order, *sums = NULL;
    TARE_TRY(read_norm(call, &reduction, &order));
    TARE_TRY(read_reduce(&reduction, &p));
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

#define REDUCE(name, names, method_names, more, rule)                                              \
    {                                                                                              \
        .id = #name, .functions = names, .methods = method_names,                                  \
        .params = "input/self|dim/axis|keepdim|dtype", .traits = more, .shape = rule,              \
        .reference = name##_reference                                                              \
    }

#define SPREAD "input/self|dim/axis|keepdim|unbiased|correction"
#define SPREAD_OVERLOADS(name)                                                                     \
    "torch.ops.aten." name ".default(input|unbiased) "                                             \
    "torch.ops.aten." name ".dim(input|dim|unbiased|keepdim)"

// clang-format off
static const op_info rows[] = {
    REDUCE(mean, "torch.mean|torch.ops.aten.mean.default|torch.ops.aten.mean.dim", "mean", OP_KEEPS_QPARAMS | OP_ON_QUANTIZED | OP_BY_SAMPLE, reduce_shape),
    REDUCE(sum, "torch.sum|torch.ops.aten.sum.default|torch.ops.aten.sum.dim_IntList", "sum", 0, sum_shape),
    REDUCE(amax, "torch.amax|torch.ops.aten.amax.default", "amax", OP_KEEPS_QPARAMS, reduce_shape),
    REDUCE(amin, "torch.amin|torch.ops.aten.amin.default", "amin", OP_KEEPS_QPARAMS, reduce_shape),
    REDUCE(prod, "torch.prod|torch.ops.aten.prod.default|torch.ops.aten.prod.dim_int", "prod", 0, sum_shape),
    REDUCE(any, "torch.any|torch.ops.aten.any.default|torch.ops.aten.any.dim|torch.ops.aten.any.dims", "any", 0, any_shape),
    REDUCE(all, "torch.all|torch.ops.aten.all.default|torch.ops.aten.all.dim|torch.ops.aten.all.dims", "all", 0, any_shape),
    REDUCE(logsumexp, "torch.logsumexp|torch.ops.aten.logsumexp.default", "logsumexp", 0, spread_shape),
    {.id = "var", .functions = "torch.var|torch.ops.aten.var.correction", .overloads = SPREAD_OVERLOADS("var"), .methods = "var", .params = SPREAD, .shape = spread_shape, .reference = var_reference},
    {.id = "std", .functions = "torch.std|torch.ops.aten.std.correction", .overloads = SPREAD_OVERLOADS("std"), .methods = "std", .params = SPREAD, .shape = spread_shape, .reference = std_reference},
    {.id = "vector_norm", .functions = "torch.linalg.vector_norm|torch.linalg.norm|torch._C._linalg.linalg_vector_norm|torch.norm|torch.functional.norm|torch.ops.aten.linalg_vector_norm.default",
     .methods = "norm", .params = "input/x/self/A|ord/p|dim/axis|keepdim", .shape = norm_shape, .reference = norm_reference},
};
// clang-format on

const op_table tare__reduce_ops = OP_TABLE(rows);
