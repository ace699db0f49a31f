// SPDX-License-Identifier: Apache-2.0
// ONNX operators whose windows slide over images: convolutions and pools.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "io/onnx/read/rules_common.h"

typedef struct window {
    size_t dims;
    int64_t in[3], kernel[3], stride[3], dilation[3], begin[3], end[3];
    bool ceil_mode;
} window;

static tare_status read_sizes(onnx_call *c, const char *name, size_t count, int64_t least,
                              int64_t otherwise, int64_t *out) {
    size_t found = 0;
    bool given = false;
    for (size_t i = 0; i < count; i++) out[i] = otherwise;
    TARE_TRY(tare__onnx_attr_ints(c, name, count, out, &found, &given));
    if (given && found != count)
        return tare__onnx_malformed(c, "attribute '%s' must have %zu values, found %zu", name,
                                    count, found);
    for (size_t i = 0; i < count; i++)
        if (out[i] < least || out[i] > INT16_MAX)
            return tare__onnx_malformed(c, "attribute '%s' holds %lld, which is out of range", name,
                                        (long long)out[i]);
    return TARE_OK;
}

// Elements from the first to the last of a window.
static int64_t extent(const window *w, size_t d) {
    return w->dilation[d] * (w->kernel[d] - 1) + 1;
}

enum { PAD_EXPLICIT, PAD_VALID, PAD_UPPER, PAD_LOWER };

