// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Pooling with windows in one, two and three dimensions, and adaptive pooling to an output size.
#include <math.h>
#include <string.h>

#include "core/math/rows.h"
#include "ops/compose.h"
#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/rules.h"

typedef float (*pool_function)(const pool_call *p, const float *plane, const pool_window *w);

static tare_status read_input(op_call *call, int dims, pool_call *p) {
    *p = (pool_call){.dims = dims, .planes = 1};
    TARE_TRY(tare__need_float(call, 0, &p->x));
    if (p->x->ndim < dims + 1 || p->x->ndim > dims + 2)
        return tare__call_fail(call, "input must have %d or %d dimensions, found shape %s",
                               dims + 1, dims + 2, tare__call_shape_text(call, p->x));
    for (int d = 0; d < p->x->ndim - dims; d++) p->planes *= p->x->shape[d];
    for (int d = 0; d < 3; d++) {
        const int axis = p->x->ndim - 3 + d;
        p->in[d] = d < 3 - dims ? 1 : p->x->shape[axis];
        if (p->in[d] > INT32_MAX)
            return tare__call_fail(call, "size %lld is out of range", (long long)p->in[d]);
        p->out[d] = p->kernel[d] = p->stride[d] = p->dilation[d] = 1;
    }
    return TARE_OK;
}

static tare_status read_sizes(op_call *call, size_t i, int dims, int64_t otherwise, int64_t least,
                              int64_t out[3]) {
    TARE_TRY(tare__call_ints(call, i, (size_t)dims, otherwise, out + 3 - dims));
    for (int d = 3 - dims; d < 3; d++)
        if (out[d] < least || out[d] > INT32_MAX)
            return tare__call_fail(call, "size %lld is out of range", (long long)out[d]);
    return TARE_OK;
}

// In ceil mode the last window may extend beyond the end, but must begin within input or padding.
static tare_status choose_out(op_call *call, pool_call *p) {
    for (int d = 3 - p->dims; d < 3; d++) {
        const int64_t room = p->in[d] + 2 * p->pad[d] - p->dilation[d] * (p->kernel[d] - 1) - 1;
        const int64_t more =
            p->ceil_mode ? p->stride[d] - 1 : 0; // counts a window that extends beyond the input
        if (room + more < 0 || 2 * p->pad[d] > p->kernel[d])
            return tare__call_fail(call, "kernel %lld with padding %lld does not fit input %s",
                                   (long long)p->kernel[d], (long long)p->pad[d],
                                   tare__call_shape_text(call, p->x));
        p->out[d] = (room + more) / p->stride[d] + 1;
        if (p->ceil_mode && (p->out[d] - 1) * p->stride[d] >= p->in[d] + p->pad[d]) p->out[d]--;
    }
    return TARE_OK;
}

// The stride defaults to the kernel, also for an empty list, which torch passes on.
static tare_status read_window(op_call *call, pool_call *p, size_t padding) {
    TARE_TRY(read_sizes(call, 1, p->dims, 1, 1, p->kernel));
    const value *stride = call->param[2];
    const bool is_empty = stride == NULL || stride->kind == VALUE_NONE ||
                          (tare__value_has_items(stride) && stride->count == 0);
    if (is_empty)
        memcpy(p->stride, p->kernel, sizeof p->stride);
    else
        TARE_TRY(read_sizes(call, 2, p->dims, 1, 1, p->stride));
    return read_sizes(call, padding, p->dims, 0, 0, p->pad);
}

static tare_status read_max(op_call *call, int dims, pool_call *p) {
    TARE_TRY(read_input(call, dims, p));
    TARE_TRY(read_window(call, p, 3));
    TARE_TRY(read_sizes(call, 4, dims, 1, 1, p->dilation));
    TARE_TRY(tare__call_bool(call, 5, false, &p->ceil_mode));
    TARE_TRY(tare__call_bool(call, 6, false, &p->has_indices));
    return choose_out(call, p);
}

static tare_status read_avg(op_call *call, int dims, pool_call *p) {
    TARE_TRY(read_input(call, dims, p));
    TARE_TRY(read_window(call, p, 3));
    TARE_TRY(tare__call_bool(call, 4, false, &p->ceil_mode));
    TARE_TRY(tare__call_bool(call, 5, true, &p->count_pad));
    TARE_TRY(tare__call_int(call, 6, 0, &p->divisor));
    return choose_out(call, p);
}

