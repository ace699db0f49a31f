// SPDX-License-Identifier: Apache-2.0
// build: -O3
// The peak of matrix products of bytes.
#include <arm_neon.h>

#include "runtime/kernels/peak.h"

uint32_t peak_quantized__i8mm(size_t rounds) {
    enum { SUMS = 16 };
    const int8x16_t w = vdupq_n_s8(-2);
    const uint8x16_t x = vdupq_n_u8(3);
    int32x4_t sums[SUMS]; // different values, or compilers would merge them
    for (int i = 0; i < SUMS; i++) sums[i] = vdupq_n_s32(i);
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < SUMS; i++) sums[i] = vusmmlaq_s32(sums[i], x, w);
    int32x4_t sum = sums[0];
    for (size_t i = 1; i < SUMS; i++) sum = vaddq_s32(sum, sums[i]);
    return (uint32_t)vaddvq_s32(sum);
}
