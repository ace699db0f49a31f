// SPDX-License-Identifier: Apache-2.0
// Sliding windows of convolutions and pools, as ONNX attributes describe them.
// Private to io/onnx/families.
#ifndef IO_ONNX_FAMILIES_WINDOW_H
#define IO_ONNX_FAMILIES_WINDOW_H

#include "io/onnx/read/rules_common.h"

/// Sizes in one, two or three dimensions: input, kernel, strides, dilations, and padding before and
/// after.
typedef struct window {
    size_t dims;
    int64_t in[3], kernel[3], stride[3], dilation[3], begin[3], end[3];
    bool ceil_mode;
} window;

/// Values of auto_pad: explicit pads, none, or as much as gives ceil(in / stride) outputs, with an
/// odd element at the end (UPPER) or at the beginning (LOWER).
enum { PAD_EXPLICIT, PAD_VALID, PAD_UPPER, PAD_LOWER };

/// Reads an attribute of `count` sizes, each at least `least`; `otherwise` if it is absent.
tare_status tare__window_read_sizes(onnx_call *c, const char *name, size_t count, int64_t least,
                                    int64_t otherwise, int64_t *out);
/// The extent of a window along dimension d, dilation included.
int64_t tare__window_extent(const window *w, size_t d);
/// Reads the padding from `pads` or `auto_pad`; *mode is one of PAD_EXPLICIT, ..
tare_status tare__window_read_padding(onnx_call *c, window *w, size_t *mode);
/// Reads strides, dilations and padding for x [N][C][in..]. w->kernel must be set.
tare_status tare__window_read(onnx_call *c, const tare_tensor *x, window *w, size_t *mode);
/// True if the padding before and after is equal in every dimension.
bool tare__window_is_symmetric(const window *w);
/// Pads *x by a separate call with `fill`; the window then has no padding.
tare_status tare__window_pad_apart(onnx_call *c, window *w, double fill, value *x);
/// Selects the function for the window's number of dimensions.
const char *tare__window_function(const window *w, const char *const targets[3]);
/// The sizes as an argument: one number if all are equal, else a tuple.
tare_status tare__window_sizes(onnx_call *c, const window *w, const int64_t *sizes, value *out);

#endif
