// SPDX-License-Identifier: Apache-2.0
// Convolution in plain C: a chunk of the depth of 32 pixels is turned, so that each pixel's codes
// follow each other, and meets up to 32 channels.
#include "runtime/kernels/qu8_scalar.h"

enum { CHANNELS = 32, STEP = 4 }; // STEP: pixels that a weight meets while it is in a register

typedef int32_t sum_row[CONV_PIXELS];

static void add_chunk(const conv_tile *t, size_t c, size_t channels, size_t first, size_t count,
                      sum_row *acc) {
    int16_t x[CONV_PIXELS][CHUNK_CODES], w[CHUNK_CODES];
    for (size_t p = 0; p < CONV_PIXELS; p++)
        widen_codes(t->x + first * t->x_stride + p, t->x_stride, count, x[p]);
    for (size_t i = 0; i < channels; i++) {
        widen_weights(t->w + (c + i) * t->depth + first, count, w);
        for (size_t p = 0; p < t->pixels; p += STEP) add_dots_4(x + p, w, count, acc[i] + p);
    }
}

static void run_channels(const conv_tile *t, size_t c, size_t channels) {
    sum_row acc[CHANNELS];
    for (size_t i = 0; i < channels; i++)
        for (size_t p = 0; p < CONV_PIXELS; p++) acc[i][p] = t->epilogue.start[c + i];
    for (size_t d = 0; d < t->depth; d += CHUNK_WORDS)
        add_chunk(t, c, channels, d, t->depth - d < CHUNK_WORDS ? t->depth - d : CHUNK_WORDS, acc);
    for (size_t i = 0; i < channels; i++) {
        const size_t at = (c + i) * t->y_stride;
        if (t->real != NULL)
            real_sums(&t->epilogue, c + i, acc[i], t->pixels, t->real + at);
        else if (t->addend.codes != NULL)
            requantize_with(&t->epilogue, &t->addend, c + i, acc[i], t->addend.codes + at,
                            t->pixels, t->y + at);
        else
            requantize_sums(&t->epilogue, c + i, acc[i], t->pixels, t->y + at);
    }
}

void qu8_conv_4x32__scalar(const conv_tile *t) {
    for (size_t c = 0; c < t->channels; c += CHANNELS)
        run_channels(t, c, t->channels - c < CHANNELS ? t->channels - c : CHANNELS);
}

void qu8_conv_4x32__scalar_interleave(const uint8_t *const x[4], size_t count, uint8_t flip,
                                      uint32_t *out) {
    for (size_t p = 0; p < count; p++)
        out[p] = (uint32_t)(x[0][p] ^ flip) | (uint32_t)(x[1][p] ^ flip) << 8 |
                 (uint32_t)(x[2][p] ^ flip) << 16 | (uint32_t)(x[3][p] ^ flip) << 24;
}

void qu8_conv_4x32__scalar_slide(const uint8_t *x, size_t stride, size_t count, uint32_t *out) {
    for (size_t p = 0; p < count; p++, x += stride)
        out[p] = (uint32_t)x[0] | (uint32_t)x[1] << 8 | (uint32_t)x[2] << 16 | (uint32_t)x[3] << 24;
}
