// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Normalizations. All subtract a mean and divide by a standard deviation, then scale and shift per
// channel or per element; they differ in the dimensions of the mean.
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/math/f64.h"
#include "core/math/rows.h"
#include "ops/compose.h"
#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/rules.h"

// Reads a tensor parameter of `count` floats; *out is NULL if it is absent or None.
static tare_status optional_floats(op_call *call, size_t i, int64_t count, const float **out) {
    const tare_tensor *t;
    *out = NULL;
    if (!tare__call_given(call, i)) return TARE_OK;
    TARE_TRY(tare__need_float(call, i, &t));
    char name[64] = "";
    tare__op_param_name(call->op, i, name, sizeof name);
    if (t->count != count)
        return tare__call_fail(call, "%s has %lld elements, expected %lld", name,
                               (long long)t->count, (long long)count);
    *out = tare__f32(t);
    return TARE_OK;
}

typedef struct moments {
    double mean, variance; // biased
} moments;

// Mean and variance of `runs` runs of `length` elements, `step` apart. Computed in double, so that
// the order of summation hardly matters.
static moments moments_of(const float *x, int64_t runs, int64_t length, int64_t step) {
    double sum = 0, squares = 0;
    const double count = (double)(runs * length);
    for (int64_t r = 0; r < runs; r++)
        for (int64_t i = 0; i < length; i++) sum += (double)x[r * step + i];
    const double mean = sum / count;
    for (int64_t r = 0; r < runs; r++)
        for (int64_t i = 0; i < length; i++) {
            const double distance = (double)x[r * step + i] - mean;
            squares += distance * distance;
        }
    return (moments){mean, squares / count};
}

static void scale_and_shift(const float *x, float *y, int64_t count, float scale, float shift) {
    for (int64_t i = 0; i < count; i++) y[i] = x[i] * scale + shift;
}

// --- batch norm ---

enum { BN_MEAN = 1, BN_VAR, BN_WEIGHT, BN_BIAS, BN_TRAINING, BN_MOMENTUM, BN_EPS };

static tare_status batch_norm_shape(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__need_float(call, 0, &x));
    if (x->ndim < 2)
        return tare__call_fail(call, "input must have at least 2 dimensions, found shape %s",
                               tare__call_shape_text(call, x));
    for (size_t i = BN_MEAN; i <= BN_BIAS; i++) {
        const float *unused;
        TARE_TRY(optional_floats(call, i, x->shape[1], &unused));
    }
    return tare__shape_same(call);
}

// Updates the running statistics with those of the batch, as torch does in training, with the
// unbiased variance.
static void update_running(const float *old_mean, const float *old_var, const moments *m,
                           double count, double momentum, float *mean, float *var) {
    const double unbiased = count > 1 ? m->variance * count / (count - 1) : m->variance;
    *mean = (float)((1 - momentum) * (double)*old_mean + momentum * m->mean);
    *var = (float)((1 - momentum) * (double)*old_var + momentum * unbiased);
}

// Buffers of modules are replaced, not written, because other modules may share them.
static tare_status replace_buffer(op_call *call, module *own, const char *name, const float *data,
                                  int64_t count) {
    tare_tensor *t = NULL;
    TARE_TRY(tare_tensor_from_data(TARE_FLOAT32, 1, &count, data, &t, call->err));
    const tare_status status = tare__module_set_tensor(own, name, t, false, call->err);
    tare_tensor_release(t);
    return status;
}

static tare_status count_batch(op_call *call, module *own) {
    const tare_tensor *old = tare__module_tensor(own, "num_batches_tracked");
    if (old == NULL) return TARE_OK;
    if (old->count != 1 || old->dtype != TARE_INT64)
        return tare__call_fail(call, "num_batches_tracked must be one torch.int64");
    const int64_t count = *(const int64_t *)old->data;
    tare_tensor *t = NULL;
    TARE_TRY(tare__tensor_scalar_int(count < INT64_MAX ? count + 1 : count, &t, call->err));
    const tare_status status =
        tare__module_set_tensor(own, "num_batches_tracked", t, false, call->err);
    tare_tensor_release(t);
    return status;
}

