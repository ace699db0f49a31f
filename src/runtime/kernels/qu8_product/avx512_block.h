// SPDX-License-Identifier: Apache-2.0
// Products of blocks of VECTORS vectors of channels with AVX512-VNNI. One source includes this file
// for each number of vectors, so that several compilers share the work. avx512vnni.c describes the
// method.
// Private to runtime/kernels/qu8_product.
#ifndef RUNTIME_KERNELS_QU8_PRODUCT_AVX512_BLOCK_H
#define RUNTIME_KERNELS_QU8_PRODUCT_AVX512_BLOCK_H

#include "runtime/kernels/qu8_product/avx512_epilogue.h"

// Rows whose sums fill the registers of an epilogue.
#define STEP (PACKED_REGISTERS / VECTORS)

enum { BLOCK_LANES = VECTORS * PRODUCT_LANES }; // channels of a word of weights

// --- sums of a tile ---

enum { TILE_ROWS = 12 }; // at most

typedef __m512i tile_sums[TILE_ROWS][PRODUCT_VECTORS];

// --- tiles ---

UNROLLED void start_sums(const product_tile *t, tile_sums acc, size_t rows) {
    __m512i first[PRODUCT_VECTORS];
#define LOAD(v) first[v] = first_sums(t, v)
    EACH_VECTOR(VECTORS, LOAD);
#undef LOAD
#define COPY(v) row[v] = first[v]
#define START(r)                                                                                   \
    __m512i *const row = acc[r];                                                                   \
    EACH_VECTOR(VECTORS, COPY)
    EACH_ROW(rows, START);
#undef START
#undef COPY
}

UNROLLED void keep_sums(const tile_sums acc, int32_t *to, size_t rows) {
#define STORE(v) _mm512_store_si512(to + (size_t)(v)*PRODUCT_LANES, row[v])
#define KEEP(r)                                                                                    \
    const __m512i *const row = acc[r];                                                             \
    EACH_VECTOR(VECTORS, STORE);                                                                   \
    to += PRODUCT_BLOCK
    EACH_ROW(rows, KEEP);
#undef KEEP
#undef STORE
}

UNROLLED void add_row(__m512i acc[PRODUCT_VECTORS], __m512i x, const __m512i w[PRODUCT_VECTORS]) {
#define ADD(v) acc[v] = _mm512_dpbusd_epi32(acc[v], x, w[v])
    EACH_VECTOR(VECTORS, ADD);
#undef ADD
}

// Weights used by several rows stay in registers: loading them for each product is slower than the
// products.
UNROLLED void load_weights(const uint32_t *from, size_t rows, __m512i w[PRODUCT_VECTORS]) {
#define LOAD(v)                                                                                    \
    w[v] = _mm512_loadu_si512(from + (size_t)(v)*PRODUCT_LANES);                                   \
    if (rows > 1) KEEP_IN_REGISTER(w[v])
    EACH_VECTOR(VECTORS, LOAD);
#undef LOAD
}

