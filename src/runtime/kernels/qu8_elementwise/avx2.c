// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Elementwise kernels with AVX2, eight floats at a time; the scalar ones compute the remainder.
#include "runtime/kernels/qu8_avx2.h"

#include "runtime/kernels/elementwise.h"

enum { LANES = 8, BYTES = 32, WIDE = 4, TABLE_SLICES = 16 };

static inline __m128i load_quantized(const uint8_t *x) {
    return _mm_loadl_epi64((const __m128i *)x);
}

void qu8_quantize__avx2(const quantized_scheme *s, const float *x, size_t count, uint8_t *y) {
    const __m256 inverse = _mm256_set1_ps(s->inverse);
    const __m256 low = _mm256_set1_ps((float)(s->least - s->zero_point));
    const __m256 high = _mm256_set1_ps((float)(s->most - s->zero_point));
    const __m256i zero_point = _mm256_set1_epi32(s->zero_point);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), inverse);
        // The minimum first: for NaN it returns the bound, the highest quantized value.
        const __m256 bounded = _mm256_max_ps(_mm256_min_ps(scaled, high), low);
        _mm_storel_epi64((__m128i *)(y + i), round_to_quantized(bounded, zero_point));
    }
    qu8_quantize__scalar(s, x + i, count - i, y + i);
}

void qu8_dequantize__avx2(const quantized_scheme *s, const uint8_t *x, size_t count, float *y) {
    const __m256 scale = _mm256_set1_ps(s->scale);
    const __m256i zero_point = _mm256_set1_epi32(s->zero_point);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m256i shifted =
            _mm256_sub_epi32(widen_lanes(s->is_signed, load_quantized(x + i)), zero_point);
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_cvtepi32_ps(shifted), scale));
    }
    qu8_dequantize__scalar(s, x + i, count - i, y + i);
}

void qu8_add__avx2(const native_add *op, bool is_signed, const uint8_t *a, const uint8_t *b,
                   size_t count, uint8_t *y) {
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        _mm_storel_epi64((__m128i *)(y + i),
                         add_lanes(op, is_signed, load_quantized(a + i), load_quantized(b + i)));
    qu8_add__scalar(op, is_signed, a + i, b + i, count - i, y + i);
}

void qu8_mul__avx2(const quantized_mul *op, bool is_signed, const uint8_t *a, const uint8_t *b,
                   size_t count, uint8_t *y) {
    const __m256i zero_a = _mm256_set1_epi32(op->zero_a), zero_b = _mm256_set1_epi32(op->zero_b);
    const __m256 multiplier = _mm256_set1_ps(op->multiplier);
    const __m256 low = _mm256_set1_ps((float)(op->lo - op->zero_point));
    const __m256 high = _mm256_set1_ps((float)(op->hi - op->zero_point));
    const __m256i zero_point = _mm256_set1_epi32(op->zero_point);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m256i ca = _mm256_sub_epi32(widen_lanes(is_signed, load_quantized(a + i)), zero_a);
        const __m256i cb = _mm256_sub_epi32(widen_lanes(is_signed, load_quantized(b + i)), zero_b);
        const __m256 product = _mm256_cvtepi32_ps(_mm256_mullo_epi32(ca, cb));
        const __m256 scaled = _mm256_mul_ps(product, multiplier);
        _mm_storel_epi64(
            (__m128i *)(y + i),
            round_to_quantized(_mm256_min_ps(_mm256_max_ps(scaled, low), high), zero_point));
    }
    qu8_mul__scalar(op, is_signed, a + i, b + i, count - i, y + i);
}

void qu8_sum__avx2(bool is_signed, const uint8_t *x, size_t count, int32_t *sums) {
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        __m256i *at = (__m256i *)(sums + i);
        _mm256_storeu_si256(at, _mm256_add_epi32(_mm256_loadu_si256(at),
                                                 widen_lanes(is_signed, load_quantized(x + i))));
    }
    qu8_sum__scalar(is_signed, x + i, count - i, sums + i);
}

// The table in sixteen slices, each in both halves of a register. A byte shuffle looks up the low
// half of a quantized value, and gives 0 if bit 7 of the index is set. The quantized values are
// decreased by 16 from slice to slice: those of earlier slices wrap around, those of later ones
// have bits above the low half, and a saturating addition of 0x70 sets bit 7 of both.
void qu8_look_up__avx2(const uint8_t table[256], const uint8_t *x, size_t count, uint8_t *y) {
    const __m256i step = _mm256_set1_epi8(16), above = _mm256_set1_epi8(0x70);
    size_t i = 0;
    for (; i + BYTES <= count; i += BYTES) {
        __m256i q = _mm256_loadu_si256((const __m256i *)(x + i));
        __m256i found = _mm256_setzero_si256();
        for (size_t k = 0; k < TABLE_SLICES; k++) {
            const __m128i half = _mm_loadu_si128((const __m128i *)(table + 16 * k));
            const __m256i slice = _mm256_broadcastsi128_si256(half);
            const __m256i index = _mm256_adds_epu8(q, above);
            found = _mm256_or_si256(found, _mm256_shuffle_epi8(slice, index));
            q = _mm256_sub_epi8(q, step);
        }
        _mm256_storeu_si256((__m256i *)(y + i), found);
    }
    qu8_look_up__scalar(table, x + i, count - i, y + i);
}

