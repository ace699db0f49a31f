// SPDX-License-Identifier: Apache-2.0
// Staged images: copies of images with few channels, including padding, in which the pixels of a
// window's row, or of the whole window, are contiguous.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_CONV_STAGE_H
#define RUNTIME_GEMM_CONV_STAGE_H

#include "runtime/gemm/conv_shape.h"
#include "runtime/kernels/columns.h"

typedef struct conv_stage {
    conv_windows from; // in the images
    conv_windows to;   // in the copies, where windows reach no padding
    size_t rows;       // image rows in a staged row, which is [column][row][channel]: one, or as
                       // many as a window has
    const column_kernel *columns; // for staged rows of several image rows
    column_form first, next;      // for the first staged row, and for the others
    size_t moved;                 // how many image rows a staged row is below the one before
} conv_stage;

typedef struct staging {
    const conv_stage *stage;
    const uint8_t *images;
    size_t stride;   // quantized values from a pixel of the images to the next
    uint8_t padding; // quantized value of the padding
} staging;

// --- images of rows, for windows whose rows are taps ---

conv_stage tare__conv_stage_of_rows(const conv_windows *from);
/// The bytes of a staged image, including a word beyond its end that may be read.
size_t tare__conv_stage_bytes(const conv_stage *s);
void tare__conv_stage_image(const staging *g, size_t image, uint8_t *to);
/// One row of an image of one plane, counted from the first row of padding.
void tare__conv_stage_row(const staging *g, size_t image, size_t row, uint8_t *to);

// --- rows of windows, for windows that are one tap as a whole ---

/// One staged row for each output row, for windows of one plane and one addend whose rows are
/// adjacent.
conv_stage tare__conv_stage_of_windows(const conv_windows *from, const column_kernel *columns);

/// The rows of windows that a thread staged last.
typedef struct staged_rows staged_rows;
/// The bytes (64-byte aligned) for a thread that lists at most `pixels` pixels at once.
size_t tare__staged_rows_bytes(const conv_stage *s, size_t pixels);
staged_rows *tare__staged_rows_begin(const staging *g, size_t pixels, void *memory);
/// Lists the addresses of the windows of `count` output pixels from `pixel` on, counted over all
/// images. They are valid until the next call. A word beyond a window may be read.
void tare__staged_rows_list(staged_rows *staged, size_t pixel, size_t count, const uint8_t **to);

#endif
