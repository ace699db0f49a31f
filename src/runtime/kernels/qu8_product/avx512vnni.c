// SPDX-License-Identifier: Apache-2.0
// build: -O3 -mprefer-vector-width=512
// Products with AVX512-VNNI. Sums stay in registers: 6 pixels by 64 channels, or as many of fewer
// channels. vpdpbusd adds four products of unsigned and signed bytes to an int32 lane without
// saturating, so that sums are exact. For each word of depth weights are loaded once and each
// pixel's codes once; 24 instructions of arithmetic hide that. Rows of few words go by in pairs of
// registers of codes (qu8_product/avx512_saturation.h), others take turns
// (qu8_product/avx512_pipeline.h); those that are left make a tile.
#include "runtime/kernels/qu8_product/avx512_pipeline.h"
#include "runtime/kernels/qu8_product/avx512_saturation.h"

// clang-format off
#define EACH_ROW(rows, X) \
    do { \
        if ((rows) > 0) { X(0); } \
        if ((rows) > 1) { X(1); } \
        if ((rows) > 2) { X(2); } \
        if ((rows) > 3) { X(3); } \
        if ((rows) > 4) { X(4); } \
        if ((rows) > 5) { X(5); } \
        if ((rows) > 6) { X(6); } \
        if ((rows) > 7) { X(7); } \
        if ((rows) > 8) { X(8); } \
        if ((rows) > 9) { X(9); } \
        if ((rows) > 10) { X(10); } \
        if ((rows) > 11) { X(11); } \
    } while (0)
// clang-format on

enum { TILE_ROWS = 12 }; // at most

typedef __m512i tile_sums[TILE_ROWS][PRODUCT_VECTORS];

// --- tiles ---

UNROLLED void start_sums(const product_tile *t, tile_sums acc, size_t rows, size_t vectors) {
    __m512i first[PRODUCT_VECTORS];
#define LOAD(v) first[v] = first_sums(t, v)
    EACH_VECTOR(vectors, LOAD);
#undef LOAD
#define COPY(v) row[v] = first[v]
#define START(r)                                                                                   \
    __m512i *const row = acc[r];                                                                   \
    EACH_VECTOR(vectors, COPY)
    EACH_ROW(rows, START);
#undef START
#undef COPY
}

UNROLLED void keep_sums(const tile_sums acc, int32_t *to, size_t rows, size_t vectors) {
#define STORE(v) _mm512_store_si512(to + (size_t)(v)*PRODUCT_LANES, row[v])
#define KEEP(r)                                                                                    \
    const __m512i *const row = acc[r];                                                             \
    EACH_VECTOR(vectors, STORE);                                                                   \
    to += PRODUCT_BLOCK
    EACH_ROW(rows, KEEP);
#undef KEEP
#undef STORE
}

UNROLLED void add_row(__m512i acc[PRODUCT_VECTORS], __m512i x, const __m512i w[PRODUCT_VECTORS],
                      size_t vectors) {
#define ADD(v) acc[v] = _mm512_dpbusd_epi32(acc[v], x, w[v])
    EACH_VECTOR(vectors, ADD);
#undef ADD
}

// Weights of several rows stay in registers: a load for each product is slower than products are.
UNROLLED void load_weights(const uint32_t *from, size_t rows, size_t vectors,
                           __m512i w[PRODUCT_VECTORS]) {
#define LOAD(v)                                                                                    \
    w[v] = _mm512_loadu_si512(from + (size_t)(v)*PRODUCT_LANES);                                   \
    if (rows > 1) KEEP_IN_REGISTER(w[v])
    EACH_VECTOR(vectors, LOAD);
#undef LOAD
}

// `x`: of the tile's first row.
UNROLLED void add_taps(const product_tile *t, const uint8_t *const *x, tile_sums acc, size_t rows,
                       size_t vectors, size_t ahead) {
    const __m512i flip = _mm512_set1_epi8((char)t->flip);
    const uint32_t *from = t->w;
    const size_t whole = t->codes / 4 * 4, tail = t->codes - whole;
    __m512i w[PRODUCT_VECTORS];
    for (size_t i = 0; i < t->taps; i++) {
        const uint8_t *at[TILE_ROWS];
        from += tare__product_gap(t, i);
#define FIND(r) at[r] = tare__product_codes_at(t, x + (r), i)
        EACH_ROW(rows, FIND);
#undef FIND
        for (size_t k = 0; k < whole; k += 4, from += vectors * PRODUCT_LANES) {
            expect_weights(from, ahead);
            load_weights(from, rows, vectors, w);
#define ADD_ROW(r) add_row(acc[r], broadcast(at[r] + k, flip), w, vectors)
            EACH_ROW(rows, ADD_ROW);
#undef ADD_ROW
        }
        if (tail == 0) continue;
        load_weights(from, rows, vectors, w);
        from += vectors * PRODUCT_LANES;
#define ADD_ROW(r)                                                                                 \
    const uint32_t word = tare__product_tail(at[r] + whole, tail);                                 \
    add_row(acc[r], _mm512_xor_si512(_mm512_set1_epi32((int)word), flip), w, vectors)
        EACH_ROW(rows, ADD_ROW);
#undef ADD_ROW
    }
}

