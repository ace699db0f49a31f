// SPDX-License-Identifier: Apache-2.0
// Layers with weights, and matrix products, as ONNX.
#include <string.h>

#include "io/onnx/write/layer.h"
#include "io/onnx/write/rules.h"
#include "ops/call.h"

// --- convolutions ---

static const char *pad_input(onnx_out *o, const conv_shape *c, const char *x, const char *mode) {
    int64_t pads[2 * TARE_MAX_DIMS] = {0};
    const int ndim = c->dims + 2;
    for (int d = 0; d < c->dims; d++) {
        pads[2 + d] = c->pad_before[d];
        pads[ndim + 2 + d] = c->pad_after[d];
    }
    const char *y = OUT(o, "Pad", x, tare__out_ints(o, pads, 2 * (size_t)ndim));
    tare__out_attr_text(o, "mode", mode);
    return y;
}

static const char *padding_of(onnx_out *o, const char *mode) {
    static const struct {
        const char *ours, *theirs;
        int since;
    } modes[] = {{"reflect", "reflect", 0}, {"replicate", "edge", 0}, {"circular", "wrap", 19}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].ours, mode) != 0) continue;
        if (tare__out_opset(o) < modes[i].since)
            tare__out_refuse(o, "Pad has the mode '%s' from opset %d on", modes[i].theirs,
                             modes[i].since);
        return modes[i].theirs;
    }
    tare__out_refuse(o, "Pad has no mode for '%s'", mode);
    return "";
}

static void conv_attributes(onnx_out *o, const conv_shape *c, bool pads) {
    int64_t both[6] = {0};
    const size_t dims = (size_t)c->dims;
    for (int d = 0; pads && d < c->dims; d++) {
        both[d] = c->pad_before[d];
        both[c->dims + d] = c->pad_after[d];
    }
    tare__out_attr_ints(o, "dilations", c->dilation, dims);
    tare__out_attr_int(o, "group", c->groups);
    tare__out_attr_ints(o, "kernel_shape", c->kernel, dims);
    if (c->is_transposed) tare__out_attr_ints(o, "output_padding", c->output_padding, dims);
    tare__out_attr_ints(o, "pads", both, 2 * dims);
    tare__out_attr_ints(o, "strides", c->stride, dims);
}

const char *tare__out_conv(onnx_out *o, const conv_shape *c, const char *x, const char *w,
                           const char *bias) {
    const int64_t first = 0;
    if (c->is_unbatched) x = tare__out_unsqueeze(o, x, &first, 1);
    const bool is_plain = c->padding_mode == NULL || strcmp(c->padding_mode, "zeros") == 0;
    if (!is_plain) x = pad_input(o, c, x, padding_of(o, c->padding_mode));
    const char *y = OUT(o, c->is_transposed ? "ConvTranspose" : "Conv", x, w, bias);
    conv_attributes(o, c, is_plain);
    return c->is_unbatched ? tare__out_squeeze(o, y, &first, 1) : y;
}

// Explicit sizes, or the words "valid" and "same".
static void read_padding(onnx_out *o, size_t i, conv_shape *c) {
    const value *v = tare__out_call(o)->param[i];
    if (v == NULL || v->kind != VALUE_STRING) {
        tare__out_try(o, tare__call_ints(tare__out_call(o), i, (size_t)c->dims, 0, c->pad_before));
        memcpy(c->pad_after, c->pad_before, sizeof c->pad_after);
        return;
    }
    if (strcmp(v->as.text, "same") != 0) return;
    for (int d = 0; d < c->dims; d++) {
        const int64_t total = c->dilation[d] * (c->kernel[d] - 1);
        c->pad_before[d] = total / 2;
        c->pad_after[d] = total - total / 2;
    }
}

typedef struct conv_params {
    size_t stride, padding, dilation, groups, output_padding, padding_mode; // 0: there is none
} conv_params;

static void conv_by(onnx_out *o, bool is_transposed, const conv_params *at) {
    const tare_tensor *x = tare__out_meta(o, 0), *w = tare__out_meta(o, 1);
    op_call *call = tare__out_call(o);
    if (tare__out_failed(o)) return;
    conv_shape c = {.dims = w->ndim - 2, .is_transposed = is_transposed};
    const size_t dims = (size_t)c.dims;
    c.is_unbatched = x->ndim == w->ndim - 1;
    for (int d = 0; d < c.dims; d++) c.kernel[d] = w->shape[2 + d];
    tare__out_try(o, tare__call_ints(call, at->stride, dims, 1, c.stride));
    tare__out_try(o, tare__call_ints(call, at->dilation, dims, 1, c.dilation));
    if (at->output_padding > 0)
        tare__out_try(o, tare__call_ints(call, at->output_padding, dims, 0, c.output_padding));
    read_padding(o, at->padding, &c);
    c.groups = tare__out_int(o, at->groups, 1);
    if (at->padding_mode > 0) c.padding_mode = tare__out_text(o, at->padding_mode, "zeros");
    tare__out_result(o, tare__out_conv(o, &c, tare__out_input(o, 0), tare__out_input(o, 1),
                                       tare__out_input(o, 2)));
}

