// SPDX-License-Identifier: Apache-2.0
// ONNX activations.
#include <string.h>

#include "io/onnx/read/rules_common.h"

// f(X, attribute a, attribute b), with the attributes' ONNX defaults.
static tare_status with_floats(onnx_call *c, const char *target, size_t count,
                               const char *const *names, const double *defaults) {
    value args[3];
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &args[0]));
    for (size_t i = 0; i < count; i++) {
        double number;
        TARE_TRY(tare__onnx_attr_float(c, names[i], defaults[i], &number));
        args[i + 1] = tare__float(number);
    }
    return tare__onnx_one(c, target, count + 1, args);
}

#define ACTIVATION(name, target)                                                                   \
    static tare_status name(onnx_call *c) {                                                        \
        return with_floats(c, target, 0, NULL, NULL);                                              \
    }
#define ACTIVATION_WITH(name, target, attribute, otherwise)                                        \
    static tare_status name(onnx_call *c) {                                                        \
        return with_floats(c, target, 1, &(const char *const){attribute},                          \
                           &(const double){otherwise});                                            \
    }
ACTIVATION(relu, "torch.nn.functional.relu")
ACTIVATION(sigmoid, "torch.sigmoid")
ACTIVATION(tanh_of, "torch.tanh")
ACTIVATION(softsign, "torch.nn.functional.softsign")
ACTIVATION(softplus, "torch.nn.functional.softplus")
ACTIVATION(hard_swish, "torch.nn.functional.hardswish")
ACTIVATION(mish, "torch.nn.functional.mish")
ACTIVATION_WITH(celu, "torch.nn.functional.celu", "alpha", 1.0)
ACTIVATION_WITH(leaky_relu, "torch.nn.functional.leaky_relu", "alpha", 0.01)

// By keyword: lowering puts scale and zero point in front of what is by position.
static tare_status elu(onnx_call *c) {
    double alpha;
    value x;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    TARE_TRY(tare__onnx_attr_float(c, "alpha", 1.0, &alpha));
    const keyword kwarg = {"alpha", tare__float(alpha)};
    return tare__onnx_one_with(c, &(onnx_emit){.target = "torch.nn.functional.elu",
                                               .args = &x,
                                               .arg_count = 1,
                                               .kwargs = &kwarg,
                                               .kwarg_count = 1});
}

// gamma * alpha * (e^x - 1), gamma * x: torch's elu has both factors; its selu fixes them.
static tare_status selu(onnx_call *c) {
    double alpha, gamma;
    value x;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    TARE_TRY(tare__onnx_attr_float(c, "alpha", 1.67326319217681884765625, &alpha));
    TARE_TRY(tare__onnx_attr_float(c, "gamma", 1.05070102214813232421875, &gamma));
    if ((float)alpha == 1.67326319217681884765625f && (float)gamma == 1.05070102214813232421875f)
        return tare__onnx_one(c, "torch.nn.functional.selu", 1, &x);
    value args[] = {x, tare__float(alpha)}, y;
    TARE_TRY(ONNX_CALL(c, &y, "torch.nn.functional.elu", args[0], args[1]));
    const value scaled[] = {y, tare__float(gamma)};
    return tare__onnx_one(c, "operator.mul", 2, scaled);
}

static tare_status thresholded_relu(onnx_call *c) {
    double alpha;
    value x;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    TARE_TRY(tare__onnx_attr_float(c, "alpha", 1, &alpha));
    const value args[] = {x, tare__float(alpha), tare__float(0)};
    return tare__onnx_one(c, "torch.nn.functional.threshold", 3, args);
}

// max(0, min(1, alpha * x + beta)); torch's has alpha 1/6 and beta 1/2.
static tare_status hard_sigmoid(onnx_call *c) {
    double alpha, beta;
    value x;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    TARE_TRY(tare__onnx_attr_float(c, "alpha", 0.2, &alpha));
    TARE_TRY(tare__onnx_attr_float(c, "beta", 0.5, &beta));
    if ((float)alpha == 1.0f / 6 && beta == 0.5)
        return tare__onnx_one(c, "torch.nn.functional.hardsigmoid", 1, &x);
    TARE_TRY(ONNX_CALL(c, &x, "operator.mul", x, tare__float(alpha)));
    TARE_TRY(ONNX_CALL(c, &x, "operator.add", x, tare__float(beta)));
    const value args[] = {x, tare__float(0), tare__float(1)};
    return tare__onnx_one(c, "torch.clamp", 3, args);
}

// x > bias: x - bias; x < -lambd: x + bias; else 0.
static tare_status shrink(onnx_call *c) {
    double lambd, bias;
    value x;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    TARE_TRY(tare__onnx_attr_float(c, "lambd", 0.5, &lambd));
    TARE_TRY(tare__onnx_attr_float(c, "bias", 0, &bias));
    const value args[] = {x, tare__float(lambd)};
    if (bias == 0) return tare__onnx_one(c, "torch.nn.functional.hardshrink", 2, args);
    if (bias == lambd) return tare__onnx_one(c, "torch.nn.functional.softshrink", 2, args);
    return tare__onnx_fail(c, "bias=%g beside lambd=%g is not supported: torch knows 0 and lambd",
                           bias, lambd);
}

