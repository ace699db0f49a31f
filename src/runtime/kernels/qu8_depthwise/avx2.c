// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution with AVX2: 32 channels at a time, and a last block of at most 16 in
// narrower registers. Even and odd codes, widened to 16 bits, meet their weights in vpmaddwd, which
// adds two exact products.
#include <immintrin.h>
#include <string.h>

#include "runtime/kernels/depthwise.h"

#define DOT(acc, words, weights) WIDTH(dot)(acc, words, weights)
#define LOAD_SOME(x, count)      WIDTH(load_some)(x, count)
#define STORE_SOME(y, count, v)  WIDTH(store_some)(y, count, v)

#define DEFINE_WIDTH                                                                               \
    static inline VEC WIDTH(dot)(VEC acc, VEC words, VEC weights) {                                \
        const VEC even = V(srai_epi16)(V(slli_epi16)(weights, 8), 8);                              \
        const VEC evens = V(madd_epi16)(V_INT(and)(words, V(set1_epi16)(0xFF)), even);             \
        const VEC odds = V(madd_epi16)(V(srli_epi16)(words, 8), V(srai_epi16)(weights, 8));        \
        return V(add_epi32)(acc, V(add_epi32)(evens, odds));                                       \
    }                                                                                              \
    static inline VEC WIDTH(load_some)(const uint8_t *x, size_t count) {                           \
        uint8_t bytes[BYTES] = {0};                                                                \
        if (count >= BYTES) return V_INT(loadu)((const VEC *)x);                                   \
        memcpy(bytes, x, count);                                                                   \
        return V_INT(loadu)((const VEC *)bytes);                                                   \
    }                                                                                              \
    static inline void WIDTH(store_some)(uint8_t * y, size_t count, VEC codes) {                   \
        uint8_t bytes[BYTES];                                                                      \
        V_INT(storeu)((VEC *)(count >= BYTES ? y : bytes), codes);                                 \
        if (count < BYTES) memcpy(y, bytes, count);                                                \
    }

#define WIDTH(name) name##_256
#define VEC         __m256i
#define FLOATS      __m256
#define V(op)       _mm256_##op
#define V_INT(op)   _mm256_##op##_si256
#define BYTES       32
DEFINE_WIDTH
#include "runtime/kernels/qu8_depthwise.h"
#undef WIDTH
#undef VEC
#undef FLOATS
#undef V
#undef V_INT
#undef BYTES

#define WIDTH(name) name##_128
#define VEC         __m128i
#define FLOATS      __m128
#define V(op)       _mm_##op
#define V_INT(op)   _mm_##op##_si128
#define BYTES       16
DEFINE_WIDTH
#include "runtime/kernels/qu8_depthwise.h"

void qu8_depthwise__avx2(const depthwise_tile *t) {
    if (t->channels > 16)
        run_depthwise_256(t);
    else
        run_depthwise_128(t);
}
