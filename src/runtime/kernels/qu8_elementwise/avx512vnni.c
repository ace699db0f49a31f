// SPDX-License-Identifier: Apache-2.0
// build: -O3 -mprefer-vector-width=512
// Elementwise kernels with AVX-512, sixteen elements at a time; masks handle the remainder.
#include "runtime/kernels/qu8_avx512.h"

#include "runtime/kernels/elementwise.h"

enum { LANES = 16, BYTES = 64, WIDE = 4, TABLE_SLICES = 16 };

static inline __mmask16 mask_of(size_t left) {
    return (__mmask16)(left < LANES ? (1U << left) - 1 : 0xFFFFU);
}

static inline __mmask64 byte_mask_of(size_t left) {
    return left < BYTES ? ((__mmask64)1 << left) - 1 : ~(__mmask64)0;
}

// Constants for quantizing sixteen floats.
typedef struct quantize_constants {
    __m512 inverse, low, high;
    __m512i zero_point;
} quantize_constants;

static inline __m512i quantize_lanes(const quantize_constants *k, __m512 x) {
    const __m512 scaled = _mm512_mul_ps(x, k->inverse);
    // The minimum first: for NaN it returns the bound, the highest quantized value.
    return round_quantized(_mm512_max_ps(_mm512_min_ps(scaled, k->high), k->low), k->zero_point);
}

void qu8_quantize__avx512vnni(const quantized_scheme *s, const float *x, size_t count, uint8_t *y) {
    const quantize_constants k = {
        .inverse = _mm512_set1_ps(s->inverse),
        .low = _mm512_set1_ps((float)(s->least - s->zero_point)),
        .high = _mm512_set1_ps((float)(s->most - s->zero_point)),
        .zero_point = _mm512_set1_epi32(s->zero_point),
    };
    const bool is_signed = s->least < 0;
    size_t i = 0;
    for (; i + BYTES <= count; i += BYTES) {
        __m512i quantized[4];
        for (size_t v = 0; v < 4; v++)
            quantized[v] = quantize_lanes(&k, _mm512_loadu_ps(x + i + v * LANES));
        _mm512_storeu_si512(y + i, pack_quantized(is_signed, quantized));
    }
    if (i == count) return;
    const __mmask64 mask = byte_mask_of(count - i);
    __m512i quantized[4];
    for (size_t v = 0; v < 4; v++)
        quantized[v] = quantize_lanes(
            &k, _mm512_maskz_loadu_ps((__mmask16)(mask >> v * LANES), x + i + v * LANES));
    _mm512_mask_storeu_epi8(y + i, mask, pack_quantized(is_signed, quantized));
}

void qu8_dequantize__avx512vnni(const quantized_scheme *s, const uint8_t *x, size_t count,
                                float *y) {
    // Converts signed quantized values to unsigned.
    const __m128i flip = _mm_set1_epi8(s->is_signed ? INT8_MIN : 0);
    const int32_t zero_point = s->zero_point + (s->is_signed ? 128 : 0);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m128i quantized = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(x + i)), flip);
        _mm512_storeu_ps(y + i, dequantize_lanes(false, zero_point, s->scale, quantized));
    }
    if (i == count) return;
    const __mmask16 mask = mask_of(count - i);
    const __m128i quantized = _mm_xor_si128(_mm_maskz_loadu_epi8(mask, x + i), flip);
    _mm512_mask_storeu_ps(y + i, mask, dequantize_lanes(false, zero_point, s->scale, quantized));
}

void qu8_add__avx512vnni(const native_add *op, bool is_signed, const uint8_t *a, const uint8_t *b,
                         size_t count, uint8_t *y) {
    for (size_t i = 0; i < count; i += LANES) {
        const __mmask16 mask = mask_of(count - i);
        _mm_mask_storeu_epi8(y + i, mask,
                             add_lanes(op, is_signed, _mm_maskz_loadu_epi8(mask, a + i),
                                       _mm_maskz_loadu_epi8(mask, b + i)));
    }
}

