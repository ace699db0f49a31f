// SPDX-License-Identifier: Apache-2.0
// The table of kernels that copy columns of pixels.
#include "runtime/kernels/columns.h"

#include "runtime/kernels/scratch.h"

const column_kernel tare__column_kernels[] = {
#define KERNEL(suffix, needs, has) {{needs, has}, u8_columns__##suffix},
#include "runtime/kernels/u8_columns/kernels.def"
#undef KERNEL
};

size_t tare__columns_copies(size_t ins, size_t rows, size_t stride) {
    const size_t moved = tare__least(stride, rows);
    return tare__ceil_div((rows - moved) * ins, COLUMNS_CHUNK) +
           moved * tare__ceil_div(ins, COLUMNS_WORD);
}

static void find_order(column_form *f) {
    enum { ROWS = 2, ROW = 32 };
    uint8_t *to = f->order;
    f->whole = tare__least(sizeof f->order / f->column, ROW / f->ins);
    if (f->kept == 0 || f->row_count > ROWS) f->whole = 0;
    for (size_t x = 0; x < f->whole; x++) {
        for (size_t k = 0; k < f->kept; k++) *to++ = (uint8_t)(x * f->column + f->moved + k);
        for (size_t r = 0; r < f->row_count; r++)
            for (size_t i = 0; i < f->ins; i++)
                *to++ = (uint8_t)(sizeof f->order + r * ROW + x * f->ins + i);
    }
}

column_form tare__column_form_of(size_t ins, size_t rows, size_t moved, size_t row_bytes) {
    const size_t row_count = moved > 0 ? tare__least(moved, rows) : rows;
    column_form f = {.column = rows * ins,
                     .kept = (rows - row_count) * ins,
                     .moved = row_count * ins,
                     .row_count = row_count,
                     .row_bytes = row_bytes,
                     .ins = ins};
    find_order(&f);
    return f;
}

const column_kernel *tare__columns_choose(isa_level isa) {
    return tare__kernel_choose(tare__column_kernels, sizeof *tare__column_kernels, isa);
}
