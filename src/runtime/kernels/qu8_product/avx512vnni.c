// SPDX-License-Identifier: Apache-2.0
// Products with AVX512-VNNI. A tile's sums stay in registers: 6 pixels by 64 channels, or as many
// of fewer channels. vpdpbusd adds four products of unsigned and signed bytes to an int32 lane
// without saturating, so that sums are exact. For each word of depth a tile loads its weights once
// and each pixel's codes once; 24 instructions of arithmetic hide that.
#include <immintrin.h>
#include <string.h>

#include "runtime/kernels/product.h"
#include "runtime/kernels/qu8_store_x86.h"

#define WIDTH(name) name
#define VEC         __m512i
#define FLOATS      __m512
#define V(op)       _mm512_##op
#define V_INT(op)   _mm512_##op##_si512
#include "runtime/kernels/qu8_epilogue.h"

#define UNROLLED static inline __attribute__((always_inline))

// Written out, because compilers keep what a loop indexes in memory: sums must be registers.
// clang-format off
#define EACH_VECTOR(vectors, X) \
    do { \
        if ((vectors) > 0) { X(0); } \
        if ((vectors) > 1) { X(1); } \
        if ((vectors) > 2) { X(2); } \
        if ((vectors) > 3) { X(3); } \
    } while (0)
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

typedef __m512i tile_sums[PRODUCT_ROWS][PRODUCT_VECTORS];

// Which of the channels of a vector there are: all but for the last one's.
static inline __mmask16 mask_of(const product_tile *t, size_t vector, size_t vectors) {
    const size_t left = t->channels - vector * PRODUCT_LANES;
    const bool is_whole = vector + 1 < vectors || left >= PRODUCT_LANES;
    return (__mmask16)(is_whole ? 0xFFFFU : (1U << left) - 1);
}

UNROLLED void copy_row(__m512i to[PRODUCT_VECTORS], const __m512i from[PRODUCT_VECTORS],
                       size_t vectors) {
#define COPY(v) to[v] = from[v]
    EACH_VECTOR(vectors, COPY);
#undef COPY
}

// --- sums ---

UNROLLED void start_sums(const product_tile *t, tile_sums acc, size_t rows, size_t vectors) {
    const int32_t *start = t->epilogue.start;
    __m512i first[PRODUCT_VECTORS];
#define LOAD(v)                                                                                    \
    first[v] = _mm512_maskz_loadu_epi32(mask_of(t, v, vectors), start + (size_t)(v)*PRODUCT_LANES)
    EACH_VECTOR(vectors, LOAD);
#define START(r) copy_row(acc[r], first, vectors)
    EACH_ROW(rows, START);
#undef LOAD
#undef START
}

UNROLLED void add_row(__m512i acc[PRODUCT_VECTORS], __m512i x, const __m512i w[PRODUCT_VECTORS],
                      size_t vectors) {
#define ADD(v) acc[v] = _mm512_dpbusd_epi32(acc[v], x, w[v])
    EACH_VECTOR(vectors, ADD);
#undef ADD
}

static inline __m512i broadcast(const uint8_t *x, __m512i flip) {
    int32_t word;
    memcpy(&word, x, sizeof word);
    return _mm512_xor_si512(_mm512_set1_epi32(word), flip);
}

UNROLLED void load_weights(const uint32_t *from, size_t vectors, __m512i w[PRODUCT_VECTORS]) {
#define LOAD(v) w[v] = _mm512_loadu_si512(from + (size_t)(v)*PRODUCT_LANES)
    EACH_VECTOR(vectors, LOAD);
#undef LOAD
}

