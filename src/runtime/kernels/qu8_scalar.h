// SPDX-License-Identifier: Apache-2.0
// Parts of the kernels in plain C, written so that compilers vectorize them for any machine: sums
// of 16-bit products along the depth, and rounding without a call.
#ifndef RUNTIME_KERNELS_QU8_SCALAR_H
#define RUNTIME_KERNELS_QU8_SCALAR_H

#include <string.h>

#include "core/requant.h"
#include "runtime/kernels/tile.h"

/// rint(x) for |x| < 2^22: the sum has no bits left for a fraction, and addition rounds as rint.
static inline float round_small(float x) {
    const float shift = 12582912.0F; // 1.5 * 2^23
    return (x + shift) - shift;
}

/// The greater, and the lesser, of x and a bound; of NaN and a bound, the bound.
static inline float at_least(float x, float bound) {
    return x > bound ? x : bound;
}
static inline float at_most(float x, float bound) {
    return x < bound ? x : bound;
}

/// Sums that a requantization takes at a time.
enum { SUMS = 32 };

/// y[i] = the code of sum acc[i] of channel c of the block, for i < count <= SUMS. The sums began
/// at the epilogue's `start`; bounds are applied to the float, where they give what clamping the
/// code gives. Zero points are those of bytes.
static inline void requantize_sums(const tile_epilogue *e, size_t c, const int32_t acc[SUMS],
                                   size_t count, uint8_t *y) {
    const requant *r = e->requant;
    const bool is_o = r->rule == REQUANT_O;
    const int32_t shift = is_o ? 0 : r->zero_point;
    const float multiplier = e->multiplier[c], bias = e->bias[c], inverse = r->inverse;
    const float zero_point = (float)r->zero_point;
    const float low = (float)(r->lo - shift), high = (float)(r->hi - shift);
    float scaled[SUMS];
    uint8_t codes[SUMS];
    if (is_o)
        for (size_t i = 0; i < SUMS; i++) {
            const float value = (float)acc[i] * multiplier + bias;
            scaled[i] = value * inverse + zero_point;
        }
    else
        for (size_t i = 0; i < SUMS; i++) scaled[i] = ((float)acc[i] + bias) * multiplier;
    for (size_t i = 0; i < SUMS; i++) {
        const float bounded = at_most(at_least(scaled[i], low), high);
        codes[i] = (uint8_t)((int32_t)round_small(bounded) + shift);
    }
    memcpy(y, codes, count);
}

/// The value of rule O of such sums, as floats.
static inline void real_sums(const tile_epilogue *e, size_t c, const int32_t acc[SUMS],
                             size_t count, float *y) {
    const float multiplier = e->multiplier[c], bias = e->bias[c];
    for (size_t i = 0; i < count; i++) {
        const float product = (float)acc[i] * multiplier;
        y[i] = product + bias;
    }
}

/// The codes of such sums with an addend, whose code for y[i] is codes[i].
static inline void requantize_with(const tile_epilogue *e, const tile_addend *a, size_t c,
                                   const int32_t acc[SUMS], const uint8_t *codes, size_t count,
                                   uint8_t *y) {
    const requant *r = e->requant;
    float real[SUMS];
    real_sums(e, c, acc, count, real);
    for (size_t i = 0; i < count; i++) {
        const int32_t code = a->is_signed ? (int8_t)codes[i] : codes[i];
        const float other = tare__dequantize(code, a->zero_point, a->scale);
        y[i] = (uint8_t)tare__requant_o_finish(r, real[i] + other);
    }
}

/// Words of depth that are widened at a time, and what they become.
enum { CHUNK_WORDS = 64, CHUNK_CODES = 4 * CHUNK_WORDS };

/// Pads a count of words so that whole vectors of their codes can be added.
static inline size_t padded_words(size_t words) {
    return (words + 1) / 2 * 2;
}

/// count words of unsigned codes, `stride` apart, to 16 bits: first bytes first, then second ones
/// ..
static inline void widen_codes(const uint32_t *x, size_t stride, size_t count,
                               int16_t out[CHUNK_CODES]) {
    const size_t padded = padded_words(count);
    for (size_t b = 0; b < 4; b++, out += padded) {
        for (size_t d = 0; d < count; d++) out[d] = (int16_t)(x[d * stride] >> 8 * b & 0xFF);
        if (count < padded) out[count] = 0;
    }
}

/// Likewise for words of signed weights.
static inline void widen_weights(const uint32_t *w, size_t count, int16_t out[CHUNK_CODES]) {
    const size_t padded = padded_words(count);
    for (size_t b = 0; b < 4; b++, out += padded) {
        for (size_t d = 0; d < count; d++)
            out[d] = (int16_t)((int32_t)((w[d] >> 8 * b & 0xFF) ^ 0x80) - 128);
        if (count < padded) out[count] = 0;
    }
}

/// sums[i] += sum of the products of row i and w, modulo 2^32. words: before padding.
static inline void add_dots_4(int16_t (*rows)[CHUNK_CODES], const int16_t *w, size_t words,
                              int32_t sums[4]) {
    const int16_t *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    const size_t count = padded_words(words) / 2 * 8;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (size_t k = 0; k < count; k++) { // a chunk's sum is below 2^31
        s0 += a[k] * w[k];
        s1 += b[k] * w[k];
        s2 += c[k] * w[k];
        s3 += d[k] * w[k];
    }
    sums[0] = tare__add_wrapping(sums[0], s0);
    sums[1] = tare__add_wrapping(sums[1], s1);
    sums[2] = tare__add_wrapping(sums[2], s2);
    sums[3] = tare__add_wrapping(sums[3], s3);
}

#endif
