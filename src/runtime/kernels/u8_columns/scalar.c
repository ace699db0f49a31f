// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Copies columns in whole chunks and words: bytes written beyond a column are overwritten by the
// next columns.
#include <string.h>

#include "runtime/kernels/columns.h"

static inline __attribute__((always_inline)) void put_whole(const column_sources *c, size_t count,
                                                            size_t kept, size_t row_count,
                                                            size_t ins, uint8_t *restrict to) {
    const size_t column = kept + row_count * ins, row_bytes = c->form->row_bytes;
    const size_t chunk = kept <= COLUMNS_WORD ? COLUMNS_WORD : COLUMNS_CHUNK;
    const uint8_t *before = c->before + c->form->moved, *rows = c->rows;
    for (size_t x = 0; x < count; x++, to += column, before += column, rows += ins) {
        for (size_t k = 0; k < kept; k += chunk) memcpy(to + k, before + k, chunk);
        for (size_t r = 0; r < row_count; r++)
            for (size_t k = 0; k < ins; k += COLUMNS_WORD)
                memcpy(to + kept + r * ins + k, rows + r * row_bytes + k, COLUMNS_WORD);
    }
}

static void put_column(const column_sources *c, size_t x, uint8_t *to) {
    const column_form *f = c->form;
    const size_t at = x * f->column;
    if (f->kept > 0) memcpy(to + at, c->before + at + f->moved, f->kept);
    for (size_t r = 0; r < f->row_count; r++)
        memcpy(to + at + f->kept + r * f->ins, c->rows + r * f->row_bytes + x * f->ins, f->ins);
}

void u8_columns__scalar(const column_sources *c, size_t columns, uint8_t *to) {
    const column_form *f = c->form;
    // Columns that chunks extend into.
    const size_t behind = (COLUMNS_CHUNK + f->column - 1) / f->column + 1;
    const size_t whole = columns < behind ? 0 : columns - behind;
    // Three color channels, windows of 7 and of 3 rows, stride 2.
    if (f->kept == 15 && f->row_count == 2 && f->ins == 3)
        put_whole(c, whole, 15, 2, 3, to);
    else if (f->kept == 3 && f->row_count == 2 && f->ins == 3)
        put_whole(c, whole, 3, 2, 3, to);
    else
        put_whole(c, whole, f->kept, f->row_count, f->ins, to);
    for (size_t x = whole; x < columns; x++) put_column(c, x, to);
}
