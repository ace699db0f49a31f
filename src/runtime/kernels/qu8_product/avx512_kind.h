// SPDX-License-Identifier: Apache-2.0
// Epilogues of one kind, for blocks of VECTORS vectors: included for each KIND, with NAME as the
// suffix of the functions' names. Conditions on KIND are preprocessor constants: as function
// arguments they made compiling take minutes.
// Private to runtime/kernels/qu8_product.

#define JOIN_(name, kind) name##_##kind
#define JOIN(name, kind)  JOIN_(name, kind)
#define OF_KIND(name)     JOIN(name, NAME)
#define IS_OF_O           (KIND == EPILOGUE_OF_O || KIND == EPILOGUE_WITH_O)
// True if the layer's quantized values are the result.
#define IS_ALONE(t) (KIND <= EPILOGUE_OF_O || (KIND == EPILOGUE_OF_OTHERS && (t)->addend == NULL))

// Converts sums to rounded lanes. `added`: the row of the addend; `mask`: the channels of the
// vector that it has.
UNROLLED __m512i OF_KIND(epilogue_of_sums)(const product_tile *t, const block_epilogue *e,
                                           __m512i sums, vector_constants v, const uint8_t *added,
                                           size_t vector, __mmask16 mask) {
    pack_constants own = pack_constants_of(&e->own);
    if (KIND <= EPILOGUE_WITH_O) {
        own.is_small = true;
        own.is_shifted = true; // a separate form without zero point would not pay
        own.is_o = IS_OF_O;
    }
    if (IS_ALONE(t)) return round_lanes(&own, scale_lanes(&own, sums, v.multiplier, v.bias));
    pack_constants sum = pack_constants_of(&e->sum);
    if (KIND <= EPILOGUE_WITH_O) sum.is_small = true;
    const bool is_signed = KIND > EPILOGUE_WITH_O && t->addend->is_signed;
    const __m512 other = centered_quantized(e, is_signed, added, vector, mask);
    const __m512 factor = _mm512_set1_ps(e->factor);
    if (KIND != EPILOGUE_WITH_QUANTIZED && own.is_o) {
        const __m512 value = value_lanes(sums, v.multiplier, v.bias);
        const __m512 sum_value = _mm512_add_ps(value, _mm512_mul_ps(other, factor));
        return round_lanes(&sum, scale_value(&own, sum_value));
    }
    const __m512 scaled = scale_lanes(&own, sums, v.multiplier, v.bias);
    if (KIND == EPILOGUE_WITH_QUANTIZED)
        return round_lanes(&sum, add_to_quantized(e, &own, scaled, _mm512_mul_ps(other, factor)));
    return round_lanes(&sum, _mm512_fmadd_ps(other, factor, scaled));
}

UNROLLED __m512i OF_KIND(epilogue_of_lanes)(const product_tile *t, const block_epilogue *e,
                                            __m512i sums, const epilogue_constants *constants,
                                            size_t vector, __mmask16 mask) {
    return OF_KIND(epilogue_of_sums)(t, e, sums, constants_of(constants, vector), constants->added,
                                     vector, mask);
}

// Packs rows that fill a register.
UNROLLED __m512i OF_KIND(pack_rows)(const product_tile *t, const block_epilogue *e,
                                    const __m512i *lanes, size_t registers) {
    pack_constants k = pack_constants_of(IS_ALONE(t) ? &e->own : &e->sum);
    if (KIND <= EPILOGUE_WITH_QUANTIZED) k.is_o = IS_OF_O;
    return order_packed(pack_lanes(&k, lanes, registers));
}

// Rows whose sums fill at most four registers. `last`: the channels of the last vector that the
// addend has.
UNROLLED void OF_KIND(epilogue_of_rows)(const product_tile *t, const block_epilogue *e,
                                        epilogue_form form, __m512i *sums, size_t row, size_t rows,
                                        __mmask16 last) {
    const bool adds = !IS_ALONE(t) && KIND != EPILOGUE_AS_VALUES;
    epilogue_constants constants = epilogue_constants_of(t, adds, row);
#define EPILOGUE_OF(i)                                                                             \
    const size_t vector = (i) % VECTORS;                                                           \
    if (form.is_tight) {                                                                           \
        RELOAD(constants.multiplier);                                                              \
        RELOAD(constants.bias);                                                                    \
        RELOAD(e);                                                                                 \
    }                                                                                              \
    if (adds && (i) > 0 && vector == 0) constants.added += t->addend->stride;                      \
    if (KIND == EPILOGUE_AS_VALUES)                                                                \
        store_values(t, e, sums[i], constants_of(&constants, vector), row + (i) / VECTORS, vector, \
                     VECTORS);                                                                     \
    else                                                                                           \
        sums[i] = OF_KIND(epilogue_of_lanes)(t, e, sums[i], &constants, vector,                    \
                                             vector + 1 < VECTORS ? 0xFFFF : last)
    EACH_VECTOR(rows * VECTORS, EPILOGUE_OF);
#undef EPILOGUE_OF
    if (KIND == EPILOGUE_AS_VALUES) return;
    store_rows(t, row, rows, OF_KIND(pack_rows)(t, e, sums, rows * VECTORS), VECTORS);
}

