// SPDX-License-Identifier: Apache-2.0
// Normalizations in ONNX.
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/math/float_to_int.h"
#include "io/onnx/families/families.h"
#include "io/onnx/raise/match.h"
#include "io/onnx/read/rules_common.h"

// --- reading ---

static tare_status need_x(onnx_call *c, value *x, const tare_tensor **t) {
    TARE_TRY(tare__onnx_need_input(c, 0, "X", x));
    return tare__onnx_need_meta(c, 0, "X", t);
}

// --- BatchNormalization, InstanceNormalization, GroupNormalization ---

static tare_status translate_batch_norm(onnx_call *c) {
    static const char *const names[] = {"X", "input_mean", "input_var", "scale", "B"};
    static const size_t positions[] = {0, 3, 4, 1, 2};
    value args[8];
    double eps, momentum;
    bool training = false;
    for (size_t i = 0; i < 5; i++)
        TARE_TRY(tare__onnx_need_input(c, positions[i], names[i], &args[i]));
    TARE_TRY(tare__onnx_attr_float(c, "epsilon", 1e-5, &eps));
    TARE_TRY(tare__onnx_attr_float(c, "momentum", 0.9, &momentum));
    if (tare__onnx_opset(c) >= 14)
        TARE_TRY(tare__onnx_attr_bool(c, "training_mode", false, &training));
    // In training mode the statistics are those of the input (weights are standardized so), and no
    // running statistics are kept.
    if (training) args[1] = args[2] = tare__none();
    args[5] = tare__bool(training);
    // torch's momentum is the share of the new statistics, ONNX's that of the old ones. Rounding
    // removes the digits that the subtraction adds.
    const double share = 1 - momentum;
    args[6] = tare__float((double)tare__cut_int64(share * 1e9 + 0.5) / 1e9);
    args[7] = tare__float(eps);
    return tare__onnx_one(c, "torch.nn.functional.batch_norm", 8, args);
}

static tare_status translate_instance_norm(onnx_call *c) {
    value args[8] = {[5] = tare__bool(true), [6] = tare__float(0.1)};
    double eps;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &args[0]));
    TARE_TRY(tare__onnx_need_input(c, 1, "scale", &args[3]));
    TARE_TRY(tare__onnx_need_input(c, 2, "B", &args[4]));
    TARE_TRY(tare__onnx_attr_float(c, "epsilon", 1e-5, &eps));
    args[7] = tare__float(eps);
    return tare__onnx_one(c, "torch.nn.functional.instance_norm", 8, args);
}

// Scale and bias are per group before opset 21, then per channel.
static tare_status translate_group_norm(onnx_call *c) {
    value args[5];
    const tare_tensor *t = NULL;
    int64_t groups;
    double eps;
    TARE_TRY(need_x(c, &args[0], &t));
    TARE_TRY(tare__onnx_need_input(c, 1, "scale", &args[2]));
    TARE_TRY(tare__onnx_need_input(c, 2, "bias", &args[3]));
    TARE_TRY(tare__onnx_attr_int(c, "num_groups", 0, &groups));
    TARE_TRY(tare__onnx_attr_float(c, "epsilon", 1e-5, &eps));
    tare__onnx_ignore_attr(c, "stash_type"); // the runtime computes sums in double
    if (t->ndim < 2 || groups < 1 || t->shape[1] % groups != 0)
        return tare__onnx_malformed(c, "num_groups=%lld does not divide the channels",
                                    (long long)groups);
    const int64_t each = t->shape[1] / groups;
    for (size_t i = 2; tare__onnx_opset(c) < 21 && each > 1 && i < 4; i++)
        TARE_TRY(ONNX_CALL(c, &args[i], "torch.repeat_interleave", args[i], tare__int(each)));
    args[1] = tare__int(groups);
    args[4] = tare__float(eps);
    return tare__onnx_one(c, "torch.nn.functional.group_norm", 5, args);
}

