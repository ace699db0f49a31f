// SPDX-License-Identifier: Apache-2.0
// How tiles of AVX512-VNNI end: from sums to codes or to the values of rule O. What an end needs is
// kept as numbers in memory: registers hold sums.
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

// Written out, because compilers keep what a loop indexes in memory.
// clang-format off
#define EACH_VECTOR(vectors, X) \
    do { \
        if ((vectors) > 0) { X(0); } \
        if ((vectors) > 1) { X(1); } \
        if ((vectors) > 2) { X(2); } \
        if ((vectors) > 3) { X(3); } \
    } while (0)
// clang-format on

// What checks every access, or every path, makes so much of the fast forms that compiling takes
// minutes: it sees the others.
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

enum { CODE_SPAN = 512 }; // no difference of a code and a zero point is greater

// What a pointer leads to is loaded here, not kept in registers that sums need.
#define RELOAD(pointer) __asm__ volatile("" : "+r"(pointer))
// What is loaded once for several uses.
#define KEEP_IN_REGISTER(vector) __asm__("" : "+v"(vector))

typedef enum end_kind {
    END_OF_F,        // rules F and Q, of floats that stay small
    END_OF_O,        // of floats that stay small
    END_WITH_PLAIN,  // F and Q and an addend of unsigned codes, likewise, both without zero points
    END_WITH_VALUES, // the same with zero points
    END_WITH_SIGNED, // the same and an addend of signed codes
    END_WITH_O,      // rule O and an addend of unsigned codes, likewise
    END_WITH_CODES,  // native addition to the layer's code
    END_OF_OTHERS,   // what may need bounds, with an addend of values or none
    END_AS_VALUES,
} end_kind;

// A statement that is told the kind.
// clang-format off
#if HAS_FEW_FORMS
#define OF_EACH_KIND(kind, X) X(kind);
#else
#define OF_EACH_KIND(kind, X) \
    switch (kind) { \
    case END_OF_F: X(END_OF_F); break; \
    case END_OF_O: X(END_OF_O); break; \
    case END_WITH_PLAIN: X(END_WITH_PLAIN); break; \
    case END_WITH_VALUES: X(END_WITH_VALUES); break; \
    case END_WITH_SIGNED: X(END_WITH_SIGNED); break; \
    case END_WITH_O: X(END_WITH_O); break; \
    case END_WITH_CODES: X(END_WITH_CODES); break; \
    case END_OF_OTHERS: X(END_OF_OTHERS); break; \
    case END_AS_VALUES: X(END_AS_VALUES); break; \
    }
#endif
// clang-format on

typedef struct tile_end {
    end_kind kind;
    pack_numbers own, sum;      // of the layer's codes, and of those with an addend
    float own_shift, own_scale; // from the layer's rounded float to what its code stands for
    float zero_point, factor;   // of the addend
    float inverse;              // of a sum of codes
    __mmask16 last;             // which channels of the last vector there are
} tile_end;

// The kind of end for rule F, Q or O of floats that stay small and an addend of values.
static inline end_kind kind_of_sum(const product_addend *a, bool is_o, bool is_shifted) {
    if (is_o) return a->is_signed ? END_OF_OTHERS : END_WITH_O;
    if (a->is_signed) return END_WITH_SIGNED;
    return is_shifted || a->zero_point != 0 ? END_WITH_VALUES : END_WITH_PLAIN;
}

static inline bool is_small_beside(float scales, float inverse) {
    return (double)scales * CODE_SPAN * (double)inverse < 0x1p29;
}

static void set_addend(tile_end *e, const product_addend *a, const requant *r) {
    const native_add *op = &a->add;
    if (a->kind == ADDEND_OF_VALUES) {
        const bool is_small = e->own.is_small && is_small_beside(a->scale, r->inverse);
        set_pack_numbers(&e->sum, r, is_small, r->lo < 0);
        e->zero_point = (float)a->zero_point;
        e->factor = tare__addend_factor(r, a->scale);
        e->kind = is_small ? kind_of_sum(a, e->own.is_o, e->own.is_shifted) : END_OF_OTHERS;
        return;
    }
    const requant sum = {
        .rule = REQUANT_F, .zero_point = op->zero_point, .lo = op->lo, .hi = op->hi};
    const bool is_small = is_small_beside(op->scale_a + op->scale_b, op->inverse);
    set_pack_numbers(&e->sum, &sum, is_small, op->lo < 0);
    e->own_shift = (float)((e->own.is_o ? 0 : r->zero_point) - op->zero_a);
    e->own_scale = op->scale_a;
    e->zero_point = (float)op->zero_b;
    e->factor = op->scale_b;
    e->inverse = op->inverse;
    e->kind = END_WITH_CODES;
}

