// SPDX-License-Identifier: Apache-2.0
// Layers with weights, and matrix products, in ONNX.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "io/onnx/families/families.h"
#include "io/onnx/families/layer.h"
#include "io/onnx/families/window.h"
#include "io/onnx/read/rules_common.h"
#include "ops/call.h"

// --- reading ---

// --- Conv, ConvTranspose ---

// The kernel's shape follows from the weight; another value in the file is an error.
static tare_status check_kernel_shape(onnx_call *c, const window *w) {
    int64_t kernel[3];
    size_t count = 0;
    bool given = false;
    TARE_TRY(tare__onnx_attr_ints(c, "kernel_shape", 3, kernel, &count, &given));
    if (given && count != w->dims)
        return tare__onnx_malformed(c, "kernel_shape has %zu values, expected %zu", count, w->dims);
    for (size_t d = 0; given && d < w->dims; d++)
        if (kernel[d] != w->kernel[d])
            return tare__onnx_malformed(
                c, "kernel_shape is %lld in dimension %zu, expected the weight's size %lld",
                (long long)kernel[d], d, (long long)w->kernel[d]);
    return TARE_OK;
}

static tare_status read_conv(onnx_call *c, window *w, size_t *mode, int64_t *groups) {
    const tare_tensor *x = NULL, *weight = NULL;
    *w = (window){0};
    TARE_TRY(tare__onnx_need_meta(c, 0, "X", &x));
    TARE_TRY(tare__onnx_need_meta(c, 1, "W", &weight));
    if (weight->ndim < 3 || weight->ndim > 5 || x->ndim != weight->ndim)
        return tare__onnx_fail(c,
                               "expected an input and a weight of 3 to 5 dimensions, found %d "
                               "and %d",
                               x->ndim, weight->ndim);
    w->dims = (size_t)weight->ndim - 2;
    memcpy(w->kernel, weight->shape + 2, w->dims * sizeof *w->kernel);
    TARE_TRY(check_kernel_shape(c, w));
    TARE_TRY(tare__onnx_attr_int(c, "group", 1, groups));
    return tare__window_read(c, x, w, mode);
}

static tare_status translate_conv(onnx_call *c) {
    static const char *const targets[] = {"torch.conv1d", "torch.conv2d", "torch.conv3d"};
    int64_t groups;
    size_t mode = 0;
    window w;
    TARE_TRY(read_conv(c, &w, &mode, &groups));
    value args[7] = {tare__onnx_input(c, 0), tare__onnx_input(c, 1), tare__onnx_input(c, 2)};
    if (!tare__window_is_symmetric(&w)) TARE_TRY(tare__window_pad_apart(c, &w, 0, &args[0]));
    TARE_TRY(tare__onnx_int_tuple(c, w.stride, w.dims, &args[3]));
    TARE_TRY(tare__onnx_int_tuple(c, w.begin, w.dims, &args[4]));
    TARE_TRY(tare__onnx_int_tuple(c, w.dilation, w.dims, &args[5]));
    args[6] = tare__int(groups);
    return tare__onnx_one(c, tare__window_function(&w, targets), 7, args);
}

// `output_shape`, or in * stride with automatic padding, determines the padding. A negative padding
// extends the output.
static tare_status read_output_shape(onnx_call *c, window *w, size_t mode, int64_t *more) {
    int64_t wanted[3];
    size_t count = 0;
    bool given = false;
    TARE_TRY(tare__onnx_attr_ints(c, "output_shape", 3, wanted, &count, &given));
    if (given && count != w->dims)
        return tare__onnx_malformed(c, "output_shape has %zu values, expected %zu", count, w->dims);
    for (size_t d = 0; (given || mode >= PAD_UPPER) && d < w->dims; d++) {
        if (!given) wanted[d] = w->in[d] * w->stride[d];
        const int64_t total =
            w->stride[d] * (w->in[d] - 1) + more[d] + tare__window_extent(w, d) - wanted[d];
        if (total < 0) {
            more[d] -= total;
            w->begin[d] = w->end[d] = 0;
            continue;
        }
        w->begin[d] = mode == PAD_UPPER ? total / 2 : total - total / 2;
        w->end[d] = total - w->begin[d];
    }
    return TARE_OK;
}

