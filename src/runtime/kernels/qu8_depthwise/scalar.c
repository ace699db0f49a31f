// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution in plain C: the sums of 32 pixels, a tap after the other.
#include "runtime/kernels/qu8_scalar.h"

static void add_tap(const uint8_t *x, size_t stride, int weight, size_t count, int32_t acc[SUMS]) {
    if (stride == 1 && count == SUMS)
        for (size_t p = 0; p < SUMS; p++) acc[p] += x[p] * weight;
    else
        for (size_t p = 0; p < count; p++) acc[p] += x[p * stride] * weight;
}

static void run_block(const depthwise_tile *t, const uint8_t *x, size_t count, size_t at) {
    const tile_epilogue *e = &t->epilogue;
    int32_t acc[SUMS] = {0};
    for (size_t d = 0; d < t->depth; d++)
        for (size_t i = 0; i < 4; i++) {
            const int32_t byte = (int32_t)(t->w[d] >> 8 * i & 0xFF);
            if (byte == 0) continue; // idle, or without effect
            add_tap(x + t->offset[d] + i * t->dilation, t->stride, byte < 128 ? byte : byte - 256,
                    count, acc);
        }
    for (size_t p = 0; p < SUMS; p++) acc[p] = tare__add_wrapping(acc[p], e->start[0]);
    if (t->real != NULL)
        real_sums(e, 0, acc, count, t->real + at);
    else
        requantize_sums(e, 0, acc, count, t->y + at);
}

void qu8_depthwise_1__scalar(const depthwise_tile *t) {
    for (size_t h = 0; h < t->height; h++)
        for (size_t p = 0; p < t->width; p += SUMS)
            run_block(t, t->x + h * t->x_stride + p * t->stride,
                      t->width - p < SUMS ? t->width - p : SUMS, h * t->width + p);
}
