// SPDX-License-Identifier: Apache-2.0
// A software-pipelined epilogue for products of many rows. The epilogue needs other ports than
// vpdpbusd, but that of a whole tile has too many instructions for the processor to find products
// behind them. So the epilogues of few rows at a time are spread over the products of the others.
//
// The 24 registers of sums are six accumulator groups of four. A group holds as many rows as its
// registers hold vectors of channels. The words of depth are cut into six stretches; after each
// stretch one group runs its epilogue and begins with other rows. The sums of each group begin at
// another word, and wrap around to the first: sums of integers may begin anywhere.
//
// Ports and loads of the innermost loop are those of a tile (avx512_block.h), but that of few
// vectors finds 12 or 24 addresses in memory: 26 loads beside 24 products of two vectors, 49 of
// one, which is more than Intel's three loads of addresses and words a cycle hide (16.7 for 12
// cycles).
// Private to runtime/kernels/qu8_product.
#ifndef RUNTIME_KERNELS_QU8_PRODUCT_AVX512_PIPELINE_H
#define RUNTIME_KERNELS_QU8_PRODUCT_AVX512_PIPELINE_H

#include "runtime/kernels/qu8_product/avx512_epilogue.h"

enum {
    GROUPS = 6,
    GROUP_ROWS = PACKED_REGISTERS, // at most
    // Fewer rounds do not pay: while the first groups start and the last ones end, few sums share
    // the loaded weights.
    LEAST_ROUNDS = 9,
    MOST_WORDS = 16, // depth per round: for deeper rows the epilogue hardly matters
};

// A tap, and the number of its quantized values that precede.
typedef struct word_position {
    size_t tap, q;
} word_position;

typedef struct pipeline {
    const product_tile *t;
    const block_epilogue *end;
    const uint8_t *const *rows[GROUPS * GROUP_ROWS]; // addresses of the first taps
    const uint8_t *at[GROUPS * GROUP_ROWS];          // quantized values of the present tap
    word_position ends[GROUPS];                      // ends of the stretches
} pipeline;

static void begin_pipeline(pipeline *s, const product_tile *t, const block_epilogue *e) {
    const size_t words = t->tap_size / 4;
    s->t = t;
    s->end = e;
    // Addresses of groups that have not started are read, too.
    for (size_t i = 0; i < GROUPS * GROUP_ROWS; i++) s->rows[i] = t->x;
    for (size_t i = 0; i < GROUPS; i++) {
        // At the end of a tap if there are enough taps, so that loops have equal lengths.
        const size_t end = (i + 1) * t->taps / GROUPS;
        const size_t word = t->taps >= GROUPS ? end * words : (i + 1) * words * t->taps / GROUPS;
        const size_t tap = (word - 1) / words;
        s->ends[i] = (word_position){tap, (word - tap * words) * 4};
    }
}

// Sums have fixed registers, or gcc keeps some of them in memory. No function is called while they
// hold sums, except for those that sanitizers insert.
#if defined __OPTIMIZE__ && !defined __clang__
#define SUMS(name, number) register __m512i name __asm__("zmm" #number)
#else
#define SUMS(name, number) __m512i name
#endif

// The registers of a group, passed to X.
#define GROUP0(X, ...) X(0, a0, b0, c0, d0, __VA_ARGS__)
#define GROUP1(X, ...) X(1, a1, b1, c1, d1, __VA_ARGS__)
#define GROUP2(X, ...) X(2, a2, b2, c2, d2, __VA_ARGS__)
#define GROUP3(X, ...) X(3, a3, b3, c3, d3, __VA_ARGS__)
#define GROUP4(X, ...) X(4, a4, b4, c4, d4, __VA_ARGS__)
#define GROUP5(X, ...) X(5, a5, b5, c5, d5, __VA_ARGS__)

