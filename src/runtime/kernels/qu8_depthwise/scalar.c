// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Depthwise convolution in plain C: the sums of a block of channels, one quantized value of the
// window after the other.
#include "runtime/kernels/depthwise.h"
#include "runtime/kernels/qu8_scalar.h"

enum { MOST_CHANNELS = 16 }; // in a block of this kernel

// Adds four rows of a column.
static void add_word(const depthwise_tile *t, const uint8_t *const *x, const uint32_t *w,
                     uint32_t sums[MOST_CHANNELS]) {
    for (size_t i = 0; i < DEPTHWISE_WORD; i++) {
        const uint8_t *row = x[i] + t->first, flip = t->flip;
        for (size_t c = 0; c < t->channels; c++) {
            const int32_t weight = (int32_t)((w[c] >> 8 * i & 0xFF) ^ 0x80) - 128;
            sums[c] += (uint32_t)((row[c] ^ flip) * weight);
        }
    }
}

static void add_window(const depthwise_tile *t, size_t row, size_t pixel,
                       uint32_t sums[MOST_CHANNELS]) {
    const uint32_t *w = t->w + row * t->columns * t->words * MOST_CHANNELS;
    for (size_t j = 0; j < t->columns; j++) {
        const size_t column = pixel * t->stride + j * t->dilation;
        const uint8_t *const *x = t->x + column * t->words * DEPTHWISE_WORD;
        for (size_t k = 0; k < t->words; k++, x += DEPTHWISE_WORD, w += MOST_CHANNELS)
            add_word(t, x, w, sums);
    }
}

static void run_pixel(const depthwise_tile *t, size_t row, size_t pixel) {
    const depthwise_constants *own = t->constants;
    const size_t at = row * t->y_row + pixel * t->y_stride;
    uint32_t sums[MOST_CHANNELS];
    for (size_t c = 0; c < t->channels; c++) sums[c] = (uint32_t)own->start[c];
    add_window(t, row, pixel, sums);
    if (t->real != NULL)
        real_sums(sums, own->multiplier, own->bias, t->channels, t->real + at);
    else
        requantize_sums(t->requant, sums, own->multiplier, own->bias, t->channels, t->y + at);
}

void qu8_depthwise__scalar(const depthwise_tile *t) {
    for (size_t r = 0; r < t->rows; r++)
        for (size_t p = 0; p < t->pixels; p++) run_pixel(t, r, p);
}