UNROLLED void add_taps(const product_tile *t, tile_sums acc, size_t rows, size_t vectors) {
    const __m512i flip = _mm512_set1_epi8((char)t->flip);
    const uint32_t *from = t->w;
    const size_t whole = t->codes / 4 * 4, tail = t->codes - whole;
    const uint8_t *const *x = t->x;
    __m512i w[PRODUCT_VECTORS];
    for (size_t i = 0; i < t->taps; i++, x += rows) {
        const uint8_t *at[PRODUCT_ROWS];
#define FIND(r) at[r] = x[r]
        EACH_ROW(rows, FIND);
#undef FIND
        for (size_t k = 0; k < whole; k += 4, from += vectors * PRODUCT_LANES) {
            load_weights(from, vectors, w);
#define ADD(r) add_row(acc[r], broadcast(at[r] + k, flip), w, vectors)
            EACH_ROW(rows, ADD);
#undef ADD
        }
        if (tail == 0) continue;
        load_weights(from, vectors, w);
        from += vectors * PRODUCT_LANES;
#define ADD(r)                                                                                     \
    const uint32_t word = tare__product_tail(at[r] + whole, tail);                                 \
    add_row(acc[r], _mm512_xor_si512(_mm512_set1_epi32((int)word), flip), w, vectors)
        EACH_ROW(rows, ADD);
#undef ADD
    }
}

// --- the end of a tile ---

enum { CODE_SPAN = 512 }; // no difference of a code and a zero point is greater

// The constants of 16 channels.
typedef struct vector_constants {
    __mmask16 mask;
    __m512 multiplier, bias;
} vector_constants;

static inline vector_constants constants_of(const product_tile *t, size_t vector, size_t vectors) {
    const tile_epilogue *e = &t->epilogue;
    const size_t c = vector * PRODUCT_LANES;
    const __mmask16 mask = mask_of(t, vector, vectors);
    return (vector_constants){mask, _mm512_maskz_loadu_ps(mask, e->multiplier + c),
                              _mm512_maskz_loadu_ps(mask, e->bias + c)};
}

UNROLLED __m512 values_of(const product_tile *t, const vector_constants *v, __m512i acc) {
    return t->fuses ? _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc), v->multiplier, v->bias)
                    : value_lanes(acc, v->multiplier, v->bias);
}

// Rows of rounded lanes, as many as fill a register. Packing leaves four channels of each vector in
// each quarter of it.
UNROLLED void store_codes(const product_tile *t, const pack_constants *k, size_t row, size_t rows,
                          const __m512i *lanes, size_t vectors) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i codes = _mm512_permutexvar_epi32(order, pack_lanes(k, lanes, rows * vectors));
    uint8_t *y = t->y + row * t->y_stride;
    if (vectors > 2) {
        store_first_512(y, t->channels, codes);
        return;
    }
    const __m256i low = _mm512_castsi512_si256(codes), high = _mm512_extracti64x4_epi64(codes, 1);
    if (vectors == 2) {
        store_first_256(y, t->channels, low);
        if (rows > 1) store_first_256(y + t->y_stride, t->channels, high);
        return;
    }
    store_first_256(y, t->channels, low);
    if (rows > 1)
        store_first_256(y + t->y_stride, t->channels,
                        _mm256_castsi128_si256(_mm256_extracti128_si256(low, 1)));
    if (rows > 2) store_first_256(y + 2 * t->y_stride, t->channels, high);
    if (rows > 3)
        store_first_256(y + 3 * t->y_stride, t->channels,
                        _mm256_castsi128_si256(_mm256_extracti128_si256(high, 1)));
}

// What an addend needs of a vector.
typedef struct addend_constants {
    bool is_of_values, is_signed;
    pack_constants pack;   // of the sum
    __m512 own_shift, own; // from the layer's rounded float to the float that its code stands for
    __m512 zero_point, scale; // of the addend
    __m512 inverse;
} addend_constants;

static inline bool is_small_beside(float scales, float inverse) {
    return (double)scales * CODE_SPAN * (double)inverse < 0x1p29;
}