// None in the output size means the input's size.
static tare_status read_adaptive(op_call *call, int dims, pool_call *p) {
    TARE_TRY(read_input(call, dims, p));
    const value *v = call->param[1];
    const bool is_list = v != NULL && (v->kind == VALUE_LIST || v->kind == VALUE_TUPLE);
    if (v == NULL || (is_list && v->count != (uint32_t)dims && v->count != 1))
        return tare__call_fail(call, "output_size must be an int or %d ints", dims);
    for (int d = 0; d < dims; d++) {
        const value *size = is_list ? &v->as.items[v->count == 1 ? 0 : d] : v;
        double number = (double)p->in[3 - dims + d];
        if (size->kind != VALUE_NONE && !tare__call_number(size, &number))
            return tare__call_fail(call, "output_size must be an int or %d ints", dims);
        if (!(number >= 0 && number <= INT32_MAX))
            return tare__call_fail(call, "output_size is out of range");
        p->out[3 - dims + d] = (int64_t)number;
    }
    return TARE_OK;
}

static tare_status read_adaptive_max(op_call *call, int dims, pool_call *p) {
    TARE_TRY(read_adaptive(call, dims, p));
    return tare__call_bool(call, 2, false, &p->has_indices);
}

static tare_status pool_result(op_call *call, const pool_call *p) {
    int64_t shape[TARE_MAX_DIMS];
    memcpy(shape, p->x->shape, sizeof shape);
    for (int d = 0; d < p->dims; d++) shape[p->x->ndim - p->dims + d] = p->out[3 - p->dims + d];
    if (!p->has_indices) return tare__call_result(call, TARE_FLOAT32, p->x->ndim, shape, NULL);
    return tare__call_result_pair(call, TARE_FLOAT32, TARE_INT64, p->x->ndim, shape);
}

// --- windows ---

static pool_window fixed_window(const pool_call *p, const int64_t at[3]) {
    pool_window w = {.area = 1};
    for (int d = 0; d < 3; d++) {
        const int64_t begin = at[d] * p->stride[d] - p->pad[d];
        const int64_t end = begin + p->dilation[d] * (p->kernel[d] - 1) + 1;
        const int64_t limit = p->in[d] + p->pad[d];
        w.area *= (double)((end < limit ? end : limit) - begin);
        // The first element inside the image on the dilated grid.
        const int64_t skipped = begin < 0 ? (-begin + p->dilation[d] - 1) / p->dilation[d] : 0;
        w.begin[d] = begin + skipped * p->dilation[d];
        w.end[d] = end < p->in[d] ? end : p->in[d];
    }
    return w;
}

static pool_window adaptive_window(const pool_call *p, const int64_t at[3]) {
    pool_window w = {.area = 1};
    for (int d = 0; d < 3; d++) {
        w.begin[d] = at[d] * p->in[d] / p->out[d];
        w.end[d] = ((at[d] + 1) * p->in[d] + p->out[d] - 1) / p->out[d];
        w.area *= (double)(w.end[d] - w.begin[d]);
    }
    return w;
}

// Selects values instead of branching, because comparisons depend on data and are hard to predict.
// NaN is greater than any number; the last NaN wins.
static float greatest(const pool_call *p, const float *plane, const pool_window *w) {
    float best = -INFINITY, nan = 0;
    for (int64_t i = w->begin[0]; i < w->end[0]; i += p->dilation[0])
        for (int64_t j = w->begin[1]; j < w->end[1]; j += p->dilation[1])
            for (int64_t k = w->begin[2]; k < w->end[2]; k += p->dilation[2]) {
                const float v = plane[(i * p->in[1] + j) * p->in[2] + k];
                best = v > best ? v : best;
                if (isnan(v)) nan = v;
            }
    return isnan(nan) ? nan : best;
}

// The index in the plane of the maximum: the first of equal maxima, or the last NaN.
static int64_t index_of_greatest(const pool_call *p, const float *plane, const pool_window *w) {
    int64_t best = (w->begin[0] * p->in[1] + w->begin[1]) * p->in[2] + w->begin[2];
    for (int64_t i = w->begin[0]; i < w->end[0]; i += p->dilation[0])
        for (int64_t j = w->begin[1]; j < w->end[1]; j += p->dilation[1])
            for (int64_t k = w->begin[2]; k < w->end[2]; k += p->dilation[2]) {
                const int64_t at = (i * p->in[1] + j) * p->in[2] + k;
                if (plane[at] > plane[best] || isnan(plane[at])) best = at;
            }
    return best;
}

