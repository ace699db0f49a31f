// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Activations; most are elementwise functions.
#include <math.h>
#include <string.h>

#include "core/math/f32.h"
#include "core/math/f64.h"
#include "core/math/rows.h"
#include "ops/compose.h"
#include "ops/families/element.h"
#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/parts.h"

VECTOR_ELEMENT(relu, RELU)
VECTOR_ELEMENT(relu6, RELU6)
VECTOR_ELEMENT_WITH(hardtanh, CLAMP, -1, 1)
VECTOR_ELEMENT_WITH(clamp_float, CLAMP, -HUGE_VAL, HUGE_VAL)
VECTOR_ELEMENT(sigmoid, SIGMOID)
VECTOR_ELEMENT(tanh, TANH)
VECTOR_ELEMENT(hardsigmoid, HARDSIGMOID)
VECTOR_ELEMENT(hardswish, HARDSWISH)
VECTOR_ELEMENT_WITH(leaky_relu, LEAKY_RELU, 0.01)
VECTOR_ELEMENT_WITH(elu, ELU, 1, 1, 1)
VECTOR_ELEMENT_WITH(celu, CELU, 1)
VECTOR_ELEMENT(selu, SELU)
VECTOR_ELEMENT(silu, SILU)
VECTOR_ELEMENT(mish, MISH)
ELEMENT_WITH(softplus, v *p[0] > p[1] ? v : tare__log1pf(tare__expf(v * p[0])) / p[0], 1, 20)
ELEMENT(log_sigmoid, (v < 0 ? v : 0.0f) - tare__log1pf(tare__expf(-fabsf(v))))
ELEMENT_WITH(threshold, v <= p[0] ? p[1] : v, 0, 0)
ELEMENT(softsign, v / (1.0f + fabsf(v)))
ELEMENT_WITH(hardshrink, v >= -p[0] && v <= p[0] ? 0.0f : v, 0.5)
ELEMENT_WITH(softshrink, v > p[0] ? v - p[0] : v < -p[0] ? v + p[0] : 0.0f, 0.5)
VECTOR_ELEMENT(tanhshrink, TANHSHRINK)

static tare_status clamp_reference(op_call *call) {
    const tare_tensor *x;
    double low, high;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (x->dtype == TARE_FLOAT32) return clamp_float_reference(call);
    TARE_TRY(tare__call_double(call, 1, -HUGE_VAL, &low));
    TARE_TRY(tare__call_double(call, 2, HUGE_VAL, &high));
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < x->count; i++) {
        const double v = tare__tensor_get(x, i), bounded = v < low ? low : v;
        tare__tensor_set(y, i, bounded > high ? high : bounded);
    }
    return TARE_OK;
}

static const op_element *choose_gelu(const op_call *call);
static const op_element gelu_element = {.kind = ELEMENT_GELU, .choose = choose_gelu};
static const op_element gelu_tanh_element = {.kind = ELEMENT_GELU_TANH};

static const op_element *choose_gelu(const op_call *call) {
    op_call quiet = *call;
    const char *approximate;
    quiet.err = NULL;
    if (tare__call_text(&quiet, 1, "none", &approximate) != TARE_OK) return NULL;
    if (strcmp(approximate, "none") == 0) return &gelu_element;
    return strcmp(approximate, "tanh") == 0 ? &gelu_tanh_element : NULL;
}

static tare_status gelu_reference(op_call *call) {
    const char *approximate;
    TARE_TRY(tare__call_text(call, 1, "none", &approximate));
    const op_element *element = choose_gelu(call);
    if (element != NULL) return tare__element_apply(call, element);
    return tare__call_fail(call, "approximate must be 'none' or 'tanh', found '%s'", approximate);
}

// --- prelu: one slope, or one per channel (dimension 1) ---

static tare_status prelu_reference(op_call *call) {
    const tare_tensor *x, *weight;
    TARE_TRY(tare__need_float(call, 0, &x));
    TARE_TRY(tare__need_float(call, 1, &weight));
    const int64_t channels = x->ndim >= 2 ? x->shape[1] : 1;
    if (weight->count != 1 && weight->count != channels)
        return tare__call_fail(call, "%lld slopes for %lld channels", (long long)weight->count,
                               (long long)channels);
    const int64_t inner = tare__inner_count(x, 1);
    const float *from = tare__f32(x), *slope = tare__f32(weight);
    float *to = tare__f32(tare__call_out(call));
    for (int64_t i = 0; i < x->count; i++) {
        const float s = slope[weight->count == 1 ? 0 : i / inner % channels];
        to[i] = from[i] > 0 ? from[i] : from[i] * s;
    }
    return TARE_OK;
}

