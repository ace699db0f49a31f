// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Products with AVX2: up to 4 pixels by 16 channels at a time. vpmaddubsw adds two products of
// unsigned and signed bytes in 16 bits, and saturates. It is used for chunks of the depth whose
// weights are known to prevent that. Otherwise weights and quantized values are widened to 16 bits,
// even and odd ones separately; vpmaddwd adds two exact products.
enum { ROWS = 4 };
#include "runtime/kernels/qu8_product/ymm.h"
#include "runtime/kernels/saturation.h"

UNROLLED void add_wide(__m256i acc[ROWS][HALVES], size_t rows, const int32_t x[ROWS],
                       const uint32_t *w) {
    __m256i even[HALVES], odd[HALVES];
    for (size_t h = 0; h < HALVES; h++) {
        const __m256i weights = load_weights(w + h * HALF);
        even[h] = _mm256_srai_epi16(_mm256_slli_epi16(weights, 8), 8);
        odd[h] = _mm256_srai_epi16(weights, 8);
    }
    for (size_t r = 0; r < rows; r++) {
        const __m256i quantized = _mm256_set1_epi32(x[r]);
        const __m256i evens = _mm256_and_si256(quantized, _mm256_set1_epi16(0xFF));
        const __m256i odds = _mm256_srli_epi16(quantized, 8);
        for (size_t h = 0; h < HALVES; h++)
            acc[r][h] =
                _mm256_add_epi32(acc[r][h], _mm256_add_epi32(_mm256_madd_epi16(evens, even[h]),
                                                             _mm256_madd_epi16(odds, odd[h])));
    }
}

UNROLLED void add_narrow(__m256i acc[ROWS][HALVES], size_t rows, const int32_t x[ROWS],
                         const uint32_t *w) {
    const __m256i ones = _mm256_set1_epi16(1);
    for (size_t h = 0; h < HALVES; h++) {
        const __m256i weights = load_weights(w + h * HALF);
        for (size_t r = 0; r < rows; r++) {
            const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi32(x[r]), weights);
            acc[r][h] = _mm256_add_epi32(acc[r][h], _mm256_madd_epi16(pairs, ones));
        }
    }
}

UNROLLED void add_word(__m256i acc[ROWS][HALVES], size_t rows, const int32_t x[ROWS],
                       const uint32_t *w, bool never_saturates) {
    if (never_saturates)
        add_narrow(acc, rows, x, w);
    else
        add_wide(acc, rows, x, w);
}

// Adds quantized values k to `last` of a tap, or to its end.
UNROLLED void add_quantized(const product_tile *t, __m256i acc[ROWS][HALVES], size_t rows,
                            const uint8_t *const *at, size_t k, size_t last, const uint32_t *w,
                            bool never_saturates) {
    const size_t step = words_of_step(t);
    int32_t x[ROWS];
    for (; k + 4 <= t->tap_size && k < last; k += 4, w += step) {
        for (size_t r = 0; r < rows; r++) x[r] = (int32_t)tare__product_word(at[r] + k, 4);
        add_word(acc, rows, x, w, never_saturates);
    }
    if (k >= last) return;
    for (size_t r = 0; r < rows; r++)
        x[r] = (int32_t)tare__product_tail(at[r] + k, t->tap_size - k);
    add_word(acc, rows, x, w, never_saturates);
}

// The end, at most `end`, of the chunks that are of the same kind as the one at `word`.
static inline size_t end_of_kind(const bool *never_saturates, size_t word, size_t end) {
    if (never_saturates == NULL) return end;
    size_t chunk = word / PRODUCT_CHUNK;
    const bool kind = never_saturates[chunk];
    while (chunk * PRODUCT_CHUNK < end && never_saturates[chunk] == kind) chunk++;
    return chunk * PRODUCT_CHUNK < end ? chunk * PRODUCT_CHUNK : end;
}

UNROLLED void add_taps(const product_tile *t, __m256i acc[ROWS][HALVES], size_t rows, size_t c) {
    const size_t words = (t->tap_size + 3) / 4, chunks = tare__product_chunks(t->taps * words);
    const bool *never_saturates =
        t->never_saturates == NULL ? NULL : t->never_saturates + c / PRODUCT_LANES * chunks;
    const uint32_t *w = t->w + c;
    size_t word = 0; // of the depth
    for (size_t tap = 0; tap < t->taps; tap++) {
        const uint8_t *at[ROWS];
        for (size_t r = 0; r < rows; r++) at[r] = tare__product_values_at(t, t->x + r, tap);
        const size_t first = tap * words;
        while (word < first + words) {
            const size_t last = end_of_kind(never_saturates, word, first + words);
            const size_t k = (word - first) * 4, end = (last - first) * 4;
            if (never_saturates != NULL && never_saturates[word / PRODUCT_CHUNK])
                add_quantized(t, acc, rows, at, k, end, w, true);
            else
                add_quantized(t, acc, rows, at, k, end, w, false);
            w += (last - word) * words_of_step(t);
            word = last;
        }
    }
}

void qu8_product__avx2(const product_tile *t) {
    switch (t->rows) {
    case 1:
        run_rows(t, 1);
        return;
    case 2:
        run_rows(t, 2);
        return;
    case 3:
        run_rows(t, 3);
        return;
    default:
        run_rows(t, ROWS);
        return;
    }
}