// --- LayerNormalization ---

// A parameter that broadcasts to the normalized shape, in that shape.
static tare_status fit_parameter(onnx_call *c, const tare_tensor *t, int64_t axis, value *v) {
    const tare_tensor *p = tare__onnx_meta(c, v);
    const size_t ndim = (size_t)(t->ndim - axis);
    int64_t count = 1;
    bool same = p != NULL && p->ndim == (int)ndim;
    for (size_t d = 0; d < ndim; d++) {
        count *= t->shape[(size_t)axis + d];
        same = same && p->shape[d] == t->shape[(size_t)axis + d];
    }
    if (p == NULL || same) return TARE_OK;
    if (p->count == count) return tare__onnx_reshape(c, v, t->shape + axis, ndim, v);
    value args[TARE_MAX_DIMS + 1] = {*v};
    for (size_t d = 0; d < ndim; d++) args[d + 1] = tare__int(t->shape[(size_t)axis + d]);
    return tare__onnx_call(c, true, "expand", args, ndim + 1, v);
}

// Outputs 1 and 2: mean and reciprocal standard deviation.
static tare_status give_moments(onnx_call *c, value x, int64_t axis, int ndim, double eps) {
    int64_t dims[TARE_MAX_DIMS];
    value list, mean, spread;
    const keyword keepdim = {"keepdim", tare__bool(true)};
    for (int64_t d = axis; d < ndim; d++) dims[d - axis] = d;
    TARE_TRY(tare__onnx_ints(c, dims, (size_t)(ndim - axis), &list));
    const value mean_args[] = {x, list};
    const onnx_emit e = {
        .target = "mean", .args = mean_args, .arg_count = 2, .kwargs = &keepdim, .kwarg_count = 1};
    TARE_TRY(tare__onnx_method(c, &e, &mean));
    tare__onnx_set_output(c, 1, &mean);
    if (!tare__onnx_wants_output(c, 2)) return TARE_OK;
    TARE_TRY(ONNX_CALL(c, &spread, "torch.var", x, list, tare__bool(true), tare__bool(false)));
    TARE_TRY(ONNX_CALL(c, &spread, "operator.add", spread, tare__float(eps)));
    TARE_TRY(ONNX_CALL(c, &spread, "torch.rsqrt", spread));
    tare__onnx_set_output(c, 2, &spread);
    return TARE_OK;
}

static tare_status translate_layer_norm(onnx_call *c) {
    value args[5];
    const tare_tensor *t = NULL;
    int64_t axis;
    double eps;
    TARE_TRY(need_x(c, &args[0], &t));
    TARE_TRY(tare__onnx_need_input(c, 1, "Scale", &args[2]));
    args[3] = tare__onnx_input(c, 2);
    TARE_TRY(tare__onnx_attr_axis(c, "axis", -1, t->ndim, &axis));
    TARE_TRY(tare__onnx_attr_float(c, "epsilon", 1e-5, &eps));
    tare__onnx_ignore_attr(c, "stash_type"); // the runtime computes sums in double
    const int ndim = t->ndim;
    TARE_TRY(fit_parameter(c, t, axis, &args[2]));
    if (args[3].kind != VALUE_NONE) TARE_TRY(fit_parameter(c, t, axis, &args[3]));
    TARE_TRY(tare__onnx_int_tuple(c, t->shape + axis, (size_t)(ndim - axis), &args[1]));
    args[4] = tare__float(eps);
    if (tare__onnx_wants_output(c, 1) || tare__onnx_wants_output(c, 2))
        TARE_TRY(give_moments(c, args[0], axis, ndim, eps));
    return tare__onnx_one(c, "torch.nn.functional.layer_norm", 5, args);
}

// --- LRN, LpNormalization, MeanVarianceNormalization ---