// --- softmax ---

static void run_softmax(const row_call *c, const row_functions *k, const float *x, float *y) {
    const size_t count = (size_t)c->count;
    float top, sum;
    k->greatest(x, count, &top);
    k->exponentials(x, count, top, y, &sum);
    k->divide(y, count, sum, y);
}

static void run_log_softmax(const row_call *c, const row_functions *k, const float *x, float *y) {
    const size_t count = (size_t)c->count;
    float top, sum;
    k->greatest(x, count, &top);
    k->exponentials(x, count, top, y, &sum);
    k->subtract(x, count, top, tare__logf(sum), y);
}

// Rows along a dimension whose elements are `step` apart; they are copied to contiguous memory if
// step is not 1.
typedef struct dimension_rows {
    row_call call;
    const float *x;
    float *y;
    int64_t step;
    float *from, *to;
} dimension_rows;

static void run_along(const dimension_rows *s, int64_t at) {
    const bool is_apart = s->step != 1;
    const float *x = is_apart ? s->from : s->x + at;
    float *y = is_apart ? s->to : s->y + at;
    for (int64_t i = 0; is_apart && i < s->call.count; i++) s->from[i] = s->x[at + i * s->step];
    s->call.run(&s->call, &tare__scalar_rows, x, y);
    for (int64_t i = 0; is_apart && i < s->call.count; i++) s->y[at + i * s->step] = y[i];
}

// If `dtype` differs from the input's, the input is converted first.
static tare_status softmax_shape(op_call *call) {
    const tare_tensor *x;
    tare_dtype dtype;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (x->q != NULL || !tare__call_given(call, 3)) return tare__shape_same_float(call);
    TARE_TRY(tare__call_dtype(call, 3, TARE_FLOAT32, &dtype));
    if (dtype != TARE_FLOAT32 && dtype != TARE_FLOAT64 && dtype != x->dtype)
        return tare__call_fail(call, "dtype %s is not supported", tare_dtype_name(dtype));
    return tare__call_result(call, dtype, x->ndim, x->shape, NULL);
}

// Softmax of one row in double, for any dtype: rarely hot.
static void softmax_row(const tare_tensor *x, tare_tensor *y, int64_t at, int64_t count,
                        int64_t step, bool logarithm) {
    double top = -HUGE_VAL, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double v = tare__tensor_get(x, at + i * step);
        top = v > top || isnan(v) ? v : top;
    }
    for (int64_t i = 0; i < count; i++) sum += tare__exp(tare__tensor_get(x, at + i * step) - top);
    for (int64_t i = 0; i < count; i++) {
        const double v = tare__tensor_get(x, at + i * step) - top;
        tare__tensor_set(y, at + i * step, logarithm ? v - tare__log(sum) : tare__exp(v) / sum);
    }
}

typedef struct softmax_rows {
    const tare_tensor *x;
    int64_t count, inner, rows; // elements of a row, which are `inner` apart
    bool is_float;
} softmax_rows;

static tare_status read_softmax(op_call *call, softmax_rows *s) {
    const tare_tensor *x, *out = tare__call_out(call);
    *s = (softmax_rows){0};
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    const bool is_float = x->dtype == TARE_FLOAT32 && out->dtype == TARE_FLOAT32;
    if (!is_float && !tare__call_given(call, 3)) TARE_TRY(tare__need_float(call, 0, &x));
    // Without a dimension torch takes 0 for 0, 1 and 3 dimensions, else 1.
    const int64_t implicit = x->ndim == 0 || x->ndim == 1 || x->ndim == 3 ? 0 : 1;
    int dim;
    TARE_TRY(tare__call_dim(call, 1, implicit, x->ndim, &dim));
    *s = (softmax_rows){.x = x,
                        .count = x->ndim == 0 ? 1 : x->shape[dim],
                        .inner = tare__inner_count(x, dim),
                        .is_float = is_float};
    s->rows = x->count == 0 ? 0 : x->count / s->count;
    return TARE_OK;
}

