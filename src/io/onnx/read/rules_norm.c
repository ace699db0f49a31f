// SPDX-License-Identifier: Apache-2.0
// ONNX normalizations.
#include <string.h>

#include "core/math/float_to_int.h"
#include "io/onnx/read/rules_common.h"

static tare_status need_x(onnx_call *c, value *x, const tare_tensor **t) {
    TARE_TRY(tare__onnx_need_input(c, 0, "X", x));
    return tare__onnx_need_meta(c, 0, "X", t);
}

// --- BatchNormalization, InstanceNormalization, GroupNormalization ---

static tare_status batch_norm(onnx_call *c) {
    static const char *const names[] = {"X", "input_mean", "input_var", "scale", "B"};
    static const size_t places[] = {0, 3, 4, 1, 2};
    value args[8];
    double eps, momentum;
    bool training = false;
    for (size_t i = 0; i < 5; i++)
        TARE_TRY(tare__onnx_need_input(c, places[i], names[i], &args[i]));
    TARE_TRY(tare__onnx_attr_float(c, "epsilon", 1e-5, &eps));
    TARE_TRY(tare__onnx_attr_float(c, "momentum", 0.9, &momentum));
    if (tare__onnx_opset(c) >= 14)
        TARE_TRY(tare__onnx_attr_bool(c, "training_mode", false, &training));
    // By the statistics of the input, as weights are standardized: nothing is left to keep.
    if (training) args[1] = args[2] = tare__none();
    args[5] = tare__bool(training);
    // torch counts the share of the new statistics, ONNX that of the old ones. The subtraction
    // leaves digits that no one wrote.
    const double share = 1 - momentum;
    args[6] = tare__float((double)tare__cut_int64(share * 1e9 + 0.5) / 1e9);
    args[7] = tare__float(eps);
    return tare__onnx_one(c, "torch.nn.functional.batch_norm", 8, args);
}

static tare_status instance_norm(onnx_call *c) {
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
static tare_status group_norm(onnx_call *c) {
    value args[5];
    const tare_tensor *t = NULL;
    int64_t groups;
    double eps;
    TARE_TRY(need_x(c, &args[0], &t));
    TARE_TRY(tare__onnx_need_input(c, 1, "scale", &args[2]));
    TARE_TRY(tare__onnx_need_input(c, 2, "bias", &args[3]));
    TARE_TRY(tare__onnx_attr_int(c, "num_groups", 0, &groups));
    TARE_TRY(tare__onnx_attr_float(c, "epsilon", 1e-5, &eps));
    tare__onnx_ignore_attr(c, "stash_type"); // sums are taken in double
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

// Outputs 1 and 2: the mean, and 1 / deviation.
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

static tare_status layer_norm(onnx_call *c) {
    value args[5];
    const tare_tensor *t = NULL;
    int64_t axis;
    double eps;
    TARE_TRY(need_x(c, &args[0], &t));
    TARE_TRY(tare__onnx_need_input(c, 1, "Scale", &args[2]));
    args[3] = tare__onnx_input(c, 2);
    TARE_TRY(tare__onnx_attr_axis(c, "axis", -1, t->ndim, &axis));
    TARE_TRY(tare__onnx_attr_float(c, "epsilon", 1e-5, &eps));
    tare__onnx_ignore_attr(c, "stash_type"); // sums are taken in double
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

static tare_status local_response_norm(onnx_call *c) {
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
                               "size=%lld is not supported: an even window has its middle "
                               "elsewhere than torch's",
                               (long long)size);
    const value args[] = {x, tare__int(size), tare__float(alpha), tare__float(beta),
                          tare__float(bias)};
    return tare__onnx_one(c, "torch.nn.functional.local_response_norm", 5, args);
}

static tare_status lp_norm(onnx_call *c) {
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

static tare_status mean_variance_norm(onnx_call *c) {
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

static const onnx_rule rows[] = {
    {"BatchNormalization", .translate = batch_norm},
    {"GroupNormalization", 18, .translate = group_norm},
    {"InstanceNormalization", .translate = instance_norm},
    {"LRN", .translate = local_response_norm},
    {"LayerNormalization", 17, .translate = layer_norm},
    {"LpNormalization", .translate = lp_norm},
    {"MeanVarianceNormalization", .translate = mean_variance_norm},
};

const onnx_rule_table tare__onnx_norm_rules = ONNX_RULES(rows);