static tare_status translate_local_response_norm(onnx_call *c) {
    value x;
    int64_t size;
    double alpha, beta, bias;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    TARE_TRY(tare__onnx_attr_int(c, "size", 0, &size));
    TARE_TRY(tare__onnx_attr_float(c, "alpha", 1e-4, &alpha));
    TARE_TRY(tare__onnx_attr_float(c, "beta", 0.75, &beta));
    TARE_TRY(tare__onnx_attr_float(c, "bias", 1, &bias));
    if (size < 1 || size % 2 == 0)
        return tare__onnx_fail(c,
                               "size=%lld is not supported: expected an odd size, because torch "
                               "centers even windows differently",
                               (long long)size);
    const value args[] = {x, tare__int(size), tare__float(alpha), tare__float(beta),
                          tare__float(bias)};
    return tare__onnx_one(c, "torch.nn.functional.local_response_norm", 5, args);
}

static tare_status translate_lp_norm(onnx_call *c) {
    value x;
    const tare_tensor *t = NULL;
    int64_t axis, p;
    TARE_TRY(need_x(c, &x, &t));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", -1, t->ndim, &axis));
    TARE_TRY(tare__onnx_attr_int(c, "p", 2, &p));
    if (p != 1 && p != 2) return tare__onnx_malformed(c, "p=%lld, expected 1 or 2", (long long)p);
    const value args[] = {x, tare__int(p), tare__int(axis)};
    return tare__onnx_one(c, "torch.nn.functional.normalize", 3, args);
}

static tare_status translate_mean_variance_norm(onnx_call *c) {
    value x, list, mean, spread;
    const tare_tensor *t = NULL;
    int64_t axes[TARE_MAX_DIMS] = {0, 2, 3};
    size_t count = 3;
    bool given = false;
    TARE_TRY(need_x(c, &x, &t));
    TARE_TRY(tare__onnx_attr_ints(c, "axes", TARE_MAX_DIMS, axes, &count, &given));
    if (!given) {
        memcpy(axes, (const int64_t[]){0, 2, 3}, 3 * sizeof *axes);
        count = 3;
    }
    for (size_t i = 0; i < count; i++) TARE_TRY(tare__onnx_axis(c, axes[i], t->ndim, &axes[i]));
    TARE_TRY(tare__onnx_ints(c, axes, count, &list));
    TARE_TRY(ONNX_METHOD(c, &mean, "mean", x, list, tare__bool(true)));
    TARE_TRY(ONNX_CALL(c, &spread, "torch.std", x, list, tare__bool(true), tare__bool(false)));
    TARE_TRY(ONNX_CALL(c, &spread, "operator.add", spread, tare__float(1e-9)));
    TARE_TRY(ONNX_CALL(c, &x, "operator.sub", x, mean));
    const value args[] = {x, spread};
    return tare__onnx_one(c, "operator.truediv", 2, args);
}

static const onnx_rule read_rows[] = {
    {"BatchNormalization", .translate = translate_batch_norm},
    {"GroupNormalization", 18, .translate = translate_group_norm},
    {"InstanceNormalization", .translate = translate_instance_norm},
    {"LRN", .translate = translate_local_response_norm},
    {"LayerNormalization", 17, .translate = translate_layer_norm},
    {"LpNormalization", .translate = translate_lp_norm},
    {"MeanVarianceNormalization", .translate = translate_mean_variance_norm},
};

// --- writing ---

static const char *real(onnx_out *o, double n) {
    return tare__out_number(o, tare__out_real_dtype(o), n);
}

// A constant of `count` equal floats, for a norm without a weight or bias.
static const char *filled(onnx_out *o, int64_t count, float number) {
    tare_tensor *t = NULL;
    if (tare__out_failed(o)) return "";
    tare__out_try(o, tare_tensor_create(TARE_FLOAT32, 1, &count, &t, tare__out_call(o)->err));
    for (int64_t i = 0; t != NULL && i < count; i++) tare__f32(t)[i] = number;
    const char *name = t != NULL ? tare__out_constant(o, t, number == 0 ? "zeros" : "ones") : "";
    tare_tensor_release(t);
    return name;
}

