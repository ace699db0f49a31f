// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Depthwise convolution with AVX2. Even and odd quantized values are widened to 16 bits; vpmaddwd
// adds two exact products.
#define QU8_DEPTHWISE            qu8_depthwise__avx2
#define DOT(acc, words, weights) WIDTH(dot)(acc, words, weights)
#define DEFINE_DOT                                                                                 \
    static inline VEC WIDTH(dot)(VEC acc, VEC words, VEC weights) {                                \
        const VEC even = V(srai_epi16)(V(slli_epi16)(weights, 8), 8);                              \
        const VEC evens = V(madd_epi16)(V_INT(and)(words, V(set1_epi16)(0xFF)), even);             \
        const VEC odds = V(madd_epi16)(V(srli_epi16)(words, 8), V(srai_epi16)(weights, 8));        \
        return V(add_epi32)(acc, V(add_epi32)(evens, odds));                                       \
    }
#include "runtime/kernels/qu8_depthwise/ymm.h"
