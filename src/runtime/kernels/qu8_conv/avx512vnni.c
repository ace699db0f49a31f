// SPDX-License-Identifier: Apache-2.0
// Convolution with AVX512-VNNI: 8 channels by 32 pixels. vpdpbusd adds four products of unsigned
// and signed bytes to an int32 lane without saturating, so that sums are exact.
#include <immintrin.h>

#include "runtime/kernels/qu8_avx512.h"
#include "runtime/kernels/tile.h"

#define EACH_CHANNEL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
enum { TILE = 8, LANES = 16 };

// 16 codes of channel c.
static inline void finish(const conv_tile *t, const epilogue_constants *k, size_t c, size_t p,
                          __m512i acc) {
    const tile_epilogue *e = &t->epilogue;
    const __m512 multiplier = _mm512_set1_ps(e->multiplier[c]), bias = _mm512_set1_ps(e->bias[c]);
    const size_t left = t->pixels - p;
    const unsigned lanes = left < LANES ? (1U << left) - 1 : 0xFFFFU;
    const __mmask16 mask = (__mmask16)lanes;
    const size_t at = c * t->y_stride + p;
    __m128i codes;
    if (t->real != NULL) {
        _mm512_mask_storeu_ps(t->real + at, mask, real_lanes(acc, multiplier, bias));
        return;
    }
    if (t->addend.codes != NULL) {
        const __m512 real = real_lanes(acc, multiplier, bias);
        codes = finish_lanes(k, _mm512_add_ps(real, addend_lanes(&t->addend, at, mask)));
    } else {
        codes = requantize_lanes(k, acc, multiplier, bias);
    }
    _mm_mask_storeu_epi8(t->y + at, mask, codes);
}

static void tile_8x32(const conv_tile *t, const epilogue_constants *k, size_t c) {
    const uint32_t *x = t->x, *w = t->w + c * t->depth;
    const int32_t *start = t->epilogue.start + c;
#define DECLARE(i) __m512i low##i = _mm512_set1_epi32(start[i]), high##i = low##i;
    EACH_CHANNEL(DECLARE)
#undef DECLARE
    for (size_t d = 0; d < t->depth; d++, x += t->x_stride, w += TILE) {
        const __m512i x0 = _mm512_loadu_si512(x), x1 = _mm512_loadu_si512(x + LANES);
#define STEP(i)                                                                                    \
    {                                                                                              \
        const __m512i weight = _mm512_set1_epi32((int)w[i]);                                       \
        low##i = _mm512_dpbusd_epi32(low##i, x0, weight);                                          \
        high##i = _mm512_dpbusd_epi32(high##i, x1, weight);                                        \
    }
        EACH_CHANNEL(STEP)
#undef STEP
    }
    const size_t count = t->channels - c;
#define FINISH(i)                                                                                  \
    if (i < count) {                                                                               \
        finish(t, k, c + i, 0, low##i);                                                            \
        finish(t, k, c + i, LANES, high##i);                                                       \
    }
    EACH_CHANNEL(FINISH)
#undef FINISH
}

static void tile_8x16(const conv_tile *t, const epilogue_constants *k, size_t c) {
    const uint32_t *x = t->x, *w = t->w + c * t->depth;
    const int32_t *start = t->epilogue.start + c;
#define DECLARE(i) __m512i acc##i = _mm512_set1_epi32(start[i]);
    EACH_CHANNEL(DECLARE)
#undef DECLARE
    for (size_t d = 0; d < t->depth; d++, x += t->x_stride, w += TILE) {
        const __m512i codes = _mm512_loadu_si512(x);
#define STEP(i) acc##i = _mm512_dpbusd_epi32(acc##i, codes, _mm512_set1_epi32((int)w[i]));
        EACH_CHANNEL(STEP)
#undef STEP
    }
    const size_t count = t->channels - c;
#define FINISH(i)                                                                                  \
    if (i < count) finish(t, k, c + i, 0, acc##i);
    EACH_CHANNEL(FINISH)
#undef FINISH
}

// All channels meet 32 pixels before the next ones do: those stay in the first-level cache.
void qu8_conv_8x32__avx512vnni(const conv_tile *t) {
    const epilogue_constants k = epilogue_constants_of(t->epilogue.requant);
    for (size_t c = 0; c < t->channels; c += TILE) {
        if (t->pixels > LANES)
            tile_8x32(t, &k, c);
        else
            tile_8x16(t, &k, c);
    }
}

void qu8_conv_8x32__avx512vnni_interleave(const uint8_t *const x[4], size_t count, uint8_t flip,
                                          uint32_t *out) {
    qu8_conv_4x16__avx2_interleave(x, count, flip, out);
}

void qu8_conv_8x32__avx512vnni_slide(const uint8_t *x, size_t stride, size_t count, uint32_t *out) {
    if (stride > MOST_SLIDE) {
        qu8_conv_4x32__scalar_slide(x, stride, count, out);
        return;
    }
    const slide_constants k = slide_constants_of(stride, 1);
    for (size_t p = 0; p < count; p += LANES)
        _mm512_storeu_si512(out + p, slide_lanes(&k, x + p * stride));
}