static tare_status keep_running(op_call *call, int64_t channels, const float *mean,
                                const float *var) {
    module *own = tare__call_own(call, call->module);
    if (call->module == NULL) {
        TARE_TRY(tare__call_overwrite(call, BN_MEAN, channels, mean));
        return tare__call_overwrite(call, BN_VAR, channels, var);
    }
    if (own == NULL) return TARE_OK;
    TARE_TRY(replace_buffer(call, own, "running_mean", mean, channels));
    TARE_TRY(replace_buffer(call, own, "running_var", var, channels));
    return count_batch(call, own);
}

static tare_status batch_norm_training(op_call *call, const tare_tensor *x, const float *weight,
                                       const float *bias, double eps) {
    const int64_t channels = x->shape[1], inner = tare__inner_count(x, 1), step = channels * inner;
    const float *old_mean, *old_var;
    double momentum;
    TARE_TRY(optional_floats(call, BN_MEAN, channels, &old_mean));
    TARE_TRY(optional_floats(call, BN_VAR, channels, &old_var));
    TARE_TRY(tare__call_double(call, BN_MOMENTUM, 0.1, &momentum));
    float *mean = tare__arena_array(call->memory, (size_t)channels + 1, sizeof *mean);
    float *var = tare__arena_array(call->memory, (size_t)channels + 1, sizeof *var);
    if (mean == NULL || var == NULL) return tare__out_of_memory(call->err);
    float *y = tare__f32(tare__call_out(call));
    for (int64_t c = 0; c < channels; c++) {
        const float *from = tare__f32(x) + c * inner;
        const moments m = moments_of(from, x->shape[0], inner, step);
        const double scale = (weight != NULL ? (double)weight[c] : 1) / sqrt(m.variance + eps);
        const double shift = (bias != NULL ? (double)bias[c] : 0) - m.mean * scale;
        for (int64_t n = 0; n < x->shape[0]; n++)
            scale_and_shift(from + n * step, y + n * step + c * inner, inner, (float)scale,
                            (float)shift);
        if (old_mean != NULL && old_var != NULL)
            update_running(&old_mean[c], &old_var[c], &m, (double)(x->shape[0] * inner), momentum,
                           &mean[c], &var[c]);
    }
    return old_mean != NULL && old_var != NULL ? keep_running(call, channels, mean, var) : TARE_OK;
}

tare_status tare__batch_norm_read(op_call *call, batch_norm_call *out, bool *known) {
    bool training;
    TARE_TRY(tare__need_float(call, 0, &out->x));
    const int64_t channels = out->x->shape[1];
    TARE_TRY(optional_floats(call, BN_MEAN, channels, &out->mean));
    TARE_TRY(optional_floats(call, BN_VAR, channels, &out->var));
    TARE_TRY(optional_floats(call, BN_WEIGHT, channels, &out->weight));
    TARE_TRY(optional_floats(call, BN_BIAS, channels, &out->bias));
    TARE_TRY(tare__call_bool(call, BN_TRAINING, false, &training));
    TARE_TRY(tare__call_double(call, BN_EPS, 1e-5, &out->eps));
    *known = !training && out->mean != NULL && out->var != NULL;
    return TARE_OK;
}

void tare__batch_norm_factors(const batch_norm_call *n, int64_t c, float *scale, float *shift) {
    *scale = (n->weight != NULL ? n->weight[c] : 1) / sqrtf(n->var[c] + (float)n->eps);
    *shift = (n->bias != NULL ? n->bias[c] : 0) - n->mean[c] * *scale;
}

