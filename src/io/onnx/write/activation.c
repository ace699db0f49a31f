// SPDX-License-Identifier: Apache-2.0
// Activations and softmax as ONNX.
#include <math.h>
#include <string.h>

#include "io/onnx/write/rules.h"

static const char *real(onnx_out *o, double n) {
    return tare__out_number(o, tare__out_real_dtype(o), n);
}

static const char *in_float(onnx_out *o) {
    return tare__out_operand(o, 0, tare__out_real_dtype(o));
}

static void plain(onnx_out *o, const char *op_type) {
    tare__out_result(o, OUT(o, op_type, in_float(o)));
}
static void sigmoid(onnx_out *o) {
    plain(o, "Sigmoid");
}
static void tanh_of(onnx_out *o) {
    plain(o, "Tanh");
}

// --- limits ---

static tare_dtype own_dtype(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    return x->q != NULL ? TARE_FLOAT32 : x->dtype;
}

static void relu6(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, tare__out_clip(o, x, own_dtype(o), 0, 6));
}

static void hardtanh(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, tare__out_clip(o, x, own_dtype(o), tare__out_double(o, 1, -1),
                                       tare__out_double(o, 2, 1)));
}

// Bounds may be tensors as large as the input.
static void clamp(onnx_out *o) {
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
static void leaky_relu(onnx_out *o) {
    with_alpha(o, "LeakyRelu", 1, 0.01);
}
static void celu(onnx_out *o) {
    with_alpha(o, "Celu", 1, 1);
}

// scale * elu(x): ONNX's Selu has both factors.
static void elu(onnx_out *o) {
    const double scale = tare__out_double(o, 2, 1);
    const char *y = OUT(o, scale == 1 ? "Elu" : "Selu", tare__out_input(o, 0));
    tare__out_attr_float(o, "alpha", tare__out_double(o, 1, 1));
    if (scale != 1) tare__out_attr_float(o, "gamma", scale);
    if (tare__out_double(o, 3, 1) != 1) tare__out_refuse(o, "Elu has no input_scale");
    tare__out_result(o, y);
}

static void selu(onnx_out *o) {
    const char *y = OUT(o, "Selu", tare__out_input(o, 0));
    tare__out_attr_float(o, "alpha", 1.6732632423543772848170429916717);
    tare__out_attr_float(o, "gamma", 1.0507009873554804934193349852946);
    tare__out_result(o, y);
}

static const char *hard_sigmoid(onnx_out *o, const char *x) {
    const char *y = OUT(o, "HardSigmoid", x);
    tare__out_attr_float(o, "alpha", 1.0 / 6);
    tare__out_attr_float(o, "beta", 0.5);
    return y;
}

static void hardsigmoid(onnx_out *o) {
    tare__out_result(o, hard_sigmoid(o, tare__out_input(o, 0)));
}

static void hardswish(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, tare__out_opset(o) >= 14 ? OUT(o, "HardSwish", x)
                                                 : OUT(o, "Mul", x, hard_sigmoid(o, x)));
}

// --- made of several ---

static void silu(onnx_out *o) {
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

static void gelu(onnx_out *o) {
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

static void mish(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, tare__out_opset(o) >= 18
                            ? OUT(o, "Mish", x)
                            : OUT(o, "Mul", x, OUT(o, "Tanh", OUT(o, "Softplus", x))));
}

// Beyond the threshold torch returns x itself, which softplus equals there in float32.
static void softplus(onnx_out *o) {
    const double beta = tare__out_double(o, 1, 1), threshold = tare__out_double(o, 2, 20);
    const char *x = tare__out_input(o, 0);
    const char *scaled = beta == 1 ? x : OUT(o, "Mul", x, real(o, beta));
    const char *y = OUT(o, "Softplus", scaled);
    if (beta != 1) y = OUT(o, "Div", y, real(o, beta));
    if (threshold < 20) y = OUT(o, "Where", OUT(o, "Greater", scaled, real(o, threshold)), x, y);
    tare__out_result(o, y);
}

static void log_sigmoid(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, OUT(o, "Neg", OUT(o, "Softplus", OUT(o, "Neg", x))));
}

