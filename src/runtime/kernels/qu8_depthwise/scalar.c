// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution in plain C: the sums of a block of channels, a tap after the other.
#include "runtime/kernels/depthwise.h"
#include "runtime/kernels/qu8_scalar.h"

static void add_four(const depthwise_tile *t, const uint8_t *const *x, const uint32_t *w,
                     uint32_t sums[DEPTHWISE_BLOCK]) {
    for (size_t i = 0; i < DEPTHWISE_WORD; i++) {
        const uint8_t *tap = x[i] + t->first, flip = t->flip;
        for (size_t c = 0; c < t->channels; c++) {
            const int32_t weight = (int32_t)((w[c] >> 8 * i & 0xFF) ^ 0x80) - 128;
            sums[c] += (uint32_t)((tap[c] ^ flip) * weight);
        }
    }
}

void qu8_depthwise__scalar(const depthwise_tile *t) {
    const depthwise_constants *own = t->constants;
    const uint8_t *const *x = t->x;
    for (size_t p = 0; p < t->pixels; p++) {
        uint32_t sums[DEPTHWISE_BLOCK] = {0};
        for (size_t f = 0; f < t->fours; f++, x += DEPTHWISE_WORD)
            add_four(t, x, t->w + f * DEPTHWISE_BLOCK, sums);
        for (size_t c = 0; c < t->channels; c++) sums[c] += (uint32_t)own->start[c];
        if (t->real != NULL) {
            real_sums(sums, own->multiplier, own->bias, t->channels, t->real + p * t->y_stride);
            continue;
        }
        requantize_sums(t->requant, sums, own->multiplier, own->bias, t->channels,
                        t->y + p * t->y_stride);
    }
}