static inline addend_constants addend_constants_of(const product_addend *a, const requant *r,
                                                   const pack_constants *k) {
    addend_constants out = {.is_signed = a->is_signed, .pack = *k};
    if (a->kind == ADDEND_OF_VALUES) {
        out.is_of_values = true;
        out.zero_point = _mm512_set1_ps((float)a->zero_point);
        out.scale = _mm512_set1_ps(a->scale);
        out.pack.is_small = k->is_small && is_small_beside(a->scale, r->inverse);
        return out;
    }
    const native_add *op = &a->add;
    const requant sum = {
        .rule = REQUANT_F, .zero_point = op->zero_point, .lo = op->lo, .hi = op->hi};
    const bool is_small = is_small_beside(op->scale_a + op->scale_b, op->inverse);
    out.pack = pack_constants_of(&sum, is_small, op->lo < 0);
    out.own_shift = _mm512_set1_ps((float)((k->is_o ? 0 : r->zero_point) - op->zero_a));
    out.own = _mm512_set1_ps(op->scale_a);
    out.zero_point = _mm512_set1_ps((float)op->zero_b);
    out.scale = _mm512_set1_ps(op->scale_b);
    out.inverse = _mm512_set1_ps(op->inverse);
    return out;
}

// The floats that the addend's codes stand for: (code - zero_point) * scale, exact up to the
// product.
UNROLLED __m512 added_values(const product_tile *t, const addend_constants *k, __mmask16 mask,
                             size_t row, size_t vector) {
    const uint8_t *from = t->addend->codes + row * t->addend->stride + vector * PRODUCT_LANES;
    const __m128i codes = _mm_maskz_loadu_epi8(mask, from);
    const __m512i wide = k->is_signed ? _mm512_cvtepi8_epi32(codes) : _mm512_cvtepu8_epi32(codes);
    return _mm512_mul_ps(_mm512_sub_ps(_mm512_cvtepi32_ps(wide), k->zero_point), k->scale);
}