static tare_status gelu(onnx_call *c) {
    value x;
    size_t approximate = 0;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    TARE_TRY(ONNX_CHOICE(c, "approximate", "none", &approximate, "none", "tanh"));
    if (approximate == 0) return tare__onnx_one(c, "torch.nn.functional.gelu", 1, &x);
    const keyword kwarg = {"approximate", tare__string("tanh")};
    return tare__onnx_one_with(c, &(onnx_emit){.target = "torch.nn.functional.gelu",
                                               .args = &x,
                                               .arg_count = 1,
                                               .kwargs = &kwarg,
                                               .kwarg_count = 1});
}

// The slope may broadcast; torch has one slope, or one for each channel.
static tare_status prelu(onnx_call *c) {
    value args[2];
    const tare_tensor *x = NULL, *slope = NULL;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &args[0]));
    TARE_TRY(tare__onnx_need_input(c, 1, "slope", &args[1]));
    TARE_TRY(tare__onnx_need_meta(c, 0, "X", &x));
    TARE_TRY(tare__onnx_need_meta(c, 1, "slope", &slope));
    const int64_t channels = x->ndim > 1 ? x->shape[1] : 1;
    const int at = slope->ndim - (x->ndim - 1); // of the channels among the slope's dimensions
    const bool is_channels = slope->count == channels && x->ndim > 1 && at >= 0 &&
                             at < slope->ndim && slope->shape[at] == channels;
    if (slope->count == 1 || is_channels) {
        const int64_t count = slope->count;
        TARE_TRY(tare__onnx_reshape(c, &args[1], &count, 1, &args[1]));
        return tare__onnx_one(c, "torch.nn.functional.prelu", 2, args);
    }
    value above, scaled;
    TARE_TRY(ONNX_CALL(c, &above, "operator.gt", args[0], tare__int(0)));
    TARE_TRY(ONNX_CALL(c, &scaled, "operator.mul", args[0], args[1]));
    const value chosen[] = {above, args[0], scaled};
    return tare__onnx_one(c, "torch.where", 3, chosen);
}

// --- softmax: over one axis; before opset 13 over all from the axis on ---

static tare_status softmax_of(onnx_call *c, const char *target) {
    value x;
    const tare_tensor *t = NULL;
    int64_t axis;
    const bool is_old = tare__onnx_opset(c) < 13;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "input", &t));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", is_old ? 1 : -1, t->ndim, &axis));
    bool is_one_axis = true;
    for (int64_t d = axis + 1; d < t->ndim; d++) is_one_axis = is_one_axis && t->shape[d] == 1;
    const int64_t named = axis == t->ndim - 1 ? -1 : axis;
    const keyword dim = {"dim", tare__int(is_old && !is_one_axis ? -1 : named)};
    onnx_emit e = {.target = target, .args = &x, .arg_count = 1, .kwargs = &dim, .kwarg_count = 1};
    if (!is_old || is_one_axis) return tare__onnx_one_with(c, &e);
    int64_t flat[TARE_MAX_DIMS], shape[TARE_MAX_DIMS];
    const size_t ndim = (size_t)t->ndim;
    memcpy(shape, t->shape, sizeof shape);
    memcpy(flat, shape, sizeof flat);
    flat[axis] = -1;
    TARE_TRY(tare__onnx_reshape(c, &x, flat, (size_t)axis + 1, &x));
    TARE_TRY(tare__onnx_function(c, &e, &x));
    TARE_TRY(tare__onnx_reshape(c, &x, shape, ndim, &x));
    tare__onnx_set_output(c, 0, &x);
    return TARE_OK;
}

static tare_status softmax(onnx_call *c) {
    return softmax_of(c, "torch.nn.functional.softmax");
}
static tare_status log_softmax(onnx_call *c) {
    return softmax_of(c, "torch.nn.functional.log_softmax");
}

// 1 at the first of the greatest, else 0.
static tare_status hardmax(onnx_call *c) {
    value x, at, ones;
    const tare_tensor *t = NULL;
    int64_t axis;
    const bool is_old = tare__onnx_opset(c) < 13;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "input", &t));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", is_old ? 1 : -1, t->ndim, &axis));
    if (is_old && axis != t->ndim - 1)
        return tare__onnx_fail(c, "axis %lld before opset 13 is not supported", (long long)axis);
    TARE_TRY(ONNX_CALL(c, &at, "torch.argmax", x, tare__int(axis), tare__bool(true)));
    TARE_TRY(ONNX_CALL(c, &ones, "torch.zeros_like", x));
    const value args[] = {ones, tare__int(axis), at, tare__float(1)};
    return tare__onnx_one(c, "torch.scatter", 4, args);
}

static const onnx_rule rows[] = {
    {"Celu", 12, .translate = celu},
    {"Elu", .translate = elu},
    {"Gelu", 20, .translate = gelu},
    {"HardSigmoid", .translate = hard_sigmoid},
    {"HardSwish", 14, .translate = hard_swish},
    {"Hardmax", .translate = hardmax},
    {"LeakyRelu", .translate = leaky_relu},
    {"LogSoftmax", .translate = log_softmax},
    {"Mish", 18, .translate = mish},
    {"PRelu", .translate = prelu},
    {"Relu", .translate = relu},
    {"Selu", .translate = selu},
    {"Shrink", .translate = shrink},
    {"Sigmoid", .translate = sigmoid},
    {"Softmax", .translate = softmax},
    {"Softplus", .translate = softplus},
    {"Softsign", .translate = softsign},
    {"Tanh", .translate = tanh_of},
    {"ThresholdedRelu", .translate = thresholded_relu},
};

const onnx_rule_table tare__onnx_activation_rules = ONNX_RULES(rows);
