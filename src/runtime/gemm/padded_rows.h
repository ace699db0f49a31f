// SPDX-License-Identifier: Apache-2.0
// Rows of images with their padding, as a thread keeps them: every tap of a window lies inside, and
// windows side by side, those of the next output row, too, mostly follow each other at equal
// distances. For kernels that load many pixels at once (product_kernel.wants_padding).
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_PADDED_ROWS_H
#define RUNTIME_GEMM_PADDED_ROWS_H

#include "runtime/gemm/conv_stage.h"

typedef struct padded_form {
    conv_stage stage;   // stage.to: images of padded rows, in which windows have all their taps
    size_t phases;      // image rows that are stride[H] apart follow each other
    size_t reach;       // rows of a phase that the windows of one output row cover
    size_t image_slots; // rows of a phase that one image has
    size_t row_bytes;
} padded_form;

/// True if tare__padded_rows_bytes of as many pixels is at most `most`.
bool tare__padded_rows_fit(const conv_windows *from, size_t pixels, size_t most);
/// For windows of one plane and one addend, which fit. `joins`: pixels of a window's row, which
/// must be adjacent, become one tap.
padded_form tare__padded_form_of(const conv_windows *from, bool joins);
/// The bytes (64-byte aligned) for a thread that lists at most `pixels` pixels at once.
size_t tare__padded_rows_bytes(const padded_form *f, size_t pixels);

/// The rows that a thread staged last.
typedef struct padded_rows padded_rows;
/// g->stage is f->stage.
padded_rows *tare__padded_rows_begin(const padded_form *f, const staging *g, size_t pixels,
                                     void *memory);
/// Lists the addresses of the first taps of `count` output pixels from `pixel` on, counted over all
/// images, in ascending order. They are valid until the next call.
void tare__padded_rows_list(padded_rows *rows, size_t pixel, size_t count, const uint8_t **to);
/// The offset of each tap from the first one, in quantized values: the same in all lists.
void tare__padded_rows_offsets(const padded_rows *rows, size_t *to);

#endif