// The innermost loop, a word of depth of 6 rows by 4 vectors, 8 by 3, or 12 by 2: 24 products and
// nothing else on their ports. scripts/ports.py simulates it.
//   Intel with two VNNI ports: 12 cycles, for 10, 11 or 14 loads (and 4, 3 or 2 more of addresses
//   that registers have no room for) of 2 a cycle of 512 bits. A cycle has 6 instructions: 36
//   to 42. Zen 4: 24 cycles, products of 512 bits take the two pipes at once; for one load of 512
//   bits a cycle. Zen 5 is as Intel.
// One vector has a load for each product; Intel's two a cycle are as many as its products.
// `x`: of the tile's first row.
UNROLLED void add_taps(const product_tile *t, const uint8_t *const *x, tile_sums acc, size_t rows,
                       size_t ahead) {
    const uint32_t *from = t->w;
    const size_t whole = t->tap_size / 4 * 4, tail = t->tap_size - whole;
    __m512i w[PRODUCT_VECTORS];
    for (size_t i = 0; i < t->taps; i++) {
        const uint8_t *at[TILE_ROWS];
        from += tare__product_gap(t, i);
#define FIND(r) at[r] = tare__product_values_at(t, x + (r), i)
        EACH_ROW(rows, FIND);
#undef FIND
        for (size_t k = 0; k < whole; k += 4, from += BLOCK_LANES) {
            expect_weights(from, ahead);
            load_weights(from, rows, w);
#define ADD_ROW(r) add_row(acc[r], broadcast(at[r] + k), w)
            EACH_ROW(rows, ADD_ROW);
#undef ADD_ROW
        }
        if (tail == 0) continue;
        load_weights(from, rows, w);
        from += BLOCK_LANES;
#define ADD_ROW(r)                                                                                 \
    const uint32_t word = tare__product_tail(at[r] + whole, tail);                                 \
    add_row(acc[r], _mm512_set1_epi32((int)word), w)
        EACH_ROW(rows, ADD_ROW);
#undef ADD_ROW
    }
}

// --- epilogues ---

#if HAS_FEW_FORMS
#define KIND e->kind
#define NAME any
#include "runtime/kernels/qu8_product/avx512_kind.h"
#else
// Pipelines for the blocks that occur in networks: with three vectors none; with one, none with an
// addend; with two, only the native addition.
#define ADDS_IN_PIPELINE   (VECTORS == 2 || VECTORS == 4)
#define KIND               EPILOGUE_OF_F
#define NAME               f
#define HAS_TILE           1
#define HAS_PIPELINE       (VECTORS != 3)
#define HAS_REGISTER_PAIRS (VECTORS != 3)
#include "runtime/kernels/qu8_product/avx512_kind.h"
#define KIND               EPILOGUE_OF_O
#define NAME               o
#define HAS_TILE           1
#define HAS_PIPELINE       (VECTORS != 3)
#define HAS_REGISTER_PAIRS (VECTORS != 3)
#include "runtime/kernels/qu8_product/avx512_kind.h"
#if VECTORS == 4
#define KIND         EPILOGUE_WITH_VALUES
#define NAME         values
#define HAS_TILE     1
#define HAS_PIPELINE 1
#include "runtime/kernels/qu8_product/avx512_kind.h"
#else // rare, and not worth a separate form
#define epilogue_kept_values epilogue_kept_others
#endif
#define KIND         EPILOGUE_WITH_O
#define NAME         with_o
#define HAS_PIPELINE (VECTORS == 4)
#include "runtime/kernels/qu8_product/avx512_kind.h"
#define KIND         EPILOGUE_WITH_QUANTIZED
#define NAME         quantized
#define HAS_PIPELINE ADDS_IN_PIPELINE
#include "runtime/kernels/qu8_product/avx512_kind.h"
#define KIND EPILOGUE_OF_OTHERS
#define NAME others
#include "runtime/kernels/qu8_product/avx512_kind.h"
#define KIND EPILOGUE_AS_VALUES
#define NAME as_values
#include "runtime/kernels/qu8_product/avx512_kind.h"
#endif

#define JOIN_(name, vectors) name##vectors
#define JOIN(name, vectors)  JOIN_(name, vectors)

void JOIN(qu8_product_kept__avx512vnni_, VECTORS)(const product_tile *t, const block_epilogue *e,
                                                  const kept_sums *s) {
#if HAS_FEW_FORMS
    epilogue_kept_any(t, e, s);
#else
    static void (*const epilogues[])(const product_tile *, const block_epilogue *,
                                     const kept_sums *) = {
        [EPILOGUE_OF_F] = epilogue_kept_f,
        [EPILOGUE_OF_O] = epilogue_kept_o,
        [EPILOGUE_WITH_VALUES] = epilogue_kept_values,
        [EPILOGUE_WITH_O] = epilogue_kept_with_o,
        [EPILOGUE_WITH_QUANTIZED] = epilogue_kept_quantized,
        [EPILOGUE_OF_OTHERS] = epilogue_kept_others,
        [EPILOGUE_AS_VALUES] = epilogue_kept_as_values,
    };
    epilogues[e->kind](t, e, s);
#endif
}

