// SPDX-License-Identifier: Apache-2.0
// Convolutions and transposed convolutions in one, two and three dimensions.
#include <string.h>

#include "dnnl/float_kernels.h"
#include "ops/families/families.h"
#include "ops/families/pad.h"
#include "ops/layer_call.h"
#include "ops/rules.h"

// Indices of the parameters, which are in another order for transposed convolutions.
typedef struct conv_params {
    size_t stride, padding, dilation, groups, output_padding, padding_mode;
} conv_params;
static const conv_params plain_params = {3, 4, 5, 6, 0, 7};
static const conv_params transposed_params = {3, 4, 7, 6, 5, 0};

typedef struct conv_plan {
    const tare_tensor *x, *w, *bias;
    bool batched;
    int dims;
    float_conv conv;
    pad_call pad; // explicit padding of x
} conv_plan;

static tare_status read_tensors(op_call *call, int dims, conv_plan *p) {
    TARE_TRY(tare__need_float(call, 0, &p->x));
    TARE_TRY(tare__need_float(call, 1, &p->w));
    if (tare__call_given(call, 2)) TARE_TRY(tare__need_float(call, 2, &p->bias));
    p->dims = dims;
    p->batched = p->x->ndim == dims + 2;
    if ((!p->batched && p->x->ndim != dims + 1) || p->w->ndim != dims + 2)
        return tare__call_fail(
            call, "input of shape %s and weight of shape %s must have %d and %d dimensions",
            tare__call_shape_text(call, p->x), tare__call_shape_text(call, p->w), dims + 2,
            dims + 2);
    return TARE_OK;
}

// Reads sizes for the last `dims` of three dimensions; the others get the default.
static tare_status read_sizes(op_call *call, size_t i, int dims, int64_t otherwise, int64_t least,
                              int64_t out[3]) {
    for (int d = 0; d < 3 - dims; d++) out[d] = otherwise;
    TARE_TRY(tare__call_ints(call, i, (size_t)dims, otherwise, out + 3 - dims));
    for (int d = 0; d < 3; d++)
        if (out[d] < least || out[d] > INT32_MAX)
            return tare__call_fail(call, "stride, padding or dilation %lld is out of range",
                                   (long long)out[d]);
    return TARE_OK;
}

// Reads the padding. 'same' pads dilation * (kernel - 1) elements in all, an odd one after; so
// `after` may differ from the amounts before.
static tare_status read_padding(op_call *call, const conv_params *at, conv_plan *p,
                                int64_t after[3]) {
    float_conv *c = &p->conv;
    const value *v = call->param[at->padding];
    if (v != NULL && v->kind == VALUE_STRING) {
        const bool same = strcmp(v->as.text, "same") == 0;
        if (!same && strcmp(v->as.text, "valid") != 0)
            return tare__call_fail(call, "padding must be 'same', 'valid' or ints, found '%s'",
                                   v->as.text);
        for (int d = 0; d < 3; d++) {
            const int64_t total = same ? c->dilation[d] * (c->kernel[d] - 1) : 0;
            if (total > 0 && c->stride[d] != 1)
                return tare__call_fail(call, "padding 'same' needs a stride of 1");
            c->pad[d] = total / 2;
            after[d] = total - total / 2;
        }
        return TARE_OK;
    }
    TARE_TRY(read_sizes(call, at->padding, p->dims, 0, 0, c->pad));
    memcpy(after, c->pad, sizeof c->pad);
    return TARE_OK;
}

// Limits sizes so that products of two never overflow.
static tare_status check_sizes(op_call *call, const conv_plan *p) {
    for (int d = 0; d < 3; d++)
        if (p->conv.in[d] > INT32_MAX || p->conv.kernel[d] < 1 || p->conv.kernel[d] > INT32_MAX)
            return tare__call_fail(call, "input of shape %s or weight of shape %s is out of range",
                                   tare__call_shape_text(call, p->x),
                                   tare__call_shape_text(call, p->w));
    return TARE_OK;
}

