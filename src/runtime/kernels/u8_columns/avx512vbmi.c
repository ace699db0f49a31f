// SPDX-License-Identifier: Apache-2.0
// Builds columns with AVX-512 VBMI: as many as a register holds are one byte permutation of the
// previous row and two image rows.
#include <immintrin.h>

#include "runtime/kernels/columns.h"

enum { BYTES = 64 };

static __m256i load_row(const uint8_t *row) {
    return _mm256_loadu_si256((const __m256i *)(const void *)row);
}

static __m512i load_rows(const column_form *f, const uint8_t *rows) {
    const __m512i first = _mm512_castsi256_si512(load_row(rows));
    return _mm512_inserti64x4(first, load_row(rows + (f->row_count - 1) * f->row_bytes), 1);
}

void u8_columns__avx512vbmi(const column_sources *c, size_t columns, uint8_t *to) {
    const column_form *f = c->form;
    if (f->whole == 0) {
        u8_columns__scalar(c, columns, to);
        return;
    }
    const size_t step = f->whole * f->column, row_step = f->whole * f->ins;
    const __m512i order = _mm512_loadu_si512(f->order);
    const uint8_t *before = c->before, *rows = c->rows;
    size_t left = columns * f->column;
    for (; left >= BYTES; left -= step, to += step, before += step, rows += row_step)
        _mm512_storeu_si512(
            to, _mm512_permutex2var_epi8(_mm512_loadu_si512(before), order, load_rows(f, rows)));
    for (size_t here; left > 0; left -= here, to += here, before += here, rows += row_step) {
        here = left < step ? left : step;
        const __mmask64 mask = ~(__mmask64)0 >> (BYTES - here);
        const __m512i kept = _mm512_maskz_loadu_epi8(mask, before);
        _mm512_mask_storeu_epi8(to, mask,
                                _mm512_permutex2var_epi8(kept, order, load_rows(f, rows)));
    }
}
