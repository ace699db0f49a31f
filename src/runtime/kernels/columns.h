// SPDX-License-Identifier: Apache-2.0
// Columns of rows of windows (conv_stage.h), put together from the row before and rows of the
// image.
#ifndef RUNTIME_KERNELS_COLUMNS_H
#define RUNTIME_KERNELS_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/kernels/isa.h"

enum {
    COLUMNS_BEHIND = 32, // quantized values behind each row, which may be read
    COLUMNS_CHUNK = 16,  // quantized values of the row before that are copied at once, at most
    COLUMNS_WORD = 4,    // of a row
};

/// How many copies the plain kernel makes for a column of windows of so many rows.
size_t tare__columns_copies(size_t ins, size_t rows, size_t stride);

/// A column has `kept` quantized values of the row before, where they lie `moved` further, then
/// those of each row.
typedef struct column_form {
    size_t column; // its quantized values
    size_t kept, moved;
    size_t row_count, row_bytes; // from a row to the next
    size_t ins;                  // channels
    // As many columns as a register holds, of 64 quantized values of the row before and 32 of each
    // of two rows: where each quantized value lies in these 128. 0: that does not hold what is kept
    // and the rows.
    size_t whole;
    uint8_t order[64];
} column_form;
/// Rows of windows that are `moved` rows ahead of the row before; 0: there is none.
column_form tare__column_form_of(size_t ins, size_t rows, size_t moved, size_t row_bytes);

typedef struct column_sources {
    const column_form *form;
    const uint8_t *before, *rows;
} column_sources;

typedef struct column_kernel {
    kernel_needs needs;
    void (*put)(const column_sources *c, size_t columns, uint8_t *to); // nothing behind them
} column_kernel;

/// Best first; the last row needs nothing.
extern const column_kernel tare__column_kernels[];
const column_kernel *tare__columns_choose(isa_level isa);

#define KERNEL(suffix, ...)                                                                        \
    void u8_columns__##suffix(const column_sources *c, size_t columns, uint8_t *to);
#include "runtime/kernels/u8_columns/kernels.def"
#undef KERNEL

#endif