void qu8_mul__avx512vnni(const quantized_mul *op, bool is_signed, const uint8_t *a,
                         const uint8_t *b, size_t count, uint8_t *y) {
    const __m512i zero_a = _mm512_set1_epi32(op->zero_a), zero_b = _mm512_set1_epi32(op->zero_b);
    const __m512 multiplier = _mm512_set1_ps(op->multiplier);
    const __m512 low = _mm512_set1_ps((float)(op->lo - op->zero_point));
    const __m512 high = _mm512_set1_ps((float)(op->hi - op->zero_point));
    const __m512i zero_point = _mm512_set1_epi32(op->zero_point);
    for (size_t i = 0; i < count; i += LANES) {
        const __mmask16 mask = mask_of(count - i);
        const __m512i ca =
            _mm512_sub_epi32(widen_lanes(is_signed, _mm_maskz_loadu_epi8(mask, a + i)), zero_a);
        const __m512i cb =
            _mm512_sub_epi32(widen_lanes(is_signed, _mm_maskz_loadu_epi8(mask, b + i)), zero_b);
        const __m512 product = _mm512_cvtepi32_ps(_mm512_mullo_epi32(ca, cb));
        const __m512 bounded =
            _mm512_min_ps(_mm512_max_ps(_mm512_mul_ps(product, multiplier), low), high);
        _mm_mask_storeu_epi8(y + i, mask, round_to_quantized(bounded, zero_point));
    }
}

void qu8_sum__avx512vnni(bool is_signed, const uint8_t *x, size_t count, int32_t *sums) {
    for (size_t i = 0; i < count; i += LANES) {
        const __mmask16 mask = mask_of(count - i);
        const __m512i quantized = widen_lanes(is_signed, _mm_maskz_loadu_epi8(mask, x + i));
        const __m512i before = _mm512_maskz_loadu_epi32(mask, sums + i);
        _mm512_mask_storeu_epi32(sums + i, mask, _mm512_add_epi32(before, quantized));
    }
}

// The maximum over a window for the same `blocks` registers of each row.
static inline __attribute__((always_inline)) void greatest_quantized(const quantized_windows *w,
                                                                     bool is_signed, size_t blocks,
                                                                     __mmask64 mask,
                                                                     const uint8_t *x, uint8_t *y) {
    __m512i best[WIDE];
    for (size_t v = 0; v < blocks; v++) best[v] = _mm512_set1_epi8(is_signed ? INT8_MIN : 0);
    const size_t taps = w->taps[1], stride = w->tap_stride[1];
    for (size_t a = 0; a < w->taps[0]; a++) {
        const uint8_t *row = x + a * w->tap_stride[0];
        for (size_t b = 0; b < taps; b++, row += stride)
            for (size_t v = 0; v < blocks; v++) {
                const __m512i quantized = _mm512_maskz_loadu_epi8(mask, row + v * BYTES);
                best[v] = is_signed ? _mm512_max_epi8(best[v], quantized)
                                    : _mm512_max_epu8(best[v], quantized);
            }
    }
    for (size_t v = 0; v < blocks; v++) _mm512_mask_storeu_epi8(y + v * BYTES, mask, best[v]);
}

static inline __attribute__((always_inline)) void
greatest_of(const quantized_windows *w, bool is_signed, const uint8_t *x, uint8_t *y) {
    const __mmask64 all = ~(__mmask64)0;
    const size_t wide = (size_t)WIDE * BYTES;
    for (size_t n = 0; n < w->windows; n++, x += w->x_step, y += w->y_step) {
        size_t i = 0;
        for (; i + wide <= w->count; i += wide)
            greatest_quantized(w, is_signed, WIDE, all, x + i, y + i);
        for (; i + BYTES <= w->count; i += BYTES)
            greatest_quantized(w, is_signed, 1, all, x + i, y + i);
        if (i < w->count)
            greatest_quantized(w, is_signed, 1, byte_mask_of(w->count - i), x + i, y + i);
    }
}

void qu8_greatest__avx512vnni(const quantized_windows *w, const uint8_t *x, uint8_t *y) {
    if (w->is_signed)
        greatest_of(w, true, x, y);
    else
        greatest_of(w, false, x, y);
}

// It is limited by memory, so shuffles of half the width suffice.
void qu8_interleave__avx512vnni(const uint8_t *x, size_t stride, size_t planes, size_t count,
                                uint8_t *y) {
    qu8_interleave__avx2(x, stride, planes, count, y);
}

// The table in sixteen slices, each in every quarter of a register. A byte shuffle looks up the low
// half of a quantized value, and gives 0 if bit 7 of the index is set. The quantized values are
// decreased by 16 from slice to slice: those of earlier slices wrap around, those of later ones
// have bits above the low half, and a saturating addition of 0x70 sets bit 7 of both.
void qu8_look_up__avx512vnni(const uint8_t table[256], const uint8_t *x, size_t count, uint8_t *y) {
    __m512i slices[TABLE_SLICES];
    const __m512i step = _mm512_set1_epi8(16), above = _mm512_set1_epi8(0x70);
    for (size_t i = 0; i < TABLE_SLICES; i++)
        slices[i] = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(table + 16 * i)));
    for (size_t i = 0; i < count; i += BYTES) {
        const __mmask64 mask = byte_mask_of(count - i);
        __m512i q = _mm512_maskz_loadu_epi8(mask, x + i), found = _mm512_setzero_si512();
        for (size_t k = 0; k < TABLE_SLICES; k++) {
            const __m512i index = _mm512_adds_epu8(q, above);
            found = _mm512_or_si512(found, _mm512_shuffle_epi8(slices[k], index));
            q = _mm512_sub_epi8(q, step);
        }
        _mm512_mask_storeu_epi8(y + i, mask, found);
    }
}