static const char *given_or(onnx_out *o, size_t i, int64_t count, float number) {
    return tare__out_given(o, i) ? tare__out_input(o, i) : filled(o, count, number);
}

// --- batch norm ---

typedef struct batch_params {
    size_t mean, var, weight, bias, eps, training;
} batch_params;

static const char *batch_norm_of(onnx_out *o, const batch_params *at, const char *x) {
    const tare_tensor *t = tare__out_meta(o, 0);
    const int64_t channels = t->ndim > 1 ? t->shape[1] : 0;
    if (at->training > 0 && tare__out_bool(o, at->training, false))
        tare__out_refuse(o, "batch norms in training mode are not written");
    if (!tare__out_given(o, at->mean) || !tare__out_given(o, at->var))
        tare__out_refuse(o, "a batch norm without running statistics is not written");
    const char *y = OUT(o, "BatchNormalization", x, given_or(o, at->weight, channels, 1),
                        given_or(o, at->bias, channels, 0), tare__out_input(o, at->mean),
                        tare__out_input(o, at->var));
    tare__out_attr_float(o, "epsilon", tare__out_double(o, at->eps, 1e-5));
    return y;
}

static void write_batch_norm(onnx_out *o) {
    const batch_params at = {1, 2, 3, 4, 7, 5};
    tare__out_result(o, batch_norm_of(o, &at, tare__out_input(o, 0)));
}

static void write_batch_norm_no_training(onnx_out *o) {
    const batch_params at = {3, 4, 1, 2, 6, 0};
    tare__out_result_item(o, 0, batch_norm_of(o, &at, tare__out_input(o, 0)));
    const char *empty = filled(o, 0, 0);
    tare__out_result_item(o, 1, empty);
    tare__out_result_item(o, 2, empty);
}

// --- layer norm ---

static int64_t normalized_dims(onnx_out *o) {
    int64_t shape[TARE_MAX_DIMS];
    size_t count = 0;
    tare__out_try(o, tare__call_int_list(tare__out_call(o), 1, TARE_MAX_DIMS, shape, &count));
    return (int64_t)count;
}

static void last_axes(int64_t count, int64_t axes[TARE_MAX_DIMS]) {
    for (int64_t i = 0; i < count; i++) axes[i] = i - count;
}

static const char *scaled(onnx_out *o, const char *y, size_t weight, size_t bias) {
    if (weight > 0 && tare__out_given(o, weight)) y = OUT(o, "Mul", y, tare__out_input(o, weight));
    if (bias > 0 && tare__out_given(o, bias)) y = OUT(o, "Add", y, tare__out_input(o, bias));
    return y;
}

static const char *deviation_of(onnx_out *o, const char *squares_of, const int64_t *axes,
                                size_t count, double eps) {
    const char *squares = OUT(o, "Mul", squares_of, squares_of);
    const char *variance = tare__out_reduce(o, "ReduceMean", squares, axes, count, true);
    return OUT(o, "Sqrt", OUT(o, "Add", variance, real(o, eps)));
}

static const char *decomposed_layer_norm(onnx_out *o, const char *x, int64_t dims, double eps) {
    int64_t axes[TARE_MAX_DIMS];
    last_axes(dims, axes);
    const char *mean = tare__out_reduce(o, "ReduceMean", x, axes, (size_t)dims, true);
    const char *centered = OUT(o, "Sub", x, mean);
    return OUT(o, "Div", centered, deviation_of(o, centered, axes, (size_t)dims, eps));
}

