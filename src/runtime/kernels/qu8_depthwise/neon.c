// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Depthwise convolution with what every 64-bit Arm CPU has: products of signed bytes fit 16 bits,
// and are added in 32.
#define DOT(acc, words, weights) add_products(acc, words, weights)
#include "runtime/kernels/neon_lanes.h"

static inline neon_bytes add_products(neon_bytes acc, neon_bytes words, neon_bytes weights) {
    const int8x16_t x = S8(words), w = S8(weights);
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(w)));
    const int32x4_t high = vpaddlq_s16(vmull_high_s8(x, w));
    const uint32x4_t sums = vreinterpretq_u32_s32(vpaddq_s32(low, high));
    return vreinterpretq_u8_u32(vaddq_u32(vreinterpretq_u32_u8(acc), sums));
}
#include "runtime/kernels/qu8_depthwise/neon.h"

void qu8_depthwise__neon(const depthwise_tile *t) {
    run_depthwise_128(t);
}
