// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution with AVX2: 8 pixels of a row. A shuffle makes each pixel's four taps a
// word, whose bytes are widened to 16 bits, even and odd ones apart, for exact products.
#include "runtime/kernels/qu8_avx2.h"
#include "runtime/kernels/tile.h"

enum { LANES = 8, WORDS = 2 };

static inline __m256i add_products(__m256i acc, __m256i codes, const uint32_t *w) {
    const __m256i even = _mm256_and_si256(codes, _mm256_set1_epi16(0xFF));
    const __m256i odd = _mm256_srli_epi16(codes, 8);
    const __m256i evens = _mm256_madd_epi16(even, _mm256_set1_epi32((int)w[0]));
    const __m256i odds = _mm256_madd_epi16(odd, _mm256_set1_epi32((int)w[1]));
    return _mm256_add_epi32(acc, _mm256_add_epi32(evens, odds));
}

static void run_row(const depthwise_tile *t, const epilogue_constants *k,
                    const slide_constants *slide, const uint8_t *x, size_t at) {
    const tile_epilogue *e = &t->epilogue;
    const __m256 multiplier = _mm256_set1_ps(e->multiplier[0]), bias = _mm256_set1_ps(e->bias[0]);
    for (size_t p = 0; p < t->width; p += LANES) {
        __m256i acc = _mm256_set1_epi32(e->start[0]);
        for (size_t d = 0; d < t->depth; d++) {
            const __m256i codes = slide_lanes(slide, x + p * t->stride + t->offset[d]);
            acc = add_products(acc, codes, t->w + d * WORDS);
        }
        if (t->real != NULL)
            store_floats(t->real + at + p, t->width - p, real_lanes(acc, multiplier, bias));
        else
            store_codes(t->y + at + p, t->width - p, requantize_lanes(k, acc, multiplier, bias));
    }
}

void qu8_depthwise_8__avx2(const depthwise_tile *t) {
    const epilogue_constants k = epilogue_constants_of(t->epilogue.requant);
    const slide_constants slide = slide_constants_of(t->stride, t->dilation);
    for (size_t h = 0; h < t->height; h++)
        run_row(t, &k, &slide, t->x + h * t->x_stride, h * t->width);
}