// torch crops both ends equally; the difference is cropped afterwards.
static tare_status cut_ends(onnx_call *c, const window *w, const int64_t *cut, value *y) {
    for (size_t d = 0; d < w->dims; d++) {
        const int64_t before = w->begin[d] - cut[d], after = w->end[d] - cut[d];
        const tare_tensor *t = tare__onnx_meta(c, y);
        if (before == 0 && after == 0) continue;
        TARE_TRY(ONNX_CALL(c, y, "torch.narrow", *y, tare__int((int64_t)d + 2), tare__int(before),
                           tare__int(t->shape[d + 2] - before - after)));
    }
    return TARE_OK;
}

static tare_status translate_conv_transpose(onnx_call *c) {
    static const char *const targets[] = {"torch.conv_transpose1d", "torch.conv_transpose2d",
                                          "torch.conv_transpose3d"};
    int64_t groups, more[3] = {0}, cut[3] = {0};
    size_t mode = 0;
    window w;
    value y;
    TARE_TRY(read_conv(c, &w, &mode, &groups));
    if (mode >= PAD_UPPER) memset(w.begin, 0, sizeof w.begin);
    if (mode >= PAD_UPPER) memset(w.end, 0, sizeof w.end);
    TARE_TRY(tare__window_read_sizes(c, "output_padding", w.dims, 0, 0, more));
    TARE_TRY(read_output_shape(c, &w, mode, more));
    for (size_t d = 0; d < w.dims; d++) cut[d] = w.begin[d] < w.end[d] ? w.begin[d] : w.end[d];
    value args[8] = {tare__onnx_input(c, 0), tare__onnx_input(c, 1), tare__onnx_input(c, 2)};
    TARE_TRY(tare__onnx_int_tuple(c, w.stride, w.dims, &args[3]));
    TARE_TRY(tare__onnx_int_tuple(c, cut, w.dims, &args[4]));
    TARE_TRY(tare__onnx_int_tuple(c, more, w.dims, &args[5]));
    args[6] = tare__int(groups);
    TARE_TRY(tare__onnx_int_tuple(c, w.dilation, w.dims, &args[7]));
    TARE_TRY(tare__onnx_call(c, false, tare__window_function(&w, targets), args, 8, &y));
    TARE_TRY(cut_ends(c, &w, cut, &y));
    tare__onnx_set_output(c, 0, &y);
    return TARE_OK;
}

// --- MatMul, Gemm, Einsum ---

// x @ W with a constant matrix is a linear layer.
static tare_status call_linear(onnx_call *c, value x, value weight, bool transposed, value bias,
                               value *out) {
    value w = weight;
    if (!transposed) TARE_TRY(ONNX_CALL(c, &w, "torch.t", weight));
    const value args[] = {x, w, bias};
    return tare__onnx_call(c, false, "torch.nn.functional.linear", args,
                           bias.kind == VALUE_NONE ? 2 : 3, out);
}

// With a constant operand it may be a linear layer, depending on the bias that follows (raise.c).
static tare_status translate_mat_mul(onnx_call *c) {
    value args[2];
    TARE_TRY(tare__onnx_need_input(c, 0, "A", &args[0]));
    TARE_TRY(tare__onnx_need_input(c, 1, "B", &args[1]));
    return tare__onnx_one(c, "torch.matmul", 2, args);
}

// --- Gemm: alpha * A' * B' + beta * C ---

typedef struct gemm_call {
    value a, b, added;
    const tare_tensor *added_meta;
    bool transposes_a, transposes_b;
    double alpha, beta;
    int64_t columns;
} gemm_call;

