// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Products with AVX-VNNI-INT8, whose vpdpbssd multiplies signed quantized values as they are.
// Unsigned ones are as with AVX-VNNI.
#include "runtime/kernels/product.h"
#include "runtime/kernels/x86/signed_dot.h"

#define QU8_PRODUCT    multiply_signed
#define DOT(acc, x, w) dot_signed(acc, x, w)
static void multiply_signed(const product_tile *t);
#include "runtime/kernels/qu8_product/avxvnni.h"

static void sum_weights(const product_tile *t, size_t c, int32_t sums[PRODUCT_LANES]) {
    const size_t words = (t->tap_size + 3) / 4, step = words_of_step(t);
    const __m256i ones = _mm256_set1_epi8(1);
    __m256i acc[HALVES] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    const uint32_t *w = t->w + c;
    for (size_t tap = 0; tap < t->taps; tap++) {
        w += tare__product_gap(t, tap);
        for (size_t d = 0; d < words; d++, w += step)
            for (size_t h = 0; h < HALVES; h++)
                acc[h] = dot_signed(acc[h], ones, load_weights(w + h * HALF));
    }
    for (size_t h = 0; h < HALVES; h++)
        _mm256_storeu_si256((__m256i *)(void *)(sums + h * HALF), acc[h]);
}

void qu8_product__avxvnniint8(const product_tile *t) {
    if (t->flip == 0) {
        qu8_product__avxvnni(t);
        return;
    }
    int32_t start[PRODUCT_BLOCK] = {0};
    product_tile own = *t;
    tare__product_move_starts(t, sum_weights, start);
    own.epilogue.start = start;
    multiply_signed(&own);
}
