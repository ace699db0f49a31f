// SPDX-License-Identifier: Apache-2.0
// The sizes of a planned convolution in at most two dimensions, and where its windows lie in images
// of quantized values, channels last; an image of three dimensions has planes.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_CONV_SHAPE_H
#define RUNTIME_GEMM_CONV_SHAPE_H

#include "ops/quantized/layer.h"

enum { D, H, W }; // indices into conv_geometry's arrays

typedef struct conv_shape {
    size_t height, width;               // of the input
    size_t out_height, out_width;       // of the output
    size_t above, before;               // the padding in front
    size_t staged_height, staged_width; // of the input with its padding
} conv_shape;

/// TARE_INTERNAL if x does not fit.
tare_status tare__conv_shape_of(const conv_geometry *g, const tare_tensor *x, conv_shape *out,
                                tare_error *err);
static inline bool tare__conv_shape_is_padded(const conv_shape *s) {
    return s->staged_height != s->height || s->staged_width != s->width;
}

/// The windows of all output pixels of images that follow each other.
typedef struct conv_windows {
    size_t depth, height, width, channels; // of an image
    size_t out_depth, out_height, out_width;
    ptrdiff_t front, above, before;        // the padding in front that the images lack; may be
                                           // negative: then windows begin behind it
    size_t addends;                        // how often a window's taps are listed
    size_t planes, rows, columns;          // taps of a window
    size_t stride[SPATIAL], step[SPATIAL]; // of windows, and of a window's taps
    bool reflects;                         // the padding mirrors the image
} conv_windows;

static inline size_t tare__conv_window_taps(const conv_windows *w) {
    return w->addends * w->planes * w->rows * w->columns;
}
static inline size_t tare__conv_window_pixels(const conv_windows *w) { // of an output image
    return w->out_depth * w->out_height * w->out_width;
}
static inline size_t tare__conv_image_quantized(const conv_windows *w) {
    return w->depth * w->height * w->width * w->channels;
}
/// The position of a pixel of the output.
typedef struct output_position {
    size_t image, plane, row, column;
} output_position;
output_position tare__conv_output_position(const conv_windows *w,
                                           size_t pixel); // counted over all images
/// To the first pixel of the next image row.
void tare__conv_next_row(const conv_windows *w, output_position *at);
/// Windows that are single pixels which follow each other, all of an image.
bool tare__conv_windows_are_flat(const conv_windows *w);
/// The index in the image of position `at` of `size`; -1: in the padding.
static inline ptrdiff_t tare__conv_position(const conv_windows *w, ptrdiff_t at, size_t size) {
    const ptrdiff_t last = (ptrdiff_t)size - 1;
    if (w->reflects && at < 0) at = -at;
    if (w->reflects && at > last) at = 2 * last - at;
    return at >= 0 && at <= last ? at : -1;
}

/// Of `count` positions of a dimension that are `step` apart, the first one at `at`, those that lie
/// inside an image of this size: [first, end).
typedef struct inner_positions {
    size_t first, end;
} inner_positions;
inner_positions tare__conv_inner(size_t size, ptrdiff_t at, size_t step, size_t count);

/// The addresses of each tap of `count` windows from `first` on:
///   to[pixel + tap * tap_step]
/// `padding` stands for all pixels outside of an image.
typedef struct window_list {
    const uint8_t *images, *padding;
    size_t first, count;
    size_t tap_step;
} window_list;
void tare__conv_windows_list(const conv_windows *w, const window_list *list, const uint8_t **to);

/// The addresses of the pixels of some rows that some columns of windows meet, from those of the
/// window at output pixel (plane, row, first) on:
///   to[column * column_step + i] for i < row_count
/// and `padding` for i beyond. The rows of a window's planes follow each other, as often as it has
/// addends; rows of windows below one of a single plane and addend follow its own.
typedef struct column_list {
    const uint8_t *image, *padding;
    size_t plane, row, row_count;
    size_t first, column_count;
    size_t column_step;
} column_list;
void tare__conv_columns_list(const conv_windows *w, const column_list *list, const uint8_t **to);

#endif