static inline __m256i load_bytes(const uint8_t *x) {
    return _mm256_loadu_si256((const __m256i *)x);
}

static inline void store_bytes(uint8_t *y, __m256i bytes) {
    _mm256_storeu_si256((__m256i *)y, bytes);
}

// The maximum over a window for the same `blocks` registers of each row.
static inline __attribute__((always_inline)) void greatest_quantized(const quantized_windows *w,
                                                                     bool is_signed, size_t blocks,
                                                                     const uint8_t *x, uint8_t *y) {
    __m256i best[WIDE];
    for (size_t v = 0; v < blocks; v++) best[v] = _mm256_set1_epi8(is_signed ? INT8_MIN : 0);
    const size_t taps = w->taps[1], stride = w->tap_stride[1];
    for (size_t a = 0; a < w->taps[0]; a++) {
        const uint8_t *row = x + a * w->tap_stride[0];
        for (size_t b = 0; b < taps; b++, row += stride)
            for (size_t v = 0; v < blocks; v++) {
                const __m256i quantized = load_bytes(row + v * BYTES);
                best[v] = is_signed ? _mm256_max_epi8(best[v], quantized)
                                    : _mm256_max_epu8(best[v], quantized);
            }
    }
    for (size_t v = 0; v < blocks; v++) store_bytes(y + v * BYTES, best[v]);
}

static inline void greatest_eight(const quantized_windows *w, const uint8_t *x, uint8_t *y) {
    __m128i best = _mm_set1_epi8(w->is_signed ? INT8_MIN : 0);
    for (size_t a = 0; a < w->taps[0]; a++)
        for (size_t b = 0; b < w->taps[1]; b++) {
            const __m128i quantized =
                load_quantized(x + a * w->tap_stride[0] + b * w->tap_stride[1]);
            best = w->is_signed ? _mm_max_epi8(best, quantized) : _mm_max_epu8(best, quantized);
        }
    _mm_storel_epi64((__m128i *)y, best);
}

static inline __attribute__((always_inline)) void
greatest_of(const quantized_windows *w, bool is_signed, const uint8_t *x, uint8_t *y) {
    const size_t wide = (size_t)WIDE * BYTES;
    for (size_t n = 0; n < w->windows; n++, x += w->x_step, y += w->y_step) {
        size_t i = 0;
        for (; i + wide <= w->count; i += wide)
            greatest_quantized(w, is_signed, WIDE, x + i, y + i);
        for (; i + BYTES <= w->count; i += BYTES) greatest_quantized(w, is_signed, 1, x + i, y + i);
        // The last vector may overlap the one before.
        for (; i < w->count; i += LANES) {
            const size_t at = i + LANES <= w->count ? i : w->count - LANES;
            greatest_eight(w, x + at, y + at);
        }
    }
}

void qu8_greatest__avx2(const quantized_windows *w, const uint8_t *x, uint8_t *y) {
    if (w->count < LANES)
        qu8_greatest__scalar(w, x, y);
    else if (w->is_signed)
        greatest_of(w, true, x, y);
    else
        greatest_of(w, false, x, y);
}

// In each half, a plane's bytes are rotated to their positions in any of the three registers, which
// take bytes of the planes in turn.
static inline void interleave_three(const uint8_t *x, size_t stride, uint8_t *y) {
    const __m128i turn_r = _mm_setr_epi8(0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5);
    const __m128i turn_g = _mm_setr_epi8(5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10);
    const __m128i turn_b = _mm_setr_epi8(10, 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15);
    const __m256i second = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0));
    const __m256i third = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0));
    const __m256i r = _mm256_shuffle_epi8(load_bytes(x), _mm256_broadcastsi128_si256(turn_r));
    const __m256i g =
        _mm256_shuffle_epi8(load_bytes(x + stride), _mm256_broadcastsi128_si256(turn_g));
    const __m256i b =
        _mm256_shuffle_epi8(load_bytes(x + 2 * stride), _mm256_broadcastsi128_si256(turn_b));
    const __m256i p0 = _mm256_blendv_epi8(_mm256_blendv_epi8(r, g, second), b, third);
    const __m256i p1 = _mm256_blendv_epi8(_mm256_blendv_epi8(g, b, second), r, third);
    const __m256i p2 = _mm256_blendv_epi8(_mm256_blendv_epi8(b, r, second), g, third);
    store_bytes(y, _mm256_permute2x128_si256(p0, p1, 0x20));
    store_bytes(y + BYTES, _mm256_permute2x128_si256(p2, p0, 0x30));
    store_bytes(y + (size_t)2 * BYTES, _mm256_permute2x128_si256(p1, p2, 0x31));
}

