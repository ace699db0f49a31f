// SPDX-License-Identifier: Apache-2.0
// GELU and quantization in one pass, with AVX-512. The quantized value only depends on which side
// of the middle between two quantized values the float is. A cubic decides that for nearly all
// values, with half the instructions that core/math/vector_functions.h needs for exact bits. If a
// value is too close to a middle, it and its neighbours are computed exactly.
#include "runtime/kernels/qu8_avx512.h"

#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/rows.h"

enum { LANES = 16, BYTES = 64, CELLS = 32 };

// gelu(x) = max(x, 0) + g(|x|), where g(t) = -t Phi(-t) is divided into cells of width 1 /
// CELLS_OF_1 around multiples of that width; from LAST on it is treated as constant.
#define CELLS_OF_1 6.0F
#define LAST       5.24F
// A bound on the error of g: 3.8e-7 in a cell, 4.3e-7 for the constant. It also covers rounding to
// floats, here and in the definition, for quantized values within 256 of the zero point.
#define LARGEST_ERROR 0x1.2p-21F
#define ROUNDING      0x1p-13F
// 1.5 * 2^23: adding it rounds to the nearest integer, which is in the low bits of the sum.
#define ROUNDER 12582912.0F

// g = c[0] + c[1] r + c[2] r^2 + c[3] r^3 for |r| <= 1 / 2 of a cell's width: minimax fits.
// clang-format off
_Alignas(64) static const float cubics[4][CELLS] = {
    {
        0x1.ad23e4p-26F, -0x1.28267ap-4F, -0x1.f868cap-4F, -0x1.3bf128p-3F,
        -0x1.58bc7ep-3F, -0x1.594ea2p-3F, -0x1.44ed1cp-3F, -0x1.22b77p-3F,
        -0x1.f222c2p-4F, -0x1.9a76dep-4F, -0x1.463fe6p-4F, -0x1.f5459cp-5F,
        -0x1.74bd32p-5F, -0x1.0c8ceap-5F, -0x1.773be4p-6F, -0x1.fcb226p-7F,
        -0x1.4eb40cp-7F, -0x1.abae68p-8F, -0x1.09662ep-8F, -0x1.4000c4p-9F,
        -0x1.76e9e2p-10F, -0x1.aade4ep-11F, -0x1.d861f2p-12F, -0x1.fc20dep-13F,
        -0x1.09aaccp-13F, -0x1.0e11fcp-14F, -0x1.0aec18p-15F, -0x1.007f52p-16F,
        -0x1.df5004p-18F, -0x1.b375ap-19F, -0x1.80b10ap-20F, -0x1.4a799cp-21F,
    },
    {
        -0x1.555702p-4F, -0x1.f6c63cp-5F, -0x1.4ca8dp-5F, -0x1.69d3b8p-6F,
        -0x1.afbe76p-8F, 0x1.640ec4p-8F, 0x1.c70356p-7F, 0x1.374696p-6F,
        0x1.5c1332p-6F, 0x1.5c137p-6F, 0x1.423b6ap-6F, 0x1.18e0d4p-6F,
        0x1.d17ac6p-7F, 0x1.70d346p-7F, 0x1.188b3cp-7F, 0x1.9ad04ap-8F,
        0x1.221826p-8F, 0x1.8bb4f4p-9F, 0x1.04f4e6p-9F, 0x1.4d166ap-10F,
        0x1.9bbaa2p-11F, 0x1.ed2332p-12F, 0x1.1e485p-12F, 0x1.42572ap-13F,
        0x1.601326p-14F, 0x1.75239p-15F, 0x1.7fd04ap-16F, 0x1.7f3d1cp-17F,
        0x1.73870ap-18F, 0x1.5dbe44p-19F, 0x1.3fbe28p-20F, 0x1.1bd7b8p-21F,
    },
    {
        0x1.6ba674p-7F, 0x1.60bfe8p-7F, 0x1.44190ep-7F, 0x1.182fa8p-7F,
        0x1.c41fbcp-8F, 0x1.4f1092p-8F, 0x1.b900dp-9F, 0x1.d76f9cp-10F,
        0x1.0d0b72p-11F, -0x1.d043eap-12F, -0x1.1814a6p-10F, -0x1.6ef8dap-10F,
        -0x1.883d72p-10F, -0x1.75bc2p-10F, -0x1.4898d4p-10F, -0x1.0f33fap-10F,
        -0x1.a85d52p-11F, -0x1.3cab0cp-11F, -0x1.c4a004p-12F, -0x1.36b366p-12F,
        -0x1.9a94ecp-13F, -0x1.058c04p-13F, -0x1.41a896p-14F, -0x1.7e3d82p-15F,
        -0x1.b7427ap-16F, -0x1.e87782p-17F, -0x1.06f504p-17F, -0x1.123d5ep-18F,
        -0x1.1525cep-19F, -0x1.0f8088p-20F, -0x1.01e502p-21F, -0x1.da69e2p-23F,
    },
    {
        -0x1.ada4d6p-15F, -0x1.a4d63cp-13F, -0x1.8b367p-12F, -0x1.0aab76p-11F,
        -0x1.31ed28p-11F, -0x1.39cbaep-11F, -0x1.25641cp-11F, -0x1.f6d7cep-12F,
        -0x1.8914dap-12F, -0x1.132bp-12F, -0x1.485abcp-13F, -0x1.1addd8p-14F,
        -0x1.36675p-22F, 0x1.716a0cp-15F, 0x1.1d2d9ep-14F, 0x1.3e847p-14F,
        0x1.31a60ep-14F, 0x1.0a02ap-14F, 0x1.ae4a0ap-15F, 0x1.47af42p-15F,
        0x1.d9b294p-16F, 0x1.46a9fcp-16F, 0x1.af68ep-17F, 0x1.117ec8p-17F,
        0x1.4d949p-18F, 0x1.87fddep-19F, 0x1.bc547cp-20F, 0x1.e64f18p-21F,
        0x1.012adcp-21F, 0x1.0701d6p-22F, 0x1.043ebep-23F, 0x1.fd849cp-25F,
    },
};
// clang-format on