// Rows of few elements that lie side by side: their elements are computed together, in the order of
// run_softmax and run_log_softmax.
static void run_beside(const softmax_rows *s, const float *x, float *y, int64_t width,
                       bool logarithm) {
    float top[PART_BLOCK], sum[PART_BLOCK], distance[PART_BLOCK], unused;
    for (int64_t k = 0; k < width; k++) {
        top[k] = -INFINITY;
        sum[k] = 0;
    }
    for (int64_t i = 0; i < s->count; i++)
        for (int64_t k = 0; k < width; k++) {
            const float v = x[i * s->inner + k];
            top[k] = v > top[k] ? v : top[k];
        }
    for (int64_t i = 0; i < s->count; i++) {
        float *to = y + i * s->inner;
        for (int64_t k = 0; k < width; k++) distance[k] = x[i * s->inner + k] - top[k];
        tare__scalar_rows.exponentials(distance, (size_t)width, 0, to, &unused);
        for (int64_t k = 0; k < width; k++) sum[k] += to[k];
    }
    for (int64_t k = 0; k < width && logarithm; k++) sum[k] = tare__logf(sum[k]);
    for (int64_t i = 0; i < s->count; i++) {
        const float *from = x + i * s->inner;
        float *to = y + i * s->inner;
        for (int64_t k = 0; k < width; k++)
            to[k] = logarithm ? (from[k] - top[k]) - sum[k] : to[k] / sum[k];
    }
}

static tare_status softmax_some(op_call *call, bool logarithm, int64_t first, int64_t end) {
    softmax_rows s;
    TARE_TRY(read_softmax(call, &s));
    float *y = tare__f32(tare__call_out(call));
    dimension_rows d = {
        .call = {.count = s.count, .run = logarithm ? run_log_softmax : run_softmax},
        .x = tare__f32(s.x),
        .y = y,
        .step = s.inner};
    d.from = tare__arena_array(call->memory, (size_t)s.count + 1, 2 * sizeof *d.from);
    if (d.from == NULL) return tare__out_of_memory(call->err);
    d.to = d.from + s.count;
    for (int64_t row = first, width; row < end; row += width) {
        const int64_t at = row / s.inner * s.count * s.inner + row % s.inner;
        const int64_t beside = s.inner - row % s.inner, left = end - row;
        width = beside < left ? beside : left;
        if (width > PART_BLOCK) width = PART_BLOCK;
        if (s.count >= ROW_FEW_LANES || width == 1) {
            width = 1;
            run_along(&d, at);
        } else {
            run_beside(&s, d.x + at, y + at, width, logarithm);
        }
    }
    return TARE_OK;
}

static tare_status softmax_of(op_call *call, bool logarithm) {
    softmax_rows s;
    tare_tensor *out = tare__call_out(call);
    TARE_TRY(read_softmax(call, &s));
    if (s.is_float) return softmax_some(call, logarithm, 0, s.rows);
    for (int64_t row = 0; row < s.rows; row++)
        softmax_row(s.x, out, row / s.inner * s.count * s.inner + row % s.inner, s.count, s.inner,
                    logarithm);
    return TARE_OK;
}

#define SOFTMAX(name, logarithm)                                                                   \
    static tare_status name##_part(op_call *call, int64_t first, int64_t end) {                    \
        return softmax_some(call, logarithm, first, end);                                          \
    }                                                                                              \
    static tare_status name##_parts(op_call *call, call_parts *out) {                              \
        softmax_rows s;                                                                            \
        TARE_TRY(read_softmax(call, &s));                                                          \
        if (s.is_float) *out = (call_parts){.count = s.rows, .work = s.count, .run = name##_part}; \
        return TARE_OK;                                                                            \
    }                                                                                              \
    static tare_status name##_reference(op_call *call) {                                           \
        return softmax_of(call, logarithm);                                                        \
    }
SOFTMAX(softmax, false)
SOFTMAX(log_softmax, true)

// out->run is set only for a softmax over the last dimension, which must be given, with a `dtype`
// that is absent or float32.
static tare_status read_rows(op_call *call, row_call *out) {
    int dim = 0;
    *out = (row_call){0};
    TARE_TRY(tare__call_need_tensor(call, 0, &out->x));
    const bool converts = tare__call_given(call, 3) && (call->param[3]->kind != VALUE_DTYPE ||
                                                        call->param[3]->as.dtype != TARE_FLOAT32);
    if (out->x->ndim == 0 || !tare__call_given(call, 1) || converts) return TARE_OK;
    TARE_TRY(tare__call_dim(call, 1, 0, out->x->ndim, &dim));
    out->count = out->results = out->x->shape[dim];
    if (dim == out->x->ndim - 1) out->run = run_softmax;
    return TARE_OK;
}

