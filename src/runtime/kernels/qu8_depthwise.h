// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution for vectors of any width, with what qu8_epilogue.h needs and
//   BYTES                      of a register
//   LOAD_SOME(x, count), STORE_SOME(y, count, v)   the first `count` bytes of a register
//   DOT(acc, words, weights)   adds the four products of unsigned and signed bytes to each lane
// The bytes of four rows of a column are interleaved, so that a lane holds a channel's four
// quantized values. Windows beside each other share columns, and so do two rows of output: their
// weights stand one row lower in the words.
#include "runtime/kernels/depthwise.h"
#include "runtime/kernels/qu8_epilogue.h"
// Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_QU8_DEPTHWISE_H
#define RUNTIME_KERNELS_QU8_DEPTHWISE_H
// Loop bounds for unrolling, so that sums stay in registers.
enum {
    PAIR = 2, // pixels at a time
};
#endif

enum { WIDTH(LANES) = BYTES / 4 };

typedef struct WIDTH(depthwise_setting) {
    const depthwise_tile *t;
    WIDTH(pack_constants) pack;
    VEC flip;
} WIDTH(depthwise_setting);

static inline VEC WIDTH(load_lanes)(const void *p) {
    return V_INT(loadu)((const VEC *)p);
}

// Four rows of a column. `flips`: the tile's flip may be another than 0.
static inline void WIDTH(interleave)(const WIDTH(depthwise_setting) * s, const uint8_t *const *x,
                                     bool flips, VEC words[PACKED_REGISTERS]) {
    const size_t first = s->t->first, count = s->t->channels;
    VEC row[DEPTHWISE_WORD];
    for (int i = 0; i < DEPTHWISE_WORD; i++) {
        row[i] = LOAD_SOME(x[i] + first, count);
        if (flips) row[i] = V_INT(xor)(row[i], s->flip);
    }
    const VEC low01 = V(unpacklo_epi8)(row[0], row[1]);
    const VEC high01 = V(unpackhi_epi8)(row[0], row[1]);
    const VEC low23 = V(unpacklo_epi8)(row[2], row[3]);
    const VEC high23 = V(unpackhi_epi8)(row[2], row[3]);
    words[0] = V(unpacklo_epi16)(low01, low23);
    words[1] = V(unpackhi_epi16)(low01, low23);
    words[2] = V(unpacklo_epi16)(high01, high23);
    words[3] = V(unpackhi_epi16)(high01, high23);
}

static void WIDTH(store_values)(const depthwise_tile *t, float *y,
                                const VEC sums[PACKED_REGISTERS]) {
    float values[BYTES];
    for (size_t i = 0; i < PACKED_REGISTERS; i++) {
        const size_t at = i * WIDTH(LANES);
        V(storeu_ps)
        (values + at, WIDTH(value_lanes)(sums[i], V(loadu_ps)(t->constants->multiplier + at),
                                         V(loadu_ps)(t->constants->bias + at)));
    }
    tare__depthwise_order(values, BYTES / 16, t->channels, y);
}

UNROLLED void WIDTH(start_sums)(const depthwise_tile *t, VEC acc[PACKED_REGISTERS]) {
    for (size_t i = 0; i < PACKED_REGISTERS; i++)
        acc[i] = WIDTH(load_lanes)(t->constants->start + i * WIDTH(LANES));
}

UNROLLED VEC WIDTH(quantized_of)(const WIDTH(depthwise_setting) * s,
                                 const WIDTH(pack_constants) * k, const VEC acc[PACKED_REGISTERS]) {
    const depthwise_constants *own = s->t->constants;
    VEC lanes[PACKED_REGISTERS];
    for (size_t i = 0; i < PACKED_REGISTERS; i++)
        lanes[i] = WIDTH(round_lanes)(
            k, WIDTH(scale_lanes)(k, acc[i], V(loadu_ps)(own->multiplier + i * WIDTH(LANES)),
                                  V(loadu_ps)(own->bias + i * WIDTH(LANES))));
    return WIDTH(pack_lanes)(k, lanes, PACKED_REGISTERS);
}

// Values of rule O, and results that may need bounds, which are rare: compiled once for all forms.
static __attribute__((noinline)) void
WIDTH(finish_rare)(const WIDTH(depthwise_setting) * s, size_t at, const VEC acc[PACKED_REGISTERS]) {
    if (s->t->real != NULL)
        WIDTH(store_values)(s->t, s->t->real + at, acc);
    else
        STORE_SOME(s->t->y + at, s->t->channels, WIDTH(quantized_of)(s, &s->pack, acc));
}