// With tare__native_add_codes, whose first operand is rounded but stays a float, or in rule O.
UNROLLED __m512i add_to(const product_tile *t, const pack_constants *k, const addend_constants *a,
                        const vector_constants *v, __m512i acc, size_t row, size_t vector) {
    const __m512 added = added_values(t, a, v->mask, row, vector);
    if (a->is_of_values) {
        const __m512 sum = _mm512_add_ps(value_lanes(acc, v->multiplier, v->bias), added);
        return round_lanes(&a->pack, scale_value(k, sum));
    }
    const __m512 bounded = bound_lanes(k, scale_lanes(k, acc, v->multiplier, v->bias));
    const __m512 whole =
        _mm512_roundscale_ps(bounded, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 own = _mm512_mul_ps(_mm512_add_ps(whole, a->own_shift), a->own);
    return round_lanes(&a->pack, _mm512_mul_ps(_mm512_add_ps(own, added), a->inverse));
}

static void finish_values(const product_tile *t, const tile_sums acc, size_t rows, size_t vectors) {
    for (size_t i = 0; i < vectors; i++) {
        const vector_constants v = constants_of(t, i, vectors);
        for (size_t r = 0; r < rows; r++)
            _mm512_mask_storeu_ps(t->real + r * t->y_stride + i * PRODUCT_LANES, v.mask,
                                  values_of(t, &v, acc[r][i]));
    }
}

static void finish_bounded(const product_tile *t, const pack_constants *k, const tile_sums acc,
                           size_t rows, size_t vectors) {
    for (size_t r = 0; r < rows; r++) {
        __m512i lanes[PRODUCT_VECTORS] = {0};
        for (size_t i = 0; i < vectors; i++) {
            const vector_constants v = constants_of(t, i, vectors);
            lanes[i] = round_lanes(k, scale_lanes(k, acc[r][i], v.multiplier, v.bias));
        }
        store_codes(t, k, r, 1, lanes, PRODUCT_VECTORS);
    }
}

static void finish_sums(const product_tile *t, const pack_constants *k, const tile_sums acc,
                        size_t rows, size_t vectors) {
    const addend_constants a = addend_constants_of(t->addend, t->epilogue.requant, k);
    for (size_t r = 0; r < rows; r++) {
        __m512i lanes[PRODUCT_VECTORS] = {0};
        for (size_t i = 0; i < vectors; i++) {
            const vector_constants v = constants_of(t, i, vectors);
            lanes[i] = add_to(t, k, &a, &v, acc[r][i], r, i);
        }
        store_codes(t, &a.pack, r, 1, lanes, PRODUCT_VECTORS);
    }
}

// All that is not plain codes whose floats stay small.
static __attribute__((noinline)) void finish_others(const product_tile *t, const pack_constants *k,
                                                    const tile_sums acc, size_t rows,
                                                    size_t vectors) {
    if (t->real != NULL)
        finish_values(t, acc, rows, vectors);
    else if (t->addend != NULL)
        finish_sums(t, k, acc, rows, vectors);
    else
        finish_bounded(t, k, acc, rows, vectors);
}

// `count` rows from `row` on, of at most PACKED_REGISTERS vectors in all.
UNROLLED void finish_rows(const product_tile *t, const pack_constants *k, const vector_constants *v,
                          __m512i acc[][PRODUCT_VECTORS], size_t row, size_t count,
                          size_t vectors) {
    __m512i lanes[PACKED_REGISTERS];
#define ROUND_AT(r, i)                                                                             \
    lanes[(r)*vectors + (i)] =                                                                     \
        _mm512_cvtps_epi32(scale_lanes(k, acc[r][i], v[i].multiplier, v[i].bias))
#define ROUND(i) ROUND_AT(0, i)
    EACH_VECTOR(vectors, ROUND);
#undef ROUND
#define ROUND(i) ROUND_AT(1, i)
    if (count > 1) EACH_VECTOR(vectors, ROUND);
#undef ROUND
    if (count > 2) ROUND_AT(2, 0);
    if (count > 3) ROUND_AT(3, 0);
#undef ROUND_AT
    store_codes(t, k, row, count, lanes, vectors);
}

UNROLLED void finish_codes(const product_tile *t, const pack_constants *k, tile_sums acc,
                           size_t rows, size_t vectors) {
    const size_t step = PACKED_REGISTERS / vectors;
    vector_constants v[PRODUCT_VECTORS];
#define READ(i) v[i] = constants_of(t, i, vectors)
    EACH_VECTOR(vectors, READ);
#undef READ
#define FINISH(r)                                                                                  \
    if ((r) % step == 0)                                                                           \
    finish_rows(t, k, v, acc + (r), r, rows - (r) < step ? rows - (r) : step, vectors)
    EACH_ROW(rows, FINISH);
#undef FINISH
}

UNROLLED void finish_sum_row(const product_tile *t, const pack_constants *k,
                             const addend_constants *a, const vector_constants *v,
                             const __m512i acc[PRODUCT_VECTORS], size_t row, size_t vectors) {
    __m512i lanes[PRODUCT_VECTORS];
#define ADD(i) lanes[i] = add_to(t, k, a, &v[i], acc[i], row, i)
    EACH_VECTOR(vectors, ADD);
#undef ADD
    store_codes(t, &a->pack, row, 1, lanes, vectors);
}

// Whole blocks with an addend of unsigned codes.
UNROLLED void finish_block_sums(const product_tile *t, const pack_constants *k, addend_constants *a,
                                tile_sums acc, size_t rows) {
    vector_constants v[PRODUCT_VECTORS];
    a->is_signed = false; // said once more for the compiler
#define READ(i) v[i] = constants_of(t, i, PRODUCT_VECTORS)
    EACH_VECTOR(PRODUCT_VECTORS, READ);
#undef READ
#define FINISH(r) finish_sum_row(t, k, a, v, acc[r], r, PRODUCT_VECTORS)
    EACH_ROW(rows, FINISH);
#undef FINISH
}

UNROLLED void run_tile(const product_tile *t, size_t rows, size_t vectors) {
    const requant *r = t->epilogue.requant;
    tile_sums acc, copy;
    start_sums(t, acc, rows, vectors);
    add_taps(t, acc, rows, vectors);
    pack_constants k = pack_constants_of(r, t->epilogue.is_small, r->lo < 0);
    bool is_plain = t->real == NULL && t->addend == NULL && k.is_small;
    if (vectors == PRODUCT_VECTORS && t->addend != NULL && t->real == NULL &&
        t->channels == PRODUCT_BLOCK && !t->addend->is_signed) {
        addend_constants a = addend_constants_of(t->addend, r, &k);
        if (a.pack.is_small && k.is_o) {
            a.pack.is_small = k.is_o = true; // said once more for the compiler, as below
            finish_block_sums(t, &k, &a, acc, rows);
            return;
        }
    }
    if (!is_plain) {
#define COPY(r) copy_row(copy[r], acc[r], vectors)
        EACH_ROW(rows, COPY);
#undef COPY
        finish_others(t, &k, copy, rows, vectors);
    } else if (!k.is_o) {
        k.is_o = false;
        finish_codes(t, &k, acc, rows, vectors);
    } else if (k.is_shifted) {
        k.is_o = k.is_shifted = true;
        finish_codes(t, &k, acc, rows, vectors);
    } else {
        k.is_o = true;
        k.is_shifted = false;
        finish_codes(t, &k, acc, rows, vectors);
    }
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

// --- the end of others' sums ---

UNROLLED void finish_line(const product_tile *t, const pack_constants *k, const addend_constants *a,
                          const vector_constants *v, const __m512i *start, const int32_t *sums,
                          size_t row, size_t vectors) {
    __m512i lanes[PRODUCT_VECTORS], acc;
#define FINISH(i)                                                                                  \
    acc = _mm512_add_epi32(start[i],                                                               \
                           _mm512_maskz_loadu_epi32(v[i].mask, sums + (size_t)(i)*PRODUCT_LANES)); \
    lanes[i] = a != NULL ? add_to(t, k, a, &v[i], acc, row, i)                                     \
                         : round_lanes(k, scale_lanes(k, acc, v[i].multiplier, v[i].bias))
    EACH_VECTOR(vectors, FINISH);
#undef FINISH
    store_codes(t, a != NULL ? &a->pack : k, row, 1, lanes, vectors);
}

UNROLLED void finish_lines(const product_tile *t, const addend_constants *a, const int32_t *sums,
                           size_t sums_stride, size_t vectors) {
    const requant *r = t->epilogue.requant;
    const pack_constants k = pack_constants_of(r, t->epilogue.is_small, r->lo < 0);
    vector_constants v[PRODUCT_VECTORS];
    __m512i start[PRODUCT_VECTORS];
#define READ(i)                                                                                    \
    v[i] = constants_of(t, i, vectors);                                                            \
    start[i] = _mm512_maskz_loadu_epi32(v[i].mask, t->epilogue.start + (size_t)(i)*PRODUCT_LANES)
    EACH_VECTOR(vectors, READ);
#undef READ
    for (size_t row = 0; row < t->rows; row++, sums += sums_stride)
        finish_line(t, &k, a, v, start, sums, row, vectors);
}

#define DEFINE(vectors)                                                                            \
    static void finish_##vectors(const product_tile *t, const addend_constants *a,                 \
                                 const int32_t *sums, size_t sums_stride) {                        \
        if (a != NULL)                                                                             \
            finish_lines(t, a, sums, sums_stride, vectors);                                        \
        else                                                                                       \
            finish_lines(t, NULL, sums, sums_stride, vectors);                                     \
    }
DEFINE(1)
DEFINE(2)
DEFINE(3)
DEFINE(4)
#undef DEFINE

void qu8_product_finish__avx512vnni(const product_tile *t, const int32_t *sums,
                                    size_t sums_stride) {
    static void (*const ends[PRODUCT_VECTORS])(const product_tile *, const addend_constants *,
                                               const int32_t *,
                                               size_t) = {finish_1, finish_2, finish_3, finish_4};
    addend_constants a;
    if (t->addend != NULL) {
        const requant *r = t->epilogue.requant;
        const pack_constants k = pack_constants_of(r, t->epilogue.is_small, r->lo < 0);
        a = addend_constants_of(t->addend, r, &k);
    }
    ends[tare__product_vectors(t->channels) - 1](t, t->addend != NULL ? &a : NULL, sums,
                                                 sums_stride);
}
