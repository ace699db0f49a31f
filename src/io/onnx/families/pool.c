// SPDX-License-Identifier: Apache-2.0
// Pooling in ONNX.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "io/onnx/families/families.h"
#include "io/onnx/families/window.h"
#include "io/onnx/read/rules_common.h"
#include "ops/layer_call.h"

// --- reading ---

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
    return tare__window_read(c, *t, w, &mode);
}

// The number of windows along a dimension. With `ceil` the last one may extend past the end, but
// must not begin there.
static int64_t window_count(const window *w, size_t d, bool ceil, int64_t begin, int64_t end) {
    const int64_t room = w->in[d] + begin + end - tare__window_extent(w, d), stride = w->stride[d];
    if (room < 0) return 0;
    int64_t count = (ceil ? (room + stride - 1) / stride : room / stride) + 1;
    if (ceil && (count - 1) * stride >= w->in[d] + begin) count--;
    return count;
}

// torch allows a padding of at most half the kernel.
static bool fits_half(const window *w) {
    for (size_t d = 0; d < w->dims; d++)
        if (w->begin[d] > w->kernel[d] / 2) return false;
    return true;
}

// Padding never wins a maximum, so padding at the end only determines the number of windows. True
// if torch computes the same number, with or without ceil_mode.
static bool max_pool_fits(const window *w, bool ceil) {
    for (size_t d = 0; d < w->dims; d++)
        if (window_count(w, d, w->ceil_mode, w->begin[d], w->end[d]) !=
            window_count(w, d, ceil, w->begin[d], w->begin[d]))
            return false;
    return fits_half(w);
}

static tare_status translate_max_pool(onnx_call *c) {
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
    if (!max_pool_fits(&w, w.ceil_mode))
        TARE_TRY(tare__window_pad_apart(c, &w, (double)-INFINITY, &args[0]));
    TARE_TRY(tare__window_sizes(c, &w, w.kernel, &args[1]));
    TARE_TRY(tare__window_sizes(c, &w, w.stride, &args[2]));
    TARE_TRY(tare__window_sizes(c, &w, w.begin, &args[3]));
    TARE_TRY(tare__window_sizes(c, &w, w.dilation, &args[4]));
    args[5] = tare__bool(w.ceil_mode);
    return tare__onnx_one(c, tare__window_function(&w, targets), 6, args);
}

// The number of elements that window i averages: those in the image, or in the padded image.
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

// 1 / number of elements of each window, [1][1][out..]
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

// Averages that torch's pools cannot express (asymmetric padding that is not counted, dilation): a
// convolution with ones computes the sum of each channel, which is multiplied by 1 / count.
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
        const int64_t reach =
            (count - 1) * w->stride[d] + tare__window_extent(w, d) - w->begin[d] - w->in[d];
        w->end[d] = reach; // the end of the last window
    }
    TARE_TRY(tare__window_pad_apart(c, w, 0, &args[0]));
    TARE_TRY(tare__onnx_new_floats(c, (int)w->dims + 2, shape, &ones));
    for (int64_t i = 0; i < ones->count; i++) tare__f32(ones)[i] = 1;
    TARE_TRY(tare__onnx_take_tensor(c, ones, &args[1]));
    TARE_TRY(tare__onnx_int_tuple(c, w->stride, w->dims, &args[3]));
    args[4] = tare__int(0);
    TARE_TRY(tare__onnx_int_tuple(c, w->dilation, w->dims, &args[5]));
    args[6] = tare__int(channels);
    TARE_TRY(tare__onnx_call(c, false, tare__window_function(w, targets), args, 7, &sum));
    const value product[] = {sum, shares};
    return tare__onnx_one(c, "operator.mul", 2, product);
}

static bool is_dilated(const window *w) {
    for (size_t d = 0; d < w->dims; d++)
        if (w->dilation[d] != 1) return true;
    return false;
}