void qu8_affine__avx512vnni(const quantized_scheme *from, const quantized_scheme *to,
                            const uint8_t *x, const float *scale, const float *shift, size_t count,
                            uint8_t *y) {
    const quantize_constants k = {
        .inverse = _mm512_set1_ps(to->inverse),
        .low = _mm512_set1_ps((float)(to->least - to->zero_point)),
        .high = _mm512_set1_ps((float)(to->most - to->zero_point)),
        .zero_point = _mm512_set1_epi32(to->zero_point),
    };
    for (size_t i = 0; i < count; i += LANES) {
        const __mmask16 mask = mask_of(count - i);
        const __m512 real = dequantize_lanes(from->is_signed, from->zero_point, from->scale,
                                             _mm_maskz_loadu_epi8(mask, x + i));
        const __m512 product = _mm512_mul_ps(real, _mm512_maskz_loadu_ps(mask, scale + i));
        const __m512 moved = _mm512_add_ps(product, _mm512_maskz_loadu_ps(mask, shift + i));
        _mm_mask_storeu_epi8(y + i, mask, _mm512_cvtepi32_epi8(quantize_lanes(&k, moved)));
    }
}

void qu8_average__avx512vnni(const quantized_average *a, const int32_t *sums, size_t count,
                             uint8_t *y) {
    const __m512 divisor = _mm512_set1_ps(a->divisor), before = _mm512_set1_ps(a->before);
    const __m512 low = _mm512_set1_ps((float)(a->least - a->after));
    const __m512 high = _mm512_set1_ps((float)(a->most - a->after));
    const __m512i less = _mm512_set1_epi32(a->less), after = _mm512_set1_epi32(a->after);
    for (size_t i = 0; i < count; i += LANES) {
        const __mmask16 mask = mask_of(count - i);
        const __m512i sum = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(mask, sums + i), less);
        const __m512 mean = _mm512_div_ps(_mm512_cvtepi32_ps(sum), divisor);
        const __m512 bounded = _mm512_min_ps(_mm512_max_ps(_mm512_add_ps(mean, before), low), high);
        _mm_mask_storeu_epi8(y + i, mask, round_to_quantized(bounded, after));
    }
}

void qu8_blend__avx512vnni(const quantized_blend *b, size_t count, uint8_t *y) {
    const __m512 low = _mm512_set1_ps((float)(b->least - b->zero_point));
    const __m512 high = _mm512_set1_ps((float)(b->most - b->zero_point));
    const __m512i zero_point = _mm512_set1_epi32(b->zero_point);
    for (size_t i = 0; i < count; i += LANES) {
        const __mmask16 mask = mask_of(count - i);
        __m512 sum = _mm512_setzero_ps();
        for (size_t k = 0; k < b->rows; k++) {
            const __m512 real = dequantize_lanes(b->is_signed, b->zero_point, 1.0F,
                                                 _mm_maskz_loadu_epi8(mask, b->x[k] + i));
            sum = _mm512_add_ps(sum, _mm512_mul_ps(_mm512_set1_ps(b->weight[k]), real));
        }
        const __m512 bounded = _mm512_min_ps(_mm512_max_ps(sum, low), high);
        _mm_mask_storeu_epi8(y + i, mask, round_to_quantized(bounded, zero_point));
    }
}

void qu8_expand__avx512vnni(bool is_signed, float scale, float bias, const uint8_t *x, size_t count,
                            float *y) {
    const __m512 factor = _mm512_set1_ps(scale), more = _mm512_set1_ps(bias);
    for (size_t i = 0; i < count; i += LANES) {
        const __mmask16 mask = mask_of(count - i);
        const __m512i quantized = widen_lanes(is_signed, _mm_maskz_loadu_epi8(mask, x + i));
        _mm512_mask_storeu_ps(y + i, mask,
                              _mm512_fmadd_ps(_mm512_cvtepi32_ps(quantized), factor, more));
    }
}
