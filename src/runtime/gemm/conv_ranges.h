// SPDX-License-Identifier: Apache-2.0
// Finds which output pixels of a convolution cover the image with the same taps of their windows.
// Taps in the padding multiply zero points. If these are zeros, the taps can be left out: rows of
// taps above and below the image, and columns of taps beside it if image rows are short enough for
// this to pay.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_CONV_RANGES_H
#define RUNTIME_GEMM_CONV_RANGES_H

#include "runtime/gemm/conv_shape.h"

typedef struct tap_group tap_group;

typedef struct conv_ranges {
    size_t width, pixels;   // of an output image: width, and number of pixels
    size_t rows, columns;   // taps of a window: rows over all its planes, and columns
    bool by_row, is_inside; // is_inside: no window covers padding
    // NULL: no such taps are left out
    tap_group *row_groups, *column_groups;
} conv_ranges;

/// `leaves_out`: taps in the padding are left out, for windows of one plane without reflection.
/// `by_row`: a range has pixels of one image row only. Released by tare__conv_ranges_release.
tare_status tare__conv_ranges_create(const conv_windows *w, bool leaves_out, bool by_row,
                                     conv_ranges *out, tare_error *err);
void tare__conv_ranges_release(conv_ranges *r);

/// A range of pixels: image rows with equally many pixels each, or image columns. Pixels are
/// counted over all images.
typedef struct conv_range {
    size_t first;               // its first pixel
    size_t image_rows;          // number of image rows
    size_t image_row_stride;    // distance in pixels of the rows' first pixels
    size_t count, pixel_stride; // pixels of an image row, and their distance
    size_t row, rows;           // rows of taps that they cover
    size_t column, columns;
    bool is_inside; // all of these taps are in the image
    bool goes_down; // the image rows of the range are sections of columns
} conv_range;

/// Iterates over the ranges of pixels [pixel, last). Initialize with {ranges, pixel, last}.
typedef struct range_walk {
    const conv_ranges *ranges;
    size_t pixel, last;
    size_t column_group; // for the current image rows
} range_walk;
/// Returns false at the end.
bool tare__conv_ranges_next(range_walk *walk, conv_range *out);

/// Lists the addresses of the first tap for `count` pixels from `pixel` on, of a range that is
/// inside the image. Image rows of the output follow each other.
void tare__conv_range_list(const conv_windows *w, const conv_range *range, const uint8_t *images,
                           size_t pixel, size_t count, const uint8_t **to);
/// The offset of each tap of such a range from the first one, in quantized values.
void tare__conv_range_offsets(const conv_windows *w, const conv_range *range, size_t *to);

#endif
