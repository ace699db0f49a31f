// SPDX-License-Identifier: Apache-2.0
// NEON operations under the names that qu8_depthwise.h and qu8_epilogue.h use for x86's, whose
// registers are untyped. Each is one or two instructions.
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_NEON_LANES_H
#define RUNTIME_KERNELS_NEON_LANES_H

#include "runtime/kernels/qu8_neon.h"

typedef uint8x16_t neon_bytes;

#define NEON_UNARY(op, out, in, expression)                                                        \
    static inline out neon_##op(in a) {                                                            \
        return expression;                                                                         \
    }
#define NEON_BINARY(op, type, expression)                                                          \
    static inline type neon_##op(type a, type b) {                                                 \
        return expression;                                                                         \
    }
#define U16(a)    vreinterpretq_u16_u8(a)
#define S8(a)     vreinterpretq_s8_u8(a)
#define S16(a)    vreinterpretq_s16_u8(a)
#define S32(a)    vreinterpretq_s32_u8(a)
#define OF_U16(a) vreinterpretq_u8_u16(a)
#define OF_S8(a)  vreinterpretq_u8_s8(a)
#define OF_S16(a) vreinterpretq_u8_s16(a)
#define OF_S32(a) vreinterpretq_u8_s32(a)

static inline neon_bytes neon_loadu_all(const neon_bytes *p) {
    return vld1q_u8((const uint8_t *)p);
}
static inline void neon_storeu_ps(float *p, float32x4_t a) {
    vst1q_f32(p, a);
}

NEON_UNARY(loadu_ps, float32x4_t, const float *, vld1q_f32(a))
NEON_UNARY(set1_ps, float32x4_t, float, vdupq_n_f32(a))
NEON_UNARY(set1_epi8, neon_bytes, char, vdupq_n_u8((uint8_t)a))
NEON_UNARY(set1_epi32, neon_bytes, int32_t, OF_S32(vdupq_n_s32(a)))
NEON_UNARY(cvtepi32_ps, float32x4_t, neon_bytes, vcvtq_f32_s32(S32(a)))
NEON_UNARY(cvtps_epi32, neon_bytes, float32x4_t, OF_S32(vcvtnq_s32_f32(a))) // ties to even

NEON_BINARY(xor_all, neon_bytes, veorq_u8(a, b))
NEON_BINARY(unpacklo_epi8, neon_bytes, vzip1q_u8(a, b))
NEON_BINARY(unpackhi_epi8, neon_bytes, vzip2q_u8(a, b))
NEON_BINARY(unpacklo_epi16, neon_bytes, OF_U16(vzip1q_u16(U16(a), U16(b))))
NEON_BINARY(unpackhi_epi16, neon_bytes, OF_U16(vzip2q_u16(U16(a), U16(b))))
NEON_BINARY(mul_ps, float32x4_t, vmulq_f32(a, b))
NEON_BINARY(add_ps, float32x4_t, vaddq_f32(a, b))
// If one operand is NaN, the result is the other one.
NEON_BINARY(max_ps, float32x4_t, vmaxnmq_f32(a, b))
NEON_BINARY(min_ps, float32x4_t, vminnmq_f32(a, b))
NEON_BINARY(adds_epi16, neon_bytes, OF_S16(vqaddq_s16(S16(a), S16(b))))
NEON_BINARY(packs_epi32, neon_bytes, OF_S16(vcombine_s16(vqmovn_s32(S32(a)), vqmovn_s32(S32(b)))))
NEON_BINARY(packs_epi16, neon_bytes, OF_S8(vcombine_s8(vqmovn_s16(S16(a)), vqmovn_s16(S16(b)))))
NEON_BINARY(packus_epi16, neon_bytes, vcombine_u8(vqmovun_s16(S16(a)), vqmovun_s16(S16(b))))
NEON_BINARY(max_epi8, neon_bytes, OF_S8(vmaxq_s8(S8(a), S8(b))))
NEON_BINARY(min_epi8, neon_bytes, OF_S8(vminq_s8(S8(a), S8(b))))
NEON_BINARY(max_epu8, neon_bytes, vmaxq_u8(a, b))
NEON_BINARY(min_epu8, neon_bytes, vminq_u8(a, b))

#endif