static float average(const pool_call *p, const float *plane, const pool_window *w) {
    float sum = 0;
    for (int64_t i = w->begin[0]; i < w->end[0]; i++)
        for (int64_t j = w->begin[1]; j < w->end[1]; j++)
            for (int64_t k = w->begin[2]; k < w->end[2]; k++)
                sum += plane[(i * p->in[1] + j) * p->in[2] + k];
    return sum / (float)tare__pool_divisor(p, w);
}

// If one window covers the plane, this is torch's mean. Else the sum is divided by the sizes one
// after the other.
static float adaptive_average(const pool_call *p, const float *plane, const pool_window *w) {
    float sum = 0;
    if (p->out[0] * p->out[1] * p->out[2] == 1) {
        f32_total__scalar(plane, (size_t)(p->in[0] * p->in[1] * p->in[2]), &sum);
        return sum / (float)tare__pool_divisor(p, w);
    }
    for (int64_t i = w->begin[0]; i < w->end[0]; i++)
        for (int64_t j = w->begin[1]; j < w->end[1]; j++)
            for (int64_t k = w->begin[2]; k < w->end[2]; k++)
                sum += plane[(i * p->in[1] + j) * p->in[2] + k];
    for (int d = 0; d < 3; d++) sum /= (float)(w->end[d] - w->begin[d]);
    return sum;
}

static void run_windows(op_call *call, const pool_call *p, pool_function f,
                        pool_window (*window_at)(const pool_call *p, const int64_t at[3])) {
    const int64_t in = p->in[0] * p->in[1] * p->in[2], out = p->out[0] * p->out[1] * p->out[2];
    const float *x = tare__f32(p->x);
    const value *items = p->has_indices ? call->result.as.items : NULL;
    float *y = tare__f32(items != NULL ? items[0].as.tensor : tare__call_out(call));
    int64_t *indices = items != NULL ? items[1].as.tensor->data : NULL;
    for (int64_t i = 0; i < out; i++) {
        const int64_t at[] = {i / p->out[2] / p->out[1], i / p->out[2] % p->out[1], i % p->out[2]};
        const pool_window w = window_at(p, at);
        for (int64_t plane = 0; plane < p->planes; plane++) {
            y[plane * out + i] = f(p, x + plane * in, &w);
            if (indices != NULL)
                indices[plane * out + i] = index_of_greatest(p, x + plane * in, &w);
        }
    }
}

// --- for executors ---

static const struct {
    const char *prefix; // of the row's id, before the number of dimensions
    tare_status (*read)(op_call *call, int dims, pool_call *p);
    bool is_max, is_adaptive;
} readers[] = {
    {"max_pool", read_max, true, false},
    {"avg_pool", read_avg, false, false},
    {"adaptive_avg_pool", read_adaptive, false, true},
    {"adaptive_max_pool", read_adaptive_max, true, true},
};

tare_status tare__pool_read(op_call *call, pool_call *out, bool *known) {
    const char *id = call->op->id;
    *known = false;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        const size_t length = strlen(readers[i].prefix);
        if (strncmp(id, readers[i].prefix, length) != 0 || strlen(id) != length + 2) continue;
        TARE_TRY(readers[i].read(call, id[length] - '0', out));
        *known = !out->has_indices; // no executor supports indices
        out->is_max = readers[i].is_max;
        out->is_adaptive = readers[i].is_adaptive;
    }
    return TARE_OK;
}

pool_window tare__pool_window_at(const pool_call *p, const int64_t at[3]) {
    return p->is_adaptive ? adaptive_window(p, at) : fixed_window(p, at);
}

double tare__pool_divisor(const pool_call *p, const pool_window *w) {
    int64_t count = 1;
    for (int d = 0; d < 3; d++) count *= w->end[d] - w->begin[d];
    if (p->divisor != 0) return (double)p->divisor;
    return p->count_pad ? w->area : (double)count;
}

static bool keeps(const pool_call *p, int d) {
    return p->in[d] == p->out[d] &&
           (p->is_adaptive || (p->kernel[d] == 1 && p->stride[d] == 1 && p->pad[d] == 0));
}

