// SPDX-License-Identifier: Apache-2.0
// Which pixels of a convolution's output meet the image with the same taps of their windows. Taps
// in the padding multiply zero points; where these are zeros, such taps are left out: rows of taps
// above and below the image, and columns of taps beside it where image rows are so short that it
// pays. Private to runtime/gemm.
#ifndef RUNTIME_GEMM_CONV_RANGES_H
#define RUNTIME_GEMM_CONV_RANGES_H

#include "runtime/gemm/conv_shape.h"

typedef struct tap_group tap_group;

typedef struct conv_ranges {
    size_t width, pixels;   // of an output image
    size_t rows, columns;   // taps of a window; rows of all its planes
    bool by_row, is_inside; // no window reaches into the padding
    // NULL: no such taps are left out
    tap_group *row_groups, *column_groups;
} conv_ranges;

/// `leaves_out`: taps in the padding, of windows of one plane that do not reflect. `by_row`: a
/// range has pixels of one image row only. Released by tare__conv_ranges_release.
tare_status tare__conv_ranges_create(const conv_windows *w, bool leaves_out, bool by_row,
                                     conv_ranges *out, tare_error *err);
void tare__conv_ranges_release(conv_ranges *r);

/// Pixels, counted over all images, in image rows of as many; or in image columns.
typedef struct conv_range {
    size_t first;               // pixel
    size_t image_rows;          // how many
    size_t image_row_stride;    // from the first pixel of one to that of the next
    size_t count, pixel_stride; // pixels of an image row, and from one to the next
    size_t row, rows;           // of the taps that they meet
    size_t column, columns;
    bool is_inside; // the image has all of these taps
    bool goes_down; // the image rows are sections of columns
} conv_range;

/// Goes over pixels [pixel, last); begins with {ranges, pixel, last}.
typedef struct range_walk {
    const conv_ranges *ranges;
    size_t pixel, last;
    size_t column_group; // of the current image rows
} range_walk;
/// False: there are no more.
bool tare__conv_ranges_next(range_walk *walk, conv_range *out);

/// The addresses of the first tap that `count` pixels read, from `pixel` on, of a range that is
/// inside; behind the end of an image row follows the next one of the output.
void tare__conv_range_list(const conv_windows *w, const conv_range *range, const uint8_t *images,
                           size_t pixel, size_t count, const uint8_t **to);
/// The offset of each tap of such a range from the first one, in quantized values.
void tare__conv_range_offsets(const conv_windows *w, const conv_range *range, size_t *to);

#endif
