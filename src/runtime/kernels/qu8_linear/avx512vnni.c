// SPDX-License-Identifier: Apache-2.0
// Linear with AVX512-VNNI: 8 rows, or one, by 16 channels.
#include "runtime/kernels/qu8_avx512.h"
#include "runtime/kernels/tile.h"

#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
enum { ROWS = 8, LANES = 16 };

static inline void finish(const linear_tile *t, const epilogue_constants *k, size_t n, size_t c,
                          __m512i acc) {
    const tile_epilogue *e = &t->epilogue;
    const __m512 multiplier = _mm512_loadu_ps(e->multiplier + c),
                 bias = _mm512_loadu_ps(e->bias + c);
    const size_t left = t->channels - c;
    const unsigned lanes = left < LANES ? (1U << left) - 1 : 0xFFFFU;
    const __mmask16 mask = (__mmask16)lanes;
    if (t->real != NULL) {
        _mm512_mask_storeu_ps(t->real + n * t->y_stride + c, mask,
                              t->fuses ? _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc), multiplier, bias)
                                       : real_lanes(acc, multiplier, bias));
        return;
    }
    _mm_mask_storeu_epi8(t->y + n * t->y_stride + c, mask,
                         requantize_lanes(k, acc, multiplier, bias));
}

static void tile_8x16(const linear_tile *t, const epilogue_constants *k, size_t n, size_t c) {
    const uint32_t *x = t->x + n * t->depth, *w = t->w + c * t->depth;
    const __m512i start = _mm512_loadu_si512(t->epilogue.start + c);
#define DECLARE(i) __m512i acc##i = start;
    EACH_ROW(DECLARE)
#undef DECLARE
    for (size_t d = 0; d < t->depth; d++) {
        const __m512i weights = _mm512_loadu_si512(w + d * LANES);
#define STEP(i)                                                                                    \
    acc##i = _mm512_dpbusd_epi32(acc##i, _mm512_set1_epi32((int)x[i * t->depth + d]), weights);
        EACH_ROW(STEP)
#undef STEP
    }
#define FINISH(i) finish(t, k, n + i, c, acc##i);
    EACH_ROW(FINISH)
#undef FINISH
}

// One row has one sum a channel; four partial sums hide the instruction's latency.
static void tile_1x16(const linear_tile *t, const epilogue_constants *k, size_t n, size_t c) {
    const uint32_t *x = t->x + n * t->depth, *w = t->w + c * t->depth;
    __m512i acc0 = _mm512_loadu_si512(t->epilogue.start + c), acc1 = _mm512_setzero_si512();
    __m512i acc2 = acc1, acc3 = acc1;
    size_t d = 0;
#define STEP(i)                                                                                    \
    acc##i = _mm512_dpbusd_epi32(acc##i, _mm512_set1_epi32((int)x[d + i]),                         \
                                 _mm512_loadu_si512(w + (d + i) * LANES));
    for (; d + 4 <= t->depth; d += 4) {
        STEP(0)
        STEP(1)
        STEP(2)
        STEP(3)
    }
    for (; d < t->depth; d++) STEP(0)
#undef STEP
    acc0 = _mm512_add_epi32(_mm512_add_epi32(acc0, acc1), _mm512_add_epi32(acc2, acc3));
    finish(t, k, n, c, acc0);
}

void qu8_linear_8x16__avx512vnni(const linear_tile *t) {
    const epilogue_constants k = epilogue_constants_of(t->epilogue.requant);
    for (size_t c = 0; c < t->channels; c += LANES) {
        size_t n = 0;
        for (; n + ROWS <= t->rows; n += ROWS) tile_8x16(t, &k, n, c);
        for (; n < t->rows; n++) tile_1x16(t, &k, n, c);
    }
}