void qu8_interleave__avx2(const uint8_t *x, size_t stride, size_t planes, size_t count,
                          uint8_t *y) {
    size_t i = 0;
    if (planes == 3)
        for (; i + BYTES <= count; i += BYTES) interleave_three(x + i, stride, y + 3 * i);
    qu8_interleave__scalar(x + i, stride, planes, count - i, y + planes * i);
}

void qu8_affine__avx2(const quantized_scheme *from, const quantized_scheme *to, const uint8_t *x,
                      const float *scale, const float *shift, size_t count, uint8_t *y) {
    const __m256 inverse = _mm256_set1_ps(to->inverse);
    const __m256 low = _mm256_set1_ps((float)(to->least - to->zero_point));
    const __m256 high = _mm256_set1_ps((float)(to->most - to->zero_point));
    const __m256i zero_point = _mm256_set1_epi32(to->zero_point);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m256 real =
            dequantize_lanes(from->is_signed, from->zero_point, from->scale, load_quantized(x + i));
        const __m256 moved = _mm256_add_ps(_mm256_mul_ps(real, _mm256_loadu_ps(scale + i)),
                                           _mm256_loadu_ps(shift + i));
        // The minimum first: for NaN it returns the bound, the highest quantized value.
        const __m256 bounded =
            _mm256_max_ps(_mm256_min_ps(_mm256_mul_ps(moved, inverse), high), low);
        _mm_storel_epi64((__m128i *)(y + i), round_to_quantized(bounded, zero_point));
    }
    qu8_affine__scalar(from, to, x + i, scale + i, shift + i, count - i, y + i);
}

void qu8_average__avx2(const quantized_average *a, const int32_t *sums, size_t count, uint8_t *y) {
    const __m256 divisor = _mm256_set1_ps(a->divisor), before = _mm256_set1_ps(a->before);
    const __m256 low = _mm256_set1_ps((float)(a->least - a->after));
    const __m256 high = _mm256_set1_ps((float)(a->most - a->after));
    const __m256i less = _mm256_set1_epi32(a->less), after = _mm256_set1_epi32(a->after);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m256i sum = _mm256_loadu_si256((const __m256i *)(sums + i));
        const __m256 mean = _mm256_div_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(sum, less)), divisor);
        const __m256 bounded = _mm256_min_ps(_mm256_max_ps(_mm256_add_ps(mean, before), low), high);
        _mm_storel_epi64((__m128i *)(y + i), round_to_quantized(bounded, after));
    }
    qu8_average__scalar(a, sums + i, count - i, y + i);
}

void qu8_blend__avx2(const quantized_blend *b, size_t count, uint8_t *y) {
    const __m256 low = _mm256_set1_ps((float)(b->least - b->zero_point));
    const __m256 high = _mm256_set1_ps((float)(b->most - b->zero_point));
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        __m256 sum = _mm256_setzero_ps();
        for (size_t k = 0; k < b->rows; k++) {
            const __m256 real =
                dequantize_lanes(b->is_signed, b->zero_point, 1.0F, load_quantized(b->x[k] + i));
            sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_set1_ps(b->weight[k]), real));
        }
        const __m256 bounded = _mm256_min_ps(_mm256_max_ps(sum, low), high);
        _mm_storel_epi64((__m128i *)(y + i),
                         round_to_quantized(bounded, _mm256_set1_epi32(b->zero_point)));
    }
    quantized_blend rest = *b;
    for (size_t k = 0; k < b->rows; k++) rest.x[k] += i;
    qu8_blend__scalar(&rest, count - i, y + i);
}

void qu8_expand__avx2(bool is_signed, float scale, float bias, const uint8_t *x, size_t count,
                      float *y) {
    const __m256 factor = _mm256_set1_ps(scale), more = _mm256_set1_ps(bias);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m256 quantized = _mm256_cvtepi32_ps(widen_lanes(is_signed, load_quantized(x + i)));
        _mm256_storeu_ps(y + i, _mm256_fmadd_ps(quantized, factor, more));
    }
    qu8_expand__scalar(is_signed, scale, bias, x + i, count - i, y + i);
}