// --- tiles ---

// The sums of `rows` rows of t from `first` on; pass: how often the weights were used before.
UNROLLED void make_sums(const product_tile *t, tile_sums acc, size_t first, size_t pass,
                        size_t rows) {
    start_sums(t, acc, rows);
    add_taps(t, t->x + first, acc, rows, ahead_of(t, VECTORS, pass));
}

// The epilogue reads the sums from memory.
UNROLLED void finish_in_memory(const product_tile *t, const block_epilogue *e, const tile_sums acc,
                               size_t first, size_t rows) {
    _Alignas(64) int32_t sums[TILE_ROWS * PRODUCT_BLOCK];
    keep_sums(acc, sums, rows);
    const kept_sums kept = {.at = sums, .stride = PRODUCT_BLOCK, .first = first, .rows = rows};
    JOIN(qu8_product_kept__avx512vnni_, VECTORS)(t, e, &kept);
}

// The most frequent epilogues work in registers.
UNROLLED void finish_tile(const product_tile *t, const block_epilogue *e, tile_sums acc,
                          size_t first, size_t rows) {
#if !HAS_FEW_FORMS
    if (e->kind == EPILOGUE_OF_F) {
        epilogue_tile_f(t, e, acc, first, rows);
        return;
    }
    if (e->kind == EPILOGUE_OF_O) {
        epilogue_tile_o(t, e, acc, first, rows);
        return;
    }
#if VECTORS == 4
    if (e->kind == EPILOGUE_WITH_VALUES) {
        epilogue_tile_values(t, e, acc, first, rows);
        return;
    }
#endif
#endif
    finish_in_memory(t, e, acc, first, rows);
}

// One function per number of rows; `rows_of_tile` returns no others. Those with few rows, which are
// rare, have no epilogue of their own.
#if VECTORS == 4
#define FEW_ROWS(X)  X(1) X(2) X(3)
#define MANY_ROWS(X) X(4) X(5) X(6)
enum { MOST_ROWS = 6 };
#elif VECTORS == 3
#define FEW_ROWS(X)  X(1) X(2) X(3) X(4) X(5) X(6)
#define MANY_ROWS(X) X(7) X(8)
enum { MOST_ROWS = 8 };
#elif VECTORS == 2
#define FEW_ROWS(X)  X(1) X(2) X(3) X(4) X(5) X(6)
#define MANY_ROWS(X) X(8) X(10) X(12)
enum { MOST_ROWS = 12 };
#else
#define FEW_ROWS(X)  X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define MANY_ROWS(X) X(8) X(9) X(10) X(11) X(12)
enum { MOST_ROWS = 12 };
#endif

// As few tiles as possible, with about equal numbers of rows. With two vectors, an odd number of
// rows takes as long as two tiles of half the size.
static size_t rows_of_tile(size_t left) {
    const size_t tiles = (left + MOST_ROWS - 1) / MOST_ROWS, rows = (left + tiles - 1) / tiles;
    if (VECTORS != 2 || rows <= MOST_ROWS / 2 || rows % 2 == 0) return rows;
    return rows < left ? rows + 1 : (rows + 1) / 2;
}

#define DEFINE(rows, finish)                                                                       \
    static void tile_##rows(const product_tile *t, const block_epilogue *e, size_t first,          \
                            size_t pass) {                                                         \
        tile_sums acc;                                                                             \
        make_sums(t, acc, first, pass, rows);                                                      \
        finish(t, e, acc, first, rows);                                                            \
    }
