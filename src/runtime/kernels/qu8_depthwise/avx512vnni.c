// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution with AVX512-VNNI: 16 pixels of a row. A shuffle makes each pixel's four
// taps a word, which vpdpbusd meets with four weights.
#include <immintrin.h>

#include "runtime/kernels/qu8_avx512.h"
#include "runtime/kernels/tile.h"

enum { LANES = 16 };

static void run_row(const depthwise_tile *t, const epilogue_constants *k,
                    const slide_constants *slide, const uint8_t *x, size_t at) {
    const tile_epilogue *e = &t->epilogue;
    const __m512 multiplier = _mm512_set1_ps(e->multiplier[0]), bias = _mm512_set1_ps(e->bias[0]);
    for (size_t p = 0; p < t->width; p += LANES) {
        __m512i acc = _mm512_set1_epi32(e->start[0]);
        for (size_t d = 0; d < t->depth; d++) {
            const __m512i codes = slide_lanes(slide, x + p * t->stride + t->offset[d]);
            acc = _mm512_dpbusd_epi32(acc, codes, _mm512_set1_epi32((int)t->w[d]));
        }
        const size_t left = t->width - p;
        const unsigned lanes = left < LANES ? (1U << left) - 1 : 0xFFFFU;
        const __mmask16 mask = (__mmask16)lanes;
        if (t->real != NULL)
            _mm512_mask_storeu_ps(t->real + at + p, mask, real_lanes(acc, multiplier, bias));
        else
            _mm_mask_storeu_epi8(t->y + at + p, mask, requantize_lanes(k, acc, multiplier, bias));
    }
}

void qu8_depthwise_16__avx512vnni(const depthwise_tile *t) {
    const epilogue_constants k = epilogue_constants_of(t->epilogue.requant);
    const slide_constants slide = slide_constants_of(t->stride, t->dilation);
    for (size_t h = 0; h < t->height; h++)
        run_row(t, &k, &slide, t->x + h * t->x_stride, h * t->width);
}
