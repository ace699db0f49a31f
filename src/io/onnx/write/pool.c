// SPDX-License-Identifier: Apache-2.0
// Pooling as ONNX.
#include <string.h>

#include "io/onnx/write/rules.h"
#include "ops/layer_call.h"

enum { MOST_PIECES = 64 }; // of an adaptive pool whose windows are not equal

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

// Does rounding up make a difference? torch leaves out a last window that begins in the padding,
// which ONNX does from some opset on only.
static bool needs_ceil(const pool_call *p, const int64_t *kernel, const int64_t *stride) {
    for (int d = 3 - p->dims; d < 3; d++) {
        const int64_t window = (p->is_max ? p->dilation[d] : 1) * (kernel[d] - 1) + 1;
        const int64_t down =
            stride[d] > 0 ? (p->in[d] + 2 * p->pad[d] - window) / stride[d] + 1 : 0;
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

// The windows of what the call is on floats, whatever its input is.
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
    if (!known) tare__out_refuse(o, "its windows are not known");
    return !tare__out_failed(o);
}

// ONNX has a divisor of its own for no window: sums of all are averages times their size.
static void plain(onnx_out *o) {
    pool_call p = {0};
    if (!reads(o, &p)) return;
    const char *y = pool(o, &p, p.kernel, p.stride);
    if (p.divisor != 0) {
        const double area = (double)(p.kernel[0] * p.kernel[1] * p.kernel[2]);
        if (!p.count_pad && (p.pad[0] | p.pad[1] | p.pad[2]) != 0)
            tare__out_refuse(o, "a divisor of its own, where padding is not counted");
        if (p.ceil_mode) tare__out_refuse(o, "a divisor of its own with ceil_mode");
        y = OUT(o, "Mul", y, tare__out_number(o, TARE_FLOAT32, area / (double)p.divisor));
    }
    tare__out_result(o, y);
}

static void with_indices(onnx_out *o) {
    op_call *call = tare__out_call(o);
    const op_call before = *call;
    pool_call p = {0};
    call->op = tare__op_by_id("max_pool2d", 0);
    if (!reads(o, &p)) return;
    if (p.x->ndim != 4) tare__out_refuse(o, "indices without a batch are not written");
    tare__out_result_item(o, 0, pool(o, &p, p.kernel, p.stride));
    *call = before;
    // ONNX counts through all of the input, torch through one plane.
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

// One dimension after the other: a piece for each output, whose windows overlap.
static const char *along(onnx_out *o, const pool_call *p, const char *x, int d) {
    const int64_t axis = p->x->ndim - 3 + d;
    const char *pieces[MOST_PIECES] = {""};
    if (p->out[d] == p->in[d]) return x;
    if (p->out[d] < 1 || p->out[d] > MOST_PIECES) {
        tare__out_refuse(o, "an adaptive pool to %lld unequal windows", (long long)p->out[d]);
        return "";
    }
    for (int64_t i = 0; i < p->out[d]; i++) {
        const int64_t begin = floor_div(i * p->in[d], p->out[d]);
        const int64_t end = floor_div((i + 1) * p->in[d] + p->out[d] - 1, p->out[d]);
        pieces[i] = tare__out_reduce(o, p->is_max ? "ReduceMax" : "ReduceMean",
                                     tare__out_slice(o, x, axis, begin, end, 1), &axis, 1, true);
    }
    if (p->out[d] == 1) return pieces[0];
    const char *y = tare__out_node(o, "Concat", pieces, (size_t)p->out[d]);
    tare__out_attr_int(o, "axis", axis);
    return y;
}

static void adaptive(onnx_out *o) {
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

static const onnx_write_rule rows[] = {
    {"adaptive_avg_pool1d", "GlobalAveragePool, AveragePool", .write = adaptive},
    {"adaptive_avg_pool2d", "GlobalAveragePool, AveragePool", .write = adaptive},
    {"adaptive_avg_pool3d", "GlobalAveragePool, AveragePool", .write = adaptive},
    {"adaptive_max_pool1d", "GlobalMaxPool, MaxPool", .write = adaptive},
    {"adaptive_max_pool2d", "GlobalMaxPool, MaxPool", .write = adaptive},
    {"adaptive_max_pool3d", "GlobalMaxPool, MaxPool", .write = adaptive},
    {"avg_pool1d", "AveragePool", .write = plain},
    {"avg_pool2d", "AveragePool", .write = plain},
    {"avg_pool3d", "AveragePool", .write = plain},
    {"max_pool1d", "MaxPool", .write = plain},
    {"max_pool2d", "MaxPool", .write = plain},
    {"max_pool2d_with_indices", "MaxPool", .write = with_indices},
    {"max_pool3d", "MaxPool", .write = plain},
};

const onnx_write_table tare__onnx_write_pool_rules = ONNX_WRITE_RULES(rows);
