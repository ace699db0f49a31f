// SPDX-License-Identifier: Apache-2.0
// Floats smaller than 32 bits, to and from float; rounding is to nearest, ties to even.
#ifndef CORE_TENSOR_HALF_H
#define CORE_TENSOR_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t tare__float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float tare__float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/// IEEE binary16. A multiplication moves the exponent, which also normalizes subnormals.
static inline float tare__float16_to_float(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = (uint32_t)(half & 0x7FFFu) << 13;
    if (rest >= 0x0F800000u) return tare__float_from_bits(sign | 0x7F800000u | rest); // inf, NaN
    return tare__float_from_bits(sign | tare__float_bits(tare__float_from_bits(rest) * 0x1p112f));
}

static inline float tare__bfloat16_to_float(uint16_t brain) {
    return tare__float_from_bits((uint32_t)brain << 16);
}

/// float8_e5m2: the upper byte of a binary16.
static inline float tare__float8_e5m2_to_float(uint8_t code) {
    return tare__float16_to_float((uint16_t)(code << 8));
}

/// float8_e4m3fn: bias 7, no infinity; 0x7F and 0xFF are NaN.
static inline float tare__float8_e4m3fn_to_float(uint8_t code) {
    const uint32_t sign = (uint32_t)(code & 0x80u) << 24, rest = code & 0x7Fu;
    if (rest == 0x7F) return tare__float_from_bits(sign | 0x7FC00000u);
    return tare__float_from_bits(sign |
                                 tare__float_bits(tare__float_from_bits(rest << 20) * 0x1p120f));
}

/// The bits, without sign, of magnitude >= 0 in a format with `mantissa` stored bits whose smallest
/// normal number is 2^least. For a magnitude beyond the format, the bits that would follow.
static inline uint32_t tare__small_float_bits(float magnitude, int mantissa, int least) {
    if (magnitude == 0) return 0;
    const int found = ilogbf(magnitude), exponent = found < least ? least : found;
    // Scaling by a power of two is exact, so nearbyint is the only rounding; a significand that is
    // rounded up to the next power of two carries into the exponent.
    const uint32_t steps = (uint32_t)nearbyint(ldexp((double)magnitude, mantissa - exponent));
    return ((uint32_t)(exponent - least) << mantissa) + steps;
}

static inline uint16_t tare__float_to_float16(float value) {
    const uint16_t sign = (uint16_t)(tare__float_bits(value) >> 16 & 0x8000u);
    if (isnan(value)) return sign | 0x7E00u;
    const float magnitude = fabsf(value);
    if (magnitude >= 65520.0F) return sign | 0x7C00u; // half a step beyond the largest: infinity
    return (uint16_t)(sign | tare__small_float_bits(magnitude, 10, -14));
}

static inline uint16_t tare__float_to_bfloat16(float value) {
    const uint32_t bits = tare__float_bits(value);
    if (isnan(value)) return (uint16_t)(bits >> 16 | 0x0040u);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

static inline uint8_t tare__float_to_float8_e5m2(float value) {
    const uint8_t sign = (uint8_t)(tare__float_bits(value) >> 24 & 0x80u);
    if (isnan(value)) return sign | 0x7Fu;
    const float magnitude = fabsf(value);
    if (magnitude >= 61440.0F) return sign | 0x7Cu;
    return (uint8_t)(sign | tare__small_float_bits(magnitude, 2, -14));
}

/// Values beyond the largest (448, after rounding) become NaN, as in torch: there is no infinity.
static inline uint8_t tare__float_to_float8_e4m3fn(float value) {
    const uint8_t sign = (uint8_t)(tare__float_bits(value) >> 24 & 0x80u);
    const float magnitude = fabsf(value);
    if (isnan(value) || magnitude > 464.0F) return sign | 0x7Fu;
    return (uint8_t)(sign | tare__small_float_bits(magnitude, 3, -6));
}

#endif