// An attribute decides who pads: the file, nobody, or as much as keeps ceil(in / stride) outputs.
static tare_status read_padding(onnx_call *c, window *w, size_t *mode) {
    int64_t pads[6];
    TARE_TRY(read_sizes(c, "pads", 2 * w->dims, 0, 0, pads));
    TARE_TRY(
        ONNX_CHOICE(c, "auto_pad", "NOTSET", mode, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"));
    for (size_t d = 0; d < w->dims; d++) {
        w->begin[d] = *mode == PAD_EXPLICIT ? pads[d] : 0;
        w->end[d] = *mode == PAD_EXPLICIT ? pads[w->dims + d] : 0;
        if (*mode < PAD_UPPER) continue;
        const int64_t out = (w->in[d] + w->stride[d] - 1) / w->stride[d];
        const int64_t total = (out - 1) * w->stride[d] + extent(w, d) - w->in[d];
        const int64_t half = total > 0 ? total / 2 : 0, rest = total > 0 ? total - half : 0;
        w->begin[d] = *mode == PAD_UPPER ? half : rest;
        w->end[d] = *mode == PAD_UPPER ? rest : half;
    }
    return TARE_OK;
}

// x [N][C][in..]; the kernel is read already.
static tare_status read_window(onnx_call *c, const tare_tensor *x, window *w, size_t *mode) {
    for (size_t d = 0; d < w->dims; d++) {
        w->in[d] = x->shape[2 + d];
        if (w->kernel[d] < 1 || w->kernel[d] > INT16_MAX)
            return tare__onnx_malformed(c, "a kernel of %lld is out of range",
                                        (long long)w->kernel[d]);
    }
    TARE_TRY(read_sizes(c, "strides", w->dims, 1, 1, w->stride));
    TARE_TRY(read_sizes(c, "dilations", w->dims, 1, 1, w->dilation));
    return read_padding(c, w, mode);
}

static bool is_symmetric(const window *w) {
    for (size_t d = 0; d < w->dims; d++)
        if (w->begin[d] != w->end[d]) return false;
    return true;
}

// A padding of its own in front; the window then has none.
static tare_status pad_apart(onnx_call *c, window *w, double fill, value *x) {
    int64_t amounts[6];
    value list;
    bool any = false;
    for (size_t d = 0; d < w->dims; d++) {
        const size_t pair = w->dims - 1 - d;
        amounts[2 * pair] = w->begin[d];
        amounts[2 * pair + 1] = w->end[d];
        any = any || w->begin[d] != 0 || w->end[d] != 0;
        w->in[d] += w->begin[d] + w->end[d];
        w->begin[d] = w->end[d] = 0;
    }
    if (!any) return TARE_OK;
    TARE_TRY(tare__onnx_int_tuple(c, amounts, 2 * w->dims, &list));
    if (fill == 0) return ONNX_CALL(c, x, "torch.nn.functional.pad", *x, list);
    return ONNX_CALL(c, x, "torch.nn.functional.pad", *x, list, tare__string("constant"),
                     tare__float(fill));
}

// A function of one, two or three dimensions.
static const char *of_dims(const window *w, const char *const targets[3]) {
    assert(w->dims >= 1 && w->dims <= 3);
    return targets[w->dims - 1];
}

// One number where all are equal, as people write it.
static tare_status sizes_value(onnx_call *c, const window *w, const int64_t *sizes, value *out) {
    bool equal = true;
    for (size_t d = 1; d < w->dims; d++) equal = equal && sizes[d] == sizes[0];
    *out = tare__int(sizes[0]);
    return equal ? TARE_OK : tare__onnx_int_tuple(c, sizes, w->dims, out);
}

// --- Conv, ConvTranspose ---

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
    tare__onnx_ignore_attr(c, "kernel_shape"); // the weight has it
    TARE_TRY(tare__onnx_attr_int(c, "group", 1, groups));
    return read_window(c, x, w, mode);
}

static tare_status conv(onnx_call *c) {
    static const char *const targets[] = {"torch.conv1d", "torch.conv2d", "torch.conv3d"};
    int64_t groups;
    size_t mode = 0;
    window w;
    TARE_TRY(read_conv(c, &w, &mode, &groups));
    value args[7] = {tare__onnx_input(c, 0), tare__onnx_input(c, 1), tare__onnx_input(c, 2)};
    if (!is_symmetric(&w)) TARE_TRY(pad_apart(c, &w, 0, &args[0]));
    TARE_TRY(tare__onnx_int_tuple(c, w.stride, w.dims, &args[3]));
    TARE_TRY(tare__onnx_int_tuple(c, w.begin, w.dims, &args[4]));
    TARE_TRY(tare__onnx_int_tuple(c, w.dilation, w.dims, &args[5]));
    args[6] = tare__int(groups);
    return tare__onnx_one(c, of_dims(&w, targets), 7, args);
}

// `output_shape`, or in * stride with an automatic padding, says what the padding must be; a
// negative one makes the output longer.
static tare_status read_output_shape(onnx_call *c, window *w, size_t mode, int64_t *more) {
    int64_t wanted[3];
    size_t count = 0;
    bool given = false;
    TARE_TRY(tare__onnx_attr_ints(c, "output_shape", 3, wanted, &count, &given));
    if (given && count != w->dims)
        return tare__onnx_malformed(c, "output_shape has %zu values, expected %zu", count, w->dims);
    for (size_t d = 0; (given || mode >= PAD_UPPER) && d < w->dims; d++) {
        if (!given) wanted[d] = w->in[d] * w->stride[d];
        const int64_t total = w->stride[d] * (w->in[d] - 1) + more[d] + extent(w, d) - wanted[d];
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

// torch cuts both ends alike; the longer end is cut afterwards.
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

static tare_status conv_transpose(onnx_call *c) {
    static const char *const targets[] = {"torch.conv_transpose1d", "torch.conv_transpose2d",
                                          "torch.conv_transpose3d"};
    int64_t groups, more[3] = {0}, cut[3] = {0};
    size_t mode = 0;
    window w;
    value y;
    TARE_TRY(read_conv(c, &w, &mode, &groups));
    if (mode >= PAD_UPPER) memset(w.begin, 0, sizeof w.begin);
    if (mode >= PAD_UPPER) memset(w.end, 0, sizeof w.end);
    TARE_TRY(read_sizes(c, "output_padding", w.dims, 0, 0, more));
    TARE_TRY(read_output_shape(c, &w, mode, more));
    for (size_t d = 0; d < w.dims; d++) cut[d] = w.begin[d] < w.end[d] ? w.begin[d] : w.end[d];
    value args[8] = {tare__onnx_input(c, 0), tare__onnx_input(c, 1), tare__onnx_input(c, 2)};
    TARE_TRY(tare__onnx_int_tuple(c, w.stride, w.dims, &args[3]));
    TARE_TRY(tare__onnx_int_tuple(c, cut, w.dims, &args[4]));
    TARE_TRY(tare__onnx_int_tuple(c, more, w.dims, &args[5]));
    args[6] = tare__int(groups);
    TARE_TRY(tare__onnx_int_tuple(c, w.dilation, w.dims, &args[7]));
    TARE_TRY(tare__onnx_call(c, false, of_dims(&w, targets), args, 8, &y));
    TARE_TRY(cut_ends(c, &w, cut, &y));
    tare__onnx_set_output(c, 0, &y);
    return TARE_OK;
}

// --- pools ---

static tare_status read_pool(onnx_call *c, window *w, value *x, const tare_tensor **t) {
    size_t mode = 0, count = 0;
    int64_t kernel[3];
    *w = (window){0};
    TARE_TRY(tare__onnx_need_input(c, 0, "X", x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "X", t));
    TARE_TRY(tare__onnx_attr_ints(c, "kernel_shape", 3, kernel, &count, NULL));
    if (count < 1 || (*t)->ndim != (int)count + 2)
        return tare__onnx_fail(c, "a kernel of %zu dimensions does not fit an input of %d", count,
                               (*t)->ndim);
    w->dims = count;
    memcpy(w->kernel, kernel, count * sizeof *kernel);
    TARE_TRY(tare__onnx_attr_bool(c, "ceil_mode", false, &w->ceil_mode));
    return read_window(c, *t, w, &mode);
}

// Windows along one dimension; with `ceil` the last one may reach beyond the end, but begins
// before it.
static int64_t window_count(const window *w, size_t d, bool ceil, int64_t begin, int64_t end) {
    const int64_t room = w->in[d] + begin + end - extent(w, d), stride = w->stride[d];
    if (room < 0) return 0;
    int64_t count = (ceil ? (room + stride - 1) / stride : room / stride) + 1;
    if (ceil && (count - 1) * stride >= w->in[d] + begin) count--;
    return count;
}

// torch pads a pool by half of its kernel at most.
static bool fits_half(const window *w) {
    for (size_t d = 0; d < w->dims; d++)
        if (w->begin[d] > w->kernel[d] / 2) return false;
    return true;
}

// What lies outside never wins a maximum, so the end's padding only says how many windows there
// are: with or without ceil_mode torch may count as many.
static bool max_pool_fits(const window *w, bool ceil) {
    for (size_t d = 0; d < w->dims; d++)
        if (window_count(w, d, w->ceil_mode, w->begin[d], w->end[d]) !=
            window_count(w, d, ceil, w->begin[d], w->begin[d]))
            return false;
    return fits_half(w);
}

static tare_status max_pool(onnx_call *c) {
    static const char *const targets[] = {"torch.nn.functional.max_pool1d",
                                          "torch.nn.functional.max_pool2d",
                                          "torch.nn.functional.max_pool3d"};
    window w;
    value args[6] = {tare__none()};
    const tare_tensor *t = NULL;
    TARE_TRY(read_pool(c, &w, &args[0], &t));
    tare__onnx_ignore_attr(c, "storage_order"); // of the indices
    if (tare__onnx_wants_output(c, 1))
        return tare__onnx_fail(c, "the second output, Indices, is not supported");
    if (max_pool_fits(&w, !w.ceil_mode) && !max_pool_fits(&w, w.ceil_mode))
        w.ceil_mode = !w.ceil_mode;
    if (!max_pool_fits(&w, w.ceil_mode)) TARE_TRY(pad_apart(c, &w, (double)-INFINITY, &args[0]));
    TARE_TRY(sizes_value(c, &w, w.kernel, &args[1]));
    TARE_TRY(sizes_value(c, &w, w.stride, &args[2]));
    TARE_TRY(sizes_value(c, &w, w.begin, &args[3]));
    TARE_TRY(sizes_value(c, &w, w.dilation, &args[4]));
    args[5] = tare__bool(w.ceil_mode);
    return tare__onnx_one(c, of_dims(&w, targets), 6, args);
}

// How many elements window i averages: those inside of the image, or of the padded one.
static int64_t covered(const window *w, size_t d, int64_t i, bool counts_padding) {
    const int64_t least = counts_padding ? -w->begin[d] : 0;
    const int64_t most = w->in[d] + (counts_padding ? w->end[d] : 0);
    int64_t count = 0;
    for (int64_t k = 0; k < w->kernel[d]; k++) {
        const int64_t at = i * w->stride[d] - w->begin[d] + k * w->dilation[d];
        count += at >= least && at < most;
    }
    return count;
}

// 1 / elements of every window, [1][1][out..]
static tare_status shares_of(onnx_call *c, const window *w, bool counts_padding, value *out) {
    int64_t shape[5] = {1, 1};
    tare_tensor *t = NULL;
    for (size_t d = 0; d < w->dims; d++)
        shape[2 + d] = window_count(w, d, w->ceil_mode, w->begin[d], w->end[d]);
    TARE_TRY(tare__onnx_new_floats(c, (int)w->dims + 2, shape, &t));
    for (int64_t i = 0; i < t->count; i++) {
        int64_t rest = i, elements = 1;
        for (size_t d = w->dims; d-- > 0 && shape[2 + d] > 0; rest /= shape[2 + d])
            elements *= covered(w, d, rest % shape[2 + d], counts_padding);
        tare__f32(t)[i] = elements > 0 ? 1.0f / (float)elements : 0;
    }
    return tare__onnx_take_tensor(c, t, out);
}

// An average that torch has no pool for (uneven padding that does not count, dilation): every
// channel's sum by a convolution with ones, then the shares.
static tare_status average_by_conv(onnx_call *c, window *w, value x, int64_t channels,
                                   bool counts_padding) {
    static const char *const targets[] = {"torch.conv1d", "torch.conv2d", "torch.conv3d"};
    int64_t shape[5] = {channels, 1};
    tare_tensor *ones = NULL;
    value args[7] = {x}, shares, sum;
    TARE_TRY(shares_of(c, w, counts_padding, &shares));
    for (size_t d = 0; d < w->dims; d++) {
        shape[2 + d] = w->kernel[d];
        const int64_t count = window_count(w, d, w->ceil_mode, w->begin[d], w->end[d]);
        const int64_t reach = (count - 1) * w->stride[d] + extent(w, d) - w->begin[d] - w->in[d];
        w->end[d] = reach; // as much as the last window needs, or is cut off
    }
    TARE_TRY(pad_apart(c, w, 0, &args[0]));
    TARE_TRY(tare__onnx_new_floats(c, (int)w->dims + 2, shape, &ones));
    for (int64_t i = 0; i < ones->count; i++) tare__f32(ones)[i] = 1;
    TARE_TRY(tare__onnx_take_tensor(c, ones, &args[1]));
    TARE_TRY(tare__onnx_int_tuple(c, w->stride, w->dims, &args[3]));
    args[4] = tare__int(0);
    TARE_TRY(tare__onnx_int_tuple(c, w->dilation, w->dims, &args[5]));
    args[6] = tare__int(channels);
    TARE_TRY(tare__onnx_call(c, false, of_dims(w, targets), args, 7, &sum));
    const value product[] = {sum, shares};
    return tare__onnx_one(c, "operator.mul", 2, product);
}

static bool is_dilated(const window *w) {
    for (size_t d = 0; d < w->dims; d++)
        if (w->dilation[d] != 1) return true;
    return false;
}

static tare_status average_pool(onnx_call *c) {
    static const char *const targets[] = {"torch.nn.functional.avg_pool1d",
                                          "torch.nn.functional.avg_pool2d",
                                          "torch.nn.functional.avg_pool3d"};
    window w;
    value args[6] = {tare__none()};
    const tare_tensor *t = NULL;
    bool counts_padding;
    TARE_TRY(read_pool(c, &w, &args[0], &t));
    TARE_TRY(tare__onnx_attr_bool(c, "count_include_pad", false, &counts_padding));
    const bool is_plain = is_symmetric(&w) && fits_half(&w);
    if (is_dilated(&w) || (!is_plain && (!counts_padding || w.ceil_mode)))
        return average_by_conv(c, &w, args[0], t->shape[1], counts_padding);
    if (!is_plain) TARE_TRY(pad_apart(c, &w, 0, &args[0]));
    TARE_TRY(sizes_value(c, &w, w.kernel, &args[1]));
    TARE_TRY(sizes_value(c, &w, w.stride, &args[2]));
    TARE_TRY(sizes_value(c, &w, w.begin, &args[3]));
    args[4] = tare__bool(w.ceil_mode);
    args[5] = tare__bool(counts_padding);
    return tare__onnx_one(c, of_dims(&w, targets), 6, args);
}

static tare_status global_pool(onnx_call *c, const char *const *targets) {
    value args[2] = {tare__none(), tare__int(1)};
    const tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &args[0]));
    TARE_TRY(tare__onnx_need_meta(c, 0, "X", &t));
    if (t->ndim < 3 || t->ndim > 5)
        return tare__onnx_fail(c, "expected 3 to 5 dimensions, found %d", t->ndim);
    return tare__onnx_one(c, targets[t->ndim - 3], 2, args);
}

static tare_status global_average_pool(onnx_call *c) {
    static const char *const targets[] = {"torch.nn.functional.adaptive_avg_pool1d",
                                          "torch.nn.functional.adaptive_avg_pool2d",
                                          "torch.nn.functional.adaptive_avg_pool3d"};
    return global_pool(c, targets);
}

static tare_status global_max_pool(onnx_call *c) {
    static const char *const targets[] = {"torch.nn.functional.adaptive_max_pool1d",
                                          "torch.nn.functional.adaptive_max_pool2d",
                                          "torch.nn.functional.adaptive_max_pool3d"};
    return global_pool(c, targets);
}

static const onnx_rule rows[] = {
    {"AveragePool", .translate = average_pool},
    {"Conv", .translate = conv},
    {"ConvTranspose", .translate = conv_transpose},
    {"GlobalAveragePool", .translate = global_average_pool},
    {"GlobalMaxPool", .translate = global_max_pool},
    {"MaxPool", .translate = max_pool},
};

const onnx_rule_table tare__onnx_window_rules = ONNX_RULES(rows);