typedef struct gelu_constants {
    __m512 c[4][2]; // cubics of g / scale
    __m512 half;    // 1 / (2 scale)
    __m512 limit;   // on the distance to a quantized value: beyond it, rounding may go either
                    // way
    __m512i zero_point, least, most;
} gelu_constants;

static inline gelu_constants constants_of(const quantized_scheme *s, float limit) {
    const __m512 inverse = _mm512_set1_ps(s->inverse);
    gelu_constants k = {
        .half = _mm512_set1_ps(0.5F * s->inverse),
        .limit = _mm512_set1_ps(limit),
        .zero_point = _mm512_set1_epi16((int16_t)s->zero_point),
        .least = _mm512_set1_epi8((char)s->least),
        .most = _mm512_set1_epi8((char)s->most),
    };
    for (size_t i = 0; i < 4; i++)
        for (size_t h = 0; h < 2; h++)
            k.c[i][h] = _mm512_mul_ps(_mm512_load_ps(cubics[i] + h * LANES), inverse);
    return k;
}

static inline __m512 coefficient(const gelu_constants *k, size_t i, __m512 at) {
    const __m512i cell = _mm512_castps_si512(at); // only the low bits are used
    return _mm512_permutex2var_ps(k->c[i][0], cell, k->c[i][1]);
}