bool tare__pool_keeps_last(const pool_call *p) {
    enum { MANY = 16 }; // as many as a vector has
    const bool has_channels = p->x->ndim == p->dims + 2;
    int64_t kept = 1;
    for (int d = 2; d > 0 && keeps(p, d); d--) kept *= p->in[d]; // of a tensor that exists
    return kept >= MANY || (kept > 1 && (!has_channels || kept >= p->x->shape[1]));
}

void tare__pool_join_channels(pool_call *p, size_t *channels) {
    for (int d = 2; d > 0 && keeps(p, d); d--) {
        *channels *= (size_t)p->in[d];
        p->in[d] = p->out[d] = p->kernel[d] = p->stride[d] = p->dilation[d] = 1;
    }
}

// --- rows ---

// Defines KIND##n##d_shape and KIND##n##d from a reader of the parameters, a function that returns
// windows, and a function of a window.
#define POOL(kind, n, reader, window_at, function)                                                 \
    static tare_status kind##n##d_shape(op_call *call) {                                           \
        pool_call p;                                                                               \
        TARE_TRY(reader(call, n, &p));                                                             \
        return pool_result(call, &p);                                                              \
    }                                                                                              \
    static tare_status kind##n##d(op_call *call) {                                                 \
        pool_call p;                                                                               \
        TARE_TRY(reader(call, n, &p));                                                             \
        run_windows(call, &p, function, window_at);                                                \
        return TARE_OK;                                                                            \
    }
#define POOLS(n)                                                                                   \
    POOL(max_pool, n, read_max, fixed_window, greatest)                                            \
    POOL(avg_pool, n, read_avg, fixed_window, average)                                             \
    POOL(adaptive_avg_pool, n, read_adaptive, adaptive_window, adaptive_average)                   \
    POOL(adaptive_max_pool, n, read_adaptive_max, adaptive_window, greatest)
POOLS(1)
POOLS(2)
POOLS(3)

// --- variants of aten that also return indices, which are omitted if the graph ignores them ---

#define P(i) tare__compose_param(c, i)

// Converts integers to float, which is exact up to 24 bits.
static value in_float(composer *c) {
    const value x = P(0);
    const bool is_integer = x.kind == VALUE_TENSOR && x.as.tensor->q == NULL &&
                            !tare__dtype(x.as.tensor->dtype)->is_float;
    return is_integer ? COMPOSE(c, "to", x, tare__dtype_value(TARE_FLOAT32)) : x;
}

// Converts values to the input's dtype and returns (values, indices). `made` is a tensor if only
// the first item is used, else a pair.
static value with_indices(composer *c, value made) {
    const value x = P(0);
    value values = c->call->only_first ? made : tare__compose_item(c, made, 0);
    if (c->status != TARE_OK || x.kind != VALUE_TENSOR) return made;
    if (x.as.tensor->q == NULL && !tare__dtype(x.as.tensor->dtype)->is_float)
        values = COMPOSE(c, "to", values, tare__dtype_value(x.as.tensor->dtype));
    if (c->call->only_first) return tare__compose_with_nones(c, values, 2);
    return tare__compose_pair(c, values, tare__compose_item(c, made, 1));
}

static value max_pool_with_indices(composer *c, const char *id) {
    return with_indices(c, COMPOSE(c, id, in_float(c), P(1), P(2),
                                   tare__compose_param_or(c, 3, tare__int(0)),
                                   tare__compose_param_or(c, 4, tare__int(1)),
                                   tare__compose_param_or(c, 5, tare__bool(false)),
                                   tare__bool(!c->call->only_first)));
}

#define MAX_POOL_WITH_INDICES(n)                                                                   \
    static value max_pool##n##d_with_indices(composer *c) {                                        \
        return max_pool_with_indices(c, "max_pool" #n "d");                                        \
    }                                                                                              \
    static value adaptive_max_pool##n##d_with_indices(composer *c) {                               \
        return with_indices(c, COMPOSE(c, "adaptive_max_pool" #n "d", in_float(c), P(1),           \
                                       tare__bool(!c->call->only_first)));                         \
    }
MAX_POOL_WITH_INDICES(1)
MAX_POOL_WITH_INDICES(2)
MAX_POOL_WITH_INDICES(3)

