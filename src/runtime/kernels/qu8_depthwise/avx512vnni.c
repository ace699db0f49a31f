// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution with AVX512-VNNI: 64 channels of a pixel. The bytes of four taps are
// interleaved, so that vpdpbusd adds the four products of each channel.
#include <immintrin.h>

#include "runtime/kernels/depthwise.h"
#include "runtime/kernels/qu8_avx512.h"

enum { LANES = 16, REGISTERS = 4 };

static inline void add_four(__m512i acc[REGISTERS], const uint8_t *const *x, size_t first,
                            __mmask64 mask, __m512i flip, const uint32_t *w) {
    __m512i tap[DEPTHWISE_WORD];
    for (int i = 0; i < DEPTHWISE_WORD; i++)
        tap[i] = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, x[i] + first), flip);
    const __m512i low01 = _mm512_unpacklo_epi8(tap[0], tap[1]);
    const __m512i high01 = _mm512_unpackhi_epi8(tap[0], tap[1]);
    const __m512i low23 = _mm512_unpacklo_epi8(tap[2], tap[3]);
    const __m512i high23 = _mm512_unpackhi_epi8(tap[2], tap[3]);
    const __m512i words[REGISTERS] = {
        _mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
        _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
    for (size_t i = 0; i < REGISTERS; i++)
        acc[i] = _mm512_dpbusd_epi32(acc[i], words[i], _mm512_loadu_si512(w + i * LANES));
}

// Four registers of int32 codes to 64 bytes, which undoes the interleaving.
static inline __m512i pack_codes(const __m512i codes[REGISTERS], bool is_signed) {
    const __m512i low = _mm512_packs_epi32(codes[0], codes[1]);
    const __m512i high = _mm512_packs_epi32(codes[2], codes[3]);
    return is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
}

static void store_values(const depthwise_tile *t, size_t pixel, const __m512i sums[REGISTERS],
                         const __m512 *multiplier, const __m512 *bias) {
    float values[DEPTHWISE_BLOCK];
    for (size_t i = 0; i < REGISTERS; i++)
        _mm512_storeu_ps(values + i * LANES, real_lanes(sums[i], multiplier[i], bias[i]));
    tare__depthwise_order(values, REGISTERS, 0, t->channels, t->real + pixel * t->y_stride);
}

void qu8_depthwise__avx512vnni(const depthwise_tile *t) {
    const epilogue_constants k = epilogue_constants_of(t->requant);
    const __mmask64 mask =
        t->channels < DEPTHWISE_BLOCK ? ((__mmask64)1 << t->channels) - 1 : ~(__mmask64)0;
    const __m512i flip = _mm512_set1_epi8((char)t->flip);
    const uint8_t *const *x = t->x;
    __m512 multiplier[REGISTERS], bias[REGISTERS];
    for (size_t i = 0; i < REGISTERS; i++) {
        multiplier[i] = _mm512_loadu_ps(t->constants->multiplier + i * LANES);
        bias[i] = _mm512_loadu_ps(t->constants->bias + i * LANES);
    }
    for (size_t p = 0; p < t->pixels; p++) {
        __m512i acc[REGISTERS];
        for (size_t i = 0; i < REGISTERS; i++)
            acc[i] = _mm512_loadu_si512(t->constants->start + i * LANES);
        for (size_t f = 0; f < t->fours; f++, x += DEPTHWISE_WORD)
            add_four(acc, x, t->first, mask, flip, t->w + f * DEPTHWISE_BLOCK);
        if (t->real != NULL) {
            store_values(t, p, acc, multiplier, bias);
            continue;
        }
        for (size_t i = 0; i < REGISTERS; i++)
            acc[i] = requantize_codes(&k, acc[i], multiplier[i], bias[i]);
        _mm512_mask_storeu_epi8(t->y + p * t->y_stride, mask, pack_codes(acc, t->is_signed));
    }
}
