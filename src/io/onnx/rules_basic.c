// SPDX-License-Identifier: Apache-2.0
// The operators that most files are made of.
#include <string.h>

#include "io/onnx/rules.h"

static tare_status relu(onnx_call *c) {
    value x;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    return tare__onnx_one(c, "torch.nn.functional.relu", 1, &x);
}

static tare_status add(onnx_call *c) {
    value args[2];
    TARE_TRY(tare__onnx_need_input(c, 0, "A", &args[0]));
    TARE_TRY(tare__onnx_need_input(c, 1, "B", &args[1]));
    return tare__onnx_one(c, "operator.add", 2, args);
}

// --- convolution ---

typedef struct window {
    size_t dims;
    int64_t stride[3], pad[6], dilation[3];
} window;

static tare_status read_sizes(onnx_call *c, const char *name, size_t count, int64_t otherwise,
                              int64_t *out) {
    size_t found = 0;
    bool given = false;
    for (size_t i = 0; i < count; i++) out[i] = otherwise;
    TARE_TRY(tare__onnx_attr_ints(c, name, count, out, &found, &given));
    if (given && found != count)
        return tare__onnx_malformed(c, "attribute '%s' must have %zu values, found %zu", name,
                                    count, found);
    return TARE_OK;
}

// `auto_pad` decides where it is not NOTSET. torch pads both sides alike.
static tare_status read_window(onnx_call *c, const tare_tensor *x, const int64_t *kernel,
                               window *w) {
    const char *mode = NULL;
    TARE_TRY(read_sizes(c, "strides", w->dims, 1, w->stride));
    TARE_TRY(read_sizes(c, "dilations", w->dims, 1, w->dilation));
    TARE_TRY(read_sizes(c, "pads", 2 * w->dims, 0, w->pad));
    TARE_TRY(tare__onnx_attr_string(c, "auto_pad", "NOTSET", &mode));
    if (strcmp(mode, "NOTSET") == 0 || strcmp(mode, "VALID") == 0) return TARE_OK;
    const bool is_upper = strcmp(mode, "SAME_UPPER") == 0;
    if (!is_upper && strcmp(mode, "SAME_LOWER") != 0)
        return tare__onnx_malformed(c, "unknown auto_pad '%s'", mode);
    for (size_t d = 0; d < w->dims; d++) {
        const int64_t in = x->shape[(size_t)x->ndim - w->dims + d];
        const int64_t out = (in + w->stride[d] - 1) / w->stride[d];
        int64_t total = (out - 1) * w->stride[d] + (kernel[d] - 1) * w->dilation[d] + 1 - in;
        if (total < 0) total = 0;
        w->pad[d] = is_upper ? total / 2 : total - total / 2;
        w->pad[w->dims + d] = total - w->pad[d];
    }
    return TARE_OK;
}

// Sides that differ are padded by a call of their own; torch counts from the last dimension.
static tare_status pad_apart(onnx_call *c, window *w, value *x) {
    int64_t amounts[6];
    bool differs = false;
    for (size_t d = 0; d < w->dims; d++) {
        amounts[2 * (w->dims - 1 - d)] = w->pad[d];
        amounts[2 * (w->dims - 1 - d) + 1] = w->pad[w->dims + d];
        differs |= w->pad[d] != w->pad[w->dims + d];
    }
    if (!differs) return TARE_OK;
    value args[2] = {*x};
    TARE_TRY(tare__onnx_int_tuple(c, amounts, 2 * w->dims, &args[1]));
    const onnx_emit pad = {.target = "torch.nn.functional.pad", .args = args, .arg_count = 2};
    memset(w->pad, 0, sizeof w->pad);
    return tare__onnx_function(c, &pad, x);
}

static tare_status conv(onnx_call *c) {
    static const char *const targets[] = {"torch.conv1d", "torch.conv2d", "torch.conv3d"};
    const tare_tensor *x = NULL, *weight = NULL;
    int64_t groups = 1;
    window w = {0};
    TARE_TRY(tare__onnx_need_meta(c, 0, "X", &x));
    TARE_TRY(tare__onnx_need_meta(c, 1, "W", &weight));
    if (weight->ndim < 3 || weight->ndim > 5 || x->ndim != weight->ndim)
        return tare__onnx_fail(
            c, "expected an input and a weight of 3 to 5 dimensions, found %d and %d", x->ndim,
            weight->ndim);
    w.dims = (size_t)weight->ndim - 2;
    TARE_TRY(read_window(c, x, weight->shape + 2, &w));
    TARE_TRY(tare__onnx_attr_int(c, "group", 1, &groups));
    tare__onnx_ignore_attr(c, "kernel_shape"); // the weight has it
    value args[7] = {tare__onnx_input(c, 0), tare__onnx_input(c, 1), tare__onnx_input(c, 2)};
    TARE_TRY(pad_apart(c, &w, &args[0]));
    TARE_TRY(tare__onnx_int_tuple(c, w.stride, w.dims, &args[3]));
    TARE_TRY(tare__onnx_int_tuple(c, w.pad, w.dims, &args[4]));
    TARE_TRY(tare__onnx_int_tuple(c, w.dilation, w.dims, &args[5]));
    args[6] = tare__int(groups);
    return tare__onnx_one(c, targets[w.dims - 1], 7, args);
}

static const onnx_rule rows[] = {
    {"Add", .translate = add},
    {"Conv", .translate = conv},
    {"Relu", .translate = relu},
};

const onnx_rule_table tare__onnx_basic_rules = ONNX_RULES(rows);