UNROLLED void WIDTH(finish)(const WIDTH(depthwise_setting) * s, size_t row, size_t pixel,
                            const VEC acc[PACKED_REGISTERS]) {
    const depthwise_tile *t = s->t;
    const size_t at = row * t->y_row + pixel * t->y_stride;
    if (t->real != NULL || !s->pack.is_small) {
        VEC copy[PACKED_REGISTERS]; // a copy, so that the sums themselves stay in registers
        for (size_t i = 0; i < PACKED_REGISTERS; i++) copy[i] = acc[i];
        WIDTH(finish_rare)(s, at, copy);
        return;
    }
    // With a local copy the compiler need not reload the constants for each register.
    WIDTH(pack_constants) k = s->pack;
    k.is_small = true;
    VEC quantized;
    if (k.is_o) {
        k.is_o = true;
        quantized = WIDTH(quantized_of)(s, &k, acc);
    } else {
        k.is_o = false;
        quantized = WIDTH(quantized_of)(s, &k, acc);
    }
    STORE_SOME(t->y + at, t->channels, quantized);
}

// Adds the products of a word of a column to the sums.
UNROLLED void WIDTH(add_word)(const uint32_t *w, const VEC words[PACKED_REGISTERS],
                              VEC acc[PACKED_REGISTERS]) {
    for (size_t i = 0; i < PACKED_REGISTERS; i++)
        acc[i] = DOT(acc[i], words[i], WIDTH(load_lanes)(w + i * WIDTH(LANES)));
}

UNROLLED void WIDTH(slide_row)(const WIDTH(depthwise_setting) * s, size_t row, size_t pixel,
                               const VEC column[3][PACKED_REGISTERS]) {
    const uint32_t *w = s->t->w + row * 3 * BYTES;
    VEC acc[PACKED_REGISTERS];
    WIDTH(start_sums)(s->t, acc);
    for (size_t j = 0; j < 3; j++) WIDTH(add_word)(w + j * BYTES, column[j], acc);
    WIDTH(finish)(s, row, pixel, acc);
}

// Windows of three columns of a word each: the columns stay in registers. Of a pixel 12 products, 8
// interleaving shuffles (16 without a kept column), and an epilogue of 4 conversions, 8 floats'
// operations, 4 roundings and 5 packs. On Intel shuffles and packs share port 5 with products of
// 512 bits: at least 21 cycles a pixel of 64 channels, of which products are 6. Zen 4 has two pipes
// for shuffles beside those of products. Flips would be 4 more, or 8 without a kept column:
// unsigned quantized values have a form without.
UNROLLED void WIDTH(slide)(const WIDTH(depthwise_setting) * s, size_t rows, size_t stride,
                           bool flips) {
    const depthwise_tile *t = s->t;
    const uint8_t *const *x = t->x;
    VEC column[3][PACKED_REGISTERS];
    for (size_t j = stride; j < 3; j++, x += DEPTHWISE_WORD)
        WIDTH(interleave)(s, x, flips, column[j]);
    for (size_t p = 0; p < t->pixels; p++) {
        for (size_t j = 0; j + stride < 3; j++)
            for (size_t i = 0; i < PACKED_REGISTERS; i++) column[j][i] = column[j + stride][i];
        for (size_t j = 3 - stride; j < 3; j++, x += DEPTHWISE_WORD)
            WIDTH(interleave)(s, x, flips, column[j]);
        WIDTH(slide_row)(s, 0, p, column);
        if (rows > 1) WIDTH(slide_row)(s, 1, p, column);
    }
}

UNROLLED void WIDTH(add_kept)(const WIDTH(depthwise_setting) * s,
                              VEC (*kept)[DEPTHWISE_KEPT_WORDS][PACKED_REGISTERS], size_t pixel,
                              size_t rows, size_t words) {
    const depthwise_tile *t = s->t;
    VEC acc[2][PAIR][PACKED_REGISTERS];
    for (size_t r = 0; r < rows; r++)
        for (size_t p = 0; p < PAIR; p++) WIDTH(start_sums)(t, acc[r][p]);
    for (size_t j = 0; j < t->columns; j++)
        for (size_t k = 0; k < words; k++)
            for (size_t r = 0; r < rows; r++)
                for (size_t p = 0; p < PAIR; p++) WIDTH(add_word)
    (t->w + ((r * t->columns + j) * words + k) * BYTES, kept[p * t->stride + j * t->dilation][k],
     acc[r][p]);
    for (size_t r = 0; r < rows; r++)
        for (size_t p = 0; p < PAIR; p++) WIDTH(finish)(s, r, pixel + p, acc[r][p]);
}

// The last of an odd number of pixels: compiled once for all forms.
static __attribute__((noinline)) void
WIDTH(add_last)(const WIDTH(depthwise_setting) * s,
                VEC (*kept)[DEPTHWISE_KEPT_WORDS][PACKED_REGISTERS], size_t pixel) {
    const depthwise_tile *t = s->t;
    const uint32_t *w = t->w;
    for (size_t r = 0; r < t->rows; r++) {
        VEC acc[PACKED_REGISTERS];
        WIDTH(start_sums)(t, acc);
        for (size_t j = 0; j < t->columns; j++)
            for (size_t k = 0; k < t->words; k++, w += BYTES)
                WIDTH(add_word)(w, kept[j * t->dilation][k], acc);
        WIDTH(finish)(s, r, pixel, acc);
    }
}