static tare_status read_common(op_call *call, const conv_params *at, int dims, conv_plan *p) {
    float_conv *c = &p->conv;
    *p = (conv_plan){0};
    TARE_TRY(read_tensors(call, dims, p));
    for (int d = 0; d < 3; d++) {
        const int axis = d - (3 - dims); // of the spatial dimensions
        c->in[d] = axis < 0 ? 1 : p->x->shape[p->x->ndim - dims + axis];
        c->kernel[d] = axis < 0 ? 1 : p->w->shape[2 + axis];
    }
    TARE_TRY(check_sizes(call, p));
    TARE_TRY(read_sizes(call, at->stride, dims, 1, 1, c->stride));
    TARE_TRY(read_sizes(call, at->dilation, dims, 1, 1, c->dilation));
    TARE_TRY(tare__call_int(call, at->groups, 1, &c->groups));
    c->batch = p->batched ? p->x->shape[0] : 1;
    c->in_channels = p->x->shape[p->batched ? 1 : 0];
    if (c->groups < 1 || c->groups > INT32_MAX)
        return tare__call_fail(call, "groups=%lld is out of range", (long long)c->groups);
    return TARE_OK;
}

// weight_in: input channels of one group according to the weight.
static tare_status check_channels(op_call *call, const conv_plan *p, int64_t weight_in) {
    const float_conv *c = &p->conv;
    if (c->in_channels % c->groups != 0 || c->in_channels / c->groups != weight_in ||
        c->out_channels % c->groups != 0)
        return tare__call_fail(call,
                               "input of shape %s does not fit weight of shape %s with groups=%lld",
                               tare__call_shape_text(call, p->x), tare__call_shape_text(call, p->w),
                               (long long)c->groups);
    if (p->bias != NULL && p->bias->count != c->out_channels)
        return tare__call_fail(call, "bias of shape %s does not fit %lld output channels",
                               tare__call_shape_text(call, p->bias), (long long)c->out_channels);
    return TARE_OK;
}

static tare_status conv_result(op_call *call, const conv_plan *p) {
    int64_t shape[TARE_MAX_DIMS];
    int ndim = 0;
    if (p->batched) shape[ndim++] = p->conv.batch;
    shape[ndim++] = p->conv.out_channels;
    for (int d = 3 - p->dims; d < 3; d++) shape[ndim++] = p->conv.out[d];
    return tare__call_result(call, TARE_FLOAT32, ndim, shape, NULL);
}

// --- convolution ---

// Moves the padding out of the convolution, into a padded copy of the input.
static tare_status plan_explicit_padding(op_call *call, conv_plan *p, const int64_t after[3]) {
    float_conv *c = &p->conv;
    for (int d = 3 - p->dims; d < 3; d++) {
        const int axis = p->x->ndim - 3 + d;
        const int64_t most = c->pad[d] > after[d] ? c->pad[d] : after[d];
        if ((p->pad.mode == PAD_REFLECT && most >= c->in[d]) ||
            (p->pad.mode == PAD_CIRCULAR && most > c->in[d]))
            return tare__call_fail(call, "padding of %lld does not fit a size of %lld",
                                   (long long)most, (long long)c->in[d]);
        p->pad.before[axis] = c->pad[d];
        p->pad.after[axis] = after[d];
        c->in[d] += c->pad[d] + after[d];
        c->pad[d] = 0;
    }
    return TARE_OK;
}

static tare_status read_conv(op_call *call, int dims, conv_plan *p) {
    const conv_params *at = &plain_params;
    float_conv *c = &p->conv;
    const char *mode;
    int64_t after[3] = {0};
    TARE_TRY(read_common(call, at, dims, p));
    c->out_channels = p->w->shape[0];
    p->pad.x = p->x;
    TARE_TRY(check_channels(call, p, p->w->shape[1]));
    TARE_TRY(read_padding(call, at, p, after));
    TARE_TRY(tare__call_text(call, at->padding_mode, "zeros", &mode));
    if (!tare__pad_mode_from_name(mode, &p->pad.mode))
        return tare__call_fail(call, "unknown padding_mode '%s'", mode);
    for (int d = 0; d < 3; d++) {
        const int64_t room =
            c->in[d] + c->pad[d] + after[d] - c->dilation[d] * (c->kernel[d] - 1) - 1;
        if (room < 0)
            return tare__call_fail(
                call, "input of shape %s is smaller than the kernel of weight %s",
                tare__call_shape_text(call, p->x), tare__call_shape_text(call, p->w));
        c->out[d] = room / c->stride[d] + 1;
    }
    return p->pad.mode != PAD_CONSTANT ? plan_explicit_padding(call, p, after) : TARE_OK;
}

static tare_status conv_shape(op_call *call, int dims) {
    conv_plan p;
    TARE_TRY(read_conv(call, dims, &p));
    return conv_result(call, &p);
}