static const char *layer_norm_of(onnx_out *o) {
    const double eps = tare__out_double(o, 4, 1e-5);
    const int64_t dims = normalized_dims(o);
    const tare_tensor *t = tare__out_meta(o, 0);
    const char *x = tare__out_input(o, 0);
    // Without a weight, or before opset 17, the norm is written as elementary operators.
    if (tare__out_opset(o) < 17 || (!tare__out_given(o, 2) && dims != 1))
        return scaled(o, decomposed_layer_norm(o, x, dims, eps), 2, 3);
    const int64_t inner = t->ndim > 0 ? t->shape[t->ndim - 1] : 0;
    const char *weight = given_or(o, 2, inner, 1);
    const char *y = OUT(o, "LayerNormalization", x, weight, tare__out_input(o, 3));
    tare__out_attr_int(o, "axis", -dims);
    tare__out_attr_float(o, "epsilon", eps);
    return y;
}

static void write_layer_norm(onnx_out *o) {
    tare__out_result(o, layer_norm_of(o));
}

static void write_native_layer_norm(onnx_out *o) {
    int64_t axes[TARE_MAX_DIMS];
    const double eps = tare__out_double(o, 4, 1e-5);
    const int64_t dims = normalized_dims(o);
    const char *x = tare__out_input(o, 0);
    last_axes(dims, axes);
    tare__out_result_item(o, 0, layer_norm_of(o));
    const char *mean = tare__out_reduce(o, "ReduceMean", x, axes, (size_t)dims, true);
    const char *centered = OUT(o, "Sub", x, mean);
    tare__out_result_item(o, 1, mean);
    tare__out_result_item(o, 2,
                          OUT(o, "Reciprocal", deviation_of(o, centered, axes, (size_t)dims, eps)));
}

static void write_rms_norm(onnx_out *o) {
    int64_t axes[TARE_MAX_DIMS];
    const int64_t dims = normalized_dims(o);
    const char *x = tare__out_input(o, 0);
    last_axes(dims, axes);
    const char *spread =
        deviation_of(o, x, axes, (size_t)dims, tare__out_double(o, 3, (double)FLT_EPSILON));
    tare__out_result(o, scaled(o, OUT(o, "Div", x, spread), 2, 0));
}

// --- norms of groups of channels ---

// Weight or bias [C] for an input [N][C][..].
static const char *per_channel(onnx_out *o, size_t i) {
    const int ndim = tare__out_meta(o, 0)->ndim;
    int64_t shape[TARE_MAX_DIMS];
    for (int d = 0; d < ndim - 1; d++) shape[d] = d == 0 ? -1 : 1;
    return tare__out_reshape(o, tare__out_input(o, i), shape, (size_t)(ndim > 1 ? ndim - 1 : 1));
}

static const char *instance_norm_of(onnx_out *o, const char *x, int64_t channels,
                                    const char *weight, const char *bias, double eps) {
    const char *y =
        OUT(o, "InstanceNormalization", x, *weight != '\0' ? weight : filled(o, channels, 1),
            *bias != '\0' ? bias : filled(o, channels, 0));
    tare__out_attr_float(o, "epsilon", eps);
    return y;
}

static void write_instance_norm(onnx_out *o) {
    const tare_tensor *t = tare__out_meta(o, 0);
    if (!tare__out_bool(o, 5, true)) {
        const batch_params at = {1, 2, 3, 4, 7, 0};
        tare__out_result(o, batch_norm_of(o, &at, tare__out_input(o, 0)));
        return;
    }
    if (t->ndim < 3) tare__out_refuse(o, "InstanceNormalization needs 3 dimensions");
    tare__out_result(o, instance_norm_of(o, tare__out_input(o, 0), t->ndim > 1 ? t->shape[1] : 0,
                                         tare__out_input(o, 3), tare__out_input(o, 4),
                                         tare__out_double(o, 7, 1e-5)));
}

