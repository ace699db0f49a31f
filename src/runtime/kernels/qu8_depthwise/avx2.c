// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution with AVX2: 32 channels of a pixel. The bytes of four taps are interleaved;
// even and odd ones, widened to 16 bits, meet their weights in vpmaddwd, which adds two exact
// products.
#include "runtime/kernels/qu8_avx2.h"

#include "runtime/kernels/depthwise.h"

enum { LANES = 8, REGISTERS = 4, CHANNELS = 32 };

static inline __m256i load_some(const uint8_t *x, size_t count) {
    uint8_t bytes[CHANNELS] = {0};
    if (count >= CHANNELS) return _mm256_loadu_si256((const __m256i *)x);
    memcpy(bytes, x, count);
    return _mm256_loadu_si256((const __m256i *)bytes);
}

static inline __m256i add_products(__m256i acc, __m256i words, const uint32_t *w) {
    const __m256i weights = _mm256_loadu_si256((const __m256i *)w);
    const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(weights, 8), 8);
    const __m256i evens = _mm256_madd_epi16(_mm256_and_si256(words, _mm256_set1_epi16(0xFF)), even);
    const __m256i odds =
        _mm256_madd_epi16(_mm256_srli_epi16(words, 8), _mm256_srai_epi16(weights, 8));
    return _mm256_add_epi32(acc, _mm256_add_epi32(evens, odds));
}

// count: of channels, from `first` of the block on.
static inline void add_four(__m256i acc[REGISTERS], const uint8_t *const *x, size_t first,
                            size_t count, __m256i flip, const uint32_t *w) {
    __m256i tap[DEPTHWISE_WORD];
    for (int i = 0; i < DEPTHWISE_WORD; i++)
        tap[i] = _mm256_xor_si256(load_some(x[i] + first, count), flip);
    const __m256i low01 = _mm256_unpacklo_epi8(tap[0], tap[1]);
    const __m256i high01 = _mm256_unpackhi_epi8(tap[0], tap[1]);
    const __m256i low23 = _mm256_unpacklo_epi8(tap[2], tap[3]);
    const __m256i high23 = _mm256_unpackhi_epi8(tap[2], tap[3]);
    const __m256i words[REGISTERS] = {
        _mm256_unpacklo_epi16(low01, low23), _mm256_unpackhi_epi16(low01, low23),
        _mm256_unpacklo_epi16(high01, high23), _mm256_unpackhi_epi16(high01, high23)};
    for (size_t i = 0; i < REGISTERS; i++) acc[i] = add_products(acc[i], words[i], w + i * LANES);
}

// Four registers of int32 codes to 32 bytes, which undoes the interleaving.
static inline __m256i pack_codes(const __m256i codes[REGISTERS], bool is_signed) {
    const __m256i low = _mm256_packs_epi32(codes[0], codes[1]);
    const __m256i high = _mm256_packs_epi32(codes[2], codes[3]);
    return is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
}

static inline void store_some(uint8_t *y, size_t count, __m256i codes) {
    uint8_t bytes[CHANNELS];
    if (count >= CHANNELS) {
        _mm256_storeu_si256((__m256i *)y, codes);
        return;
    }
    _mm256_storeu_si256((__m256i *)bytes, codes);
    memcpy(y, bytes, count);
}

static void store_values(const depthwise_tile *t, size_t pixel, size_t first,
                         const __m256i sums[REGISTERS]) {
    const depthwise_constants *own = t->constants;
    const size_t last = t->channels - first < CHANNELS ? t->channels : first + CHANNELS;
    float values[CHANNELS];
    for (size_t i = 0; i < REGISTERS; i++)
        _mm256_storeu_ps(values + i * LANES,
                         real_lanes(sums[i], _mm256_loadu_ps(own->multiplier + first + i * LANES),
                                    _mm256_loadu_ps(own->bias + first + i * LANES)));
    tare__depthwise_order(values, 2, first, last, t->real + pixel * t->y_stride);
}

static void run_channels(const depthwise_tile *t, size_t first) {
    const epilogue_constants k = epilogue_constants_of(t->requant);
    const __m256i flip = _mm256_set1_epi8((char)t->flip);
    const depthwise_constants *own = t->constants;
    const size_t count = t->channels - first;
    const uint8_t *const *x = t->x;
    for (size_t p = 0; p < t->pixels; p++) {
        __m256i acc[REGISTERS];
        for (size_t i = 0; i < REGISTERS; i++)
            acc[i] = _mm256_loadu_si256((const __m256i *)(own->start + first + i * LANES));
        for (size_t f = 0; f < t->fours; f++, x += DEPTHWISE_WORD)
            add_four(acc, x, t->first + first, count, flip, t->w + f * DEPTHWISE_BLOCK + first);
        if (t->real != NULL) {
            store_values(t, p, first, acc);
            continue;
        }
        for (size_t i = 0; i < REGISTERS; i++)
            acc[i] =
                requantize_codes(&k, acc[i], _mm256_loadu_ps(own->multiplier + first + i * LANES),
                                 _mm256_loadu_ps(own->bias + first + i * LANES));
        store_some(t->y + p * t->y_stride + first, count, pack_codes(acc, t->is_signed));
    }
}

void qu8_depthwise__avx2(const depthwise_tile *t) {
    for (size_t first = 0; first < t->channels; first += CHANNELS) run_channels(t, first);
}