static void set_end(tile_end *e, const product_tile *t) {
    const requant *r = t->epilogue.requant;
    set_pack_numbers(&e->own, r, t->epilogue.is_small, r->lo < 0);
    e->last = (__mmask16)(0xFFFFU >> (-t->channels % PRODUCT_LANES));
    e->kind = !e->own.is_small ? END_OF_OTHERS : e->own.is_o ? END_OF_O : END_OF_F;
    if (t->real != NULL)
        e->kind = END_AS_VALUES;
    else if (t->addend != NULL)
        set_addend(e, t->addend, r);
}

// Four codes, in each lane.
UNROLLED __m512i broadcast(const uint8_t *x, __m512i flip) {
    int32_t word;
    memcpy(&word, x, sizeof word);
    return _mm512_xor_si512(_mm512_set1_epi32(word), flip);
}

// Each of the first passes over a block's weights fetches one line of every word of the next one's
// into the second-level cache: so memory has the time of several tiles to bring what else the next
// block's first tile would wait for. How far ahead; 0: none.
UNROLLED size_t ahead_of(const product_tile *t, size_t vectors, size_t pass) {
    pass += t->pass;
    return t->ahead != 0 && pass < vectors ? t->ahead + pass * sizeof(__m512i) : 0;
}
UNROLLED void expect_weights(const uint32_t *w, size_t ahead) {
    if (ahead != 0) _mm_prefetch((const char *)w + ahead, _MM_HINT_T1);
}

// Which of the channels of a vector there are.
UNROLLED __mmask16 mask_of(const tile_end *e, size_t vector, size_t vectors) {
    return vector + 1 < vectors ? 0xFFFF : e->last;
}

UNROLLED __m512i first_sums(const product_tile *t, size_t vector) {
    return _mm512_loadu_si512(t->epilogue.start + vector * PRODUCT_LANES);
}

// Where an end finds what it reads of its channels. The compiler would look it up for each vector.
typedef struct end_places {
    const float *multiplier, *bias;
    const uint8_t *added; // codes of the row; NULL: there is no addend
} end_places;

UNROLLED end_places places_of(const product_tile *t, bool adds, size_t row) {
    return (end_places){
        .multiplier = t->epilogue.multiplier,
        .bias = t->epilogue.bias,
        .added = adds ? t->addend->codes + row * t->addend->stride : NULL,
    };
}

// The addend's codes less their zero point.
UNROLLED __m512 centered_codes(const tile_end *e, bool is_signed, bool is_shifted,
                               const uint8_t *added, size_t vector, __mmask16 mask) {
    const __m128i codes = _mm_maskz_loadu_epi8(mask, added + vector * PRODUCT_LANES);
    const __m512 floats = _mm512_cvtepi32_ps(widen_lanes(is_signed, codes));
    return is_shifted ? _mm512_sub_ps(floats, _mm512_set1_ps(e->zero_point)) : floats;
}

