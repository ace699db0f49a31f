// SPDX-License-Identifier: Apache-2.0
// Builds a row of staged windows (conv_stage.h) from the previous row and from rows of the image.
#ifndef RUNTIME_KERNELS_COLUMNS_H
#define RUNTIME_KERNELS_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/kernels/isa.h"

enum {
    COLUMNS_BEHIND = 32, // quantized values beyond each row that may be read
    COLUMNS_CHUNK = 16,  // quantized values of the previous row that are copied at once, at most
    COLUMNS_WORD = 4,    // of an image row
};

/// How many copies the plain kernel makes per column for windows with this many rows.
size_t tare__columns_copies(size_t ins, size_t rows, size_t stride);

/// A column consists of `kept` quantized values of the previous row, where they are `moved` further
/// on, and of those of each image row.
typedef struct column_form {
    size_t column; // its quantized values
    size_t kept, moved;
    size_t row_count, row_bytes; // image rows, and the bytes from a row to the next
    size_t ins;                  // channels
    // The columns that one byte permutation builds in a register, from 64 quantized values of the
    // previous row and 32 of each of two image rows: the index in these 128 for each value. 0: they
    // do not fit.
    size_t whole;
    uint8_t order[64];
} column_form;
/// For rows of windows that are `moved` image rows below the previous one; 0: there is no previous
/// one.
column_form tare__column_form_of(size_t ins, size_t rows, size_t moved, size_t row_bytes);

typedef struct column_sources {
    const column_form *form;
    const uint8_t *before, *rows;
} column_sources;

typedef struct column_kernel {
    kernel_needs needs;
    void (*put)(const column_sources *c, size_t columns, uint8_t *to); // writes nothing beyond them
} column_kernel;

/// Fastest first; the last row runs everywhere.
extern const column_kernel tare__column_kernels[];
const column_kernel *tare__columns_choose(isa_level isa);

#define KERNEL(suffix, ...)                                                                        \
    void u8_columns__##suffix(const column_sources *c, size_t columns, uint8_t *to);
#include "runtime/kernels/u8_columns/kernels.def"
#undef KERNEL

#endif