static void threshold(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    const char *is_above = OUT(o, "Greater", x, real(o, tare__out_double(o, 1, 0)));
    tare__out_result(o, OUT(o, "Where", is_above, x, real(o, tare__out_double(o, 2, 0))));
}

static void shrink(onnx_out *o, bool is_soft) {
    const double lambda = tare__out_double(o, 1, 0.5);
    const char *y = OUT(o, "Shrink", tare__out_input(o, 0));
    tare__out_attr_float(o, "lambd", lambda);
    tare__out_attr_float(o, "bias", is_soft ? lambda : 0);
    tare__out_result(o, y);
}
static void hardshrink(onnx_out *o) {
    shrink(o, false);
}
static void softshrink(onnx_out *o) {
    shrink(o, true);
}

static void tanhshrink(onnx_out *o) {
    const char *x = tare__out_input(o, 0);
    tare__out_result(o, OUT(o, "Sub", x, OUT(o, "Tanh", x)));
}

// A slope for each channel has the channels' dimension.
static void prelu(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *slope = tare__out_meta(o, 1);
    const char *w = tare__out_input(o, 1);
    int64_t shape[TARE_MAX_DIMS];
    const int ndim = x->ndim > 2 ? x->ndim - 1 : 1;
    for (int d = 0; d < ndim; d++) shape[d] = d == 0 ? slope->count : 1;
    if (ndim != slope->ndim) w = tare__out_reshape(o, w, shape, (size_t)ndim);
    tare__out_result(o, OUT(o, "PRelu", tare__out_input(o, 0), w));
}

static void along(onnx_out *o, const char *op_type) {
    const int ndim = tare__out_meta(o, 0)->ndim;
    const char *y = OUT(o, op_type, in_float(o));
    tare__out_attr_int(o, "axis", tare__out_dim(o, 1, -1, ndim));
    tare__out_result(o, y);
}
static void softmax(onnx_out *o) {
    along(o, "Softmax");
}
static void log_softmax(onnx_out *o) {
    along(o, "LogSoftmax");
}

static void glu(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0);
    const int64_t dim = tare__out_dim(o, 1, -1, x->ndim);
    if (tare__out_failed(o)) return;
    const int64_t half = x->shape[dim] / 2;
    const char *in = tare__out_input(o, 0);
    const char *a = tare__out_slice(o, in, dim, 0, half, 1);
    const char *b = tare__out_slice(o, in, dim, half, 2 * half, 1);
    tare__out_result(o, OUT(o, "Mul", a, OUT(o, "Sigmoid", b)));
}

static const onnx_write_rule rows[] = {
    {"celu", "Celu", .write = celu},
    {"clamp", "Clip", .write = clamp},
    {"elu", "Elu", .write = elu},
    {"gelu", "Gelu (opset 20), Erf or Tanh", .write = gelu},
    {"glu", "Slice, Sigmoid, Mul", .write = glu},
    {"hardshrink", "Shrink", .write = hardshrink},
    {"hardsigmoid", "HardSigmoid", .write = hardsigmoid},
    {"hardswish", "HardSwish (opset 14), HardSigmoid", .write = hardswish},
    {"hardtanh", "Clip", .write = hardtanh},
    {"leaky_relu", "LeakyRelu", .write = leaky_relu},
    {"log_sigmoid", "Softplus, Neg", .write = log_sigmoid},
    {"log_softmax", "LogSoftmax", .write = log_softmax},
    {"mish", "Mish (opset 18), Softplus, Tanh", .write = mish},
    {"prelu", "PRelu", .write = prelu},
    {"relu", "Relu"},
    {"relu6", "Clip", .write = relu6},
    {"selu", "Selu", .write = selu},
    {"sigmoid", "Sigmoid", .write = sigmoid},
    {"silu", "Sigmoid, Mul", .write = silu},
    {"softmax", "Softmax", .write = softmax},
    {"softplus", "Softplus", .write = softplus},
    {"softshrink", "Shrink", .write = softshrink},
    {"softsign", "Softsign"},
    {"tanh", "Tanh", .write = tanh_of},
    {"tanhshrink", "Tanh, Sub", .write = tanhshrink},
    {"threshold", "Where", .write = threshold},
};

const onnx_write_table tare__onnx_write_activation_rules = ONNX_WRITE_RULES(rows);
