// SPDX-License-Identifier: Apache-2.0
// The epilogue of integer kernels for vectors of any width: rules F, O and Q of core/math/requant.h
// on four registers of sums, which become one register of quantized values. A file of an
// instruction set includes this once for each width, with
//   WIDTH(name)       the name of a function of this width
//   VEC, FLOATS       registers of integers and of floats
//   V(op), V_INT(op)  intrinsics, V_INT those named after the whole register (xor, loadu)
// Packing 32-bit lanes to bytes leaves four channels of each register in each 16 bytes: the order
// of tare__depthwise_index.
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_QU8_EPILOGUE_H
#define RUNTIME_KERNELS_QU8_EPILOGUE_H
#include <stdbool.h>

#include "core/math/requant.h"

enum { PACKED_REGISTERS = 4 };

#define UNROLLED static inline __attribute__((always_inline))

// The constants of an epilogue.
typedef struct pack_numbers {
    bool is_o, is_signed, is_small;
    bool is_shifted;                 // the zero point is not 0
    float inverse, zero_point_float; // rule O
    float low, high;                 // for the float before rounding
    uint32_t zero_point;             // except for rule O: in 16-bit lanes, twice
    bool is_whole;                   // the whole range is valid: packing saturates to it
    uint32_t least, most;            // bounds of the quantized values as bytes, four times
} pack_numbers;

// is_small: no float before rounding reaches 2^30, so conversions do not overflow and saturating
// packs clamp. Filled in place, because copying data that was just written stalls.
UNROLLED void set_pack_numbers(pack_numbers *n, const requant *r, bool is_small, bool is_signed) {
    const bool is_o = r->rule == REQUANT_O;
    const int32_t shift = is_o ? 0 : r->zero_point;
    n->is_o = is_o;
    n->is_signed = is_signed;
    n->is_small = is_small;
    n->is_shifted = r->zero_point != 0;
    n->inverse = r->inverse;
    n->zero_point_float = (float)r->zero_point;
    n->low = (float)(r->lo - shift);
    n->high = (float)(r->hi - shift);
    n->zero_point = (uint16_t)shift * 0x10001U;
    n->is_whole = r->hi - r->lo == UINT8_MAX;
    n->least = (uint8_t)r->lo * 0x1010101U;
    n->most = (uint8_t)r->hi * 0x1010101U;
}
#endif

typedef struct WIDTH(pack_constants) {
    bool is_o, is_signed, is_small, is_shifted, is_whole;
    FLOATS inverse, zero_point_float, low, high;
    VEC zero_point, least, most;
} WIDTH(pack_constants);

UNROLLED WIDTH(pack_constants) WIDTH(pack_constants_of)(const pack_numbers *n) {
    return (WIDTH(pack_constants)){
        .is_o = n->is_o,
        .is_signed = n->is_signed,
        .is_small = n->is_small,
        .is_shifted = n->is_shifted,
        .is_whole = n->is_whole,
        .inverse = V(set1_ps)(n->inverse),
        .zero_point_float = V(set1_ps)(n->zero_point_float),
        .low = V(set1_ps)(n->low),
        .high = V(set1_ps)(n->high),
        .zero_point = V(set1_epi32)((int32_t)n->zero_point),
        .least = V(set1_epi32)((int32_t)n->least),
        .most = V(set1_epi32)((int32_t)n->most),
    };
}

// The value of rule O.
UNROLLED FLOATS WIDTH(value_lanes)(VEC acc, FLOATS multiplier, FLOATS bias) {
    return V(add_ps)(V(mul_ps)(V(cvtepi32_ps)(acc), multiplier), bias);
}

UNROLLED FLOATS WIDTH(bound_lanes)(const WIDTH(pack_constants) * k, FLOATS scaled) {
    return V(min_ps)(V(max_ps)(scaled, k->low), k->high);
}

UNROLLED VEC WIDTH(round_lanes)(const WIDTH(pack_constants) * k, FLOATS scaled) {
    return V(cvtps_epi32)(k->is_small ? scaled : WIDTH(bound_lanes)(k, scaled));
}

// The last step of rule O before rounding.
UNROLLED FLOATS WIDTH(scale_value)(const WIDTH(pack_constants) * k, FLOATS value) {
    const FLOATS scaled = V(mul_ps)(value, k->inverse);
    return k->is_shifted ? V(add_ps)(scaled, k->zero_point_float) : scaled;
}

// The float that is rounded; except for rule O, minus the zero point.
UNROLLED FLOATS WIDTH(scale_lanes)(const WIDTH(pack_constants) * k, VEC acc, FLOATS multiplier,
                                   FLOATS bias) {
    return k->is_o ? WIDTH(scale_value)(k, WIDTH(value_lanes)(acc, multiplier, bias))
                   : V(mul_ps)(V(add_ps)(V(cvtepi32_ps)(acc), bias), multiplier);
}

// Rounded lanes as 16 bits; for rule O the zero point is already included.
UNROLLED VEC WIDTH(shift_lanes)(const WIDTH(pack_constants) * k, VEC low, VEC high) {
    const VEC lanes = V(packs_epi32)(low, high);
    return k->is_o || !k->is_shifted ? lanes : V(adds_epi16)(lanes, k->zero_point);
}

// Packs rounded lanes to bytes. With two registers, half of the result is undefined.
UNROLLED VEC WIDTH(pack_lanes)(const WIDTH(pack_constants) * k, const VEC *lanes,
                               size_t registers) {
    const VEC low = WIDTH(shift_lanes)(k, lanes[0], lanes[registers > 1]);
    VEC high = low;
    if (registers > 2) high = WIDTH(shift_lanes)(k, lanes[2], lanes[registers > 3 ? 3 : 2]);
    const VEC quantized = k->is_signed ? V(packs_epi16)(low, high) : V(packus_epi16)(low, high);
    if (k->is_whole) return quantized;
    if (k->is_signed) return V(min_epi8)(V(max_epi8)(quantized, k->least), k->most);
    return V(min_epu8)(V(max_epu8)(quantized, k->least), k->most);
}
