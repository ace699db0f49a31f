// SPDX-License-Identifier: Apache-2.0
// The meaning of the convolution kernel, in plain loops.
#include "runtime/kernels/tile.h"

void qu8_conv_1x1__scalar(const conv_tile *t) {
    const tile_epilogue *e = &t->epilogue;
    for (size_t c = 0; c < t->channels; c++)
        for (size_t p = 0; p < t->pixels; p++) {
            int32_t acc = e->offset[c];
            for (size_t k = 0; k < t->depth; k++)
                acc = tare__add_wrapping(
                    acc, tare__dot4(t->x[k * t->x_stride + p], t->w[c * t->depth + k]));
            const int64_t channel = e->first_channel + (int64_t)c;
            t->y[c * t->y_stride + p] = (uint8_t)tare__requantize(e->requant, channel, acc);
        }
}

void qu8_conv_1x1__scalar_interleave(const uint8_t *const x[4], size_t count, uint8_t flip,
                                     uint32_t *out) {
    for (size_t p = 0; p < count; p++)
        out[p] = (uint32_t)(x[0][p] ^ flip) | (uint32_t)(x[1][p] ^ flip) << 8 |
                 (uint32_t)(x[2][p] ^ flip) << 16 | (uint32_t)(x[3][p] ^ flip) << 24;
}
