// SPDX-License-Identifier: Apache-2.0
// Sizes of a planned convolution in at most two dimensions, and the positions of its windows in
// channels-last images of quantized values. Images of three dimensions consist of planes.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_CONV_SHAPE_H
#define RUNTIME_GEMM_CONV_SHAPE_H

#include "ops/quantized/layer.h"

enum { D, H, W }; // indices into conv_geometry's arrays

typedef struct conv_shape {
    size_t height, width;               // of the input
    size_t out_height, out_width;       // of the output
    size_t above, before;               // padding before the image
    size_t staged_height, staged_width; // size of the input including its padding
} conv_shape;

/// TARE_INTERNAL if x does not fit.
tare_status tare__conv_shape_of(const conv_geometry *g, const tare_tensor *x, conv_shape *out,
                                tare_error *err);
static inline bool tare__conv_shape_is_padded(const conv_shape *s) {
    return s->staged_height != s->height || s->staged_width != s->width;
}

/// The windows of all output pixels of consecutive images.
typedef struct conv_windows {
    size_t depth, height, width, channels; // size of an image
    size_t out_depth, out_height, out_width;
    ptrdiff_t front, above, before;        // padding before the images; if negative,
                                           // windows begin inside the image
    size_t addends;                        // how often each tap of a window is listed
    size_t planes, rows, columns;          // taps of a window
    size_t stride[SPATIAL], step[SPATIAL]; // distance of windows, and of a window's taps
    bool reflects;                         // the padding reflects the image
} conv_windows;

static inline size_t tare__conv_window_taps(const conv_windows *w) {
    return w->addends * w->planes * w->rows * w->columns;
}
static inline size_t
tare__conv_window_pixels(const conv_windows *w) { // number of pixels of an output image
    return w->out_depth * w->out_height * w->out_width;
}
static inline size_t tare__conv_image_quantized(const conv_windows *w) {
    return w->depth * w->height * w->width * w->channels;
}
/// The position of an output pixel.
typedef struct output_position {
    size_t image, plane, row, column;
} output_position;
output_position tare__conv_output_position(const conv_windows *w,
                                           size_t pixel); // counted over all images
/// Moves to the first pixel of the next image row.
void tare__conv_next_row(const conv_windows *w, output_position *at);
/// True if windows are consecutive single pixels that cover the whole image.
bool tare__conv_windows_are_flat(const conv_windows *w);
/// True if no window of one plane reaches into the padding above, below or beside the image.
bool tare__conv_windows_are_inside(const conv_windows *w);
/// The index of position `at` in an image of `size`; -1: padding.
static inline ptrdiff_t tare__conv_position(const conv_windows *w, ptrdiff_t at, size_t size) {
    const ptrdiff_t last = (ptrdiff_t)size - 1;
    if (w->reflects && at < 0) at = -at;
    if (w->reflects && at > last) at = 2 * last - at;
    return at >= 0 && at <= last ? at : -1;
}

/// Of `count` positions that are `step` apart, the first one at `at`: the range [first, end) that
/// is inside an image of this size.
typedef struct inner_positions {
    size_t first, end;
} inner_positions;
inner_positions tare__conv_inner(size_t size, ptrdiff_t at, size_t step, size_t count);

/// The addresses of each tap of `count` windows from `first` on:
///   to[pixel + tap * tap_step]
/// `padding` is used for all pixels outside of the image.
typedef struct window_list {
    const uint8_t *images, *padding;
    size_t first, count;
    size_t tap_step;
} window_list;
void tare__conv_windows_list(const conv_windows *w, const window_list *list, const uint8_t **to);

/// The addresses of the pixels that some columns of windows cover in some rows, from those of the
/// window at output pixel (plane, row, first) on:
///   to[column * column_step + i] for i < row_count
/// and `padding` for larger i. The rows of a window's planes follow each other, repeated for each
/// addend. For windows of one plane and one addend, the rows of the windows below follow.
typedef struct column_list {
    const uint8_t *image, *padding;
    size_t plane, row, row_count;
    size_t first, column_count;
    size_t column_step;
} column_list;
/// The beginning of the i-th of these rows in the image; NULL: padding.
const uint8_t *tare__conv_window_row(const conv_windows *w, const column_list *list, size_t i);
void tare__conv_columns_list(const conv_windows *w, const column_list *list, const uint8_t **to);

#endif