#if !HAS_FEW_FORMS
UNROLLED void end_tile(const product_tile *t, const tile_end *e, end_form form, tile_sums acc,
                       size_t first, size_t rows, size_t vectors) {
    const size_t step = PACKED_REGISTERS / vectors;
#define END_AT(r)                                                                                  \
    if ((r) % step == 0) {                                                                         \
        const size_t count = rows - (r) < step ? rows - (r) : step;                                \
        __m512i sums[PACKED_REGISTERS];                                                            \
        for (size_t i = 0; i < PACKED_REGISTERS; i++)                                              \
            if (i < count * vectors) sums[i] = acc[(r) + i / vectors][i % vectors];                \
        end_rows(t, e, form, sums, first + (r), count, vectors, e->last);                          \
    }
    EACH_ROW(rows, END_AT);
#undef END_AT
}
#endif

// `rows` rows of t from `first` on; weights are met for the pass-th time. The most frequent ends
// need no memory.
UNROLLED void run_tile(const product_tile *t, const tile_end *e, size_t first, size_t pass,
                       size_t rows, size_t vectors) {
    _Alignas(64) int32_t sums[TILE_ROWS * PRODUCT_BLOCK];
    tile_sums acc;
    start_sums(t, acc, rows, vectors);
    add_taps(t, t->x + first, acc, rows, vectors, ahead_of(t, vectors, pass));
#if !HAS_FEW_FORMS
    const bool is_shifted = e->own.is_shifted;
    if (e->kind == END_OF_F) {
        end_tile(t, e, (end_form){END_OF_F}, acc, first, rows, vectors);
        return;
    }
    if (e->kind == END_OF_O && is_shifted) {
        end_tile(t, e, (end_form){END_OF_O, .is_shifted = true}, acc, first, rows, vectors);
        return;
    }
    if (e->kind == END_OF_O) {
        end_tile(t, e, (end_form){END_OF_O}, acc, first, rows, vectors);
        return;
    }
    if (vectors == PRODUCT_VECTORS && e->kind == END_WITH_PLAIN) {
        end_tile(t, e, (end_form){END_WITH_PLAIN}, acc, first, rows, vectors);
        return;
    }
    if (vectors == PRODUCT_VECTORS && e->kind == END_WITH_VALUES) {
        end_tile(t, e, (end_form){END_WITH_VALUES}, acc, first, rows, vectors);
        return;
    }
    if (vectors == PRODUCT_VECTORS && e->kind == END_AS_VALUES) {
        end_tile(t, e, (end_form){END_AS_VALUES}, acc, first, rows, vectors);
        return;
    }
#endif
    keep_sums(acc, sums, rows, vectors);
    const kept_sums kept = {.at = sums, .stride = PRODUCT_BLOCK, .first = first, .rows = rows};
    end_kept(t, e, &kept);
}

// One function per size of tile: rows, vectors.
// clang-format off
#define EACH_SIZE(X) \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) \
    X(7, 1) X(8, 1) X(9, 1) X(10, 1) X(11, 1) X(12, 1) \
    X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) \
    X(7, 2) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2) \
    X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(7, 3) X(8, 3) \
    X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4)
// clang-format on
#define DEFINE(rows, vectors)                                                                      \
    static void tile_##rows##x##vectors(const product_tile *t, const tile_end *e, size_t first,    \
                                        size_t pass) {                                             \
        run_tile(t, e, first, pass, rows, vectors);                                                \
    }
EACH_SIZE(DEFINE)
#undef DEFINE

#define ROW(rows, vectors) [(vectors)-1][(rows)-1] = tile_##rows##x##vectors,
static void (*const tiles[PRODUCT_VECTORS][TILE_ROWS])(const product_tile *, const tile_end *,
                                                       size_t, size_t) = {EACH_SIZE(ROW)};
#undef ROW

void qu8_product__avx512vnni(const product_tile *t) {
    static const size_t most[PRODUCT_VECTORS] = {12, 12, 8, 6};
    const size_t vectors = tare__product_vectors(t->channels);
    tile_end e;
    set_end(&e, t);
    size_t row = run_in_pairs(t, &e);
    if (row == 0) row = run_turns(t, &e);
    size_t pass = row == 0 ? 0 : vectors;
    for (size_t rows; row < t->rows; row += rows, pass++) {
        const size_t left = t->rows - row,
                     count = (left + most[vectors - 1] - 1) / most[vectors - 1];
        rows = (left + count - 1) / count;
        tiles[vectors - 1][rows - 1](t, &e, row, pass);
    }
}

void qu8_product_finish__avx512vnni(const product_tile *t, const int32_t *sums,
                                    size_t sums_stride) {
    tile_end e;
    set_end(&e, t);
    const kept_sums kept = {.at = sums, .stride = sums_stride, .rows = t->rows, .starts = true};
    end_kept(t, &e, &kept);
}