// Fewer rows than fill a register.
static void OF_KIND(epilogue_of_few)(const product_tile *t, const block_epilogue *e,
                                     const kept_sums *s, size_t first) {
    __m512i lanes[PACKED_REGISTERS] = {0};
    for (size_t i = 0; i < (s->rows - first) * VECTORS; i++) {
        const size_t row = s->first + first + i / VECTORS, vector = i % VECTORS;
        const __m512i sums = sums_at(t, e, s, first + i / VECTORS, vector, VECTORS);
        if (KIND == EPILOGUE_AS_VALUES) {
            const epilogue_constants own = epilogue_constants_of(t, false, row);
            store_values(t, e, sums, constants_of(&own, vector), row, vector, VECTORS);
            continue;
        }
        const epilogue_constants constants = epilogue_constants_of(t, !IS_ALONE(t), row);
        lanes[i] =
            OF_KIND(epilogue_of_lanes)(t, e, sums, &constants, vector, mask_of(e, vector, VECTORS));
    }
    if (KIND == EPILOGUE_AS_VALUES) return;
    store_rows(t, s->first + first, s->rows - first,
               OF_KIND(pack_rows)(t, e, lanes, PACKED_REGISTERS), VECTORS);
}

// Works with copies, which no store of quantized values can change: constants stay in registers.
// What the caller has just written is read number by number: a wider load would wait until all
// stores before it have reached the cache, even those of tiles that are not multiplied yet.
static void OF_KIND(epilogue_kept)(const product_tile *tile, const block_epilogue *epilogue,
                                   const kept_sums *kept) {
    const product_tile own_tile = *tile, *const t = &own_tile;
    const block_epilogue own_epilogue = *epilogue, *const e = &own_epilogue;
    const kept_sums s = {kept->at, kept->stride, kept->first, kept->rows, kept->starts};
    const bool adds = !IS_ALONE(t) && KIND != EPILOGUE_AS_VALUES;
    const epilogue_constants constants = epilogue_constants_of(t, adds, s.first);
    const size_t stride = adds ? t->addend->stride : 0;
    const uint8_t *added = constants.added;
    vector_constants v[VECTORS];
    size_t first = 0;
#define READ_CONSTANTS(i) v[i] = constants_of(&constants, i)
    EACH_VECTOR(VECTORS, READ_CONSTANTS);
#undef READ_CONSTANTS
    for (; first + STEP <= s.rows; first += STEP) {
        __m512i lanes[PACKED_REGISTERS];
#define EPILOGUE_OF(i)                                                                             \
    if ((i) < STEP * VECTORS) {                                                                    \
        const size_t row = first + (i) / VECTORS, vector = (i) % VECTORS;                          \
        const __m512i sums = sums_at(t, e, &s, row, vector, VECTORS);                              \
        if (KIND == EPILOGUE_AS_VALUES)                                                            \
            store_values(t, e, sums, v[vector], s.first + row, vector, VECTORS);                   \
        else                                                                                       \
            lanes[i] = OF_KIND(epilogue_of_sums)(t, e, sums, v[vector], added, vector,             \
                                                 mask_of(e, vector, VECTORS));                     \
        if (adds && vector + 1 == VECTORS) added += stride;                                        \
    }
        EACH_VECTOR(PACKED_REGISTERS, EPILOGUE_OF);
#undef EPILOGUE_OF
        if (KIND == EPILOGUE_AS_VALUES) continue;
        store_rows(t, s.first + first, STEP,
                   OF_KIND(pack_rows)(t, e, lanes, (size_t)STEP * VECTORS), VECTORS);
    }
    if (first < s.rows) OF_KIND(epilogue_of_few)(tile, epilogue, kept, first);
}

#if HAS_TILE
UNROLLED void OF_KIND(epilogue_tile)(const product_tile *t, const block_epilogue *e, tile_sums acc,
                                     size_t first, size_t rows) {
#define EPILOGUE_AT(r)                                                                             \
    if ((r) % STEP == 0) {                                                                         \
        const size_t count = rows - (r) < STEP ? rows - (r) : STEP;                                \
        __m512i sums[PACKED_REGISTERS];                                                            \
        for (size_t i = 0; i < PACKED_REGISTERS; i++)                                              \
            if (i < count * VECTORS) sums[i] = acc[(r) + i / VECTORS][i % VECTORS];                \
        OF_KIND(epilogue_of_rows)                                                                  \
        (t, e, (epilogue_form){0}, sums, first + (r), count, e->last);                             \
    }
    EACH_ROW(rows, EPILOGUE_AT);
#undef EPILOGUE_AT
}
#endif
#if HAS_PIPELINE
#include "runtime/kernels/qu8_product/avx512_pipeline.h"
#endif
#if HAS_REGISTER_PAIRS
#include "runtime/kernels/qu8_product/avx512_register_pairs.h"
#endif

#undef JOIN_
#undef JOIN
#undef OF_KIND
#undef IS_OF_O
#undef IS_ALONE
#undef KIND
#undef NAME
#undef HAS_TILE
#undef HAS_PIPELINE
#undef HAS_REGISTER_PAIRS