#define ADD_PRODUCTS(group, a, b, c, d, ...)                                                       \
    do {                                                                                           \
        const size_t first_ = (group)*STEP;                                                        \
        const __m512i x0_ = broadcast(at[first_] + k);                                             \
        a = _mm512_dpbusd_epi32(a, x0_, w0);                                                       \
        if (VECTORS == 1) {                                                                        \
            b = _mm512_dpbusd_epi32(b, broadcast(at[first_ + 1] + k), w0);                         \
            c = _mm512_dpbusd_epi32(c, broadcast(at[first_ + 2] + k), w0);                         \
            d = _mm512_dpbusd_epi32(d, broadcast(at[first_ + 3] + k), w0);                         \
        } else if (VECTORS == 2) {                                                                 \
            const __m512i x1_ = broadcast(at[first_ + 1] + k);                                     \
            b = _mm512_dpbusd_epi32(b, x0_, w1);                                                   \
            c = _mm512_dpbusd_epi32(c, x1_, w0);                                                   \
            d = _mm512_dpbusd_epi32(d, x1_, w1);                                                   \
        } else {                                                                                   \
            b = _mm512_dpbusd_epi32(b, x0_, w1);                                                   \
            c = _mm512_dpbusd_epi32(c, x0_, w2);                                                   \
            d = _mm512_dpbusd_epi32(d, x0_, w3);                                                   \
        }                                                                                          \
    } while (0);

// True if the last vector of a block may have fewer channels than lanes, which must not be read
// from an addend. Full blocks need no mask.
#define IS_VECTOR_PARTIAL(kind) ((kind) >= EPILOGUE_WITH_VALUES && VECTORS < PRODUCT_VECTORS)

// Prefetches what the epilogue of these rows reads and writes while their sums are computed.
UNROLLED void expect_epilogue(const product_tile *t, epilogue_kind kind, size_t row, size_t rows) {
    for (size_t r = row; r < row + rows; r++) {
        __builtin_prefetch(t->y + r * t->y_stride, 1);
        if (kind >= EPILOGUE_WITH_VALUES)
            __builtin_prefetch(t->addend->quantized + r * t->addend->stride);
    }
}

#define BEGIN(group, a, b, c, d, row)                                                              \
    do {                                                                                           \
        for (size_t r_ = (group)*STEP; r_ < ((group) + 1) * STEP; r_++) {                          \
            s->rows[r_] = t->x + (row) + r_;                                                       \
            at[r_] = tare__product_values_at(t, s->rows[r_], tap);                                 \
        }                                                                                          \
        expect_epilogue(t, KIND, (row) + (group)*STEP, STEP);                                      \
        a = first_sums(t, 0);                                                                      \
        b = VECTORS > 1 ? first_sums(t, 1) : a;                                                    \
        c = VECTORS > 2 ? first_sums(t, 2) : a;                                                    \
        d = VECTORS > 3 ? first_sums(t, 3) : b;                                                    \
    } while (0);

#define GO_TO(next_tap)                                                                            \
    do {                                                                                           \
        tap = (next_tap);                                                                          \
        k = 0;                                                                                     \
        for (size_t r_ = 0; r_ < GROUPS * STEP && t->taps > 1; r_++)                               \
            at[r_] = tare__product_values_at(t, s->rows[r_], tap);                                 \
    } while (0);

#define EPILOGUE(group, a, b, c, d, row)                                                           \
    OF_KIND(epilogue_of_group)(s, (row) + (group)*STEP, a, b, c, d);

// Several rows use the weights: loads for each product would be slower than the products.
#define KEEP_WEIGHTS(w0, w1, w2, w3)                                                               \
    do {                                                                                           \
        KEEP_IN_REGISTER(w0);                                                                      \
        KEEP_IN_REGISTER(w1);                                                                      \
        KEEP_IN_REGISTER(w2);                                                                      \
        KEEP_IN_REGISTER(w3);                                                                      \
    } while (0)

// The words of a stretch, for some groups.
#define WORDS(stretch, ADD_ALL)                                                                    \
    for (;;) {                                                                                     \
        const size_t last_ = tap < s->ends[stretch].tap ? t->tap_size : s->ends[stretch].q;        \
        for (; k < last_; k += 4, w += BLOCK_LANES) {                                              \
            if (VECTORS <= 2) RELOAD(at);                                                          \
            expect_weights(w, ahead);                                                              \
            __m512i w0 = _mm512_loadu_si512(w);                                                    \
            __m512i w1 = VECTORS > 1 ? _mm512_loadu_si512(w + PRODUCT_LANES) : w0;                 \
            __m512i w2 = VECTORS > 2 ? _mm512_loadu_si512(w + 2 * PRODUCT_LANES) : w0;             \
            __m512i w3 = VECTORS > 3 ? _mm512_loadu_si512(w + 3 * PRODUCT_LANES) : w0;             \
            if (VECTORS == PRODUCT_VECTORS) KEEP_WEIGHTS(w0, w1, w2, w3);                          \
            (void)w1, (void)w2, (void)w3;                                                          \
            ADD_ALL                                                                                \
        }                                                                                          \
        if (tap == s->ends[stretch].tap) break;                                                    \
        GO_TO(tap + 1)                                                                             \
    }

