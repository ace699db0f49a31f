// SPDX-License-Identifier: Apache-2.0
// Linear in plain C: four rows at a time meet 32 channels, a chunk of the depth after the other.
#include "runtime/kernels/qu8_scalar.h"

enum { ROWS = 4 };

typedef struct row_block {
    size_t first, count; // rows
    size_t channel, channels;
    int32_t acc[SUMS][ROWS];
} row_block;

static void add_chunk(const linear_tile *t, row_block *b, size_t first, size_t count) {
    int16_t x[ROWS][CHUNK_CODES], w[CHUNK_CODES];
    for (size_t i = 0; i < ROWS; i++) { // rows beyond the last repeat it
        const size_t row = b->first + (i < b->count ? i : b->count - 1);
        widen_codes(t->x + row * t->depth + first, 1, count, x[i]);
    }
    for (size_t c = 0; c < b->channels; c++) {
        widen_weights(t->w + (b->channel + c) * t->depth + first, count, w);
        add_dots_4(x, w, count, b->acc[c]);
    }
}

static void store(const linear_tile *t, const row_block *b) {
    for (size_t c = 0; c < b->channels; c++) {
        int32_t sums[SUMS] = {0};
        uint8_t codes[ROWS];
        float real[ROWS];
        const size_t at = b->first * t->y_stride + b->channel + c;
        memcpy(sums, b->acc[c], sizeof b->acc[c]);
        if (t->real != NULL) {
            real_sums(&t->epilogue, b->channel + c, sums, ROWS, real);
            const tile_epilogue *e = &t->epilogue;
            for (size_t i = 0; t->fuses && i < ROWS; i++)
                real[i] =
                    fmaf((float)sums[i], e->multiplier[b->channel + c], e->bias[b->channel + c]);
            for (size_t i = 0; i < b->count; i++) t->real[at + i * t->y_stride] = real[i];
            continue;
        }
        requantize_sums(&t->epilogue, b->channel + c, sums, ROWS, codes);
        for (size_t i = 0; i < b->count; i++) t->y[at + i * t->y_stride] = codes[i];
    }
}

static void run_block(const linear_tile *t, row_block *b) {
    for (size_t c = 0; c < b->channels; c++)
        for (size_t i = 0; i < ROWS; i++) b->acc[c][i] = t->epilogue.start[b->channel + c];
    for (size_t d = 0; d < t->depth; d += CHUNK_WORDS)
        add_chunk(t, b, d, t->depth - d < CHUNK_WORDS ? t->depth - d : CHUNK_WORDS);
    store(t, b);
}

void qu8_linear_4x1__scalar(const linear_tile *t) {
    row_block b;
    for (b.first = 0; b.first < t->rows; b.first += ROWS)
        for (b.channel = 0; b.channel < t->channels; b.channel += SUMS) {
            const size_t rows = t->rows - b.first, channels = t->channels - b.channel;
            b.count = rows < ROWS ? rows : ROWS;
            b.channels = channels < SUMS ? channels : SUMS;
            run_block(t, &b);
        }
}