static tare_status translate_average_pool(onnx_call *c) {
    static const char *const targets[] = {"torch.nn.functional.avg_pool1d",
                                          "torch.nn.functional.avg_pool2d",
                                          "torch.nn.functional.avg_pool3d"};
    window w;
    value args[6] = {tare__none()};
    const tare_tensor *t = NULL;
    bool counts_padding;
    TARE_TRY(read_pool(c, &w, &args[0], &t));
    TARE_TRY(tare__onnx_attr_bool(c, "count_include_pad", false, &counts_padding));
    const bool is_plain = tare__window_is_symmetric(&w) && fits_half(&w);
    if (is_dilated(&w) || (!is_plain && (!counts_padding || w.ceil_mode)))
        return average_by_conv(c, &w, args[0], t->shape[1], counts_padding);
    if (!is_plain) TARE_TRY(tare__window_pad_apart(c, &w, 0, &args[0]));
    TARE_TRY(tare__window_sizes(c, &w, w.kernel, &args[1]));
    TARE_TRY(tare__window_sizes(c, &w, w.stride, &args[2]));
    TARE_TRY(tare__window_sizes(c, &w, w.begin, &args[3]));
    args[4] = tare__bool(w.ceil_mode);
    args[5] = tare__bool(counts_padding);
    return tare__onnx_one(c, tare__window_function(&w, targets), 6, args);
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

static tare_status translate_global_average_pool(onnx_call *c) {
    static const char *const targets[] = {"torch.nn.functional.adaptive_avg_pool1d",
                                          "torch.nn.functional.adaptive_avg_pool2d",
                                          "torch.nn.functional.adaptive_avg_pool3d"};
    return global_pool(c, targets);
}

static tare_status translate_global_max_pool(onnx_call *c) {
    static const char *const targets[] = {"torch.nn.functional.adaptive_max_pool1d",
                                          "torch.nn.functional.adaptive_max_pool2d",
                                          "torch.nn.functional.adaptive_max_pool3d"};
    return global_pool(c, targets);
}

static const onnx_rule read_rows[] = {
    {"AveragePool", .translate = translate_average_pool},
    {"GlobalAveragePool", .translate = translate_global_average_pool},
    {"GlobalMaxPool", .translate = translate_global_max_pool},
    {"MaxPool", .translate = translate_max_pool},
};

// --- writing ---

enum { MOST_SLICES = 64 }; // outputs of an adaptive pool with unequal windows

static const char *with_batch(onnx_out *o, const pool_call *p, const char *x) {
    const int64_t first = 0;
    return p->x->ndim == p->dims + 1 ? tare__out_unsqueeze(o, x, &first, 1) : x;
}

static const char *without_batch(onnx_out *o, const pool_call *p, const char *y) {
    const int64_t first = 0;
    return p->x->ndim == p->dims + 1 ? tare__out_squeeze(o, y, &first, 1) : y;
}

static void window_attributes(onnx_out *o, const pool_call *p, const int64_t *kernel,
                              const int64_t *stride) {
    const int first = 3 - p->dims;
    const size_t dims = (size_t)p->dims;
    int64_t pads[6];
    for (int d = 0; d < p->dims; d++) pads[d] = pads[p->dims + d] = p->pad[first + d];
    tare__out_attr_ints(o, "kernel_shape", kernel + first, dims);
    tare__out_attr_ints(o, "pads", pads, 2 * dims);
    tare__out_attr_ints(o, "strides", stride + first, dims);
}

// True if rounding up adds windows. torch drops a last window that begins in the padding; ONNX does
// so only from some opset on.
static bool needs_ceil(const pool_call *p, const int64_t *kernel, const int64_t *stride) {
    for (int d = 3 - p->dims; d < 3; d++) {
        const int64_t extent = (p->is_max ? p->dilation[d] : 1) * (kernel[d] - 1) + 1;
        const int64_t down =
            stride[d] > 0 ? (p->in[d] + 2 * p->pad[d] - extent) / stride[d] + 1 : 0;
        if (p->ceil_mode && down != p->out[d]) return true;
    }
    return false;
}

static const char *pool(onnx_out *o, const pool_call *p, const int64_t *kernel,
                        const int64_t *stride) {
    const char *x = with_batch(o, p, tare__out_input(o, 0));
    const char *y = OUT(o, p->is_max ? "MaxPool" : "AveragePool", x);
    tare__out_attr_int(o, "ceil_mode", needs_ceil(p, kernel, stride));
    if (!p->is_max) tare__out_attr_int(o, "count_include_pad", p->count_pad);
    if (p->is_max) tare__out_attr_ints(o, "dilations", p->dilation + 3 - p->dims, (size_t)p->dims);
    window_attributes(o, p, kernel, stride);
    return without_batch(o, p, y);
}

// The window of the float operator, whether the input is quantized or not.
static bool reads(onnx_out *o, pool_call *p) {
    const tare_tensor *x = tare__out_meta(o, 0);
    bool known = false;
    float_call f;
    if (tare__out_failed(o)) return false;
    tare_status status = tare__float_call_begin(tare__out_call(o), true, &f);
    if (status == TARE_OK) status = tare__pool_read(&f.call, p, &known);
    tare__float_call_end(&f);
    p->x = x;
    tare__out_try(o, status);
    if (!known) tare__out_refuse(o, "its windows are unknown");
    return !tare__out_failed(o);
}

// ONNX's average has no divisor argument: a sum is the average times the window's size.
static void write_plain(onnx_out *o) {
    pool_call p = {0};
    if (!reads(o, &p)) return;
    const char *y = pool(o, &p, p.kernel, p.stride);
    if (p.divisor != 0) {
        const double area = (double)(p.kernel[0] * p.kernel[1] * p.kernel[2]);
        if (!p.count_pad && (p.pad[0] | p.pad[1] | p.pad[2]) != 0)
            tare__out_refuse(o, "divisor_override with count_include_pad=False is not written");
        if (p.ceil_mode) tare__out_refuse(o, "divisor_override with ceil_mode is not written");
        y = OUT(o, "Mul", y, tare__out_number(o, TARE_FLOAT32, area / (double)p.divisor));
    }
    tare__out_result(o, y);
}

static void write_with_indices(onnx_out *o) {
    op_call *call = tare__out_call(o);
    const op_call before = *call;
    pool_call p = {0};
    call->op = tare__op_by_id("max_pool2d", 0);
    if (!reads(o, &p)) return;
    if (p.x->ndim != 4)
        tare__out_refuse(o, "indices of inputs without a batch dimension are not written");
    tare__out_result_item(o, 0, pool(o, &p, p.kernel, p.stride));
    *call = before;
    // ONNX's indices count through the whole input, torch's through one plane.
    const char *both[2];
    tare__out_outputs(o, 2, both);
    tare__out_optional(o);
    const double plane = (double)(p.in[0] * p.in[1] * p.in[2]);
    tare__out_result_item(o, 1, OUT(o, "Mod", both[1], tare__out_number(o, TARE_INT64, plane)));
}

// --- adaptive ---

static bool has_equal_windows(const pool_call *p, int64_t kernel[3], int64_t stride[3]) {
    for (int d = 0; d < 3; d++) {
        if (p->out[d] < 1 || p->in[d] % p->out[d] != 0) return false;
        kernel[d] = stride[d] = p->in[d] / p->out[d];
    }
    return true;
}

static bool is_global(const pool_call *p) {
    return p->out[0] == 1 && p->out[1] == 1 && p->out[2] == 1;
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b;
}

// Pools one dimension with unequal windows: a slice for each output.
static const char *along(onnx_out *o, const pool_call *p, const char *x, int d) {
    const int64_t axis = p->x->ndim - 3 + d;
    const char *slices[MOST_SLICES] = {""};
    if (p->out[d] == p->in[d]) return x;
    if (p->out[d] < 1 || p->out[d] > MOST_SLICES) {
        tare__out_refuse(o, "an adaptive pool with %lld unequal windows is not written",
                         (long long)p->out[d]);
        return "";
    }
    for (int64_t i = 0; i < p->out[d]; i++) {
        const int64_t begin = floor_div(i * p->in[d], p->out[d]);
        const int64_t end = floor_div((i + 1) * p->in[d] + p->out[d] - 1, p->out[d]);
        slices[i] = tare__out_reduce(o, p->is_max ? "ReduceMax" : "ReduceMean",
                                     tare__out_slice(o, x, axis, begin, end, 1), &axis, 1, true);
    }
    if (p->out[d] == 1) return slices[0];
    const char *y = tare__out_node(o, "Concat", slices, (size_t)p->out[d]);
    tare__out_attr_int(o, "axis", axis);
    return y;
}

static void write_adaptive(onnx_out *o) {
    pool_call p = {0};
    int64_t kernel[3], stride[3];
    if (!reads(o, &p)) return;
    if (is_global(&p)) {
        const char *x = with_batch(o, &p, tare__out_input(o, 0));
        const char *y = OUT(o, p.is_max ? "GlobalMaxPool" : "GlobalAveragePool", x);
        tare__out_result(o, without_batch(o, &p, y));
        return;
    }
    if (has_equal_windows(&p, kernel, stride)) {
        tare__out_result(o, pool(o, &p, kernel, stride));
        return;
    }
    const char *y = tare__out_input(o, 0);
    for (int d = 3 - p.dims; d < 3; d++) y = along(o, &p, y, d);
    tare__out_result(o, y);
}

static const onnx_write_rule write_rows[] = {
    {"adaptive_avg_pool1d", "GlobalAveragePool, AveragePool", .write = write_adaptive},
    {"adaptive_avg_pool2d", "GlobalAveragePool, AveragePool", .write = write_adaptive},
    {"adaptive_avg_pool3d", "GlobalAveragePool, AveragePool", .write = write_adaptive},
    {"adaptive_max_pool1d", "GlobalMaxPool, MaxPool", .write = write_adaptive},
    {"adaptive_max_pool2d", "GlobalMaxPool, MaxPool", .write = write_adaptive},
    {"adaptive_max_pool3d", "GlobalMaxPool, MaxPool", .write = write_adaptive},
    {"avg_pool1d", "AveragePool", .write = write_plain},
    {"avg_pool2d", "AveragePool", .write = write_plain},
    {"avg_pool3d", "AveragePool", .write = write_plain},
    {"max_pool1d", "MaxPool", .write = write_plain},
    {"max_pool2d", "MaxPool", .write = write_plain},
    {"max_pool2d_with_indices", "MaxPool", .write = write_with_indices},
    {"max_pool3d", "MaxPool", .write = write_plain},
};

const onnx_family tare__onnx_pool_family = {.read = ONNX_RULES(read_rows),
                                            .write = ONNX_WRITE_RULES(write_rows)};