static tare_status read_gemm(onnx_call *c, gemm_call *g) {
    const tare_tensor *a = NULL, *b = NULL;
    TARE_TRY(tare__onnx_need_input(c, 0, "A", &g->a));
    TARE_TRY(tare__onnx_need_input(c, 1, "B", &g->b));
    TARE_TRY(tare__onnx_need_meta(c, 0, "A", &a));
    TARE_TRY(tare__onnx_need_meta(c, 1, "B", &b));
    g->added = tare__onnx_input(c, 2);
    TARE_TRY(tare__onnx_attr_bool(c, "transA", false, &g->transposes_a));
    TARE_TRY(tare__onnx_attr_bool(c, "transB", false, &g->transposes_b));
    TARE_TRY(tare__onnx_attr_float(c, "alpha", 1, &g->alpha));
    TARE_TRY(tare__onnx_attr_float(c, "beta", 1, &g->beta));
    if (a->ndim != 2 || b->ndim != 2)
        return tare__onnx_malformed(c, "expected matrices, found %d and %d dimensions", a->ndim,
                                    b->ndim);
    g->columns = b->shape[g->transposes_b ? 0 : 1];
    g->added_meta = tare__onnx_meta(c, &g->added);
    return TARE_OK;
}

static tare_status scaled(onnx_call *c, double factor, value *x) {
    return factor == 1 ? TARE_OK : ONNX_CALL(c, x, "operator.mul", *x, tare__float(factor));
}

// True if C has one number per column.
static bool is_bias(const gemm_call *g) {
    const tare_tensor *t = g->added_meta;
    return t != NULL && t->ndim >= 1 && t->count == g->columns &&
           t->shape[t->ndim - 1] == g->columns;
}

static tare_status translate_gemm(onnx_call *c) {
    gemm_call g;
    value y, bias = tare__none();
    TARE_TRY(read_gemm(c, &g));
    if (g.transposes_a) TARE_TRY(ONNX_CALL(c, &g.a, "torch.t", g.a));
    // Scaling of constants is computed here, and the bias gets one dimension.
    const bool adds = g.added.kind != VALUE_NONE && g.beta != 0;
    if (adds) TARE_TRY(scaled(c, g.beta, &g.added));
    const bool is_weight = tare__onnx_constant(c, 1) != NULL;
    if (is_weight) TARE_TRY(scaled(c, g.alpha, &g.b));
    if (is_weight || g.transposes_b) {
        const bool joins = adds && is_bias(&g) && (is_weight || g.alpha == 1);
        bias = joins ? g.added : bias;
        if (joins && g.added_meta->ndim > 1)
            TARE_TRY(tare__onnx_reshape(c, &bias, &g.columns, 1, &bias));
        TARE_TRY(call_linear(c, g.a, g.b, g.transposes_b, bias, &y));
    } else {
        TARE_TRY(ONNX_CALL(c, &y, "torch.matmul", g.a, g.b));
    }
    if (!is_weight) TARE_TRY(scaled(c, g.alpha, &y));
    if (adds && bias.kind == VALUE_NONE) TARE_TRY(ONNX_CALL(c, &y, "operator.add", y, g.added));
    tare__onnx_set_output(c, 0, &y);
    return TARE_OK;
}

static tare_status translate_einsum(onnx_call *c) {
    const char *equation = NULL;
    const size_t count = tare__onnx_input_count(c);
    value *args = tare__arena_array(tare__onnx_arena(c), count + 1, sizeof *args);
    if (args == NULL) return tare__out_of_memory(tare__onnx_error(c));
    TARE_TRY(tare__onnx_attr_string(c, "equation", "", &equation));
    args[0] = tare__string(equation);
    for (size_t i = 0; i < count; i++)
        TARE_TRY(tare__onnx_need_input(c, i, "Inputs", &args[i + 1]));
    return tare__onnx_one(c, "torch.einsum", count + 1, args);
}

