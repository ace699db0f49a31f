// SPDX-License-Identifier: Apache-2.0
// Products with AVX512-VNNI. A tile's sums stay in registers: 6 pixels by 64 channels, or as many
// of fewer channels. vpdpbusd adds four products of unsigned and signed bytes to an int32 lane
// without saturating, so that sums are exact. For each word of depth a tile loads its weights once
// and each pixel's codes once; 24 instructions of arithmetic hide that.
#include <immintrin.h>
#include <string.h>

#include "runtime/kernels/product.h"
#include "runtime/kernels/qu8_avx512.h"

// Bounds of loops that the compiler unrolls, so that the sums become registers.
#define UNROLLED static inline __attribute__((always_inline))

static inline __m512i broadcast(const uint8_t *x, __m512i flip) {
    int32_t word;
    memcpy(&word, x, sizeof word);
    return _mm512_xor_si512(_mm512_set1_epi32(word), flip);
}

// Adds the products of one word of depth.
UNROLLED void add_word(__m512i acc[PRODUCT_ROWS][PRODUCT_VECTORS], size_t rows, size_t vectors,
                       const __m512i x[PRODUCT_ROWS], const uint32_t *w) {
    __m512i weights[PRODUCT_VECTORS];
    for (size_t v = 0; v < vectors; v++) weights[v] = _mm512_loadu_si512(w + v * PRODUCT_LANES);
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < vectors; v++)
            acc[r][v] = _mm512_dpbusd_epi32(acc[r][v], x[r], weights[v]);
}

UNROLLED void add_taps(const product_tile *t, __m512i acc[PRODUCT_ROWS][PRODUCT_VECTORS],
                       size_t rows, size_t vectors) {
    const __m512i flip = _mm512_set1_epi8((char)t->flip);
    const uint32_t *w = t->w;
    const size_t whole = t->codes / 4 * 4, tail = t->codes - whole;
    for (size_t i = 0; i < t->taps; i++) {
        const uint8_t *at[PRODUCT_ROWS];
        __m512i x[PRODUCT_ROWS];
        for (size_t r = 0; r < rows; r++) at[r] = t->x[i * rows + r];
        for (size_t k = 0; k < whole; k += 4, w += vectors * PRODUCT_LANES) {
            for (size_t r = 0; r < rows; r++) x[r] = broadcast(at[r] + k, flip);
            add_word(acc, rows, vectors, x, w);
        }
        if (tail == 0) continue;
        for (size_t r = 0; r < rows; r++) {
            const uint32_t word = tare__product_tail(at[r] + whole, tail);
            x[r] = _mm512_xor_si512(_mm512_set1_epi32((int)word), flip);
        }
        add_word(acc, rows, vectors, x, w);
        w += vectors * PRODUCT_LANES;
    }
}

// Which of 16 channels from c on there are.
static inline __mmask16 mask_at(const product_tile *t, size_t c) {
    const size_t left = t->channels - c;
    return (__mmask16)(left < PRODUCT_LANES ? (1U << left) - 1 : 0xFFFFU);
}

// The constants of 16 channels.
typedef struct vector_constants {
    __mmask16 mask;
    __m512 multiplier, bias;
} vector_constants;

static inline vector_constants constants_of(const product_tile *t, size_t c) {
    const tile_epilogue *e = &t->epilogue;
    const __mmask16 mask = mask_at(t, c);
    return (vector_constants){mask, _mm512_maskz_loadu_ps(mask, e->multiplier + c),
                              _mm512_maskz_loadu_ps(mask, e->bias + c)};
}

static inline __m128i codes_of(const product_tile *t, const epilogue_constants *k,
                               const vector_constants *v, __m512i acc, size_t at) {
    const product_addend *a = t->addend;
    if (a == NULL) return requantize_lanes(k, acc, v->multiplier, v->bias);
    const __m128i other = _mm_maskz_loadu_epi8(v->mask, a->codes + at);
    if (a->kind == ADDEND_OF_CODES)
        return add_lanes(&a->add, a->is_signed, requantize_lanes(k, acc, v->multiplier, v->bias),
                         other);
    return finish_lanes(
        k, _mm512_add_ps(real_lanes(acc, v->multiplier, v->bias),
                         dequantize_lanes(a->is_signed, a->zero_point, a->scale, other)));
}