static tare_status read_log_rows(op_call *call, row_call *out) {
    TARE_TRY(read_rows(call, out));
    if (out->run != NULL) out->run = run_log_softmax;
    out->reads_again = true;
    return TARE_OK;
}

// Softmax that returns 0 for rows that are -inf throughout.
static value safe_softmax(composer *c) {
    const value dim = tare__int(tare__compose_int(c, 1, -1));
    const value hidden = COMPOSE(c, "eq", tare__compose_param(c, 0), tare__float(-INFINITY));
    const value all = COMPOSE(c, "all", hidden, dim, tare__bool(true));
    return COMPOSE(c, "masked_fill", COMPOSE(c, "softmax", tare__compose_param(c, 0), dim), all,
                   tare__float(0));
}

// --- rows ---

#define ACTIVATION(name, names, method_names, parameters, more)                                    \
    {                                                                                              \
        .id = #name, .functions = names, .methods = method_names, .params = parameters,            \
        .traits = OP_ELEMENTWISE | (more), .shape = tare__shape_same,                              \
        .reference = name##_reference, .element = &name##_element                                  \
    }
#define FIXED(name, names, method_names, parameters, s, z)                                         \
    {                                                                                              \
        .id = #name, .functions = names, .methods = method_names, .params = parameters,            \
        .traits = OP_ELEMENTWISE, .fixed_scale = (s), .fixed_zero_point = (z),                     \
        .shape = tare__shape_same_float, .reference = name##_reference, .element = &name##_element \
    }
#define SAME_QPARAMS OP_KEEPS_QPARAMS
#define BOUND        OP_KEEPS_QPARAMS | OP_BOUNDS

