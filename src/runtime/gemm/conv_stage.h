// SPDX-License-Identifier: Apache-2.0
// Copies of images whose pixels have few channels, with the padding that windows reach into, so
// that quantized values of several pixels follow each other: those of a row of a window, or all of
// a window's.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_CONV_STAGE_H
#define RUNTIME_GEMM_CONV_STAGE_H

#include "runtime/gemm/conv_shape.h"
#include "runtime/kernels/columns.h"

typedef struct conv_stage {
    conv_windows from; // of images
    conv_windows to;   // of copies, in which no window reaches into the padding
    size_t rows;       // of an image that a staged row holds, as [column][row][channel]: one, or as
                       // many as a window has
    const column_kernel *columns; // of staged rows of several image rows
    column_form first, next;      // the first staged row's, and the others'
    size_t moved;                 // by how many image rows a staged row is ahead of the one before
} conv_stage;

typedef struct staging {
    const conv_stage *stage;
    const uint8_t *images;
    size_t stride;   // quantized values from a pixel of the images to the next
    uint8_t padding; // the quantized value of the padding
} staging;

// --- images of rows, for windows whose rows are taps ---

conv_stage tare__conv_stage_of_rows(const conv_windows *from);
/// Of an image, behind whose end a word may be read.
size_t tare__conv_stage_bytes(const conv_stage *s);
void tare__conv_stage_image(const staging *g, size_t image, uint8_t *to);

// --- rows of windows, for windows that are one tap as a whole ---

/// A staged row for each row of the output, of windows of one plane and addend whose rows follow
/// each other.
conv_stage tare__conv_stage_of_windows(const conv_windows *from, const column_kernel *columns);

/// The rows of windows that a thread staged last.
typedef struct staged_rows staged_rows;
/// Those of a thread that asks for at most `pixels` at once lie in so many bytes, 64-byte aligned.
size_t tare__staged_rows_bytes(const conv_stage *s, size_t pixels);
staged_rows *tare__staged_rows_begin(const staging *g, size_t pixels, void *memory);
/// The addresses of the windows of `count` pixels of the output from `pixel` on, counted over all
/// images; they hold until it is called again. Behind a window a word may be read.
void tare__staged_rows_list(staged_rows *staged, size_t pixel, size_t count, const uint8_t **to);

#endif
