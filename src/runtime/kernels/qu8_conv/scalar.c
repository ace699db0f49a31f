// SPDX-License-Identifier: Apache-2.0
// The meaning of the convolution kernel, in plain loops.
#include "runtime/kernels/tile.h"

enum { BLOCK = 32 }; // pixels whose sums are kept at a time

// acc[p] += four products for each pixel, modulo 2^32.
static void add_products(const uint32_t *x, uint32_t weights, size_t count, uint32_t acc[BLOCK]) {
    uint32_t w[4];
    for (int i = 0; i < 4; i++) {
        const uint32_t byte = weights >> 8 * i & 0xFF;
        w[i] = byte < 128 ? byte : byte - 256;
    }
    for (size_t p = 0; p < count; p++)
        acc[p] += (x[p] & 0xFF) * w[0] + (x[p] >> 8 & 0xFF) * w[1] + (x[p] >> 16 & 0xFF) * w[2] +
                  (x[p] >> 24) * w[3];
}

static void run_block(const conv_tile *t, size_t c, size_t first, size_t count) {
    const tile_epilogue *e = &t->epilogue;
    uint32_t acc[BLOCK];
    for (size_t p = 0; p < count; p++) acc[p] = (uint32_t)e->offset[c];
    for (size_t k = 0; k < t->depth; k++)
        add_products(t->x + k * t->x_stride + first, t->w[c * t->depth + k], count, acc);
    for (size_t p = 0; p < count; p++) {
        const int64_t channel = e->first_channel + (int64_t)c;
        t->y[c * t->y_stride + first + p] =
            (uint8_t)tare__requantize(e->requant, channel, tare__wrap_int32(acc[p]));
    }
}

void qu8_conv_1x1__scalar(const conv_tile *t) {
    for (size_t c = 0; c < t->channels; c++)
        for (size_t p = 0; p < t->pixels; p += BLOCK)
            run_block(t, c, p, t->pixels - p < BLOCK ? t->pixels - p : BLOCK);
}

void qu8_conv_1x1__scalar_interleave(const uint8_t *const x[4], size_t count, uint8_t flip,
                                     uint32_t *out) {
    for (size_t p = 0; p < count; p++)
        out[p] = (uint32_t)(x[0][p] ^ flip) | (uint32_t)(x[1][p] ^ flip) << 8 |
                 (uint32_t)(x[2][p] ^ flip) << 16 | (uint32_t)(x[3][p] ^ flip) << 24;
}

void qu8_conv_1x1__scalar_slide(const uint8_t *x, size_t stride, size_t count, uint32_t *out) {
    for (size_t p = 0; p < count; p++, x += stride)
        out[p] = (uint32_t)x[0] | (uint32_t)x[1] << 8 | (uint32_t)x[2] << 16 | (uint32_t)x[3] << 24;
}
