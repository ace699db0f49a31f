// SPDX-License-Identifier: Apache-2.0
// The epilogue of tiles for AVX512-VNNI: converts sums to quantized values or to the values of rule
// O. Its constants are in memory, because registers hold sums.
// Private to runtime/kernels/qu8_product.
#ifndef RUNTIME_KERNELS_QU8_PRODUCT_AVX512_EPILOGUE_H
#define RUNTIME_KERNELS_QU8_PRODUCT_AVX512_EPILOGUE_H

#include <immintrin.h>

#include "runtime/kernels/product.h"
#include "runtime/kernels/qu8_avx512.h"
#include "runtime/kernels/qu8_store_x86.h"

#define WIDTH(name) name
#define VEC         __m512i
#define FLOATS      __m512
#define V(op)       _mm512_##op
#define V_INT(op)   _mm512_##op##_si512
#include "runtime/kernels/qu8_epilogue.h"

// Written out, because compilers keep data that a loop indexes in memory.
// clang-format off
#define EACH_VECTOR(vectors, X) \
    do { \
        if ((vectors) > 0) { X(0); } \
        if ((vectors) > 1) { X(1); } \
        if ((vectors) > 2) { X(2); } \
        if ((vectors) > 3) { X(3); } \
    } while (0)
// clang-format on

// clang-format off
#define EACH_ROW(rows, X) \
    do { \
        if ((rows) > 0) { X(0); } \
        if ((rows) > 1) { X(1); } \
        if ((rows) > 2) { X(2); } \
        if ((rows) > 3) { X(3); } \
        if ((rows) > 4) { X(4); } \
        if ((rows) > 5) { X(5); } \
        if ((rows) > 6) { X(6); } \
        if ((rows) > 7) { X(7); } \
        if ((rows) > 8) { X(8); } \
        if ((rows) > 9) { X(9); } \
        if ((rows) > 10) { X(10); } \
        if ((rows) > 11) { X(11); } \
    } while (0)
// clang-format on

// With sanitizers or coverage the fast forms take minutes to compile, so the general ones are used.
#ifdef __has_feature
#define IS_CHECKED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define IS_CHECKED 1
#else
#define IS_CHECKED 0
#endif
#if IS_CHECKED || defined __clang_analyzer__
#define HAS_FEW_FORMS 1
#else
#define HAS_FEW_FORMS 0
#endif

// No difference between a quantized value and a zero point is greater.
enum { QUANTIZED_SPAN = 512 };

// Forces the compiler to load through the pointer here, instead of keeping the value in a register
// that sums need.
#define RELOAD(pointer) __asm__ volatile("" : "+r"(pointer))
// Loads once for several uses.
#define KEEP_IN_REGISTER(vector) __asm__("" : "+v"(vector))

typedef enum epilogue_kind {
    EPILOGUE_OF_F,           // rules F and Q, if floats stay small
    EPILOGUE_OF_O,           // if floats stay small
    EPILOGUE_WITH_VALUES,    // rules F and Q with an unsigned addend, likewise
    EPILOGUE_WITH_O,         // rule O with an unsigned addend, likewise
    EPILOGUE_WITH_QUANTIZED, // native addition to the layer's quantized values
    EPILOGUE_OF_OTHERS,      // if bounds may be needed, with or without an addend of values
    EPILOGUE_AS_VALUES,
} epilogue_kind;

typedef struct block_epilogue {
    epilogue_kind kind;
    pack_numbers own, sum; // constants of the layer's quantized values, and of those with an addend
    float own_shift,
        own_scale;            // from the layer's rounded float to its dequantized value
    float zero_point, factor; // of the addend
    float inverse;            // for a sum of quantized values
    __mmask16 last;           // mask of the channels in the last vector
} block_epilogue;

// Four quantized values in each lane: a load, which does not use the ports of products.
UNROLLED __m512i broadcast(const uint8_t *x) {
    int32_t word;
    memcpy(&word, x, sizeof word);
    return _mm512_set1_epi32(word);
}

// The first passes over a block's weights each prefetch one cache line of every word of the next
// block's weights into the second-level cache, so that memory has the time of several tiles to
// deliver them. Returns how far ahead; 0: none.
UNROLLED size_t ahead_of(const product_tile *t, size_t vectors, size_t pass) {
    pass += t->pass;
    return t->ahead != 0 && pass < vectors ? t->ahead + pass * sizeof(__m512i) : 0;
}
UNROLLED void expect_weights(const uint32_t *w, size_t ahead) {
    if (ahead != 0) _mm_prefetch((const char *)w + ahead, _MM_HINT_T1);
}

// The mask of a vector's channels.
UNROLLED __mmask16 mask_of(const block_epilogue *e, size_t vector, size_t vectors) {
    return vector + 1 < vectors ? 0xFFFF : e->last;
}

UNROLLED __m512i first_sums(const product_tile *t, size_t vector) {
    return _mm512_loadu_si512(t->epilogue.start + vector * PRODUCT_LANES);
}

// The addresses of the constants for an epilogue's channels; without it the compiler would compute
// them for each vector.
typedef struct epilogue_constants {
    const float *multiplier, *bias;
    const uint8_t *added; // quantized values of the addend's row; NULL: no addend
} epilogue_constants;

