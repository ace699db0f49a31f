// SPDX-License-Identifier: Apache-2.0
// build: -O3
// vpdpbusd in AVX-512's encoding.
#define DOT(sum, x, w) _mm256_dpbusd_epi32(sum, x, w)
#include "runtime/kernels/peak/dot_256.h"

uint32_t peak_quantized__avx512vl(size_t rounds) {
    return multiply_by_dot(rounds);
}
