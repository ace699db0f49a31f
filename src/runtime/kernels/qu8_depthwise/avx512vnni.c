// SPDX-License-Identifier: Apache-2.0
// build: -O3 -mprefer-vector-width=512
// Depthwise convolution with AVX512-VNNI: 64 channels at a time; a last block of at most 32 or 16
// channels uses narrower registers, which are faster.
#include <immintrin.h>

#include "runtime/kernels/qu8_store_x86.h"

#define DOT(acc, words, weights) V(dpbusd_epi32)(acc, words, weights)
#define LOAD_SOME(x, count)      V(maskz_loadu_epi8)(SOME(count), x)
#define STORE_SOME(y, count, v)  WIDTH(store_first)(y, count, v)

#define WIDTH(name) name##_512
#define VEC         __m512i
#define FLOATS      __m512
#define V(op)       _mm512_##op
#define V_INT(op)   _mm512_##op##_si512
#define BYTES       64
#define SOME(count) ((count) < 64 ? ((__mmask64)1 << (count)) - 1 : ~(__mmask64)0)
#include "runtime/kernels/qu8_depthwise.h"
#undef WIDTH
#undef VEC
#undef FLOATS
#undef V
#undef V_INT
#undef BYTES
#undef SOME

#define WIDTH(name) name##_256
#define VEC         __m256i
#define FLOATS      __m256
#define V(op)       _mm256_##op
#define V_INT(op)   _mm256_##op##_si256
#define BYTES       32
#define SOME(count) (__mmask32)((count) < 32 ? (1U << (count)) - 1 : ~0U)
#include "runtime/kernels/qu8_depthwise.h"
#undef WIDTH
#undef VEC
#undef FLOATS
#undef V
#undef V_INT
#undef BYTES
#undef SOME

#define WIDTH(name) name##_128
#define VEC         __m128i
#define FLOATS      __m128
#define V(op)       _mm_##op
#define V_INT(op)   _mm_##op##_si128
#define BYTES       16
#define SOME(count) (__mmask16)((count) < 16 ? (1U << (count)) - 1 : 0xFFFFU)
#include "runtime/kernels/qu8_depthwise.h"

void qu8_depthwise__avx512vnni(const depthwise_tile *t) {
    if (t->quads > 2)
        run_depthwise_512(t);
    else if (t->quads > 1)
        run_depthwise_256(t);
    else
        run_depthwise_128(t);
}