static tare_status pad_input(op_call *call, const conv_plan *p, tare_tensor **out) {
    int64_t shape[TARE_MAX_DIMS];
    for (int d = 0; d < p->x->ndim; d++)
        shape[d] = p->pad.before[d] + p->x->shape[d] + p->pad.after[d];
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, p->x->ndim, shape, out, call->err));
    tare__pad_into(&p->pad, *out);
    return TARE_OK;
}

static tare_status conv_reference(op_call *call, int dims) {
    conv_plan p;
    tare_tensor *padded = NULL;
    TARE_TRY(read_conv(call, dims, &p));
    if (p.pad.mode != PAD_CONSTANT) TARE_TRY(pad_input(call, &p, &padded));
    if (call->module != NULL && p.w == tare__module_tensor(call->module, "weight"))
        p.conv.constant = call->param[1]->as.tensor;
    const tare_status status = tare__float_convolve(
        call->kernels, &p.conv, tare__f32(padded != NULL ? padded : p.x), tare__f32(p.w),
        p.bias != NULL ? tare__f32(p.bias) : NULL, tare__f32(tare__call_out(call)), call->err);
    tare_tensor_release(padded);
    return status;
}

tare_status tare__conv_read(op_call *call, conv_call *out) {
    conv_plan p;
    const tare_tensor *w;
    TARE_TRY(tare__need_float(call, 1, &w));
    TARE_TRY(read_conv(call, w->ndim - 2, &p));
    *out = (conv_call){.conv = p.conv,
                       .x = p.x,
                       .w = p.w,
                       .bias = p.bias,
                       .is_plain = p.batched && p.pad.mode == PAD_CONSTANT};
    return TARE_OK;
}

static int64_t conv_macs(const op_call *call) {
    const value *w = call->param[1], *y = &call->result;
    if (w == NULL || w->kind != VALUE_TENSOR || y->kind != VALUE_TENSOR) return 0;
    const tare_tensor *weight = w->as.tensor;
    const int64_t rows = weight->ndim > 0 ? weight->shape[0] : 0;
    return rows > 0 ? tare__size_product(y->as.tensor->count, weight->count / rows) : 0;
}

// --- transposed convolution: each input element adds a scaled kernel to the output ---

static tare_status read_transposed(op_call *call, int dims, conv_plan *p) {
    const conv_params *at = &transposed_params;
    float_conv *c = &p->conv;
    int64_t more[3];
    TARE_TRY(read_common(call, at, dims, p));
    c->out_channels = tare__size_product(p->w->shape[1], c->groups);
    if (p->w->shape[0] != c->in_channels)
        return tare__call_fail(call, "input of shape %s does not fit weight of shape %s",
                               tare__call_shape_text(call, p->x),
                               tare__call_shape_text(call, p->w));
    TARE_TRY(check_channels(call, p, p->w->shape[0] / c->groups));
    TARE_TRY(read_sizes(call, at->padding, dims, 0, 0, c->pad));
    TARE_TRY(read_sizes(call, at->output_padding, dims, 0, 0, more));
    for (int d = 0; d < 3; d++) {
        c->out[d] = (c->in[d] - 1) * c->stride[d] - 2 * c->pad[d] +
                    c->dilation[d] * (c->kernel[d] - 1) + more[d] + 1;
        if (c->out[d] < 0) return tare__call_fail(call, "the output would have a negative size");
    }
    return TARE_OK;
}

tare_status tare__transposed_conv_read(op_call *call, conv_call *out) {
    conv_plan p;
    const tare_tensor *w;
    TARE_TRY(tare__need_float(call, 1, &w));
    TARE_TRY(read_transposed(call, w->ndim - 2, &p));
    *out = (conv_call){.conv = p.conv, .x = p.x, .w = p.w, .bias = p.bias, .is_plain = p.batched};
    return TARE_OK;
}

static tare_status transposed_shape(op_call *call, int dims) {
    conv_plan p;
    TARE_TRY(read_transposed(call, dims, &p));
    return conv_result(call, &p);
}

