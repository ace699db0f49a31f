// SPDX-License-Identifier: Apache-2.0
// Linear with AVX2: 4 rows, or one, by 8 channels. Weights are widened to 16 bits, even and odd
// ones apart; vpmaddwd adds two exact products.
#include "runtime/kernels/qu8_avx2.h"
#include "runtime/kernels/tile.h"

enum { ROWS = 4, LANES = 8, WORDS = 2 };

static inline void finish(const linear_tile *t, const epilogue_constants *k, size_t n, size_t c,
                          __m256i acc) {
    const tile_epilogue *e = &t->epilogue;
    const __m256 multiplier = _mm256_loadu_ps(e->multiplier + c),
                 bias = _mm256_loadu_ps(e->bias + c);
    if (t->real != NULL) {
        store_floats(t->real + n * t->y_stride + c, t->channels - c,
                     t->fuses ? _mm256_fmadd_ps(_mm256_cvtepi32_ps(acc), multiplier, bias)
                              : real_lanes(acc, multiplier, bias));
        return;
    }
    store_codes(t->y + n * t->y_stride + c, t->channels - c,
                requantize_lanes(k, acc, multiplier, bias));
}

static inline __m256i add_products(__m256i acc, const uint32_t *x, __m256i even, __m256i odd) {
    const __m256i evens = _mm256_madd_epi16(_mm256_set1_epi32((int)x[0]), even);
    const __m256i odds = _mm256_madd_epi16(_mm256_set1_epi32((int)x[1]), odd);
    return _mm256_add_epi32(acc, _mm256_add_epi32(evens, odds));
}

static inline void load_weights(const uint32_t *w, __m256i *even, __m256i *odd) {
    const __m256i weights = _mm256_loadu_si256((const __m256i *)w);
    *even = _mm256_srai_epi16(_mm256_slli_epi16(weights, 8), 8);
    *odd = _mm256_srai_epi16(weights, 8);
}

static void tile_4x8(const linear_tile *t, const epilogue_constants *k, size_t n, size_t c) {
    const size_t row = t->depth * WORDS;
    const uint32_t *x = t->x + n * row, *w = t->w + c * t->depth;
    __m256i acc0 = _mm256_loadu_si256((const __m256i *)(t->epilogue.start + c));
    __m256i acc1 = acc0, acc2 = acc0, acc3 = acc0, even, odd;
    for (size_t d = 0; d < t->depth; d++, x += WORDS) {
        load_weights(w + d * LANES, &even, &odd);
        acc0 = add_products(acc0, x, even, odd);
        acc1 = add_products(acc1, x + row, even, odd);
        acc2 = add_products(acc2, x + 2 * row, even, odd);
        acc3 = add_products(acc3, x + 3 * row, even, odd);
    }
    finish(t, k, n, c, acc0);
    finish(t, k, n + 1, c, acc1);
    finish(t, k, n + 2, c, acc2);
    finish(t, k, n + 3, c, acc3);
}

static void tile_1x8(const linear_tile *t, const epilogue_constants *k, size_t n, size_t c) {
    const uint32_t *x = t->x + n * t->depth * WORDS, *w = t->w + c * t->depth;
    __m256i acc = _mm256_loadu_si256((const __m256i *)(t->epilogue.start + c)), even, odd;
    for (size_t d = 0; d < t->depth; d++) {
        load_weights(w + d * LANES, &even, &odd);
        acc = add_products(acc, x + d * WORDS, even, odd);
    }
    finish(t, k, n, c, acc);
}

void qu8_linear_4x8__avx2(const linear_tile *t) {
    const epilogue_constants k = epilogue_constants_of(t->epilogue.requant);
    for (size_t c = 0; c < t->channels; c += LANES) {
        size_t n = 0;
        for (; n + ROWS <= t->rows; n += ROWS) tile_4x8(t, &k, n, c);
        for (; n < t->rows; n++) tile_1x8(t, &k, n, c);
    }
}