// Each group becomes a channel of an instance norm.
static void write_group_norm(onnx_out *o) {
    const tare_tensor *t = tare__out_meta(o, 0), *other = tare__out_result_other(o);
    const int64_t groups = tare__out_int(o, 1, 1), grouped[] = {0, groups, -1};
    const char *x = tare__out_reshape(o, tare__out_input(o, 0), grouped, 3);
    const char *y = instance_norm_of(o, x, groups, "", "", tare__out_double(o, 4, 1e-5));
    const char *shape =
        tare__out_sizes(o, t->shape, other != NULL ? other->shape : NULL, (size_t)t->ndim);
    y = OUT(o, "Reshape", y, shape);
    if (tare__out_given(o, 2)) y = OUT(o, "Mul", y, per_channel(o, 2));
    if (tare__out_given(o, 3)) y = OUT(o, "Add", y, per_channel(o, 3));
    tare__out_result(o, y);
}

static void write_local_response_norm(onnx_out *o) {
    const char *y = OUT(o, "LRN", tare__out_input(o, 0));
    tare__out_attr_int(o, "size", tare__out_int(o, 1, 1));
    tare__out_attr_float(o, "alpha", tare__out_double(o, 2, 1e-4));
    tare__out_attr_float(o, "beta", tare__out_double(o, 3, 0.75));
    tare__out_attr_float(o, "bias", tare__out_double(o, 4, 1));
    tare__out_result(o, y);
}

static void write_normalize(onnx_out *o) {
    const tare_tensor *t = tare__out_meta(o, 0);
    const double p = tare__out_double(o, 1, 2);
    const int64_t dim = tare__out_dim(o, 2, 1, t->ndim);
    const char *x = tare__out_input(o, 0);
    if (p != 1 && p != 2) tare__out_refuse(o, "a norm of order %g has no ReduceL operator", p);
    const char *norm = tare__out_reduce(o, p == 1 ? "ReduceL1" : "ReduceL2", x, &dim, 1, true);
    tare__out_result(o,
                     OUT(o, "Div", x, OUT(o, "Max", norm, real(o, tare__out_double(o, 3, 1e-12)))));
}

static const onnx_write_rule write_rows[] = {
    {"batch_norm", "BatchNormalization", .write = write_batch_norm},
    {"batch_norm_no_training", "BatchNormalization", .write = write_batch_norm_no_training},
    {"group_norm", "InstanceNormalization", .write = write_group_norm},
    {"instance_norm", "InstanceNormalization", .write = write_instance_norm},
    {"layer_norm", "LayerNormalization (opset 17), ReduceMean", .write = write_layer_norm},
    {"local_response_norm", "LRN", .write = write_local_response_norm},
    {"native_layer_norm", "LayerNormalization (opset 17), ReduceMean",
     .write = write_native_layer_norm},
    {"normalize", "ReduceL1, ReduceL2", .write = write_normalize},
    {"rms_norm", "ReduceMean, Sqrt, Div", .write = write_rms_norm},
};

// --- idioms of exporters ---

// Checks that d names the last dimensions, and binds `shape` to their sizes.
static tare_status bind_last_dims(idiom_match *m, bool *holds) {
    const tare_tensor *x = tare__match_meta(m, "x");
    const value d = tare__match_value(m, "d");
    const bool is_list = d.kind == VALUE_LIST || d.kind == VALUE_TUPLE;
    const uint32_t count = is_list ? d.count : 1;
    bool named[TARE_MAX_DIMS] = {false};
    *holds =
        tare__match_same_shape(x, tare__match_root_meta(m)) && count >= 1 && (int)count <= x->ndim;
    for (uint32_t i = 0; *holds && i < count; i++) {
        const value *item = is_list ? &d.as.items[i] : &d;
        const int64_t at = item->kind == VALUE_INT && item->as.integer < 0
                               ? item->as.integer + x->ndim
                               : item->as.integer;
        *holds = item->kind == VALUE_INT && at >= 0 && at < x->ndim;
        if (*holds) named[at] = true;
    }
    for (uint32_t i = 0; *holds && i < count; i++) *holds = named[x->ndim - 1 - (int)i];
    if (!*holds) return TARE_OK;
    const value shape = tare__value_sequence(m->memory, VALUE_TUPLE, count);
    if (shape.as.items == NULL) return tare__out_of_memory(m->in->err);
    for (uint32_t i = 0; i < count; i++)
        shape.as.items[i] = tare__int(x->shape[x->ndim - (int)count + (int)i]);
    return tare__match_bind(m, "shape", shape);
}

