// SPDX-License-Identifier: Apache-2.0
// Reads and checks pads, strides, dilations and auto_pad.
#include "io/onnx/families/window.h"

#include <assert.h>
#include <math.h>
#include <string.h>

tare_status tare__window_read_sizes(onnx_call *c, const char *name, size_t count, int64_t least,
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

// The number of elements from the first to the last of a window.
int64_t tare__window_extent(const window *w, size_t d) {
    return w->dilation[d] * (w->kernel[d] - 1) + 1;
}

// auto_pad: explicit pads, no padding, or as much as gives ceil(in / stride) outputs.
tare_status tare__window_read_padding(onnx_call *c, window *w, size_t *mode) {
    int64_t pads[6];
    TARE_TRY(tare__window_read_sizes(c, "pads", 2 * w->dims, 0, 0, pads));
    TARE_TRY(
        ONNX_CHOICE(c, "auto_pad", "NOTSET", mode, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"));
    for (size_t d = 0; d < w->dims; d++) {
        w->begin[d] = *mode == PAD_EXPLICIT ? pads[d] : 0;
        w->end[d] = *mode == PAD_EXPLICIT ? pads[w->dims + d] : 0;
        if (*mode < PAD_UPPER) continue;
        const int64_t out = (w->in[d] + w->stride[d] - 1) / w->stride[d];
        const int64_t total = (out - 1) * w->stride[d] + tare__window_extent(w, d) - w->in[d];
        const int64_t half = total > 0 ? total / 2 : 0, rest = total > 0 ? total - half : 0;
        w->begin[d] = *mode == PAD_UPPER ? half : rest;
        w->end[d] = *mode == PAD_UPPER ? rest : half;
    }
    return TARE_OK;
}

// x: [N][C][in..]. w->kernel is already set.
tare_status tare__window_read(onnx_call *c, const tare_tensor *x, window *w, size_t *mode) {
    for (size_t d = 0; d < w->dims; d++) {
        w->in[d] = x->shape[2 + d];
        if (w->kernel[d] < 1 || w->kernel[d] > INT16_MAX)
            return tare__onnx_malformed(c, "a kernel of size %lld is out of range",
                                        (long long)w->kernel[d]);
    }
    TARE_TRY(tare__window_read_sizes(c, "strides", w->dims, 1, 1, w->stride));
    TARE_TRY(tare__window_read_sizes(c, "dilations", w->dims, 1, 1, w->dilation));
    return tare__window_read_padding(c, w, mode);
}

bool tare__window_is_symmetric(const window *w) {
    for (size_t d = 0; d < w->dims; d++)
        if (w->begin[d] != w->end[d]) return false;
    return true;
}

// Pads with a separate call; the window then has no padding.
tare_status tare__window_pad_apart(onnx_call *c, window *w, double fill, value *x) {
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

// Selects the function for one, two or three dimensions.
const char *tare__window_function(const window *w, const char *const targets[3]) {
    assert(w->dims >= 1 && w->dims <= 3);
    return targets[w->dims - 1];
}

// One number if all are equal, as users write it.
tare_status tare__window_sizes(onnx_call *c, const window *w, const int64_t *sizes, value *out) {
    bool equal = true;
    for (size_t d = 1; d < w->dims; d++) equal = equal && sizes[d] == sizes[0];
    *out = tare__int(sizes[0]);
    return equal ? TARE_OK : tare__onnx_int_tuple(c, sizes, w->dims, out);
}