static void conv(onnx_out *o) {
    conv_by(o, false, &(conv_params){3, 4, 5, 6, 0, 7});
}

static void conv_transpose(onnx_out *o) {
    conv_by(o, true, &(conv_params){3, 4, 7, 6, 5, 0});
}

static void convolution(onnx_out *o) {
    const bool is_transposed = tare__out_bool(o, 6, false);
    conv_by(o, is_transposed, &(conv_params){3, 4, 5, 8, is_transposed ? 7 : 0, 0});
}

// --- matrix products ---

const char *tare__out_linear(onnx_out *o, int ndim, const char *x, const char *w, const char *wt,
                             const char *bias) {
    if (ndim == 2) {
        const char *y = OUT(o, "Gemm", x, w, bias);
        tare__out_attr_int(o, "transB", 1);
        return y;
    }
    const char *y = OUT(o, "MatMul", x, wt != NULL ? wt : tare__out_swap(o, w, 2, 0, 1));
    return *bias != '\0' ? OUT(o, "Add", y, bias) : y;
}

static void linear(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *w = tare__out_meta(o, 1);
    const char *in = tare__out_input(o, 0), *weight = tare__out_input(o, 1);
    const char *bias = tare__out_input(o, 2);
    if (w->ndim != 2) tare__out_refuse(o, "a weight of %d dimensions", w->ndim);
    const char *turned = x->ndim == 2 ? NULL : tare__out_turned_weight(o, weight);
    tare__out_result(o, tare__out_linear(o, x->ndim, in, weight, turned, bias));
}

static void matmul(onnx_out *o) {
    const tare_tensor *y = tare__out_result_meta(o);
    const tare_dtype dtype = y->q != NULL ? TARE_FLOAT32 : y->dtype;
    tare__out_result(
        o, OUT(o, "MatMul", tare__out_operand(o, 0, dtype), tare__out_operand(o, 1, dtype)));
}

static void addmm(onnx_out *o) {
    const char *y =
        OUT(o, "Gemm", tare__out_input(o, 1), tare__out_input(o, 2), tare__out_input(o, 0));
    tare__out_attr_float(o, "beta", tare__out_double(o, 3, 1));
    tare__out_attr_float(o, "alpha", tare__out_double(o, 4, 1));
    tare__out_result(o, y);
}

static void outer(onnx_out *o) {
    const int64_t last = 1, first = 0;
    tare__out_result(o, OUT(o, "Mul", tare__out_unsqueeze(o, tare__out_input(o, 0), &last, 1),
                            tare__out_unsqueeze(o, tare__out_input(o, 1), &first, 1)));
}

// operands: what follows the equation, or the one list that stands there.
static void einsum(onnx_out *o) {
    const op_call *call = tare__out_call(o);
    const char *inputs[TARE_MAX_DIMS];
    size_t count = 0;
    const value *list = call->param[1];
    for (uint32_t i = 0; list != NULL && tare__value_has_items(list) && i < list->count; i++) {
        const value *v = &list->as.items[i];
        if (v->kind != VALUE_TENSOR || count == TARE_MAX_DIMS) {
            tare__out_refuse(o, "an operand is not a tensor");
            return;
        }
        inputs[count++] = tare__out_tensor(o, v->as.tensor);
    }
    const char *y = tare__out_node(o, "Einsum", inputs, count);
    tare__out_attr_text(o, "equation", tare__out_text(o, 0, ""));
    tare__out_result(o, y);
}

// --- embeddings ---

static void embedding(onnx_out *o) {
    if (tare__out_given(o, 3)) tare__out_refuse(o, "Gather renormalizes nothing (max_norm)");
    tare__out_result(o, OUT(o, "Gather", tare__out_input(o, 1), tare__out_input(o, 0)));
}

static const onnx_write_rule rows[] = {
    {"addmm", "Gemm", .write = addmm},
    {"conv1d", "Conv", .write = conv},
    {"conv2d", "Conv", .write = conv},
    {"conv3d", "Conv", .write = conv},
    {"conv_transpose1d", "ConvTranspose", .write = conv_transpose},
    {"conv_transpose2d", "ConvTranspose", .write = conv_transpose},
    {"conv_transpose3d", "ConvTranspose", .write = conv_transpose},
    {"convolution", "Conv, ConvTranspose", .write = convolution},
    {"einsum", "Einsum", .write = einsum},
    {"embedding", "Gather", .write = embedding},
    {"linear", "Gemm, MatMul and Add", .write = linear},
    {"matmul", "MatMul", .write = matmul},
    {"outer", "Mul", .write = outer},
};

const onnx_write_table tare__onnx_write_layer_rules = ONNX_WRITE_RULES(rows);
