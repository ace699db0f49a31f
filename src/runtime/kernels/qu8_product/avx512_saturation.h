// SPDX-License-Identifier: Apache-2.0
// Many rows of few words of depth, whose ends take as long as their sums. Two registers of codes
// are made at a time, by so few instructions that the processor finds the next ones' sums behind
// the ends of these.
// Private to runtime/kernels/qu8_product.
#ifndef RUNTIME_KERNELS_QU8_PRODUCT_AVX512_SATURATION_H
#define RUNTIME_KERNELS_QU8_PRODUCT_AVX512_SATURATION_H

#include "runtime/kernels/qu8_product/avx512_epilogue.h"

enum { PAIRS_AHEAD = 16 }; // pairs whose first place is fetched before

// Loaded by itself, not with each of the instructions that use it.
UNROLLED __m512i load_once(const uint32_t *from) {
    __m512i w = _mm512_loadu_si512(from);
    __asm__("" : "+v"(w));
    return w;
}

// To the sums of two registers of codes, of as many rows as fit.
UNROLLED void add_word(__m512i a[PACKED_REGISTERS], __m512i b[PACKED_REGISTERS],
                       const uint8_t *const *at, size_t k, __m512i flip, const uint32_t *from,
                       size_t vectors) {
    const size_t step = PACKED_REGISTERS / vectors;
    __m512i w[PRODUCT_VECTORS];
#define LOAD(v) w[v] = load_once(from + (size_t)(v)*PRODUCT_LANES)
    EACH_VECTOR(vectors, LOAD);
#undef LOAD
#define ADD(i)                                                                                     \
    do {                                                                                           \
        const size_t row_ = (i) / vectors, v_ = (i) % vectors;                                     \
        a[i] = _mm512_dpbusd_epi32(a[i], broadcast(at[row_] + k, flip), w[v_]);                    \
        b[i] = _mm512_dpbusd_epi32(b[i], broadcast(at[step + row_] + k, flip), w[v_]);             \
    } while (0)
    EACH_VECTOR(PACKED_REGISTERS, ADD);
#undef ADD
}

// `rows` rows, whole pairs of registers of codes. Tile and end are copied: for all the compiler
// knows, codes are written over what pointers lead to, so that it would be loaded again for each.
UNROLLED void run_pairs(const product_tile *given_tile, const tile_end *given_end, size_t rows,
                        end_kind kind, size_t vectors) {
    const size_t step = PACKED_REGISTERS / vectors;
    const product_tile t = *given_tile;
    const tile_end e = *given_end;
    const end_form form = {kind, .is_shifted = true};
    const __m512i flip = _mm512_set1_epi8((char)t.flip);
    for (size_t row = 0; row < rows; row += 2 * step) {
        const uint32_t *w = t.w;
        __m512i a[PACKED_REGISTERS], b[PACKED_REGISTERS];
#define START(i) a[i] = b[i] = first_sums(&t, (i) % vectors)
        EACH_VECTOR(PACKED_REGISTERS, START);
#undef START
        __builtin_prefetch(t.y + (row + 2 * step * PAIRS_AHEAD) * t.y_stride, 1);
        for (size_t tap = 0; tap < t.taps; tap++) {
            const uint8_t *at[2 * PACKED_REGISTERS];
            for (size_t r = 0; r < 2 * step; r++)
                at[r] = tare__product_codes_at(&t, t.x + row + r, tap);
            for (size_t k = 0; k < t.codes; k += 4, w += vectors * PRODUCT_LANES)
                add_word(a, b, at, k, flip, w, vectors);
        }
        end_rows(&t, &e, form, a, row, step, vectors, 0xFFFF);
        end_rows(&t, &e, form, b, row + step, step, vectors, 0xFFFF);
    }
}

#define DEFINE(vectors)                                                                            \
    static void run_pairs_f_##vectors(const product_tile *t, const tile_end *e, size_t rows) {     \
        run_pairs(t, e, rows, END_OF_F, vectors);                                                  \
    }                                                                                              \
    static void run_pairs_o_##vectors(const product_tile *t, const tile_end *e, size_t rows) {     \
        run_pairs(t, e, rows, END_OF_O, vectors);                                                  \
    }
DEFINE(1)
DEFINE(2)
DEFINE(4)
#undef DEFINE

// How many of the tile's rows were done. Beyond `most` words, by vectors, turns or tiles are
// faster.
static size_t run_in_pairs(const product_tile *t, const tile_end *e) {
    static const size_t most[PRODUCT_VECTORS] = {12, 12, 0, 6};
    static void (*const runs[][PRODUCT_VECTORS])(const product_tile *, const tile_end *, size_t) = {
        [END_OF_F] = {run_pairs_f_1, run_pairs_f_2, NULL, run_pairs_f_4},
        [END_OF_O] = {run_pairs_o_1, run_pairs_o_2, NULL, run_pairs_o_4}};
    const size_t vectors = tare__product_vectors(t->channels);
    if (e->kind > END_OF_O || vectors == 3 || t->codes % 4 != 0 || t->gap != 0 ||
        t->codes / 4 * t->taps > most[vectors - 1])
        return 0;
    const size_t pair = 2 * (PACKED_REGISTERS / vectors), rows = t->rows / pair * pair;
    runs[e->kind][vectors - 1](t, e, rows);
    return rows;
}

#endif
