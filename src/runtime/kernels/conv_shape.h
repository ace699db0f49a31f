// SPDX-License-Identifier: Apache-2.0
// The sizes of a planned convolution in at most two dimensions, and where its windows lie in images
// of codes, channels last.
#ifndef RUNTIME_KERNELS_CONV_SHAPE_H
#define RUNTIME_KERNELS_CONV_SHAPE_H

#include "ops/quantized_layer.h"

enum { H = 1, W = 2 }; // indices into conv_geometry's arrays

typedef struct conv_shape {
    size_t height, width;               // of the input
    size_t out_height, out_width;       // of the output
    size_t above, before;               // the border in front
    size_t staged_height, staged_width; // of the input with its border
} conv_shape;

/// TARE_INTERNAL if x does not fit.
tare_status tare__conv_shape_of(const conv_geometry *g, const tare_tensor *x, conv_shape *out,
                                tare_error *err);
static inline bool tare__conv_shape_is_padded(const conv_shape *s) {
    return s->staged_height != s->height || s->staged_width != s->width;
}

/// The windows of all output pixels of images that follow each other.
typedef struct conv_windows {
    size_t height, width, channels; // of an image
    size_t out_height, out_width;
    size_t above, before;      // the border in front that the images lack
    size_t rows, columns;      // taps of a window
    size_t stride[2], step[2]; // of windows, and of a window's taps: rows, columns
} conv_windows;

conv_windows tare__conv_windows_of(const conv_geometry *g, const conv_shape *s);
static inline size_t tare__conv_window_taps(const conv_windows *w) {
    return w->rows * w->columns;
}

/// The addresses of each tap of `count` windows from `first` on:
///   to[pixel * pixel_step + tap * tap_step]
/// `border` stands for all that lies outside of an image.
typedef struct window_list {
    const uint8_t *images, *border;
    size_t first, count;
    size_t pixel_step, tap_step;
} window_list;
void tare__conv_windows_list(const conv_windows *w, const window_list *list, const uint8_t **to);

/// The addresses of the pixels of some rows that some columns of windows meet, from those of the
/// window at output pixel (row, first) on:
///   to[column * column_step + i] for i < row_count
/// and `border` for i beyond.
typedef struct column_list {
    const uint8_t *image, *border;
    size_t row, row_count;
    size_t first, column_count;
    size_t column_step;
} column_list;
void tare__conv_columns_list(const conv_windows *w, const column_list *list, const uint8_t **to);

#endif