// Checks that `name` has exactly the normalized shape of the matched call.
static tare_status fits_normalized(idiom_match *m, bool *holds) {
    const tare_tensor *w = tare__match_constant(m, "w");
    const value d = tare__match_value(m, "d");
    *holds = w != NULL && d.kind == VALUE_TUPLE && w->dtype == TARE_FLOAT32 &&
             w->ndim == (int)d.count &&
             tare__match_same_shape(tare__match_meta(m, "x"), tare__match_root_meta(m));
    for (uint32_t i = 0; *holds && i < d.count; i++)
        *holds = d.as.items[i].kind == VALUE_INT && d.as.items[i].as.integer == w->shape[i];
    return TARE_OK;
}

// A constant [C][1][1] as [C].
static tare_status bind_flat(idiom_match *m, const char *from, const char *to, int64_t count,
                             bool *holds) {
    const tare_tensor *t = tare__match_constant(m, from), *x = tare__match_meta(m, "x");
    tare_tensor *flat = NULL;
    node *n = NULL;
    *holds = *holds && t != NULL && t->dtype == TARE_FLOAT32 && t->count == count && x != NULL &&
             t->ndim >= x->ndim - 1 && t->shape[t->ndim - (x->ndim - 1)] == count;
    if (!*holds) return TARE_OK;
    TARE_TRY(tare__tensor_reshape(t, 1, &count, &flat, m->in->err));
    TARE_TRY(tare__onnx_add_constant(m->in, flat, tare__onnx_constant_of(m->in, t)->name));
    TARE_TRY(tare__onnx_constant_node(m->in, flat, tare__onnx_info(m->in, m->root)->scope, &n));
    tare__graph_move_before(n, m->in->draft->first);
    return tare__match_bind(m, to, tare__node_value(n));
}

static bool is_filled_with(const tare_tensor *t, double number) {
    for (int64_t i = 0; t != NULL && i < t->count; i++)
        if (tare__tensor_get(t, i) != number) return false;
    return t != NULL;
}

// The pattern normalizes each group as a channel of an instance norm, with scale 1 and shift 0.
static tare_status is_group_norm(idiom_match *m, bool *holds) {
    const tare_tensor *x = tare__match_meta(m, "x"), *ones = tare__match_constant(m, "wones");
    *holds = tare__match_same_shape(x, tare__match_root_meta(m)) && x->ndim >= 3 && ones != NULL &&
             ones->count > 0 && x->shape[1] % ones->count == 0 && is_filled_with(ones, 1) &&
             is_filled_with(tare__match_constant(m, "wzeros"), 0);
    return *holds ? tare__match_bind(m, "groups", tare__int(ones->count)) : TARE_OK;
}

static tare_status has_channel_weight(idiom_match *m, bool *holds) {
    const tare_tensor *x = tare__match_meta(m, "x");
    *holds = tare__match_same_shape(x, tare__match_root_meta(m)) && x->ndim >= 2;
    return *holds ? bind_flat(m, "w", "weight", x->shape[1], holds) : TARE_OK;
}

static tare_status has_channel_bias(idiom_match *m, bool *holds) {
    const tare_tensor *x = tare__match_meta(m, "x");
    *holds = tare__match_same_shape(x, tare__match_root_meta(m)) && x->ndim >= 2;
    return *holds ? bind_flat(m, "wb", "bias", x->shape[1], holds) : TARE_OK;
}