UNROLLED epilogue_constants epilogue_constants_of(const product_tile *t, bool adds, size_t row) {
    return (epilogue_constants){
        .multiplier = t->epilogue.multiplier,
        .bias = t->epilogue.bias,
        .added = adds ? t->addend->quantized + row * t->addend->stride : NULL,
    };
}

// The addend's quantized values minus their zero point.
UNROLLED __m512 centered_quantized(const block_epilogue *e, bool is_signed, const uint8_t *added,
                                   size_t vector, __mmask16 mask) {
    const __m128i quantized = _mm_maskz_loadu_epi8(mask, added + vector * PRODUCT_LANES);
    const __m512 floats = _mm512_cvtepi32_ps(widen_lanes(is_signed, quantized));
    return _mm512_sub_ps(floats, _mm512_set1_ps(e->zero_point));
}

// tare__native_add_quantized, with the first operand rounded but kept as a float.
UNROLLED __m512 add_to_quantized(const block_epilogue *e, const pack_constants *own, __m512 scaled,
                                 __m512 added) {
    const __m512 whole = _mm512_roundscale_ps(bound_lanes(own, scaled),
                                              _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 value = _mm512_mul_ps(_mm512_add_ps(whole, _mm512_set1_ps(e->own_shift)),
                                       _mm512_set1_ps(e->own_scale));
    return _mm512_mul_ps(_mm512_add_ps(value, added), _mm512_set1_ps(e->inverse));
}

// The constants of sixteen channels.
typedef struct vector_constants {
    __m512 multiplier, bias;
} vector_constants;

UNROLLED vector_constants constants_of(const epilogue_constants *p, size_t vector) {
    const size_t c = vector * PRODUCT_LANES;
    return (vector_constants){_mm512_loadu_ps(p->multiplier + c), _mm512_loadu_ps(p->bias + c)};
}

UNROLLED void store_channels(const product_tile *t, size_t channels, size_t row, size_t rows,
                             __m512i quantized, size_t vectors) {
    uint8_t *y = t->y + row * t->y_stride;
    if (vectors > 2) {
        store_first_512(y, channels, quantized);
        return;
    }
    const __m256i low = _mm512_castsi512_si256(quantized),
                  high = _mm512_extracti64x4_epi64(quantized, 1);
    if (vectors == 2) {
        store_first_256(y, channels, low);
        if (rows > 1) store_first_256(y + t->y_stride, channels, high);
        return;
    }
    store_first_128(y, channels, _mm256_castsi256_si128(low));
    if (rows > 1) store_first_128(y + t->y_stride, channels, _mm256_extracti128_si256(low, 1));
    y += 2 * t->y_stride;
    if (rows > 2) store_first_128(y, channels, _mm256_castsi256_si128(high));
    if (rows > 3) store_first_128(y + t->y_stride, channels, _mm256_extracti128_si256(high, 1));
}

UNROLLED void store_rows(const product_tile *t, size_t row, size_t rows, __m512i quantized,
                         size_t vectors) {
    const size_t most = vectors * PRODUCT_LANES; // few blocks have fewer
    if (t->channels == most)
        store_channels(t, most, row, rows, quantized, vectors);
    else
        store_channels(t, t->channels, row, rows, quantized, vectors);
}

UNROLLED void store_values(const product_tile *t, const block_epilogue *e, __m512i sums,
                           vector_constants v, size_t row, size_t vector, size_t vectors) {
    const __mmask16 mask = mask_of(e, vector, vectors);
    const __m512 value = t->fuses ? _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), v.multiplier, v.bias)
                                  : value_lanes(sums, v.multiplier, v.bias);
    _mm512_mask_storeu_ps(t->real + row * t->y_stride + vector * PRODUCT_LANES, mask, value);
}

// What the compiler knows of an epilogue at compile time besides its kind.
typedef struct epilogue_form {
    bool is_tight; // other sums need the registers
} epilogue_form;

typedef struct kept_sums {
    const int32_t *at; // [rows][stride]
    size_t stride;
    size_t first, rows; // of the tile
    bool starts;        // initial values have to be added
} kept_sums;

UNROLLED __m512i sums_at(const product_tile *t, const block_epilogue *e, const kept_sums *s,
                         size_t r, size_t vector, size_t vectors) {
    const __m512i sums = _mm512_maskz_loadu_epi32(mask_of(e, vector, vectors),
                                                  s->at + r * s->stride + vector * PRODUCT_LANES);
    return s->starts ? _mm512_add_epi32(sums, first_sums(t, vector)) : sums;
}

// The epilogue of a tile's sums, for other kernels that make sums.
void qu8_product_epilogue__avx512vnni(block_epilogue *e, const product_tile *t);
void qu8_product_kept__avx512vnni(const product_tile *t, const block_epilogue *e,
                                  const kept_sums *s);

// What is compiled by itself for each number of vectors of a block.
#define BLOCK(vectors)                                                                             \
    void qu8_product_block__avx512vnni_##vectors(const product_tile *t, const block_epilogue *e);  \
    void qu8_product_kept__avx512vnni_##vectors(const product_tile *t, const block_epilogue *e,    \
                                                const kept_sums *s);
BLOCK(1)
BLOCK(2)
BLOCK(3)
BLOCK(4)
#undef BLOCK

#endif
