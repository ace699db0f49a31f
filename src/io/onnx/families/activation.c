// SPDX-License-Identifier: Apache-2.0
// Activations and softmax in ONNX.
#include <math.h>
#include <string.h>

#include "io/onnx/families/families.h"
#include "io/onnx/raise/match.h"
#include "io/onnx/read/rules_common.h"

// --- reading ---

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
    static tare_status translate_##name(onnx_call *c) {                                            \
        return with_floats(c, target, 0, NULL, NULL);                                              \
    }
#define ACTIVATION_WITH(name, target, attribute, otherwise)                                        \
    static tare_status translate_##name(onnx_call *c) {                                            \
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

// alpha by keyword: lowering inserts scale and zero point before positional arguments.
static tare_status translate_elu(onnx_call *c) {
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
static tare_status translate_selu(onnx_call *c) {
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

static tare_status translate_thresholded_relu(onnx_call *c) {
    double alpha;
    value x;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    TARE_TRY(tare__onnx_attr_float(c, "alpha", 1, &alpha));
    const value args[] = {x, tare__float(alpha), tare__float(0)};
    return tare__onnx_one(c, "torch.nn.functional.threshold", 3, args);
}

// max(0, min(1, alpha * x + beta)); torch's has alpha 1/6 and beta 1/2.
static tare_status translate_hard_sigmoid(onnx_call *c) {
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
static tare_status translate_shrink(onnx_call *c) {
    double lambd, bias;
    value x;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    TARE_TRY(tare__onnx_attr_float(c, "lambd", 0.5, &lambd));
    TARE_TRY(tare__onnx_attr_float(c, "bias", 0, &bias));
    const value args[] = {x, tare__float(lambd)};
    if (bias == 0) return tare__onnx_one(c, "torch.nn.functional.hardshrink", 2, args);
    if (bias == lambd) return tare__onnx_one(c, "torch.nn.functional.softshrink", 2, args);
    return tare__onnx_fail(
        c, "bias=%g with lambd=%g is not supported: expected a bias of 0 or lambd", bias, lambd);
}

static tare_status translate_gelu(onnx_call *c) {
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
static tare_status translate_prelu(onnx_call *c) {
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

static tare_status translate_softmax(onnx_call *c) {
    return softmax_of(c, "torch.nn.functional.softmax");
}
static tare_status translate_log_softmax(onnx_call *c) {
    return softmax_of(c, "torch.nn.functional.log_softmax");
}

// 1 at the first maximum, else 0.
static tare_status translate_hardmax(onnx_call *c) {
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

static const onnx_rule read_rows[] = {
    {"Celu", 12, .translate = translate_celu},
    {"Elu", .translate = translate_elu},
    {"Gelu", 20, .translate = translate_gelu},
    {"HardSigmoid", .translate = translate_hard_sigmoid},
    {"HardSwish", 14, .translate = translate_hard_swish},
    {"Hardmax", .translate = translate_hardmax},
    {"LeakyRelu", .translate = translate_leaky_relu},
    {"LogSoftmax", .translate = translate_log_softmax},
    {"Mish", 18, .translate = translate_mish},
    {"PRelu", .translate = translate_prelu},
    {"Relu", .translate = translate_relu},
    {"Selu", .translate = translate_selu},
    {"Shrink", .translate = translate_shrink},
    {"Sigmoid", .translate = translate_sigmoid},
    {"Softmax", .translate = translate_softmax},
    {"Softplus", .translate = translate_softplus},
    {"Softsign", .translate = translate_softsign},
    {"Tanh", .translate = translate_tanh_of},
    {"ThresholdedRelu", .translate = translate_thresholded_relu},
};

// --- writing ---

static const char *real(onnx_out *o, double n) {
    return tare__out_number(o, tare__out_real_dtype(o), n);
}

static const char *in_float(onnx_out *o) {
    return tare__out_operand(o, 0, tare__out_real_dtype(o));
}

static void plain(onnx_out *o, const char *op_type) {
    tare__out_result(o, OUT(o, op_type, in_float(o)));
}
static void write_sigmoid(onnx_out *o) {
    plain(o, "Sigmoid");
}
static void write_tanh_of(onnx_out *o) {
    plain(o, "Tanh");
}

// --- limits ---

static tare_dtype own_dtype(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    return x->q != NULL ? TARE_FLOAT32 : x->dtype;
}

static void write_relu6(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, tare__out_clip(o, x, own_dtype(o), 0, 6));
}

static void write_hardtanh(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, tare__out_clip(o, x, own_dtype(o), tare__out_double(o, 1, -1),
                                       tare__out_double(o, 2, 1)));
}

// Bounds may be tensors as large as the input.
static void write_clamp(onnx_out *o) {
    const tare_tensor *y = tare__out_result_meta(o);
    const tare_dtype dtype = y->q != NULL ? TARE_FLOAT32 : y->dtype;
    const op_call *call = tare__out_call(o);
    const char *x = tare__out_operand(o, 0, dtype);
    bool has_tensor = false;
    for (size_t i = 1; i <= 2; i++)
        has_tensor |= tare__out_given(o, i) && call->param[i]->kind == VALUE_TENSOR;
    const char *low = tare__out_given(o, 1) ? tare__out_operand(o, 1, dtype) : "";
    const char *high = tare__out_given(o, 2) ? tare__out_operand(o, 2, dtype) : "";
    if (!has_tensor) {
        tare__out_result(o, OUT(o, "Clip", x, low, high));
        return;
    }
    if (*low != '\0') x = OUT(o, "Max", x, low);
    if (*high != '\0') x = OUT(o, "Min", x, high);
    tare__out_result(o, x);
}

// --- one node with attributes ---

static void with_alpha(onnx_out *o, const char *op_type, size_t i, double otherwise) {
    const char *y = OUT(o, op_type, tare__out_input(o, 0));
    tare__out_attr_float(o, "alpha", tare__out_double(o, i, otherwise));
    tare__out_result(o, y);
}
static void write_leaky_relu(onnx_out *o) {
    with_alpha(o, "LeakyRelu", 1, 0.01);
}
static void write_celu(onnx_out *o) {
    with_alpha(o, "Celu", 1, 1);
}

// scale * elu(x): ONNX's Selu has both factors.
static void write_elu(onnx_out *o) {
    const double scale = tare__out_double(o, 2, 1);
    const char *y = OUT(o, scale == 1 ? "Elu" : "Selu", tare__out_input(o, 0));
    tare__out_attr_float(o, "alpha", tare__out_double(o, 1, 1));
    if (scale != 1) tare__out_attr_float(o, "gamma", scale);
    if (tare__out_double(o, 3, 1) != 1) tare__out_refuse(o, "Elu has no input_scale");
    tare__out_result(o, y);
}

static void write_selu(onnx_out *o) {
    const char *y = OUT(o, "Selu", tare__out_input(o, 0));
    tare__out_attr_float(o, "alpha", 1.6732632423543772848170429916717);
    tare__out_attr_float(o, "gamma", 1.0507009873554804934193349852946);
    tare__out_result(o, y);
}

static const char *write_hard_sigmoid(onnx_out *o, const char *x) {
    const char *y = OUT(o, "HardSigmoid", x);
    tare__out_attr_float(o, "alpha", 1.0 / 6);
    tare__out_attr_float(o, "beta", 0.5);
    return y;
}

static void write_hardsigmoid(onnx_out *o) {
    tare__out_result(o, write_hard_sigmoid(o, tare__out_input(o, 0)));
}

static void write_hardswish(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, tare__out_opset(o) >= 14 ? OUT(o, "HardSwish", x)
                                                 : OUT(o, "Mul", x, write_hard_sigmoid(o, x)));
}

// --- made of several ---

static void write_silu(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, OUT(o, "Mul", x, OUT(o, "Sigmoid", x)));
}

static const char *half_times(onnx_out *o, const char *x, const char *y) {
    return OUT(o, "Mul", OUT(o, "Mul", x, OUT(o, "Add", y, real(o, 1))), real(o, 0.5));
}

static const char *gelu_of_erf(onnx_out *o, const char *x) {
    return half_times(o, x, OUT(o, "Erf", OUT(o, "Div", x, real(o, sqrt(2)))));
}

static const char *gelu_of_tanh(onnx_out *o, const char *x) {
    const char *cube = OUT(o, "Mul", OUT(o, "Mul", x, x), x);
    const char *inner = OUT(o, "Add", x, OUT(o, "Mul", cube, real(o, 0.044715)));
    return half_times(o, x, OUT(o, "Tanh", OUT(o, "Mul", inner, real(o, 0.7978845608028654))));
}

static void write_gelu(onnx_out *o) {
    const char *x = tare__out_input(o, 0), *form = tare__out_text(o, 1, "none");
    const bool is_tanh = strcmp(form, "tanh") == 0;
    if (tare__out_opset(o) < 20) {
        tare__out_result(o, is_tanh ? gelu_of_tanh(o, x) : gelu_of_erf(o, x));
        return;
    }
    const char *y = OUT(o, "Gelu", x);
    if (is_tanh) tare__out_attr_text(o, "approximate", "tanh");
    tare__out_result(o, y);
}

static void write_mish(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, tare__out_opset(o) >= 18
                            ? OUT(o, "Mish", x)
                            : OUT(o, "Mul", x, OUT(o, "Tanh", OUT(o, "Softplus", x))));
}

// Above the threshold torch returns x, which equals softplus in float32.
static void write_softplus(onnx_out *o) {
    const double beta = tare__out_double(o, 1, 1), threshold = tare__out_double(o, 2, 20);
    const char *x = tare__out_input(o, 0);
    const char *scaled = beta == 1 ? x : OUT(o, "Mul", x, real(o, beta));
    const char *y = OUT(o, "Softplus", scaled);
    if (beta != 1) y = OUT(o, "Div", y, real(o, beta));
    if (threshold < 20) y = OUT(o, "Where", OUT(o, "Greater", scaled, real(o, threshold)), x, y);
    tare__out_result(o, y);
}

static void write_log_sigmoid(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, OUT(o, "Neg", OUT(o, "Softplus", OUT(o, "Neg", x))));
}