// tare__native_add_codes, whose first operand is rounded but stays a float.
UNROLLED __m512 add_to_code(const tile_end *e, const pack_constants *own, __m512 scaled,
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

UNROLLED vector_constants constants_of(const end_places *p, size_t vector) {
    const size_t c = vector * PRODUCT_LANES;
    return (vector_constants){_mm512_loadu_ps(p->multiplier + c), _mm512_loadu_ps(p->bias + c)};
}

// What the compiler is told of an end.
typedef struct end_form {
    end_kind kind;
    bool is_shifted; // the zero point may be another than 0
    bool is_tight;   // other sums need the registers
} end_form;

UNROLLED bool is_of_o(end_kind kind) {
    return kind == END_OF_O || kind == END_WITH_O;
}

// Are the layer's codes the result's?
UNROLLED bool is_alone(const product_tile *t, end_kind kind) {
    return kind <= END_OF_O || (kind == END_OF_OTHERS && t->addend == NULL);
}

// Sums to rounded lanes. `mask`: which channels of the vector the addend has.
UNROLLED __m512i end_lanes(const product_tile *t, const tile_end *e, end_form form, __m512i sums,
                           const end_places *places, size_t vector, __mmask16 mask) {
    const end_kind kind = form.kind;
    const vector_constants v = constants_of(places, vector);
    pack_constants own = pack_constants_of(&e->own);
    if (kind <= END_WITH_O) {
        own.is_small = true;
        own.is_shifted = form.is_shifted;
        own.is_o = is_of_o(kind);
    }
    if (is_alone(t, kind)) return round_lanes(&own, scale_lanes(&own, sums, v.multiplier, v.bias));
    pack_constants sum = pack_constants_of(&e->sum);
    if (kind <= END_WITH_O) sum.is_small = true;
    const bool is_signed = kind <= END_WITH_O ? kind == END_WITH_SIGNED : t->addend->is_signed;
    const __m512 other =
        centered_codes(e, is_signed, kind != END_WITH_PLAIN, places->added, vector, mask);
    const __m512 factor = _mm512_set1_ps(e->factor);
    if (kind != END_WITH_CODES && own.is_o) {
        const __m512 value = value_lanes(sums, v.multiplier, v.bias);
        const __m512 sum_value = _mm512_add_ps(value, _mm512_mul_ps(other, factor));
        return round_lanes(&sum, scale_value(&own, sum_value));
    }
    const __m512 scaled = scale_lanes(&own, sums, v.multiplier, v.bias);
    if (kind == END_WITH_CODES)
        return round_lanes(&sum, add_to_code(e, &own, scaled, _mm512_mul_ps(other, factor)));
    return round_lanes(&sum, _mm512_fmadd_ps(other, factor, scaled));
}

// The codes of rows that fill a register.
UNROLLED __m512i pack_rows(const product_tile *t, const tile_end *e, end_kind kind,
                           const __m512i *lanes, size_t registers) {
    pack_constants k = pack_constants_of(is_alone(t, kind) ? &e->own : &e->sum);
    if (kind <= END_WITH_CODES) k.is_o = is_of_o(kind);
    if (kind == END_WITH_PLAIN) k.is_shifted = false;
    return order_packed(pack_lanes(&k, lanes, registers));
}

UNROLLED void store_channels(const product_tile *t, size_t channels, size_t row, size_t rows,
                             __m512i codes, size_t vectors) {
    uint8_t *y = t->y + row * t->y_stride;
    if (vectors > 2) {
        store_first_512(y, channels, codes);
        return;
    }
    const __m256i low = _mm512_castsi512_si256(codes), high = _mm512_extracti64x4_epi64(codes, 1);
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

UNROLLED void store_rows(const product_tile *t, size_t row, size_t rows, __m512i codes,
                         size_t vectors) {
    const size_t most = vectors * PRODUCT_LANES; // which few blocks do not have
    if (t->channels == most)
        store_channels(t, most, row, rows, codes, vectors);
    else
        store_channels(t, t->channels, row, rows, codes, vectors);
}

UNROLLED void store_values(const product_tile *t, const tile_end *e, __m512i sums, size_t row,
                           size_t vector, size_t vectors) {
    const __mmask16 mask = mask_of(e, vector, vectors);
    const end_places places = places_of(t, false, row);
    const vector_constants v = constants_of(&places, vector);
    const __m512 value = t->fuses ? _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), v.multiplier, v.bias)
                                  : value_lanes(sums, v.multiplier, v.bias);
    _mm512_mask_storeu_ps(t->real + row * t->y_stride + vector * PRODUCT_LANES, mask, value);
}