static tare_status batch_norm_reference(op_call *call) {
    batch_norm_call n;
    bool known;
    TARE_TRY(tare__batch_norm_read(call, &n, &known));
    if (!known) return batch_norm_training(call, n.x, n.weight, n.bias, n.eps);
    const int64_t channels = n.x->shape[1], inner = tare__inner_count(n.x, 1);
    float *y = tare__f32(tare__call_out(call));
    for (int64_t i = 0; i < n.x->shape[0] * channels; i++) {
        float scale, shift;
        tare__batch_norm_factors(&n, i % channels, &scale, &shift);
        scale_and_shift(tare__f32(n.x) + i * inner, y + i * inner, inner, scale, shift);
    }
    return TARE_OK;
}

// --- layer norm and RMS norm: over the last dimensions, scaled and shifted per element ---

static tare_status read_layer_norm(op_call *call, const tare_tensor **x, int64_t *inner) {
    int64_t sizes[TARE_MAX_DIMS];
    size_t count;
    TARE_TRY(tare__need_float(call, 0, x));
    TARE_TRY(tare__call_int_list(call, 1, TARE_MAX_DIMS, sizes, &count));
    *inner = 1;
    bool fits = (int)count <= (*x)->ndim && count > 0;
    for (size_t i = 0; i < count && fits; i++) {
        fits = sizes[i] == (*x)->shape[(size_t)(*x)->ndim - count + i];
        *inner *= sizes[i];
    }
    if (fits) return TARE_OK;
    return tare__call_fail(call, "normalized_shape does not end input's shape %s",
                           tare__call_shape_text(call, *x));
}

static tare_status layer_norm_shape(op_call *call) {
    const tare_tensor *x;
    int64_t inner;
    TARE_TRY(read_layer_norm(call, &x, &inner));
    return tare__shape_same(call);
}

// The parameters of layer_norm; rms_norm has eps in place of the bias.
enum { NORM_WEIGHT = 2, NORM_BIAS, NORM_EPS };

static void run_normalize(const row_call *c, const row_functions *k, const float *x, float *y) {
    k->normalize(x, (size_t)c->count, c->weight, c->bias, c->eps, y);
}
// Divides by the root of the mean square.
static void run_rms_normalize(const row_call *c, const row_functions *k, const float *x, float *y) {
    k->rms_normalize(x, (size_t)c->count, c->weight, c->eps, y);
}

static tare_status read_rows(op_call *call, row_call *out) {
    const bool has_bias = tare__op_param_is(call->op, NORM_BIAS, "bias");
    double eps;
    *out = (row_call){0};
    TARE_TRY(read_layer_norm(call, &out->x, &out->count));
    out->results = out->count;
    TARE_TRY(optional_floats(call, NORM_WEIGHT, out->count, &out->weight));
    if (has_bias) TARE_TRY(optional_floats(call, NORM_BIAS, out->count, &out->bias));
    TARE_TRY(tare__call_double(call, has_bias ? NORM_EPS : NORM_BIAS,
                               has_bias ? 1e-5 : (double)FLT_EPSILON, &eps));
    out->eps = (float)eps;
    if (tare__call_given(call, NORM_WEIGHT) == (out->weight != NULL) &&
        (!has_bias || tare__call_given(call, NORM_BIAS) == (out->bias != NULL)))
        out->run = has_bias ? run_normalize : run_rms_normalize;
    return TARE_OK;
}

static void compute_rows(const row_call *c, tare_tensor *y) {
    const int64_t rows = y->count > 0 ? y->count / c->results : 0;
    tare__row_call_run(c, &tare__scalar_rows, (size_t)rows, tare__f32(c->x), tare__f32(y));
}

static tare_status rows_reference(op_call *call) {
    row_call c;
    TARE_TRY(read_rows(call, &c));
    compute_rows(&c, tare__call_out(call));
    return TARE_OK;
}

// --- normalize: divides each row along a dimension by its p-norm ---

static double row_norm(const float *x, int64_t count, int64_t step, double p) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double size = fabs((double)x[i * step]);
        if (isinf(p))
            sum = size > sum || size != size ? size : sum;
        else
            sum += p == 2 ? size * size : tare__pow(size, p);
    }
    return isinf(p) ? sum : p == 2 ? sqrt(sum) : tare__pow(sum, 1 / p);
}

