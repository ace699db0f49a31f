// SPDX-License-Identifier: Apache-2.0
// Packs a part of the second matrix, so that all rows of the first meet it in the cache: panels of
// PANEL_COLUMNS columns, the last one padded with zeros to a multiple of PANEL_STEP.
#include "runtime/gemm/floats/blocks.h"

#include <string.h>

#include "runtime/kernels/scratch.h"

enum { INNER_BLOCK = FLOAT_BLOCK_MEMORY / PANEL_COLUMNS };

// Few rows do not repay a copy.
enum { LEAST_PACKED_ROWS = 8 };

// A part of w: `inner` rows of `columns` columns that begin at `from`.
typedef struct part {
    const float *from;
    size_t inner, columns, width; // width: columns with padding
} part;

typedef float quad __attribute__((vector_size(4 * sizeof(float))));
enum { QUAD = 4 };

static inline quad load_quad(const float *x) {
    quad q;
    memcpy(&q, x, sizeof q);
    return q;
}
static inline void store_quad(float *y, quad q) {
    memcpy(y, &q, sizeof q);
}

// Transposes four rows of four.
static inline void transpose_square(const float *from, size_t step, float *to, size_t width) {
    const quad a = load_quad(from), b = load_quad(from + step);
    const quad c = load_quad(from + 2 * step), d = load_quad(from + 3 * step);
    const quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const quad cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const quad ab_end = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad cd_end = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store_quad(to, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
    store_quad(to + width, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
    store_quad(to + 2 * width, __builtin_shufflevector(ab_end, cd_end, 0, 1, 4, 5));
    store_quad(to + 3 * width, __builtin_shufflevector(ab_end, cd_end, 2, 3, 6, 7));
}

static void transpose(const part *p, size_t step, float *to) {
    const size_t columns = p->columns - p->columns % QUAD, inner = p->inner - p->inner % QUAD;
    for (size_t c = 0; c < columns; c += QUAD) {
        for (size_t i = 0; i < inner; i += QUAD)
            transpose_square(p->from + c * step + i, step, to + i * p->width + c, p->width);
        for (size_t i = inner; i < p->inner; i++)
            for (size_t k = c; k < c + QUAD; k++) to[i * p->width + k] = p->from[k * step + i];
    }
    for (size_t c = columns; c < p->columns; c++)
        for (size_t i = 0; i < p->inner; i++) to[i * p->width + c] = p->from[c * step + i];
}

static void copy(const part *p, size_t step, float *to) {
    for (size_t i = 0; i < p->inner; i++)
        memcpy(to + i * p->width, p->from + i * step, p->columns * sizeof *to);
}

static void pack(const part *p, bool transposed, size_t step, float *to) {
    if (p->width > p->columns)
        for (size_t i = 0; i < p->inner; i++)
            memset(to + i * p->width + p->columns, 0, (p->width - p->columns) * sizeof *to);
    if (transposed)
        transpose(p, step, to);
    else
        copy(p, step, to);
}

// True if the tile can read the part where it is.
static bool is_in_place(const float_block *b, const part *p) {
    return !b->transposed && p->width == p->columns &&
           (b->rows < LEAST_PACKED_ROWS || (size_t)b->w_step == p->columns);
}

tare_status tare__float_block_multiply(const float_multiplier *m, const float_block *b,
                                       const float *x, const float *w, float *y) {
    if (m->library != NULL) return tare__float_layers_multiply(m->library, b, x, w, y, NULL);
    const size_t inner = (size_t)b->inner, columns = (size_t)b->columns, step = (size_t)b->w_step;
    for (size_t c = 0; c < columns; c += PANEL_COLUMNS)
        for (size_t i = 0; i < inner; i += INNER_BLOCK) {
            const size_t width = tare__remaining(columns, c, PANEL_COLUMNS);
            const part p = {.from = w + (b->transposed ? c * step + i : i * step + c),
                            .inner = tare__remaining(inner, i, INNER_BLOCK),
                            .columns = width,
                            .width = tare__round_up(width, PANEL_STEP)};
            const bool is_packed = !is_in_place(b, &p);
            if (is_packed) pack(&p, b->transposed, step, m->memory);
            const float_tile tile = {.x = x + i,
                                     .w = is_packed ? m->memory : p.from,
                                     .y = y + c,
                                     .rows = (size_t)b->rows,
                                     .inner = p.inner,
                                     .columns = width,
                                     .x_step = (size_t)b->x_step,
                                     .w_step = is_packed ? p.width : step,
                                     .y_step = (size_t)b->y_step,
                                     .adds = i > 0};
            m->functions->tile(&tile);
        }
    return TARE_OK;
}