// The values of 64 floats in steps of the quantized values, rounded to integers. Returns the
// largest distance of the values from these, as the bits of floats without their sign; NaN, and
// values that are infinite or overflow, count as far from all.
static inline __m512i round_values(const gelu_constants *k, const float *x, __m512i whole[4]) {
    const __m512 rounder = _mm512_set1_ps(ROUNDER), cells = _mm512_set1_ps(CELLS_OF_1);
    __m512 twice[4], t[4], at[4], p[4]; // twice max(x, 0)
    __m512i far = _mm512_setzero_si512();
    EACH_OF_FOUR(v) {
        const __m512 a = _mm512_loadu_ps(x + v * LANES), size = _mm512_abs_ps(a);
        twice[v] = _mm512_add_ps(a, size);
        t[v] = _mm512_min_ps(size, _mm512_set1_ps(LAST));
    }
    EACH_OF_FOUR(v) at[v] = _mm512_fmadd_ps(t[v], cells, rounder);
    EACH_OF_FOUR(v) t[v] = _mm512_fmsub_ps(t[v], cells, _mm512_sub_ps(at[v], rounder));
    EACH_OF_FOUR(v) p[v] = coefficient(k, 3, at[v]);
    EACH_OF_FOUR(v) p[v] = _mm512_fmadd_ps(p[v], t[v], coefficient(k, 2, at[v]));
    EACH_OF_FOUR(v) p[v] = _mm512_fmadd_ps(p[v], t[v], coefficient(k, 1, at[v]));
    EACH_OF_FOUR(v) p[v] = _mm512_fmadd_ps(p[v], t[v], coefficient(k, 0, at[v]));
    EACH_OF_FOUR(v) p[v] = _mm512_fmadd_ps(twice[v], k->half, p[v]);
    EACH_OF_FOUR(v) whole[v] = _mm512_cvtps_epi32(p[v]);
    EACH_OF_FOUR(v) p[v] = _mm512_sub_ps(p[v], _mm512_cvtepi32_ps(whole[v]));
    EACH_OF_FOUR(v) far = _mm512_max_epi32(far, _mm512_castps_si512(_mm512_abs_ps(p[v])));
    return far;
}

// Packing only saturates values beyond the bounds.
static inline __m512i bytes_of(const gelu_constants *k, bool is_signed, const __m512i whole[4]) {
    const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(whole[0], whole[1]), k->zero_point);
    const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(whole[2], whole[3]), k->zero_point);
    const __m512i bytes =
        is_signed
            ? _mm512_max_epi8(_mm512_min_epi8(_mm512_packs_epi16(low, high), k->most), k->least)
            : _mm512_max_epu8(_mm512_min_epu8(_mm512_packus_epi16(low, high), k->most), k->least);
    return order_packed(bytes);
}

static inline bool is_sure(const gelu_constants *k, __m512i far) {
    return _mm512_cmp_ps_mask(_mm512_castsi512_ps(far), k->limit, _CMP_NLT_UQ) == 0;
}

static __attribute__((noinline)) void compute_in_full(const quantized_scheme *s, const float *x,
                                                      size_t count, uint8_t *y) {
    float values[BYTES];
    for (size_t i = 0; i < count; i += BYTES) {
        const size_t chunk = count - i < BYTES ? count - i : BYTES;
        f32_elements__avx512vnni[ELEMENT_GELU](x + i, values, (int64_t)chunk, NULL);
        qu8_quantize__avx512vnni(s, values, chunk, y + i);
    }
}

void qu8_quantize_gelu__avx512vnni(const quantized_scheme *s, const float *x, size_t count,
                                   uint8_t *y) {
    const float limit = 0.5F - (LARGEST_ERROR * s->inverse + ROUNDING);
    const bool is_signed = s->least < 0;
    const bool is_usual = s->zero_point >= INT8_MIN && s->zero_point <= UINT8_MAX;
    size_t i = 0;
    if (is_usual &&
        limit > 0.25F) { // otherwise steps are so fine that many values are close to middles
        const gelu_constants k = constants_of(s, limit);
        for (; i + BYTES <= count; i += BYTES) {
            __m512i whole[4];
            const __m512i far = round_values(&k, x + i, whole);
            if (is_sure(&k, far))
                _mm512_storeu_si512(y + i, bytes_of(&k, is_signed, whole));
            else
                compute_in_full(s, x + i, BYTES, y + i);
        }
    }
    compute_in_full(s, x + i, count - i, y + i);
}
