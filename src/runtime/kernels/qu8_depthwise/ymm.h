// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution in 256-bit registers: 32 channels at a time; a last block of at most 16
// channels uses narrower registers. A level's file defines DOT of qu8_depthwise.h, DEFINE_DOT (what
// DOT needs for a width), and QU8_DEPTHWISE, the kernel's name.
#include <immintrin.h>
#include <string.h>

#include "runtime/kernels/depthwise.h"
#include "runtime/kernels/qu8_store_x86.h"

#define LOAD_SOME(x, count)     WIDTH(load_some)(x, count)
#define STORE_SOME(y, count, v) WIDTH(store_first)(y, count, v)

#define DEFINE_WIDTH                                                                               \
    static inline VEC WIDTH(load_some)(const uint8_t *x, size_t count) {                           \
        uint8_t bytes[BYTES] = {0};                                                                \
        if (count >= BYTES) return V_INT(loadu)((const VEC *)x);                                   \
        memcpy(bytes, x, count);                                                                   \
        return V_INT(loadu)((const VEC *)bytes);                                                   \
    }

#define WIDTH(name) name##_256
#define VEC         __m256i
#define FLOATS      __m256
#define V(op)       _mm256_##op
#define V_INT(op)   _mm256_##op##_si256
#define BYTES       32
DEFINE_DOT
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
DEFINE_DOT
DEFINE_WIDTH
#include "runtime/kernels/qu8_depthwise.h"

void QU8_DEPTHWISE(const depthwise_tile *t) {
    if (t->quads > 1)
        run_depthwise_256(t);
    else
        run_depthwise_128(t);
}
