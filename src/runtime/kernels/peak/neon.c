// SPDX-License-Identifier: Apache-2.0
// build: -O3
// The peak of NEON: bytes are multiplied to 16 bits, and pairs of those added in 32.
#include <arm_neon.h>

#include "runtime/kernels/peak.h"

enum { QUANTIZED_SUMS = 8, FLOAT_SUMS = 16, VECTOR = 2, VECTORS = 8, STEP = VECTOR * VECTORS };

uint32_t peak_quantized__neon(size_t rounds) {
    const int8x16_t w = vdupq_n_s8(-2);
    int32x4_t sums[QUANTIZED_SUMS]; // different values, or compilers would merge them
    for (int i = 0; i < QUANTIZED_SUMS; i++) sums[i] = vdupq_n_s32(i);
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < QUANTIZED_SUMS; i++) {
            // The quantized values are the sums so far, so every product is new.
            const int8x16_t x = vreinterpretq_s8_s32(sums[i]);
            sums[i] = vpadalq_s16(sums[i], vmull_s8(vget_low_s8(x), vget_low_s8(w)));
            sums[i] = vpadalq_s16(sums[i], vmull_high_s8(x, w));
        }
    int32x4_t sum = sums[0];
    for (size_t i = 1; i < QUANTIZED_SUMS; i++) sum = vaddq_s32(sum, sums[i]);
    return (uint32_t)vaddvq_s32(sum);
}

float peak_floats__neon(size_t rounds) {
    const float32x4_t x = vdupq_n_f32(0.75F), w = vdupq_n_f32(1.0F);
    float32x4_t sums[FLOAT_SUMS];
    for (int i = 0; i < FLOAT_SUMS; i++) sums[i] = vdupq_n_f32((float)i);
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < FLOAT_SUMS; i++) sums[i] = vfmaq_f32(w, sums[i], x);
    float32x4_t sum = sums[0];
    for (size_t i = 1; i < FLOAT_SUMS; i++) sum = vaddq_f32(sum, sums[i]);
    return vgetq_lane_f32(sum, 0);
}

uint64_t peak_read__neon(const uint64_t *data, size_t count) {
    uint64x2_t sums[VECTORS];
    for (size_t i = 0; i < VECTORS; i++) sums[i] = vdupq_n_u64(0);
    for (size_t k = 0; k < count; k += STEP)
        for (size_t i = 0; i < VECTORS; i++)
            sums[i] = vaddq_u64(sums[i], vld1q_u64(data + k + i * VECTOR));
    uint64x2_t sum = sums[0];
    for (size_t i = 1; i < VECTORS; i++) sum = vaddq_u64(sum, sums[i]);
    return vaddvq_u64(sum);
}
