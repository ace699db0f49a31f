// SPDX-License-Identifier: Apache-2.0
// Normalizations as ONNX.
#include <float.h>
#include <math.h>

#include "io/onnx/write/rules.h"

static const char *real(onnx_out *o, double n) {
    return tare__out_number(o, tare__out_real_dtype(o), n);
}

// A constant of `count` equal floats, where a norm has no weight or bias of its own.
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
        tare__out_refuse(o, "batch norms in training are not written");
    if (!tare__out_given(o, at->mean) || !tare__out_given(o, at->var))
        tare__out_refuse(o, "a batch norm needs its statistics");
    const char *y = OUT(o, "BatchNormalization", x, given_or(o, at->weight, channels, 1),
                        given_or(o, at->bias, channels, 0), tare__out_input(o, at->mean),
                        tare__out_input(o, at->var));
    tare__out_attr_float(o, "epsilon", tare__out_double(o, at->eps, 1e-5));
    return y;
}

static void batch_norm(onnx_out *o) {
    const batch_params at = {1, 2, 3, 4, 7, 5};
    tare__out_result(o, batch_norm_of(o, &at, tare__out_input(o, 0)));
}

static void batch_norm_no_training(onnx_out *o) {
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

static const char *layer_norm_of_parts(onnx_out *o, const char *x, int64_t dims, double eps) {
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
    // Without a weight, or before opset 17, it is spelt out.
    if (tare__out_opset(o) < 17 || (!tare__out_given(o, 2) && dims != 1))
        return scaled(o, layer_norm_of_parts(o, x, dims, eps), 2, 3);
    const int64_t inner = t->ndim > 0 ? t->shape[t->ndim - 1] : 0;
    const char *weight = given_or(o, 2, inner, 1);
    const char *y = OUT(o, "LayerNormalization", x, weight, tare__out_input(o, 3));
    tare__out_attr_int(o, "axis", -dims);
    tare__out_attr_float(o, "epsilon", eps);
    return y;
}

static void layer_norm(onnx_out *o) {
    tare__out_result(o, layer_norm_of(o));
}

static void native_layer_norm(onnx_out *o) {
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

static void rms_norm(onnx_out *o) {
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

static void instance_norm(onnx_out *o) {
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

// Groups become the channels of an instance norm.
static void group_norm(onnx_out *o) {
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

static void local_response_norm(onnx_out *o) {
    const char *y = OUT(o, "LRN", tare__out_input(o, 0));
    tare__out_attr_int(o, "size", tare__out_int(o, 1, 1));
    tare__out_attr_float(o, "alpha", tare__out_double(o, 2, 1e-4));
    tare__out_attr_float(o, "beta", tare__out_double(o, 3, 0.75));
    tare__out_attr_float(o, "bias", tare__out_double(o, 4, 1));
    tare__out_result(o, y);
}

static void normalize(onnx_out *o) {
    const tare_tensor *t = tare__out_meta(o, 0);
    const double p = tare__out_double(o, 1, 2);
    const int64_t dim = tare__out_dim(o, 2, 1, t->ndim);
    const char *x = tare__out_input(o, 0);
    if (p != 1 && p != 2) tare__out_refuse(o, "a norm of order %g has no ReduceL operator", p);
    const char *norm = tare__out_reduce(o, p == 1 ? "ReduceL1" : "ReduceL2", x, &dim, 1, true);
    tare__out_result(o,
                     OUT(o, "Div", x, OUT(o, "Max", norm, real(o, tare__out_double(o, 3, 1e-12)))));
}

static const onnx_write_rule rows[] = {
    {"batch_norm", "BatchNormalization", .write = batch_norm},
    {"batch_norm_no_training", "BatchNormalization", .write = batch_norm_no_training},
    {"group_norm", "InstanceNormalization", .write = group_norm},
    {"instance_norm", "InstanceNormalization", .write = instance_norm},
    {"layer_norm", "LayerNormalization (opset 17), ReduceMean", .write = layer_norm},
    {"local_response_norm", "LRN", .write = local_response_norm},
    {"native_layer_norm", "LayerNormalization (opset 17), ReduceMean", .write = native_layer_norm},
    {"normalize", "ReduceL1, ReduceL2", .write = normalize},
    {"rms_norm", "ReduceMean, Sqrt, Div", .write = rms_norm},
};

const onnx_write_table tare__onnx_write_norm_rules = ONNX_WRITE_RULES(rows);
