// SPDX-License-Identifier: Apache-2.0
// Convolution with AVX2: 4 channels by 16 pixels. Codes are widened to 16 bits, even and odd ones
// apart, and vpmaddwd adds two exact products: unlike vpmaddubsw it cannot saturate.
#include "runtime/kernels/qu8_avx2.h"
#include "runtime/kernels/tile.h"

#define EACH_CHANNEL(X) X(0) X(1) X(2) X(3)
enum { TILE = 4, WORDS = 2, LANES = 8 };

static inline void finish(const conv_tile *t, const epilogue_constants *k, size_t c, size_t p,
                          __m256i acc) {
    if (p >= t->pixels) return;
    const tile_epilogue *e = &t->epilogue;
    const __m256 multiplier = _mm256_set1_ps(e->multiplier[c]), bias = _mm256_set1_ps(e->bias[c]);
    const size_t at = c * t->y_stride + p, count = t->pixels - p;
    __m128i codes;
    if (t->real != NULL) {
        store_floats(t->real + at, count, real_lanes(acc, multiplier, bias));
        return;
    }
    if (t->addend.codes != NULL) {
        const __m256 real = real_lanes(acc, multiplier, bias);
        codes = finish_lanes(k, _mm256_add_ps(real, addend_lanes(&t->addend, at, count)));
    } else {
        codes = requantize_lanes(k, acc, multiplier, bias);
    }
    store_codes(t->y + at, count, codes);
}

static void tile_4x16(const conv_tile *t, const epilogue_constants *k, size_t c, size_t p) {
    const uint32_t *x = t->x + p, *w = t->w + c * t->depth * WORDS;
    const int32_t *start = t->epilogue.start + c;
    const __m256i low_byte = _mm256_set1_epi16(0xFF);
#define DECLARE(i) __m256i low##i = _mm256_set1_epi32(start[i]), high##i = low##i;
    EACH_CHANNEL(DECLARE)
#undef DECLARE
    for (size_t d = 0; d < t->depth; d++, x += t->x_stride, w += (size_t)TILE * WORDS) {
        const __m256i x0 = _mm256_loadu_si256((const __m256i *)x);
        const __m256i x1 = _mm256_loadu_si256((const __m256i *)(x + LANES));
        const __m256i even0 = _mm256_and_si256(x0, low_byte), odd0 = _mm256_srli_epi16(x0, 8);
        const __m256i even1 = _mm256_and_si256(x1, low_byte), odd1 = _mm256_srli_epi16(x1, 8);
#define STEP(i)                                                                                    \
    {                                                                                              \
        const __m256i even = _mm256_set1_epi32((int)w[i * (size_t)WORDS]);                         \
        const __m256i odd = _mm256_set1_epi32((int)w[i * (size_t)WORDS + 1]);                      \
        low##i = _mm256_add_epi32(low##i, _mm256_add_epi32(_mm256_madd_epi16(even0, even),         \
                                                           _mm256_madd_epi16(odd0, odd)));         \
        high##i = _mm256_add_epi32(high##i, _mm256_add_epi32(_mm256_madd_epi16(even1, even),       \
                                                             _mm256_madd_epi16(odd1, odd)));       \
    }
        EACH_CHANNEL(STEP)
#undef STEP
    }
    const size_t count = t->channels - c;
#define FINISH(i)                                                                                  \
    if (i < count) {                                                                               \
        finish(t, k, c + i, p, low##i);                                                            \
        finish(t, k, c + i, p + LANES, high##i);                                                   \
    }
    EACH_CHANNEL(FINISH)
#undef FINISH
}

void qu8_conv_4x16__avx2(const conv_tile *t) {
    const epilogue_constants k = epilogue_constants_of(t->epilogue.requant);
    for (size_t p = 0; p < t->pixels; p += (size_t)2 * LANES)
        for (size_t c = 0; c < t->channels; c += TILE) tile_4x16(t, &k, c, p);
}

// Four planes' bytes to words: bytes of two planes beside each other, then pairs of those.
static inline void interleave_8(const uint8_t *const x[4], size_t p, __m128i flip, uint32_t *out) {
    const __m128i a = _mm_loadl_epi64((const __m128i *)(x[0] + p));
    const __m128i b = _mm_loadl_epi64((const __m128i *)(x[1] + p));
    const __m128i c = _mm_loadl_epi64((const __m128i *)(x[2] + p));
    const __m128i d = _mm_loadl_epi64((const __m128i *)(x[3] + p));
    const __m128i ab = _mm_unpacklo_epi8(a, b), cd = _mm_unpacklo_epi8(c, d);
    _mm_storeu_si128((__m128i *)(out + p), _mm_xor_si128(_mm_unpacklo_epi16(ab, cd), flip));
    _mm_storeu_si128((__m128i *)(out + p + 4), _mm_xor_si128(_mm_unpackhi_epi16(ab, cd), flip));
}

void qu8_conv_4x16__avx2_interleave(const uint8_t *const x[4], size_t count, uint8_t flip,
                                    uint32_t *out) {
    const __m128i flips = _mm_set1_epi8((char)flip);
    size_t p = 0;
    for (; p + 8 <= count; p += 8) interleave_8(x, p, flips, out);
    const uint8_t *const rest[4] = {x[0] + p, x[1] + p, x[2] + p, x[3] + p};
    qu8_conv_4x32__scalar_interleave(rest, count - p, flip, out + p);
}

void qu8_conv_4x16__avx2_slide(const uint8_t *x, size_t stride, size_t count, uint32_t *out) {
    if (stride > MOST_SLIDE) {
        qu8_conv_4x32__scalar_slide(x, stride, count, out);
        return;
    }
    const slide_constants k = slide_constants_of(stride, 1);
    for (size_t p = 0; p < count; p += LANES)
        _mm256_storeu_si256((__m256i *)(out + p), slide_lanes(&k, x + p * stride));
}