// clang-format off
static const op_info rows[] = {
    ACTIVATION(relu, "torch.nn.functional.relu|torch.relu|torch.relu_|torch.ops.aten.relu.default|torch.ops.aten.relu_.default",
               "relu|relu_", "input/self|inplace", BOUND),
    ACTIVATION(relu6, "torch.nn.functional.relu6|torch._C._nn.relu6|torch.ops.aten.relu6.default|torch.ops.aten.relu6_.default", NULL, "input/self|inplace", BOUND),
    ACTIVATION(hardtanh, "torch.nn.functional.hardtanh|torch._C._nn.hardtanh_|torch.ops.aten.hardtanh.default|torch.ops.aten.hardtanh_.default",
               NULL, "input/self|min_val|max_val|inplace", BOUND),
    {.id = "clamp", .functions = "torch.clamp|torch.clip|torch.clamp_|torch.ops.aten.clamp|torch.ops.aten.clamp.default|torch.ops.aten.clamp_.default|torch.ops.aten.clip.default|torch.ops.aten.clip_.default", .methods = "clamp|clamp_|clip",
     .overloads = "torch.ops.aten.clamp_min.default torch.ops.aten.clamp_min_.default "
                  "torch.ops.aten.clamp_max.default torch.ops.aten.clamp_max_.default",
     .params = "input/self|min|max", .traits = OP_ELEMENTWISE | BOUND, .shape = tare__shape_same, .reference = clamp_reference,
     .element = &clamp_float_element},
    FIXED(sigmoid, "torch.sigmoid|torch.nn.functional.sigmoid|torch.sigmoid_|torch.ops.aten.sigmoid.default|torch.ops.aten.sigmoid_.default", "sigmoid|sigmoid_",
          "input/self", 1.0f / 256, 0),
    FIXED(tanh, "torch.tanh|torch.nn.functional.tanh|torch.tanh_|torch.ops.aten.tanh.default|torch.ops.aten.tanh_.default", "tanh|tanh_", "input/self", 2.0f / 256, 128),
    FIXED(hardsigmoid, "torch.nn.functional.hardsigmoid|torch._C._nn.hardsigmoid|torch.ops.aten.hardsigmoid.default|torch.ops.aten.hardsigmoid_.default",
          NULL, "input/self|inplace", 1.0f / 256, 0),
    ACTIVATION(hardswish, "torch.nn.functional.hardswish|torch._C._nn.hardswish|torch.ops.aten.hardswish.default|torch.ops.aten.hardswish_.default",
               NULL, "input/self|inplace", 0),
    ACTIVATION(leaky_relu, "torch.nn.functional.leaky_relu|torch._C._nn.leaky_relu_|torch._C._nn.leaky_relu|torch.ops.aten.leaky_relu.default|torch.ops.aten.leaky_relu_.default",
               NULL, "input/self|negative_slope|inplace", 0),
    {.id = "elu", .functions = "torch.nn.functional.elu|torch._C._nn.elu_|torch.ops.aten.elu.default|torch.ops.aten.elu_.default",
     .overloads = "torch.nn.functional.elu(input|alpha|inplace)", // which has no scales
     .params = "input/self|alpha|scale|input_scale|inplace", .traits = OP_ELEMENTWISE, .shape = tare__shape_same, .reference = elu_reference, .element = &elu_element},
    ACTIVATION(celu, "torch.nn.functional.celu|torch.celu|torch.celu_|torch.ops.aten.celu.default|torch.ops.aten.celu_.default", NULL, "input/self|alpha|inplace", 0),
    ACTIVATION(selu, "torch.nn.functional.selu|torch.selu|torch.selu_|torch.ops.aten.selu.default|torch.ops.aten.selu_.default", NULL, "input/self|inplace", 0),
    {.id = "gelu", .functions = "torch._C._nn.gelu|torch.ops.aten.gelu.default|torch.ops.aten.gelu_.default", .params = "input/self|approximate",
     .traits = OP_ELEMENTWISE, .shape = tare__shape_same, .reference = gelu_reference, .element = &gelu_element},
    ACTIVATION(silu, "torch.nn.functional.silu|torch._C._nn.silu|torch.ops.aten.silu.default|torch.ops.aten.silu_.default", NULL, "input/self|inplace", 0),
    ACTIVATION(mish, "torch.nn.functional.mish|torch._C._nn.mish|torch.ops.aten.mish.default|torch.ops.aten.mish_.default", NULL, "input/self|inplace", 0),
    ACTIVATION(softplus, "torch._C._nn.softplus|torch.ops.aten.softplus.default", NULL, "input/self|beta|threshold", 0),
    ACTIVATION(log_sigmoid, "torch._C._nn.log_sigmoid|torch.ops.aten.log_sigmoid.default", NULL, "input/self", 0),
    ACTIVATION(threshold, "torch.nn.functional._threshold|torch.nn.functional.threshold|torch.threshold|torch.ops.aten.threshold.default|torch.ops.aten.threshold_.default", NULL,
               "input/self|threshold|value|inplace", SAME_QPARAMS),
    ACTIVATION(softsign, "torch.nn.functional.softsign", NULL, "input", 0),
    ACTIVATION(hardshrink, "torch.hardshrink|torch.nn.functional.hardshrink|torch.ops.aten.hardshrink.default", "hardshrink", "input/self|lambd", 0),
    ACTIVATION(softshrink, "torch._C._nn.softshrink|torch.nn.functional.softshrink|torch.ops.aten.softshrink.default", NULL, "input/self|lambd", 0),
    ACTIVATION(tanhshrink, "torch.nn.functional.tanhshrink", NULL, "input", 0),
    {.id = "prelu", .functions = "torch.prelu|torch.ops.aten.prelu.default", .methods = "prelu", .params = "input/self|weight",
     .traits = OP_ELEMENTWISE, .shape = tare__shape_same, .reference = prelu_reference},
    COMPOSED_ROW(safe_softmax, "torch.ops.aten._safe_softmax.default", NULL, "input/self|dim|dtype"),
    {.id = "softmax", .functions = "torch.nn.functional.softmax|torch.softmax", .methods = "softmax",
     .overloads = "torch.ops.aten.softmax.int torch.ops.aten._softmax.default(-half_to_float)",
     .params = "input/self|dim|_stacklevel|dtype", .traits = OP_ALONG_DIM | OP_AMPLIFIES, .shape = softmax_shape, .reference = softmax_reference, .row_function = read_rows, .parts = softmax_parts},
    {.id = "log_softmax", .functions = "torch.nn.functional.log_softmax|torch.log_softmax", .methods = "log_softmax",
     .overloads = "torch.ops.aten.log_softmax.int torch.ops.aten._log_softmax.default(-half_to_float)",
     .params = "input/self|dim|_stacklevel|dtype", .traits = OP_ALONG_DIM, .shape = softmax_shape, .reference = log_softmax_reference, .row_function = read_log_rows, .parts = log_softmax_parts},
};
// clang-format on

const op_table tare__activation_ops = OP_TABLE(rows);
