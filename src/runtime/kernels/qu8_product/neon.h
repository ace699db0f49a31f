// SPDX-License-Identifier: Apache-2.0
// Shared by the Arm kernels of products: initial values and epilogue of 16 channels.
// Private to runtime/kernels/qu8_product.
#ifndef RUNTIME_KERNELS_QU8_PRODUCT_NEON_H
#define RUNTIME_KERNELS_QU8_PRODUCT_NEON_H

#include "runtime/kernels/product.h"
#include "runtime/kernels/qu8_neon.h"

// Loop bounds for unrolling, so that sums stay in registers.
#define UNROLLED static inline __attribute__((always_inline))

/// The words of weights at a step of depth.
static inline size_t words_of_step(const product_tile *t) {
    return tare__product_vectors(t->channels) * PRODUCT_LANES;
}

static inline int8x16_t load_weights(const uint32_t *w) {
    return vreinterpretq_s8_u32(vld1q_u32(w));
}

// The sums of the weights of 16 channels, if they are not given.
static inline void sum_weights(const product_tile *t, const uint32_t *w, uint32_t *out) {
    const size_t words = (t->tap_size + 3) / 4, step = words_of_step(t);
    int32x4_t sums[NEON_QUADS] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
    for (size_t tap = 0; tap < t->taps; tap++) {
        w += tare__product_gap(t, tap);
        for (size_t d = 0; d < words; d++, w += step)
            for (size_t i = 0; i < NEON_QUADS; i++)
                sums[i] = vpadalq_s16(sums[i], vpaddlq_s8(load_weights(w + 4 * i)));
    }
    for (size_t i = 0; i < NEON_QUADS; i++) vst1q_u32(out + 4 * i, vreinterpretq_u32_s32(sums[i]));
}

/// The initial sums of 16 channels from c on. `moved`: subtracted from the tile's quantized values,
/// 128 for a kernel that multiplies signed ones.
static inline neon_sums start_of(const product_tile *t, size_t c, uint32_t moved) {
    const tile_epilogue *e = &t->epilogue;
    const size_t left = t->channels - c, count = left < PRODUCT_LANES ? left : PRODUCT_LANES;
    uint32_t start[PRODUCT_LANES] = {0}, sums[PRODUCT_LANES] = {0};
    memcpy(start, e->start + c, count * sizeof *start);
    if (moved != 0 && e->weight_sums != NULL)
        memcpy(sums, e->weight_sums + c, count * sizeof *sums);
    else if (moved != 0)
        sum_weights(t, t->w + c, sums);
    neon_sums out;
    for (size_t i = 0; i < NEON_QUADS; i++)
        out.v[i] = vmlaq_n_u32(vld1q_u32(start + 4 * i), vld1q_u32(sums + 4 * i), moved);
    return out;
}

/// The constants of 16 channels, zeros beyond the last one.
typedef struct vector_constants {
    size_t count;
    neon_floats multiplier, bias;
} vector_constants;

static inline vector_constants constants_of(const product_tile *t, size_t c) {
    const size_t left = t->channels - c, count = left < PRODUCT_LANES ? left : PRODUCT_LANES;
    return (vector_constants){count, load_floats(t->epilogue.multiplier + c, count),
                              load_floats(t->epilogue.bias + c, count)};
}

static inline uint8x16_t quantized_of(const product_tile *t, const epilogue_constants *k,
                                      const vector_constants *v, neon_sums acc, size_t row,
                                      size_t c) {
    const product_addend *a = t->addend;
    if (a == NULL) return requantize_lanes(k, acc, v->multiplier, v->bias);
    const uint8x16_t other = load_quantized(a->quantized + row * a->stride + c, v->count);
    if (a->kind == ADDEND_OF_QUANTIZED)
        return add_lanes(&a->add, a->is_signed, requantize_lanes(k, acc, v->multiplier, v->bias),
                         other);
    return requantize_with(k, acc, v->multiplier, v->bias,
                           centered_lanes(a->is_signed, a->zero_point, other),
                           tare__addend_factor(t->epilogue.requant, a->scale));
}

/// The results of all rows for 16 channels from c on.
UNROLLED void finish(const product_tile *t, neon_sums acc[], size_t rows, size_t c) {
    const epilogue_constants k = epilogue_constants_of(t->epilogue.requant);
    const vector_constants v = constants_of(t, c);
    for (size_t r = 0; r < rows; r++) {
        const size_t at = r * t->y_stride + c;
        if (t->real == NULL)
            store_quantized(t->y + at, v.count, quantized_of(t, &k, &v, acc[r], r, c));
        else if (t->fuses)
            store_floats(t->real + at, v.count, fused_lanes(acc[r], v.multiplier, v.bias));
        else
            store_floats(t->real + at, v.count, real_lanes(acc[r], v.multiplier, v.bias));
    }
}

#endif