// Several pixels at a time, whose columns are interleaved in advance. Whether they are flipped is a
// branch, which unlike a flip by 0 uses no port of the products.
UNROLLED void WIDTH(keep)(const WIDTH(depthwise_setting) * s, size_t rows, size_t words) {
    const depthwise_tile *t = s->t;
    const bool flips = t->flip != 0;
    const size_t span = (t->columns - 1) * t->dilation + 1;
    const size_t step = (DEPTHWISE_KEPT_COLUMNS - span) / t->stride + 1;
    VEC kept[DEPTHWISE_KEPT_COLUMNS][DEPTHWISE_KEPT_WORDS][PACKED_REGISTERS];
    for (size_t first = 0; first < t->pixels; first += step) {
        const size_t count = t->pixels - first < step ? t->pixels - first : step;
        const uint8_t *const *x = t->x + first * t->stride * words * DEPTHWISE_WORD;
        size_t p = 0;
        for (size_t j = 0; j < (count - 1) * t->stride + span; j++)
            for (size_t k = 0; k < words; k++, x += DEPTHWISE_WORD)
                WIDTH(interleave)(s, x, flips, kept[j][k]);
        for (; p + PAIR <= count; p += PAIR)
            WIDTH(add_kept)(s, kept + p * t->stride, first + p, rows, words);
        if (p < count) WIDTH(add_last)(s, kept + p * t->stride, first + p);
    }
}

// Windows of any size, and windows that share no columns: two output rows share the words that they
// read.
UNROLLED void WIDTH(add_each)(const WIDTH(depthwise_setting) * s, size_t rows) {
    const depthwise_tile *t = s->t;
    const bool flips = t->flip != 0;
    const size_t row_words = t->columns * t->words * BYTES;
    for (size_t p = 0; p < t->pixels; p++) {
        const uint32_t *w = t->w;
        VEC acc[2][PACKED_REGISTERS], words[PACKED_REGISTERS];
        for (size_t r = 0; r < rows; r++) WIDTH(start_sums)(t, acc[r]);
        for (size_t j = 0; j < t->columns; j++) {
            const size_t column = p * t->stride + j * t->dilation;
            const uint8_t *const *x = t->x + column * t->words * DEPTHWISE_WORD;
            for (size_t k = 0; k < t->words; k++, x += DEPTHWISE_WORD, w += BYTES) {
                WIDTH(interleave)(s, x, flips, words);
                for (size_t r = 0; r < rows; r++) WIDTH(add_word)(w + r * row_words, words, acc[r]);
            }
        }
        for (size_t r = 0; r < rows; r++) WIDTH(finish)(s, r, p, acc[r]);
    }
}

static void WIDTH(run_depthwise)(const depthwise_tile *t) {
    pack_numbers numbers;
    set_pack_numbers(&numbers, t->requant, t->is_small, t->is_signed);
    // Each epilogue has few sums here, so testing whether the shift is needed would take longer.
    numbers.is_shifted |= !numbers.is_o;
    numbers.is_whole = false;
    const WIDTH(pack_constants) pack = WIDTH(pack_constants_of)(&numbers);
    const WIDTH(depthwise_setting) s = {.t = t, .pack = pack, .flip = V(set1_epi8)((char)t->flip)};
    const bool slides = t->columns == 3 && t->words == 1 && t->dilation == 1;
    const size_t span = (t->columns - 1) * t->dilation + 1;
    const bool is_kept = tare__depthwise_keeps_columns(t->words, span, t->stride);
    const bool is_pair = t->rows == 2;
    const bool flips = t->flip != 0;
    if (slides && t->stride == 1 && is_pair && flips)
        WIDTH(slide)(&s, 2, 1, true);
    else if (slides && t->stride == 1 && is_pair)
        WIDTH(slide)(&s, 2, 1, false);
    else if (slides && t->stride == 2 && !is_pair && flips)
        WIDTH(slide)(&s, 1, 2, true);
    else if (slides && t->stride == 2 && !is_pair)
        WIDTH(slide)(&s, 1, 2, false);
    else if (!is_kept && is_pair)
        WIDTH(add_each)(&s, 2);
    else if (!is_kept)
        WIDTH(add_each)(&s, 1);
    else if (t->words == 1 && is_pair)
        WIDTH(keep)(&s, 2, 1);
    else if (t->words == 1)
        WIDTH(keep)(&s, 1, 1);
    else if (is_pair)
        WIDTH(keep)(&s, 2, 2);
    else
        WIDTH(keep)(&s, 1, 2);
}
