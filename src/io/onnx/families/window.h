// SPDX-License-Identifier: Apache-2.0
// Windows that slide over images, as the attributes of ONNX convolutions and pools say them.
// Private to io/onnx/families.
#ifndef IO_ONNX_FAMILIES_WINDOW_H
#define IO_ONNX_FAMILIES_WINDOW_H

#include "io/onnx/read/rules_common.h"

/// Sizes of one, two or three dimensions: of the input, the kernel, its steps, and the padding in
/// front of and behind the image.
typedef struct window {
    size_t dims;
    int64_t in[3], kernel[3], stride[3], dilation[3], begin[3], end[3];
    bool ceil_mode;
} window;

/// Who decides the padding: the file, nobody, or as much as keeps ceil(in / stride) outputs, with
/// the odd element behind or in front.
enum { PAD_EXPLICIT, PAD_VALID, PAD_UPPER, PAD_LOWER };

/// The attribute's `count` sizes, at least `least` each; `otherwise` where it is absent.
tare_status tare__window_read_sizes(onnx_call *c, const char *name, size_t count, int64_t least,
                                    int64_t otherwise, int64_t *out);
/// Elements from the first to the last of a window along dimension d.
int64_t tare__window_extent(const window *w, size_t d);
/// The padding from `pads` or `auto_pad`; *mode is one of PAD_EXPLICIT, ...
tare_status tare__window_read_padding(onnx_call *c, window *w, size_t *mode);
/// Strides, dilations and padding for x [N][C][in..]; w->kernel is read already.
tare_status tare__window_read(onnx_call *c, const tare_tensor *x, window *w, size_t *mode);
/// Is the padding in front as large as that behind, in every dimension?
bool tare__window_is_symmetric(const window *w);
/// Pads *x by a call of its own, with `fill`; the window then has no padding.
tare_status tare__window_pad_apart(onnx_call *c, window *w, double fill, value *x);
/// The function for as many dimensions as the window has.
const char *tare__window_function(const window *w, const char *const targets[3]);
/// The window's sizes as an argument: one number where all are equal, else a tuple.
tare_status tare__window_sizes(onnx_call *c, const window *w, const int64_t *sizes, value *out);

#endif