static const onnx_rule read_rows[] = {
    {"Conv", .translate = translate_conv},
    {"ConvTranspose", .translate = translate_conv_transpose},
    {"Einsum", 12, .translate = translate_einsum},
    {"Gemm", .translate = translate_gemm},
    {"MatMul", .translate = translate_mat_mul},
};

// --- writing ---

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

// Explicit sizes, or the strings "valid" and "same".
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

static void write_conv(onnx_out *o) {
    conv_by(o, false, &(conv_params){3, 4, 5, 6, 0, 7});
}

static void write_conv_transpose(onnx_out *o) {
    conv_by(o, true, &(conv_params){3, 4, 7, 6, 5, 0});
}

static void write_convolution(onnx_out *o) {
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

static void write_linear(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *w = tare__out_meta(o, 1);
    const char *in = tare__out_input(o, 0), *weight = tare__out_input(o, 1);
    const char *bias = tare__out_input(o, 2);
    if (w->ndim != 2) tare__out_refuse(o, "a weight with %d dimensions is not written", w->ndim);
    const char *transposed = x->ndim == 2 ? NULL : tare__out_transposed_weight(o, weight);
    tare__out_result(o, tare__out_linear(o, x->ndim, in, weight, transposed, bias));
}

static void write_matmul(onnx_out *o) {
    const tare_tensor *y = tare__out_result_meta(o);
    const tare_dtype dtype = y->q != NULL ? TARE_FLOAT32 : y->dtype;
    tare__out_result(
        o, OUT(o, "MatMul", tare__out_operand(o, 0, dtype), tare__out_operand(o, 1, dtype)));
}

static void write_addmm(onnx_out *o) {
    const char *y =
        OUT(o, "Gemm", tare__out_input(o, 1), tare__out_input(o, 2), tare__out_input(o, 0));
    tare__out_attr_float(o, "beta", tare__out_double(o, 3, 1));
    tare__out_attr_float(o, "alpha", tare__out_double(o, 4, 1));
    tare__out_result(o, y);
}

static void write_outer(onnx_out *o) {
    const int64_t last = 1, first = 0;
    tare__out_result(o, OUT(o, "Mul", tare__out_unsqueeze(o, tare__out_input(o, 0), &last, 1),
                            tare__out_unsqueeze(o, tare__out_input(o, 1), &first, 1)));
}

// operands: the arguments after the equation, or the list that is the second argument.
static void write_einsum(onnx_out *o) {
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

static void write_embedding(onnx_out *o) {
    if (tare__out_given(o, 3)) tare__out_refuse(o, "Gather does not renormalize (max_norm)");
    tare__out_result(o, OUT(o, "Gather", tare__out_input(o, 1), tare__out_input(o, 0)));
}

static const onnx_write_rule write_rows[] = {
    {"addmm", "Gemm", .write = write_addmm},
    {"conv1d", "Conv", .write = write_conv},
    {"conv2d", "Conv", .write = write_conv},
    {"conv3d", "Conv", .write = write_conv},
    {"conv_transpose1d", "ConvTranspose", .write = write_conv_transpose},
    {"conv_transpose2d", "ConvTranspose", .write = write_conv_transpose},
    {"conv_transpose3d", "ConvTranspose", .write = write_conv_transpose},
    {"convolution", "Conv, ConvTranspose", .write = write_convolution},
    {"einsum", "Einsum", .write = write_einsum},
    {"embedding", "Gather", .write = write_embedding},
    {"linear", "Gemm, MatMul and Add", .write = write_linear},
    {"matmul", "MatMul", .write = write_matmul},
    {"outer", "Mul", .write = write_outer},
};

const onnx_family tare__onnx_layer_family = {.read = ONNX_RULES(read_rows),
                                             .write = ONNX_WRITE_RULES(write_rows)};