// Adds one input channel of an image, times its kernel, to one output channel.
static void scatter(const float_conv *c, const float *x, const float *w, float *y) {
    for (int64_t i = 0; i < c->in[0] * c->in[1] * c->in[2]; i++) {
        const int64_t v = i % c->in[2], h = i / c->in[2] % c->in[1], d = i / c->in[2] / c->in[1];
        const float *weight = w;
        for (int64_t a = 0; a < c->kernel[0]; a++)
            for (int64_t b = 0; b < c->kernel[1]; b++)
                for (int64_t e = 0; e < c->kernel[2]; e++, weight++) {
                    const int64_t z = d * c->stride[0] - c->pad[0] + a * c->dilation[0];
                    const int64_t r = h * c->stride[1] - c->pad[1] + b * c->dilation[1];
                    const int64_t s = v * c->stride[2] - c->pad[2] + e * c->dilation[2];
                    if (z >= 0 && z < c->out[0] && r >= 0 && r < c->out[1] && s >= 0 &&
                        s < c->out[2])
                        y[(z * c->out[1] + r) * c->out[2] + s] += x[i] * *weight;
                }
    }
}

static tare_status transposed_reference(op_call *call, int dims) {
    conv_plan p;
    TARE_TRY(read_transposed(call, dims, &p));
    const float_conv *c = &p.conv;
    const int64_t in = c->in[0] * c->in[1] * c->in[2], out = c->out[0] * c->out[1] * c->out[2];
    const int64_t in_group = c->in_channels / c->groups, out_group = c->out_channels / c->groups;
    const int64_t kernel = c->kernel[0] * c->kernel[1] * c->kernel[2];
    float *y = tare__f32(tare__call_out(call));
    for (int64_t i = 0; i < c->batch * c->out_channels; i++, y += out) {
        const int64_t n = i / c->out_channels, o = i % c->out_channels, g = o / out_group;
        for (int64_t k = g * in_group; k < (g + 1) * in_group; k++)
            scatter(c, tare__f32(p.x) + (n * c->in_channels + k) * in,
                    tare__f32(p.w) + (k * out_group + o % out_group) * kernel, y);
        for (int64_t j = 0; p.bias != NULL && j < out; j++) y[j] += tare__f32(p.bias)[o];
    }
    return TARE_OK;
}

static int64_t transposed_macs(const op_call *call) {
    const value *x = call->param[0], *w = call->param[1];
    if (x == NULL || w == NULL || x->kind != VALUE_TENSOR || w->kind != VALUE_TENSOR) return 0;
    const tare_tensor *weight = w->as.tensor;
    const int64_t rows = weight->ndim > 0 ? weight->shape[0] : 0;
    return rows > 0 ? tare__size_product(x->as.tensor->count, weight->count / rows) : 0;
}

// --- rows ---

#define DIMENSIONS(n)                                                                              \
    static tare_status conv##n##d_shape(op_call *call) {                                           \
        return conv_shape(call, n);                                                                \
    }                                                                                              \
    static tare_status conv##n##d(op_call *call) {                                                 \
        return conv_reference(call, n);                                                            \
    }                                                                                              \
    static tare_status transposed##n##d_shape(op_call *call) {                                     \
        return transposed_shape(call, n);                                                          \
    }                                                                                              \
    static tare_status transposed##n##d(op_call *call) {                                           \
        return transposed_reference(call, n);                                                      \
    }
DIMENSIONS(1)
DIMENSIONS(2)
DIMENSIONS(3)

#define CONV(n)                                                                                    \
    {                                                                                              \
        .id = "conv" #n "d",                                                                       \
        .functions = "torch.conv" #n "d|torch.ops.aten.conv" #n "d.default|torch.ops.aten.conv" #n \
                     "d.padding",                                                                  \
        .params = "input|weight|bias|stride|padding|dilation|groups|!padding_mode",                \
        .traits = OP_WEIGHTED | OP_CONVOLUTION | OP_BY_SAMPLE, .shape = conv##n##d_shape,          \
        .reference = conv##n##d, .macs = conv_macs                                                 \
    }
#define TRANSPOSED(n, aten)                                                                        \
    {                                                                                              \
        .id = "conv_transpose" #n "d",                                                             \
        .functions = "torch.conv_transpose" #n "d|torch.ops.aten.conv_transpose" aten,             \
        .params = "input|weight|bias|stride|padding|output_padding|groups|dilation",               \
        .traits = OP_WEIGHTED | OP_TRANSPOSED | OP_BY_SAMPLE, .shape = transposed##n##d_shape,     \
        .reference = transposed##n##d, .macs = transposed_macs                                     \
    }

static const op_info rows[] = {
    CONV(1),
    CONV(2),
    CONV(3),
    TRANSPOSED(1, "1d.default"),
    TRANSPOSED(2, "2d.input"),
    TRANSPOSED(3, "3d.input"),
};

const op_table tare__conv_ops = OP_TABLE(rows);