#define DEFINE_FEW(rows)  DEFINE(rows, finish_in_memory)
#define DEFINE_MANY(rows) DEFINE(rows, finish_tile)
FEW_ROWS(DEFINE_FEW)
MANY_ROWS(DEFINE_MANY)
#undef DEFINE_MANY
#undef DEFINE_FEW
#undef DEFINE

#define ROW(rows) [(rows)-1] = tile_##rows,
static void (*const run_tiles[MOST_ROWS])(const product_tile *, const block_epilogue *, size_t,
                                          size_t) = {FEW_ROWS(ROW) MANY_ROWS(ROW)};
#undef ROW

// --- rows before tiles ---

#if HAS_FEW_FORMS || VECTORS == 3
static size_t run_before_tiles(const product_tile *t, const block_epilogue *e) {
    (void)t, (void)e;
    return 0;
}
#else
// The number of the tile's rows that were computed. With more than `most` words, pipelines or tiles
// are faster.
static size_t run_in_pairs(const product_tile *t, const block_epilogue *e) {
    static const size_t most = VECTORS == 4 ? 6 : 12;
    if (e->kind > EPILOGUE_OF_O || t->tap_size % 4 != 0 || t->gap != 0 ||
        t->tap_size / 4 * t->taps > most)
        return 0;
    const size_t rows = t->rows / (2 * STEP) * (2 * STEP);
    if (e->kind == EPILOGUE_OF_F)
        run_pairs_f(t, e, rows);
    else
        run_pairs_o(t, e, rows);
    return rows;
}

#define HAS_PIPELINE_OF(kind)                                                                      \
    ((kind) <= EPILOGUE_OF_O || (VECTORS == 4 && (kind) <= EPILOGUE_WITH_QUANTIZED) ||             \
     (VECTORS == 2 && (kind) == EPILOGUE_WITH_QUANTIZED))

// Frequent epilogues, for blocks that fill the accumulator groups.
static bool may_pipeline(const product_tile *t, const block_epilogue *e) {
    return HAS_PIPELINE_OF(e->kind) && t->tap_size % 4 == 0 && t->gap == 0 &&
           (e->last == 0xFFFF || t->addend == NULL || IS_VECTOR_PARTIAL(e->kind));
}

// The number of the tile's rows that were pipelined.
static size_t run_pipelined(const product_tile *t, const block_epilogue *e) {
    static void (*const runs[])(pipeline *, size_t) = {
        [EPILOGUE_OF_F] = run_pipeline_f,
        [EPILOGUE_OF_O] = run_pipeline_o,
#if VECTORS == 4
        [EPILOGUE_WITH_VALUES] = run_pipeline_values,
        [EPILOGUE_WITH_O] = run_pipeline_with_o,
#endif
#if ADDS_IN_PIPELINE
        [EPILOGUE_WITH_QUANTIZED] = run_pipeline_quantized,
#endif
    };
    const size_t round = GROUPS * STEP, count = t->rows / round, words = t->tap_size / 4 * t->taps;
    if (count < LEAST_ROUNDS || words < GROUPS || words > MOST_WORDS * count || !may_pipeline(t, e))
        return 0;
    pipeline s;
    begin_pipeline(&s, t, e);
    runs[e->kind](&s, count);
    return count * round;
}

static size_t run_before_tiles(const product_tile *t, const block_epilogue *e) {
    const size_t rows = run_in_pairs(t, e);
    return rows != 0 ? rows : run_pipelined(t, e);
}
#endif

void JOIN(qu8_product_block__avx512vnni_, VECTORS)(const product_tile *t, const block_epilogue *e) {
    size_t row = run_before_tiles(t, e);
    size_t pass = row == 0 ? 0 : VECTORS;
    for (size_t rows; row < t->rows; row += rows, pass++) {
        rows = rows_of_tile(t->rows - row);
        run_tiles[rows - 1](t, e, row, pass);
    }
}

#endif
