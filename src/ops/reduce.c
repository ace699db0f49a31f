// SPDX-License-Identifier: Apache-2.0
// Reductions over some or all dimensions.
#include <math.h>
#include <string.h>

#include "ops/families.h"
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
    if (tare__call_given(call, 3)) return tare__call_fail(call, "dtype is not supported");
    return tare__call_result(call, p.x->dtype, p.ndim, p.shape, NULL);
}

// Sums of integers are int64, as in torch.
static tare_status sum_shape(op_call *call) {
    reduce_plan p;
    TARE_TRY(read_reduce(call, &p));
    if (tare__call_given(call, 3)) return tare__call_fail(call, "dtype is not supported");
    const bool is_float = tare__dtype(p.x->dtype)->is_float;
    return tare__call_result(call, is_float ? p.x->dtype : TARE_INT64, p.ndim, p.shape, NULL);
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

// Accumulates in double, so that the order of a long sum hardly matters.
static tare_status reduce(op_call *call, fold f, double start, bool divides) {
    reduce_plan p;
    TARE_TRY(read_reduce(call, &p));
    tare_tensor *y = tare__call_out(call);
    double *sums = tare__arena_array(call->memory, (size_t)y->count + 1, sizeof *sums);
    if (sums == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < y->count; i++) sums[i] = start;
    for (int64_t i = 0; i < p.x->count; i++) {
        int64_t rest = i, to = 0, step = 1;
        for (int d = p.x->ndim - 1; d >= 0; d--) {
            if (!p.reduced[d]) {
                to += rest % p.x->shape[d] * step;
                step *= p.x->shape[d];
            }
            rest /= p.x->shape[d];
        }
        sums[to] = f(sums[to], tare__tensor_get(p.x, i));
    }
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

// --- rows ---

#define REDUCE(name, names, method_names, more, rule)                                              \
    {                                                                                              \
        .id = #name, .functions = names, .methods = method_names,                                  \
        .params = "input/self|dim/axis|keepdim|dtype", .traits = more, .shape = rule,              \
        .reference = name##_reference                                                              \
    }

// clang-format off
static const op_info rows[] = {
    REDUCE(mean, "torch.mean|torch.ops.aten.mean.default|torch.ops.aten.mean.dim", "mean", OP_KEEPS_QPARAMS | OP_ON_CODES, reduce_shape),
    REDUCE(sum, "torch.sum|torch.ops.aten.sum.default|torch.ops.aten.sum.dim_IntList", "sum", 0, sum_shape),
    REDUCE(amax, "torch.amax", "amax", OP_KEEPS_QPARAMS, reduce_shape),
    REDUCE(amin, "torch.amin", "amin", OP_KEEPS_QPARAMS, reduce_shape),
};
// clang-format on

const op_table tare__reduce_ops = OP_TABLE(rows);
