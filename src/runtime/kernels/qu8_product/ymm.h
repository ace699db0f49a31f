// SPDX-License-Identifier: Apache-2.0
// Products in 256-bit registers, except for the sums: a level's file defines ROWS (the most pixels
// of a tile), includes this file, and defines add_taps.
#include <immintrin.h>
#include <string.h>

#include "runtime/kernels/product.h"
#include "runtime/kernels/qu8_avx2.h"

// The innermost loop with vpdpbusd: 12 products, 6 words broadcast by loads, and 2 loads of
// weights. Intel does 2 such products and 3 loads per cycle, Zen 4 two of each: 6 cycles on both.
enum { HALF = 8, HALVES = 2 };
// Loop bounds for unrolling, so that sums stay in registers.
#define UNROLLED static inline __attribute__((always_inline))

// Adds the products of 16 channels from c on.
UNROLLED void add_taps(const product_tile *t, __m256i acc[ROWS][HALVES], size_t rows, size_t c);

// The words of weights at a step of depth.
static inline size_t words_of_step(const product_tile *t) {
    return tare__product_vectors(t->channels) * PRODUCT_LANES;
}

static inline __m256i load_weights(const uint32_t *w) {
    return _mm256_loadu_si256((const __m256i *)w);
}

// Constants of eight channels, zeros beyond the last one.
typedef struct half_constants {
    __m256 multiplier, bias;
    __m256i start;
} half_constants;

static half_constants constants_of(const tile_epilogue *e, size_t c, size_t count) {
    float multiplier[HALF] = {0}, bias[HALF] = {0};
    int32_t start[HALF] = {0};
    for (size_t i = 0; i < HALF && i < count; i++) {
        multiplier[i] = e->multiplier[c + i];
        bias[i] = e->bias[c + i];
        start[i] = e->start[c + i];
    }
    return (half_constants){_mm256_loadu_ps(multiplier), _mm256_loadu_ps(bias),
                            _mm256_loadu_si256((const __m256i *)start)};
}

static __m128i load_some(const uint8_t *x, size_t count) {
    uint8_t bytes[HALF] = {0};
    if (count >= HALF) return _mm_loadl_epi64((const __m128i *)x);
    memcpy(bytes, x, count);
    return _mm_loadl_epi64((const __m128i *)bytes);
}

// Eight quantized values of a row, from channel c on.
static inline __m128i quantized_of(const product_tile *t, const epilogue_constants *k,
                                   const half_constants *h, __m256i acc, size_t row, size_t c) {
    const product_addend *a = t->addend;
    const size_t left = t->channels - c;
    if (a == NULL) return requantize_lanes(k, acc, h->multiplier, h->bias);
    const __m128i other = load_some(a->quantized + row * a->stride + c, left);
    if (a->kind == ADDEND_OF_QUANTIZED)
        return add_lanes(&a->add, a->is_signed, requantize_lanes(k, acc, h->multiplier, h->bias),
                         other);
    const float factor = tare__addend_factor(t->epilogue.requant, a->scale);
    return requantize_with(k, acc, h->multiplier, h->bias,
                           centered_lanes(a->is_signed, a->zero_point, other),
                           _mm256_set1_ps(factor));
}

static inline __m256 values_of(const product_tile *t, const half_constants *h, __m256i acc) {
    return t->fuses ? _mm256_fmadd_ps(_mm256_cvtepi32_ps(acc), h->multiplier, h->bias)
                    : real_lanes(acc, h->multiplier, h->bias);
}

UNROLLED void finish(const product_tile *t, const epilogue_constants *k, __m256i acc[ROWS][HALVES],
                     size_t rows, size_t c, size_t half) {
    const size_t left = t->channels - c;
    const half_constants h = constants_of(&t->epilogue, c, left);
    for (size_t r = 0; r < rows; r++) {
        const __m256i sum = _mm256_add_epi32(acc[r][half], h.start);
        const size_t at = r * t->y_stride + c;
        if (t->real != NULL)
            store_floats(t->real + at, left, values_of(t, &h, sum));
        else
            store_quantized(t->y + at, left, quantized_of(t, k, &h, sum, r, c));
    }
}

UNROLLED void run_rows(const product_tile *t, size_t rows) {
    const epilogue_constants k = epilogue_constants_of(t->epilogue.requant);
    for (size_t c = 0; c < t->channels; c += PRODUCT_LANES) {
        __m256i acc[ROWS][HALVES];
        for (size_t r = 0; r < rows; r++)
            for (size_t h = 0; h < HALVES; h++) acc[r][h] = _mm256_setzero_si256();
        add_taps(t, acc, rows, c);
        finish(t, &k, acc, rows, c, 0);
        if (c + HALF < t->channels) finish(t, &k, acc, rows, c + HALF, 1);
    }
}