// --- rows ---

#define ATEN(name) "torch.ops.aten." name ".default"
#define ROW(kind, n, names, parameters, more)                                                      \
    {                                                                                              \
        .id = #kind #n "d", .functions = names, .params = parameters,                              \
        .traits = OP_KEEPS_QPARAMS | OP_ON_QUANTIZED | OP_BY_SAMPLE | (more),                      \
        .shape = kind##n##d_shape, .reference = kind##n##d                                         \
    }
#define INDEXED_ROW(name, function, parameters)                                                    \
    {                                                                                              \
        .id = #name "_with_indices", .functions = ATEN(function), .params = parameters,            \
        .forward = name##_with_indices                                                             \
    }
#define MAX_WITH_INDICES_PARAMS "input/self|kernel_size|stride|padding|dilation|ceil_mode"
#define MAX_PARAMS              "input/self|kernel_size|stride|padding|dilation|ceil_mode|return_indices"
#define AVG_PARAMS                                                                                 \
    "input/self|kernel_size|stride|padding|ceil_mode|count_include_pad|divisor_override"
#define ADAPTIVE_PARAMS     "input/self|output_size"
#define ADAPTIVE_MAX_PARAMS "input/self|output_size|return_indices"

// clang-format off
static const op_info rows[] = {
    ROW(max_pool, 1, "torch.nn.functional.max_pool1d|torch.max_pool1d|" ATEN("max_pool1d"), MAX_PARAMS, OP_GREATEST),
    ROW(max_pool, 2, "torch.nn.functional.max_pool2d|torch.max_pool2d|" ATEN("max_pool2d"), MAX_PARAMS, OP_GREATEST),
    ROW(max_pool, 3, "torch.nn.functional.max_pool3d|torch.max_pool3d|" ATEN("max_pool3d"), MAX_PARAMS, OP_GREATEST),
    ROW(avg_pool, 1, "torch.avg_pool1d|" ATEN("avg_pool1d"), AVG_PARAMS, 0),
    ROW(avg_pool, 2, "torch._C._nn.avg_pool2d|" ATEN("avg_pool2d"), AVG_PARAMS, 0),
    ROW(avg_pool, 3, "torch._C._nn.avg_pool3d|" ATEN("avg_pool3d"), AVG_PARAMS, 0),
    ROW(adaptive_avg_pool, 1, "torch.adaptive_avg_pool1d|" ATEN("adaptive_avg_pool1d"), ADAPTIVE_PARAMS, 0),
    ROW(adaptive_avg_pool, 2, "torch.nn.functional.adaptive_avg_pool2d|" ATEN("adaptive_avg_pool2d") "|" ATEN("_adaptive_avg_pool2d"), ADAPTIVE_PARAMS, 0),
    ROW(adaptive_avg_pool, 3, "torch.nn.functional.adaptive_avg_pool3d|" ATEN("adaptive_avg_pool3d") "|" ATEN("_adaptive_avg_pool3d"), ADAPTIVE_PARAMS, 0),
    ROW(adaptive_max_pool, 1, "torch.nn.functional.adaptive_max_pool1d", ADAPTIVE_MAX_PARAMS, 0),
    ROW(adaptive_max_pool, 2, "torch.nn.functional.adaptive_max_pool2d", ADAPTIVE_MAX_PARAMS, 0),
    ROW(adaptive_max_pool, 3, "torch.nn.functional.adaptive_max_pool3d", ADAPTIVE_MAX_PARAMS, 0),
    INDEXED_ROW(max_pool1d, "max_pool1d_with_indices", MAX_WITH_INDICES_PARAMS),
    INDEXED_ROW(max_pool2d, "max_pool2d_with_indices", MAX_WITH_INDICES_PARAMS),
    INDEXED_ROW(max_pool3d, "max_pool3d_with_indices", MAX_WITH_INDICES_PARAMS),
    INDEXED_ROW(adaptive_max_pool1d, "adaptive_max_pool1d", ADAPTIVE_PARAMS),
    INDEXED_ROW(adaptive_max_pool2d, "adaptive_max_pool2d", ADAPTIVE_PARAMS),
    INDEXED_ROW(adaptive_max_pool3d, "adaptive_max_pool3d", ADAPTIVE_PARAMS),
};
// clang-format on

const op_table tare__pool_ops = OP_TABLE(rows);