#define LAYER_NORM "torch.nn.functional.layer_norm(x, shape, None, None, c)"
#define CENTERED   "mean = x.mean(d, keepdim = True); y = x - mean; "
#define SPREAD     "v = s.mean(d, keepdim = True); e = v + c; "
#define RMS_NORM   "torch.nn.functional.rms_norm(x, shape, None, c)"

// clang-format off
static const idiom idioms[] = {
    // Layer norm, then its scale and its shift.
    {"sqrt", "x, c, d", CENTERED "s = torch.pow(y, 2); " SPREAD "r = torch.sqrt(e); y / r", LAYER_NORM, false, bind_last_dims},
    {"sqrt", "x, c, d", CENTERED "s = y * y; " SPREAD "r = torch.sqrt(e); y / r", LAYER_NORM, false, bind_last_dims},
    {"sqrt", "x, c, d", CENTERED "s = torch.pow(y, 2); " SPREAD "q = torch.sqrt(e); r = torch.reciprocal(q); y * r", LAYER_NORM, false, bind_last_dims},
    {"sqrt", "x, c, d", CENTERED "s = y * y; " SPREAD "q = torch.sqrt(e); r = torch.reciprocal(q); y * r", LAYER_NORM, false, bind_last_dims},
    {"sqrt", "x, w, c, d", "n = torch.nn.functional.layer_norm(x, d, None, None, c); n * w",
     "torch.nn.functional.layer_norm(x, d, w, None, c)", true, fits_normalized},
    {"sqrt", "x, wa, w, c, d", "n = torch.nn.functional.layer_norm(x, d, wa, None, c); n + w",
     "torch.nn.functional.layer_norm(x, d, wa, w, c)", true, fits_normalized},

    // RMS norm.
    {"sqrt", "x, c, d", "s = torch.pow(x, 2); " SPREAD "q = torch.sqrt(e); r = torch.reciprocal(q); x * r", RMS_NORM, false, bind_last_dims},
    {"sqrt", "x, c, d", "s = x * x; " SPREAD "q = torch.sqrt(e); r = torch.reciprocal(q); x * r", RMS_NORM, false, bind_last_dims},
    {"sqrt", "x, c, d", "s = torch.pow(x, 2); " SPREAD "q = torch.sqrt(e); x / q", RMS_NORM, false, bind_last_dims},
    {"sqrt", "x, c, d", "s = x * x; " SPREAD "q = torch.sqrt(e); x / q", RMS_NORM, false, bind_last_dims},
    {"sqrt", "x, w, c, d", "n = torch.nn.functional.rms_norm(x, d, None, c); n * w",
     "torch.nn.functional.rms_norm(x, d, w, c)", false, fits_normalized},

    // Group norm, written as an instance norm of the groups.
    {"instance_norm", "x, wones, wzeros, c, cm, d, dd", "g = x.reshape(d); n = torch.nn.functional.instance_norm(g, None, None, wones, wzeros, True, cm, c); n.reshape(dd)",
     "torch.nn.functional.group_norm(x, groups, None, None, c)", false, is_group_norm},
    {"instance_norm", "x, w, d, c", "n = torch.nn.functional.group_norm(x, d, None, None, c); n * w",
     "torch.nn.functional.group_norm(x, d, weight, None, c)", true, has_channel_weight},
    {"instance_norm", "x, w, wb, d, c", "n = torch.nn.functional.group_norm(x, d, w, None, c); n + wb",
     "torch.nn.functional.group_norm(x, d, w, bias, c)", true, has_channel_bias},
};
// clang-format on

const onnx_family tare__onnx_norm_family = {.read = ONNX_RULES(read_rows),
                                            .write = ONNX_WRITE_RULES(write_rows),
                                            .idioms = idioms,
                                            .idiom_count = sizeof idioms / sizeof *idioms};