typedef struct normalize_call {
    const tare_tensor *x;
    double p, eps;
    int64_t count, inner; // elements of a row, and their distance
} normalize_call;

static tare_status read_normalize(op_call *call, normalize_call *n) {
    int dim;
    TARE_TRY(tare__need_float(call, 0, &n->x));
    TARE_TRY(tare__call_double(call, 1, 2, &n->p));
    TARE_TRY(tare__call_dim(call, 2, 1, n->x->ndim, &dim));
    TARE_TRY(tare__call_double(call, 3, 1e-12, &n->eps));
    n->inner = tare__inner_count(n->x, dim);
    n->count = n->x->ndim > 0 ? n->x->shape[dim] : 1;
    return TARE_OK;
}

static void run_normalize_line(const row_call *c, const row_functions *k, const float *x,
                               float *y) {
    float squares;
    k->square_total(x, (size_t)c->count, &squares);
    k->divide(x, (size_t)c->count, fmaxf(sqrtf(squares), c->eps), y);
}

static row_call rows_of_normalize(const normalize_call *n) {
    return (row_call){.x = n->x,
                      .count = n->count,
                      .results = n->count,
                      .eps = (float)n->eps,
                      .run = n->p == 2 && n->inner == 1 ? run_normalize_line : NULL};
}

static tare_status read_normalize_rows(op_call *call, row_call *out) {
    normalize_call n;
    TARE_TRY(read_normalize(call, &n));
    *out = rows_of_normalize(&n);
    return TARE_OK;
}

static void normalize_line(const normalize_call *n, const float *x, float *y) {
    const float norm = (float)fmax(row_norm(x, n->count, n->inner, n->p), n->eps);
    for (int64_t k = 0; k < n->count; k++) y[k * n->inner] = x[k * n->inner] / norm;
}

static tare_status normalize_reference(op_call *call) {
    normalize_call n;
    TARE_TRY(read_normalize(call, &n));
    const row_call rows = rows_of_normalize(&n);
    if (rows.run != NULL) {
        compute_rows(&rows, tare__call_out(call));
        return TARE_OK;
    }
    for (int64_t i = 0; n.x->count > 0 && i < n.x->count / n.count; i++) {
        const int64_t at = i / n.inner * n.inner * n.count + i % n.inner;
        normalize_line(&n, tare__f32(n.x) + at, tare__f32(tare__call_out(call)) + at);
    }
    return TARE_OK;
}

// --- group norm, instance norm: over a group of channels of one image ---

static void set_sizes(group_norm_call *g) {
    g->inner = tare__inner_count(g->x, 1);
    g->each = g->x->shape[1] / g->groups;
}

tare_status tare__group_norm_read(op_call *call, group_norm_call *out) {
    *out = (group_norm_call){0};
    TARE_TRY(tare__need_float(call, 0, &out->x));
    TARE_TRY(tare__call_int(call, 1, 1, &out->groups));
    const tare_tensor *x = out->x;
    if (x->ndim < 2 || out->groups < 1 || x->shape[1] % out->groups != 0)
        return tare__call_fail(call, "input of shape %s has no %lld groups of channels",
                               tare__call_shape_text(call, x), (long long)out->groups);
    TARE_TRY(optional_floats(call, 2, x->shape[1], &out->weight));
    TARE_TRY(optional_floats(call, 3, x->shape[1], &out->bias));
    set_sizes(out);
    return tare__call_double(call, 4, 1e-5, &out->eps);
}