static void write_threshold(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    const char *is_above = OUT(o, "Greater", x, real(o, tare__out_double(o, 1, 0)));
    tare__out_result(o, OUT(o, "Where", is_above, x, real(o, tare__out_double(o, 2, 0))));
}

static void write_shrink(onnx_out *o, bool is_soft) {
    const double lambda = tare__out_double(o, 1, 0.5);
    const char *y = OUT(o, "Shrink", tare__out_input(o, 0));
    tare__out_attr_float(o, "lambd", lambda);
    tare__out_attr_float(o, "bias", is_soft ? lambda : 0);
    tare__out_result(o, y);
}
static void write_hardshrink(onnx_out *o) {
    write_shrink(o, false);
}
static void write_softshrink(onnx_out *o) {
    write_shrink(o, true);
}

static void write_tanhshrink(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, OUT(o, "Sub", x, OUT(o, "Tanh", x)));
}

// A slope per channel gets the dimensions that broadcasting over the channels requires.
static void write_prelu(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *slope = tare__out_meta(o, 1);
    const char *w = tare__out_input(o, 1);
    int64_t shape[TARE_MAX_DIMS];
    const int ndim = x->ndim > 2 ? x->ndim - 1 : 1;
    for (int d = 0; d < ndim; d++) shape[d] = d == 0 ? slope->count : 1;
    if (ndim != slope->ndim) w = tare__out_reshape(o, w, shape, (size_t)ndim);
    tare__out_result(o, OUT(o, "PRelu", tare__out_input(o, 0), w));
}

