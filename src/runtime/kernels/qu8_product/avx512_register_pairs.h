// SPDX-License-Identifier: Apache-2.0
// Many rows of few words of depth, whose epilogue takes as long as their sums. Two registers of
// quantized values are made at a time, by so few instructions that the processor finds the next
// ones' sums behind the epilogues of these.
//
// A word of depth is 8 products: 4 cycles of Intel's two VNNI ports, 8 of Zen 4; for 4 to 8 loads
// of words and 1 to 4 of weights, of 2 a cycle and 1. The epilogue's packing is on Intel's port 5,
// which products need, too: it, not the products, is what these rows take.
// Private to runtime/kernels/qu8_product.
#ifndef RUNTIME_KERNELS_QU8_PRODUCT_AVX512_REGISTER_PAIRS_H
#define RUNTIME_KERNELS_QU8_PRODUCT_AVX512_REGISTER_PAIRS_H

#include "runtime/kernels/qu8_product/avx512_epilogue.h"

enum { PAIRS_AHEAD = 16 }; // pairs by which the prefetch of a first row is ahead

// Loaded once, not by each instruction that uses it.
UNROLLED __m512i load_once(const uint32_t *from) {
    __m512i w = _mm512_loadu_si512(from);
    __asm__("" : "+v"(w));
    return w;
}

// Adds to the sums of two registers of quantized values, for as many rows as fit.
UNROLLED void add_word(__m512i a[PACKED_REGISTERS], __m512i b[PACKED_REGISTERS],
                       const uint8_t *const *at, size_t k, const uint32_t *from) {
    __m512i w[PRODUCT_VECTORS];
#define LOAD(v) w[v] = load_once(from + (size_t)(v)*PRODUCT_LANES)
    EACH_VECTOR(VECTORS, LOAD);
#undef LOAD
#define ADD(i)                                                                                     \
    do {                                                                                           \
        const size_t row_ = (i) / VECTORS, v_ = (i) % VECTORS;                                     \
        a[i] = _mm512_dpbusd_epi32(a[i], broadcast(at[row_] + k), w[v_]);                          \
        b[i] = _mm512_dpbusd_epi32(b[i], broadcast(at[STEP + row_] + k), w[v_]);                   \
    } while (0)
    EACH_VECTOR(PACKED_REGISTERS, ADD);
#undef ADD
}

#endif

// --- of each kind ---

// `rows` rows, whole pairs of registers of quantized values. Tile and epilogue are copied:
// otherwise the compiler must assume that the stored quantized values overwrite them, and reload
// them for each pair.
static void OF_KIND(run_pairs)(const product_tile *given_tile, const block_epilogue *given_epilogue,
                               size_t rows) {
    const product_tile t = *given_tile;
    const block_epilogue e = *given_epilogue;
    const epilogue_form form = {0};
    for (size_t row = 0; row < rows; row += 2 * STEP) {
        const uint32_t *w = t.w;
        __m512i a[PACKED_REGISTERS], b[PACKED_REGISTERS];
#define START(i) a[i] = b[i] = first_sums(&t, (i) % VECTORS)
        EACH_VECTOR(PACKED_REGISTERS, START);
#undef START
        __builtin_prefetch(t.y + (row + 2 * STEP * PAIRS_AHEAD) * t.y_stride, 1);
        for (size_t tap = 0; tap < t.taps; tap++) {
            const uint8_t *at[2 * PACKED_REGISTERS];
            for (size_t r = 0; r < 2 * STEP; r++)
                at[r] = tare__product_values_at(&t, t.x + row + r, tap);
            for (size_t k = 0; k < t.tap_size; k += 4, w += BLOCK_LANES) add_word(a, b, at, k, w);
        }
        OF_KIND(epilogue_of_rows)(&t, &e, form, a, row, STEP, 0xFFFF);
        OF_KIND(epilogue_of_rows)(&t, &e, form, b, row + STEP, STEP, 0xFFFF);
    }
}