// With running statistics it is a batch norm in evaluation. Modules carry `training` instead of
// use_input_stats: the input's own statistics are used in training or when none are tracked.
tare_status tare__instance_norm_read(op_call *call, group_norm_call *out, bool *own) {
    *out = (group_norm_call){0};
    TARE_TRY(tare__need_float(call, 0, &out->x));
    TARE_TRY(optional_floats(call, BN_WEIGHT, out->x->shape[1], &out->weight));
    TARE_TRY(optional_floats(call, BN_BIAS, out->x->shape[1], &out->bias));
    TARE_TRY(tare__call_bool(call, BN_TRAINING, true, own));
    *own = *own || !tare__call_given(call, BN_MEAN);
    out->groups = out->x->shape[1];
    if (out->groups > 0) set_sizes(out);
    return tare__call_double(call, BN_EPS, 1e-5, &out->eps);
}

void tare__group_norm_factors(const group_norm_call *g, int64_t c, float mean, float variance,
                              float *scale, float *shift) {
    const float unit = 1 / sqrtf(variance + (float)g->eps);
    *scale = g->weight != NULL ? g->weight[c] * unit : unit;
    *shift = fmaf(-mean, *scale, g->bias != NULL ? g->bias[c] : 0);
}

static void normalize_groups(const group_norm_call *g, float *y) {
    const float *x = tare__f32(g->x);
    if (g->x->count == 0) return;
    for (int64_t i = 0; i < g->x->shape[0] * g->groups; i++) {
        float mean, variance, scale, shift;
        f32_moments__scalar(x, (size_t)(g->each * g->inner), &mean, &variance);
        for (int64_t k = 0; k < g->each; k++, x += g->inner, y += g->inner) {
            const int64_t c = i % g->groups * g->each + k;
            tare__group_norm_factors(g, c, mean, variance, &scale, &shift);
            f32_scale_shift__scalar(x, (size_t)g->inner, scale, shift, y);
        }
    }
}

static tare_status group_norm_reference(op_call *call) {
    group_norm_call g;
    TARE_TRY(tare__group_norm_read(call, &g));
    normalize_groups(&g, tare__f32(tare__call_out(call)));
    return TARE_OK;
}

static tare_status instance_norm_reference(op_call *call) {
    group_norm_call g;
    bool own;
    TARE_TRY(tare__instance_norm_read(call, &g, &own));
    if (!own) return batch_norm_reference(call);
    normalize_groups(&g, tare__f32(tare__call_out(call)));
    return TARE_OK;
}

// --- local_response_norm: over a centred window of channels ---

static tare_status response_norm_reference(op_call *call) {
    const tare_tensor *x;
    int64_t size;
    double alpha, beta, k;
    TARE_TRY(tare__need_float(call, 0, &x));
    TARE_TRY(tare__call_int(call, 1, 1, &size));
    TARE_TRY(tare__call_double(call, 2, 1e-4, &alpha));
    TARE_TRY(tare__call_double(call, 3, 0.75, &beta));
    TARE_TRY(tare__call_double(call, 4, 1, &k));
    if (x->ndim < 3 || size < 1)
        return tare__call_fail(call, "needs 3 dimensions and a positive size, found shape %s",
                               tare__call_shape_text(call, x));
    const int64_t channels = x->shape[1], inner = tare__inner_count(x, 1);
    const float *from = tare__f32(x);
    float *to = tare__f32(tare__call_out(call));
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t c = i / inner % channels;
        const int64_t first = c < size / 2 ? 0 : c - size / 2;
        const int64_t room = channels - 1 - c, after = (size - 1) / 2;
        const int64_t last = after < room ? c + after : channels - 1;
        double squares = 0;
        for (int64_t n = first; n <= last; n++) {
            const double v = (double)from[i + (n - c) * inner];
            squares += v * v;
        }
        to[i] = (float)((double)from[i] / tare__pow(k + alpha * squares / (double)size, beta));
    }
    return TARE_OK;
}

// --- variants of aten that also return statistics, which are omitted if the graph ignores them ---

#define P(i) tare__compose_param(c, i)