static const char *along(onnx_out *o, const char *op_type) {
    const int ndim = tare__out_meta(o, 0)->ndim;
    const char *y = OUT(o, op_type, in_float(o));
    tare__out_attr_int(o, "axis", tare__out_dim(o, 1, -1, ndim));
    return y;
}
static void write_softmax(onnx_out *o) {
    const char *y = along(o, "Softmax");
    tare__out_mark_wrapping(o);
    tare__out_result(o, y);
}
static void write_log_softmax(onnx_out *o) {
    tare__out_result(o, along(o, "LogSoftmax"));
}

static void write_glu(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t dim = tare__out_dim(o, 1, -1, x->ndim);
    if (tare__out_failed(o)) return;
    const int64_t half = x->shape[dim] / 2;
    const char *in = tare__out_input(o, 0);
    const char *a = tare__out_slice(o, in, dim, 0, half, 1);
    const char *b = tare__out_slice(o, in, dim, half, 2 * half, 1);
    tare__out_result(o, OUT(o, "Mul", a, OUT(o, "Sigmoid", b)));
}

static const onnx_write_rule write_rows[] = {
    {"celu", "Celu", .write = write_celu},
    {"clamp", "Clip", .write = write_clamp},
    {"elu", "Elu", .write = write_elu},
    {"gelu", "Gelu (opset 20), Erf or Tanh", .write = write_gelu},
    {"glu", "Slice, Sigmoid, Mul", .write = write_glu},
    {"hardshrink", "Shrink", .write = write_hardshrink},
    {"hardsigmoid", "HardSigmoid", .write = write_hardsigmoid},
    {"hardswish", "HardSwish (opset 14), HardSigmoid", .write = write_hardswish},
    {"hardtanh", "Clip", .write = write_hardtanh},
    {"leaky_relu", "LeakyRelu", .write = write_leaky_relu},
    {"log_sigmoid", "Softplus, Neg", .write = write_log_sigmoid},
    {"log_softmax", "LogSoftmax", .write = write_log_softmax},
    {"mish", "Mish (opset 18), Softplus, Tanh", .write = write_mish},
    {"prelu", "PRelu", .write = write_prelu},
    {"relu", "Relu"},
    {"relu6", "Clip", .write = write_relu6},
    {"selu", "Selu", .write = write_selu},
    {"sigmoid", "Sigmoid", .write = write_sigmoid},
    {"silu", "Sigmoid, Mul", .write = write_silu},
    {"softmax", "Softmax", .write = write_softmax},
    {"softplus", "Softplus", .write = write_softplus},
    {"softshrink", "Shrink", .write = write_softshrink},
    {"softsign", "Softsign"},
    {"tanh", "Tanh", .write = write_tanh_of},
    {"tanhshrink", "Tanh, Sub", .write = write_tanhshrink},
    {"threshold", "Where", .write = write_threshold},
};

