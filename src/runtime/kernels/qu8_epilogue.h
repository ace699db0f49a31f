// SPDX-License-Identifier: Apache-2.0
// The end of integer kernels for vectors of any width: rules F, O and Q of core/requant.h on four
// registers of sums, which become one register of codes. A file of an instruction set includes this
// once for each width, with
//   WIDTH(name)       the name of a function of this width
//   VEC, FLOATS       registers of integers and of floats
//   V(op), V_INT(op)  intrinsics, V_INT those named after the whole register (xor, loadu)
// Packing 32-bit lanes to bytes leaves four channels of each register in each 16 bytes: the order
// of tare__depthwise_place.

#ifndef RUNTIME_KERNELS_QU8_EPILOGUE_H
#define RUNTIME_KERNELS_QU8_EPILOGUE_H
#include <stdbool.h>

#include "core/requant.h"

enum { PACKED_REGISTERS = 4 };
#endif

typedef struct WIDTH(pack_constants) {
    bool is_o, is_signed, is_small;
    bool is_shifted;                  // the zero point is another than 0
    FLOATS inverse, zero_point_float; // rule O
    FLOATS low, high;                 // of the float before rounding
    VEC zero_point;                   // added after rounding, to 16-bit lanes
    VEC least, most;                  // of the codes, as bytes
} WIDTH(pack_constants);

// is_small: no float before rounding reaches 2^30, so that conversions do not overflow and
// saturating packs do what clamping does.
static inline WIDTH(pack_constants)
    WIDTH(pack_constants_of)(const requant *r, bool is_small, bool is_signed) {
    const bool is_o = r->rule == REQUANT_O;
    const int32_t shift = is_o ? 0 : r->zero_point;
    return (WIDTH(pack_constants)){
        .is_o = is_o,
        .is_signed = is_signed,
        .is_small = is_small,
        .is_shifted = r->zero_point != 0,
        .inverse = V(set1_ps)(r->inverse),
        .zero_point_float = V(set1_ps)((float)r->zero_point),
        .low = V(set1_ps)((float)(r->lo - shift)),
        .high = V(set1_ps)((float)(r->hi - shift)),
        .zero_point = V(set1_epi16)((short)shift),
        .least = V(set1_epi8)((char)r->lo),
        .most = V(set1_epi8)((char)r->hi),
    };
}

// The value of rule O.
static inline FLOATS WIDTH(value_lanes)(VEC acc, FLOATS multiplier, FLOATS bias) {
    return V(add_ps)(V(mul_ps)(V(cvtepi32_ps)(acc), multiplier), bias);
}

static inline FLOATS WIDTH(bound_lanes)(const WIDTH(pack_constants) * k, FLOATS scaled) {
    return V(min_ps)(V(max_ps)(scaled, k->low), k->high);
}

static inline VEC WIDTH(round_lanes)(const WIDTH(pack_constants) * k, FLOATS scaled) {
    return V(cvtps_epi32)(k->is_small ? scaled : WIDTH(bound_lanes)(k, scaled));
}

// The end of rule O on a value: what is rounded.
static inline FLOATS WIDTH(scale_value)(const WIDTH(pack_constants) * k, FLOATS value) {
    const FLOATS scaled = V(mul_ps)(value, k->inverse);
    return k->is_shifted ? V(add_ps)(scaled, k->zero_point_float) : scaled;
}

// What is rounded to codes; where rule O is not used, less the zero point.
static inline FLOATS WIDTH(scale_lanes)(const WIDTH(pack_constants) * k, VEC acc, FLOATS multiplier,
                                        FLOATS bias) {
    return k->is_o ? WIDTH(scale_value)(k, WIDTH(value_lanes)(acc, multiplier, bias))
                   : V(mul_ps)(V(add_ps)(V(cvtepi32_ps)(acc), bias), multiplier);
}

// Rounded lanes to bytes. Of two registers, the other half of the result is without meaning.
static inline VEC WIDTH(pack_lanes)(const WIDTH(pack_constants) * k, const VEC *lanes,
                                    size_t registers) {
    const VEC low = V(adds_epi16)(V(packs_epi32)(lanes[0], lanes[registers > 1]), k->zero_point);
    VEC high = low;
    if (registers > 2)
        high = V(adds_epi16)(V(packs_epi32)(lanes[2], lanes[registers > 3 ? 3 : 2]), k->zero_point);
    if (k->is_signed) return V(min_epi8)(V(max_epi8)(V(packs_epi16)(low, high), k->least), k->most);
    return V(min_epu8)(V(max_epu8)(V(packus_epi16)(low, high), k->least), k->most);
}