#define UP_TO_0 GROUP0(ADD_PRODUCTS, )
#define UP_TO_1 UP_TO_0 GROUP1(ADD_PRODUCTS, )
#define UP_TO_2 UP_TO_1 GROUP2(ADD_PRODUCTS, )
#define UP_TO_3 UP_TO_2 GROUP3(ADD_PRODUCTS, )
#define UP_TO_4 UP_TO_3 GROUP4(ADD_PRODUCTS, )
#define UP_TO_5 UP_TO_4 GROUP5(ADD_PRODUCTS, )
#define FROM_5  GROUP5(ADD_PRODUCTS, )
#define FROM_4  GROUP4(ADD_PRODUCTS, ) FROM_5
#define FROM_3  GROUP3(ADD_PRODUCTS, ) FROM_4
#define FROM_2  GROUP2(ADD_PRODUCTS, ) FROM_3
#define FROM_1  GROUP1(ADD_PRODUCTS, ) FROM_2

#endif

// --- of each kind ---

UNROLLED void OF_KIND(epilogue_of_group)(const pipeline *s, size_t row, __m512i a, __m512i b,
                                         __m512i c, __m512i d) {
    __m512i sums[PACKED_REGISTERS] = {a, b, c, d};
    const __mmask16 last = IS_VECTOR_PARTIAL(KIND) ? s->end->last : 0xFFFF;
    OF_KIND(epilogue_of_rows)
    (s->t, s->end, (epilogue_form){.is_tight = true}, sums, row, STEP, last);
}

// `count` times the rows that all groups hold.
static void OF_KIND(run_pipeline)(pipeline *s, size_t count) {
    const product_tile *t = s->t;
    const size_t round = GROUPS * STEP;
    const uint8_t *kept[GROUPS * GROUP_ROWS], **at = VECTORS > 2 ? kept : s->at;
    const uint32_t *w = t->w;
    size_t row = 0; // the first row of all groups
    size_t ahead = ahead_of(t, VECTORS, 0);
    size_t tap = 0, k = 0;
    // clang-format off
    SUMS(a0, 8); SUMS(b0, 9); SUMS(c0, 10); SUMS(d0, 11);
    SUMS(a1, 12); SUMS(b1, 13); SUMS(c1, 14); SUMS(d1, 15);
    SUMS(a2, 16); SUMS(b2, 17); SUMS(c2, 18); SUMS(d2, 19);
    SUMS(a3, 20); SUMS(b3, 21); SUMS(c3, 22); SUMS(d3, 23);
    SUMS(a4, 24); SUMS(b4, 25); SUMS(c4, 26); SUMS(d4, 27);
    SUMS(a5, 28); SUMS(b5, 29); SUMS(c5, 30); SUMS(d5, 31);
    // clang-format on
    for (size_t r = 0; r < GROUPS * STEP; r++) at[r] = t->x[0];
    // clang-format off
    GROUP0(BEGIN, row) WORDS(0, UP_TO_0)
    GROUP1(BEGIN, row) WORDS(1, UP_TO_1)
    GROUP2(BEGIN, row) WORDS(2, UP_TO_2)
    GROUP3(BEGIN, row) WORDS(3, UP_TO_3)
    GROUP4(BEGIN, row) WORDS(4, UP_TO_4)
    GROUP5(BEGIN, row) WORDS(5, UP_TO_5)
#define ROUND(group, BEHIND) \
    GROUP##group(EPILOGUE, row) \
    if (count > 1) { \
        GROUP##group(BEGIN, row + round) WORDS(group, UP_TO_5) \
    } else { \
        WORDS(group, BEHIND) \
    }
    for (size_t pass = 1; count > 0; count--, row += round, pass++) {
        GO_TO(0)
        w = t->w;
        ahead = ahead_of(t, VECTORS, pass);
        ROUND(0, FROM_1)
        ROUND(1, FROM_2)
        ROUND(2, FROM_3)
        ROUND(3, FROM_4)
        ROUND(4, FROM_5)
        ROUND(5, (void)w0;)
    }
    // clang-format on
#undef ROUND
}