// (made, mean over `dims`, 1 / standard deviation)
static value with_statistics(composer *c, value made, value x, value dims, bool keeps, value eps) {
    const value keep = tare__bool(keeps), all = tare__compose_with_nones(c, made, 3);
    if (c->call->only_first || c->status != TARE_OK) return all;
    const value spread = COMPOSE(c, "var", x, dims, keep, tare__bool(false));
    all.as.items[1] = COMPOSE(c, "mean", x, dims, keep);
    all.as.items[2] = COMPOSE(c, "rsqrt", COMPOSE(c, "add", spread, eps));
    return all;
}

// All dimensions except that of the channels.
static value batch_dims(composer *c, const tare_tensor *x) {
    int64_t dims[TARE_MAX_DIMS];
    size_t count = 0;
    for (int d = 0; x != NULL && d < x->ndim; d++)
        if (d != 1) dims[count++] = d;
    return tare__compose_ints(c, dims, count);
}

// input|weight|bias|running_mean|running_var|[training|]momentum|eps. Without training the returned
// statistics are empty, as in torch.
static value batch_norm_of(composer *c, value mean, value var, value training, value eps) {
    const value x = P(0), weight = P(1);
    const value made =
        COMPOSE(c, "batch_norm", x, mean, var, weight, P(2), training, tare__float(0), eps);
    if (!training.as.boolean) return tare__compose_with_nones(c, made, 3);
    return with_statistics(c, made, x, batch_dims(c, tare__compose_need(c, 0)), false, eps);
}

static value batch_norm_no_training(composer *c) {
    return batch_norm_of(c, P(3), P(4), tare__bool(false), P(6));
}

// input|weight|bias|running_mean|running_var|training|momentum|eps. Training is refused, because it
// would write the running statistics.
static value batch_norm_legit(composer *c) {
    if (tare__compose_bool(c, 5, false))
        (void)tare__compose_fail(c, "training with running statistics is not supported");
    return batch_norm_of(c, P(3), P(4), tare__bool(false), P(7));
}

// The functional form in training mode, which also returns the batch's statistics. Another operator
// updates the running ones.
static value batch_norm_no_stats(composer *c) {
    return batch_norm_of(c, tare__none(), tare__none(), tare__bool(true), P(5));
}

// The last dimensions, as many as normalized_shape has.
static value normalized_dims(composer *c) {
    const tare_tensor *x = tare__compose_need(c, 0);
    const value shape = P(1);
    int64_t dims[TARE_MAX_DIMS];
    size_t count = 0;
    const int ndim = x != NULL && tare__value_has_items(&shape) ? (int)shape.count : 0;
    for (int d = 0; x != NULL && d < ndim && d < x->ndim; d++) dims[count++] = d - ndim;
    return tare__compose_ints(c, dims, count);
}

static value native_layer_norm(composer *c) {
    const value made = COMPOSE(c, "layer_norm", P(0), P(1), P(2), P(3), P(4));
    const value eps = tare__compose_param_or(c, 4, tare__float(1e-5));
    return with_statistics(c, made, P(0), normalized_dims(c), true, eps);
}

// (made, 1 / root of the mean square)
static value fused_rms_norm(composer *c) {
    const value eps = tare__compose_param_or(c, 3, tare__float((double)FLT_EPSILON));
    const value all = tare__compose_with_nones(c, COMPOSE(c, "rms_norm", P(0), P(1), P(2), eps), 2);
    if (c->call->only_first || c->status != TARE_OK) return all;
    const value squares =
        COMPOSE(c, "mean", COMPOSE(c, "square", P(0)), normalized_dims(c), tare__bool(true));
    all.as.items[1] = COMPOSE(c, "rsqrt", COMPOSE(c, "add", squares, eps));
    return all;
}

// input|weight|bias|N|C|HxW|group|eps. The sizes are those of the input.
static value native_group_norm(composer *c) {
    const value made = COMPOSE(c, "group_norm", P(0), P(6), P(1), P(2), P(7));
    const tare_tensor *x = tare__compose_need(c, 0);
    if (c->call->only_first) return tare__compose_with_nones(c, made, 3);
    const int64_t shape[] = {x != NULL ? x->shape[0] : 1, tare__compose_int(c, 6, 1), -1};
    const value groups = COMPOSE(c, "reshape", P(0), tare__compose_ints(c, shape, 3));
    return with_statistics(c, made, groups, tare__int(2), false, P(7));
}

