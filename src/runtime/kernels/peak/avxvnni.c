// SPDX-License-Identifier: Apache-2.0
// build: -O3
// vpdpbusd in AVX-VNNI's encoding; with AVX-512, in that encoding.
#define DOT(sum, x, w) _mm256_dpbusd_avx_epi32(sum, x, w)
#include "runtime/kernels/peak/dot_256.h"

uint32_t peak_quantized__avxvnni(size_t rounds) {
    return tare__isa_has_avx512_encoding() ? peak_quantized__avx512vl(rounds)
                                           : multiply_by_dot(rounds);
}