// Rows whose sums fill four registers at most. `last`: which channels of the last vector the addend
// has.
UNROLLED void end_rows(const product_tile *t, const tile_end *e, end_form form, __m512i *sums,
                       size_t row, size_t rows, size_t vectors, __mmask16 last) {
    const bool adds = !is_alone(t, form.kind) && form.kind != END_AS_VALUES;
    end_places places = places_of(t, adds, row);
#define END_OF(i)                                                                                  \
    const size_t vector = (i) % vectors;                                                           \
    if (form.is_tight) {                                                                           \
        RELOAD(places.multiplier);                                                                 \
        RELOAD(places.bias);                                                                       \
        RELOAD(e);                                                                                 \
    }                                                                                              \
    if (adds && (i) > 0 && vector == 0) places.added += t->addend->stride;                         \
    if (form.kind == END_AS_VALUES)                                                                \
        store_values(t, e, sums[i], row + (i) / vectors, vector, vectors);                         \
    else                                                                                           \
        sums[i] =                                                                                  \
            end_lanes(t, e, form, sums[i], &places, vector, vector + 1 < vectors ? 0xFFFF : last)
    EACH_VECTOR(rows * vectors, END_OF);
#undef END_OF
    if (form.kind == END_AS_VALUES) return;
    store_rows(t, row, rows, pack_rows(t, e, form.kind, sums, rows * vectors), vectors);
}

// --- sums that lie in memory ---

typedef struct kept_sums {
    const int32_t *at; // [rows][stride]
    size_t stride;
    size_t first, rows; // of the tile
    bool starts;        // each lacks its start
} kept_sums;

UNROLLED __m512i sums_at(const product_tile *t, const tile_end *e, const kept_sums *s, size_t r,
                         size_t vector, size_t vectors) {
    const __m512i sums = _mm512_maskz_loadu_epi32(mask_of(e, vector, vectors),
                                                  s->at + r * s->stride + vector * PRODUCT_LANES);
    return s->starts ? _mm512_add_epi32(sums, first_sums(t, vector)) : sums;
}

// Fewer rows than fill a register.
UNROLLED void end_few(const product_tile *t, const tile_end *e, end_kind kind, const kept_sums *s,
                      size_t first, size_t vectors) {
    __m512i lanes[PACKED_REGISTERS] = {0};
    for (size_t i = 0; i < (s->rows - first) * vectors; i++) {
        const size_t row = s->first + first + i / vectors, vector = i % vectors;
        const __m512i sums = sums_at(t, e, s, first + i / vectors, vector, vectors);
        if (kind == END_AS_VALUES) {
            store_values(t, e, sums, row, vector, vectors);
            continue;
        }
        const end_places places = places_of(t, !is_alone(t, kind), row);
        lanes[i] = end_lanes(t, e, (end_form){kind, true, false}, sums, &places, vector,
                             mask_of(e, vector, vectors));
    }
    if (kind == END_AS_VALUES) return;
    store_rows(t, s->first + first, s->rows - first, pack_rows(t, e, kind, lanes, PACKED_REGISTERS),
               vectors);
}

UNROLLED void end_kept_as(const product_tile *t, const tile_end *e, end_kind kind,
                          const kept_sums *s, size_t vectors) {
    const size_t step = PACKED_REGISTERS / vectors;
    size_t first = 0;
    for (; first + step <= s->rows; first += step) {
        __m512i sums[PACKED_REGISTERS];
#define READ(i)                                                                                    \
    if ((i) < step * vectors)                                                                      \
    sums[i] = sums_at(t, e, s, first + (i) / vectors, (i) % vectors, vectors)
        EACH_VECTOR(PACKED_REGISTERS, READ);
#undef READ
        end_rows(t, e, (end_form){kind, true, false}, sums, s->first + first, step, vectors,
                 e->last);
    }
    if (first < s->rows) end_few(t, e, kind, s, first, vectors);
}

UNROLLED void end_kept_vectors(const product_tile *t, const tile_end *e, const kept_sums *s,
                               size_t vectors){
#define END_KEPT(kind) end_kept_as(t, e, kind, s, vectors)
    OF_EACH_KIND(e->kind, END_KEPT)
#undef END_KEPT
}

#define DEFINE(vectors)                                                                            \
    static __attribute__((noinline)) void end_kept_##vectors(                                      \
        const product_tile *t, const tile_end *e, const kept_sums *s) {                            \
        end_kept_vectors(t, e, s, vectors);                                                        \
    }
DEFINE(1) DEFINE(2) DEFINE(3) DEFINE(4)
#undef DEFINE

    static void end_kept(const product_tile *t, const tile_end *e, const kept_sums *s) {
    static void (*const ends[PRODUCT_VECTORS])(const product_tile *, const tile_end *,
                                               const kept_sums *) = {end_kept_1, end_kept_2,
                                                                     end_kept_3, end_kept_4};
    ends[tare__product_vectors(t->channels) - 1](t, e, s);
}

#endif