// --- rows ---

// clang-format off
static const op_info rows[] = {
    {.id = "batch_norm", .functions = "torch.nn.functional.batch_norm",
     .overloads = "torch.ops.aten.batch_norm.default(-cudnn_enabled)",
     .params = "input|running_mean|running_var|weight|bias|training|momentum|eps",
     .traits = OP_BY_SAMPLE, .shape = batch_norm_shape, .reference = batch_norm_reference},
    {.id = "layer_norm", .functions = "torch.nn.functional.layer_norm|torch.layer_norm|torch.ops.aten.layer_norm.default",
     .params = "input|normalized_shape|weight|bias|eps|cudnn_enable", .traits = OP_BY_SAMPLE | OP_FLOAT_WEIGHT | OP_NORMALIZES, .shape = layer_norm_shape, .reference = rows_reference, .row_function = read_rows},
    {.id = "rms_norm", .functions = "torch.nn.functional.rms_norm|torch.rms_norm|torch.ops.aten.rms_norm.default",
     .params = "input|normalized_shape|weight|eps", .traits = OP_BY_SAMPLE | OP_NORMALIZES, .shape = layer_norm_shape, .reference = rows_reference, .row_function = read_rows},
    {.id = "normalize", .functions = "torch.nn.functional.normalize", .params = "input|p|dim|eps|out",
     .shape = tare__shape_same, .reference = normalize_reference, .row_function = read_normalize_rows},
    {.id = "group_norm", .functions = "torch.nn.functional.group_norm|torch.group_norm|torch.ops.aten.group_norm.default",
     .params = "input|num_groups|weight|bias|eps|cudnn_enabled", .traits = OP_BY_SAMPLE | OP_FLOAT_WEIGHT | OP_NORMALIZES, .shape = tare__shape_same, .reference = group_norm_reference},
    {.id = "local_response_norm", .functions = "torch.nn.functional.local_response_norm", .params = "input|size|alpha|beta|k",
     .shape = tare__shape_same, .reference = response_norm_reference},
    {.id = "instance_norm", .functions = "torch.nn.functional.instance_norm",
     .overloads = "torch.ops.aten.instance_norm.default(-cudnn_enabled)",
     .params = "input|running_mean|running_var|weight|bias|use_input_stats/training|momentum|eps", .traits = OP_FLOAT_WEIGHT,
     .shape = batch_norm_shape, .reference = instance_norm_reference},
    {.id = "batch_norm_no_training", .functions = "torch.ops.aten._native_batch_norm_legit_no_training.default",
     .params = "input|weight|bias|running_mean|running_var|momentum|eps",
     .forward = batch_norm_no_training},
    {.id = "batch_norm_legit", .functions = "torch.ops.aten._native_batch_norm_legit.default|torch.ops.aten.native_batch_norm.default",
     .params = "input|weight|bias|running_mean|running_var|training|momentum|eps",
     .forward = batch_norm_legit},
    {.id = "batch_norm_no_stats", .functions = "torch.ops.aten._native_batch_norm_legit.no_stats",
     .params = "input|weight|bias|training|momentum|eps",
     .forward = batch_norm_no_stats},
    {.id = "native_layer_norm", .functions = "torch.ops.aten.native_layer_norm.default",
     .params = "input|normalized_shape|weight|bias|eps", .forward = native_layer_norm},
    {.id = "fused_rms_norm", .functions = "torch.ops.aten._fused_rms_norm.default",
     .params = "input|normalized_shape|weight|eps", .forward = fused_rms_norm},
    {.id = "native_group_norm", .functions = "torch.ops.aten.native_group_norm.default",
     .params = "input|weight|bias|N|C|HxW|group|eps", .forward = native_group_norm},
};
// clang-format on

const op_table tare__norm_ops = OP_TABLE(rows);
