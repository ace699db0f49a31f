// SPDX-License-Identifier: Apache-2.0
// Softmax weights in bytes for quantized attention: 255 for the largest score of a row, and 255 *
// 2^d for a score that is -d below it. Every kernel computes exactly these operations, so all give
// the same bytes.
#ifndef CORE_MATH_EXP_QUANTIZED_H
#define CORE_MATH_EXP_QUANTIZED_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define EXP_QUANTIZED_OFFSET 7.99435344F // log2(255)
#define EXP_QUANTIZED_LEAST  (-2.0F)     // 2^-2 and below are rounded to 0
// Adding 1.5 * 2^23 rounds to an integer, ties to even, which is in the low bits of the sum.
#define EXP_QUANTIZED_MAGIC 12582912.0F
// 2^r for |r| <= 1/2 as a polynomial with an error below 2.7e-6, which is 1/100 of a rounding step.
#define EXP_QUANTIZED_C0 0.9999992847442627F
#define EXP_QUANTIZED_C1 0.6931217908859253F
#define EXP_QUANTIZED_C2 0.2402474582195282F
#define EXP_QUANTIZED_C3 0.0559178553521633F
#define EXP_QUANTIZED_C4 0.0095700575038791F
#define EXP_LOG2_E       1.44269504088896341F

/// round(255 * 2^d), d <= 0; 0 for NaN. fmaf is rounded once; no other operations are contracted.
static inline uint8_t tare__exp2_quantized(float d) {
    const float moved = d + EXP_QUANTIZED_OFFSET;
    const float at = moved > EXP_QUANTIZED_LEAST ? moved : EXP_QUANTIZED_LEAST;
    const float n = at + EXP_QUANTIZED_MAGIC, r = at - (n - EXP_QUANTIZED_MAGIC);
    float p = EXP_QUANTIZED_C4, power;
    uint32_t bits;
    p = fmaf(p, r, EXP_QUANTIZED_C3);
    p = fmaf(p, r, EXP_QUANTIZED_C2);
    p = fmaf(p, r, EXP_QUANTIZED_C1);
    p = fmaf(p, r, EXP_QUANTIZED_C0);
    memcpy(&bits, &n, sizeof bits);
    bits = (bits << 23) + 0x3f800000U; // adds n to the exponent
    memcpy(&power, &bits, sizeof power);
    p = fmaf(p, power, EXP_QUANTIZED_MAGIC);
    memcpy(&bits, &p, sizeof bits);
    return (uint8_t)bits;
}

#endif