static inline __m512 values_of(const product_tile *t, const vector_constants *v, __m512i acc) {
    return t->fuses ? _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc), v->multiplier, v->bias)
                    : real_lanes(acc, v->multiplier, v->bias);
}

// A vector of channels of all rows.
UNROLLED void finish(const product_tile *t, const epilogue_constants *k,
                     __m512i acc[PRODUCT_ROWS][PRODUCT_VECTORS], size_t rows, size_t vector) {
    const size_t c = vector * PRODUCT_LANES;
    const vector_constants v = constants_of(t, c);
    for (size_t r = 0; r < rows; r++) {
        const size_t at = r * t->y_stride + c;
        if (t->real != NULL)
            _mm512_mask_storeu_ps(t->real + at, v.mask, values_of(t, &v, acc[r][vector]));
        else
            _mm_mask_storeu_epi8(t->y + at, v.mask, codes_of(t, k, &v, acc[r][vector], at));
    }
}

// A whole block without an addend, which is most of the work: the codes of a row's 64 channels are
// packed together.
UNROLLED void finish_block(const product_tile *t, const epilogue_constants *k,
                           __m512i acc[PRODUCT_ROWS][PRODUCT_VECTORS], size_t rows) {
    const bool is_signed = t->epilogue.requant->lo < 0;
    vector_constants v[PRODUCT_VECTORS];
    for (size_t i = 0; i < PRODUCT_VECTORS; i++) v[i] = constants_of(t, i * PRODUCT_LANES);
    for (size_t r = 0; r < rows; r++) {
        __m512i codes[PRODUCT_VECTORS];
        for (size_t i = 0; i < PRODUCT_VECTORS; i++)
            codes[i] = requantize_codes(k, acc[r][i], v[i].multiplier, v[i].bias);
        _mm512_storeu_si512(t->y + r * t->y_stride, pack_codes(is_signed, codes));
    }
}

UNROLLED void run_tile(const product_tile *t, size_t rows, size_t vectors) {
    __m512i acc[PRODUCT_ROWS][PRODUCT_VECTORS];
    for (size_t v = 0; v < vectors; v++) {
        const size_t c = v * PRODUCT_LANES;
        const __m512i start = _mm512_maskz_loadu_epi32(mask_at(t, c), t->epilogue.start + c);
        for (size_t r = 0; r < rows; r++) acc[r][v] = start;
    }
    add_taps(t, acc, rows, vectors);
    const epilogue_constants k = epilogue_constants_of(t->epilogue.requant);
    if (vectors == PRODUCT_VECTORS && t->channels == PRODUCT_BLOCK && t->real == NULL &&
        t->addend == NULL) {
        finish_block(t, &k, acc, rows);
        return;
    }
    for (size_t v = 0; v < vectors; v++) finish(t, &k, acc, rows, v);
}

// One function per size of tile: rows, vectors.
// clang-format off
#define EACH_SIZE(X) \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) \
    X(7, 1) X(8, 1) X(9, 1) X(10, 1) X(11, 1) X(12, 1) \
    X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) \
    X(7, 2) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2) \
    X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(7, 3) X(8, 3) \
    X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4)
// clang-format on
#define DEFINE(rows, vectors)                                                                      \
    static void tile_##rows##x##vectors(const product_tile *t) {                                   \
        run_tile(t, rows, vectors);                                                                \
    }
EACH_SIZE(DEFINE)
#undef DEFINE

#define ROW(rows, vectors) [(vectors)-1][(rows)-1] = tile_##rows##x##vectors,
static void (*const tiles[PRODUCT_VECTORS][PRODUCT_ROWS])(const product_tile *) = {EACH_SIZE(ROW)};
#undef ROW

void qu8_product__avx512vnni(const product_tile *t) {
    tiles[tare__product_vectors(t->channels) - 1][t->rows - 1](t);
}