// --- idioms of exporters ---

#define GELU      "torch.nn.functional.gelu(x)"
#define GELU_TANH "torch.nn.functional.gelu(x, approximate = 'tanh')"

// clang-format off
static const idiom idioms[] = {
    {"erf", "x", "a = x / 1.4142135623730951; b = torch.erf(a); s = b + 1; y = x * s; y * 0.5", GELU, false, tare__match_keeps_shape},
    {"erf", "x", "a = x / 1.4142135623730951; b = torch.erf(a); s = b + 1; h = x * 0.5; h * s", GELU, false, tare__match_keeps_shape},
    {"erf", "x", "a = x / 1.4142135623730951; b = torch.erf(a); s = b + 1; h = s * 0.5; x * h", GELU, false, tare__match_keeps_shape},
    {"tanh", "x", "a = torch.pow(x, 3); b = a * 0.044715; s = x + b; t = s * 0.7978845608028654; u = torch.tanh(t); "
          "o = u + 1; h = x * 0.5; h * o", GELU_TANH, false, tare__match_keeps_shape},
    {"tanh", "x", "a = torch.pow(x, 3); b = a * 0.044715; s = x + b; t = s * 0.7978845608028654; u = torch.tanh(t); "
          "o = u + 1; y = x * o; y * 0.5", GELU_TANH, false, tare__match_keeps_shape},
    {"tanh", "x", "a = torch.pow(x, 3); b = a * 0.044715; s = x + b; t = s * 0.7978845608028654; u = torch.tanh(t); "
          "o = u + 1; h = o * 0.5; x * h", GELU_TANH, false, tare__match_keeps_shape},
    {"tanh", "x", "q = x * x; a = q * x; b = a * 0.044715; s = x + b; t = s * 0.7978845608028654; u = torch.tanh(t); "
          "o = u + 1; h = x * 0.5; h * o", GELU_TANH, false, tare__match_keeps_shape},
    {"tanh", "x", "q = x * x; a = q * x; b = a * 0.044715; s = x + b; t = s * 0.7978845608028654; u = torch.tanh(t); "
          "o = u + 1; y = x * o; y * 0.5", GELU_TANH, false, tare__match_keeps_shape},
    {"sigmoid", "x", "s = torch.sigmoid(x); x * s", "torch.nn.functional.silu(x)", true, tare__match_keeps_shape},
    {"tanh", "x", "s = torch.nn.functional.softplus(x); t = torch.tanh(s); x * t", "torch.nn.functional.mish(x)", true, tare__match_keeps_shape},
    {"exp", "x", "e = torch.exp(x); s = e + 1; torch.log(s)", "torch.nn.functional.softplus(x)", true, tare__match_keeps_shape},
    {"where", "x", "g = x > 20; s = torch.nn.functional.softplus(x); torch.where(g, x, s)", "torch.nn.functional.softplus(x)", true, tare__match_keeps_shape},
    {"hardsigmoid", "x", "h = torch.nn.functional.hardsigmoid(x); x * h", "torch.nn.functional.hardswish(x)", true, tare__match_keeps_shape},
    {"relu6", "x", "a = x + 3; r = torch.nn.functional.relu6(a); y = x * r; y / 6", "torch.nn.functional.hardswish(x)", true, tare__match_keeps_shape},
    {"relu6", "x", "a = x + 3; r = torch.nn.functional.relu6(a); h = r / 6; x * h", "torch.nn.functional.hardswish(x)", true, tare__match_keeps_shape},
    {"relu6", "x", "a = x + 3; r = torch.nn.functional.relu6(a); r / 6", "torch.nn.functional.hardsigmoid(x)", true, tare__match_keeps_shape},
};
// clang-format on

const onnx_family tare__onnx_activation_family = {.read = ONNX_RULES(read_rows),
                                                  .write = ONNX_WRITE_RULES(write_rows),
                                                  .idioms = idioms,
                                                  .idiom_count = sizeof idioms / sizeof *idioms};
