// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Products in plain C: chunks of the depth are widened to 16 bits row by row, a form in which
// compilers find vector dot products.
#include <math.h>
#include <string.h>

#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/qu8_scalar.h"

// Words of depth that are widened at a time, and their quantized values.
enum { CHUNK_WORDS = 64, CHUNK_QUANTIZED = 4 * CHUNK_WORDS, ROWS = 4, TILE_ROWS = 12 };

typedef struct chunk {
    size_t first, words; // of the depth
    size_t tap_size;     // padded to whole vectors
    int16_t x[TILE_ROWS][CHUNK_QUANTIZED];
} chunk;

// The quantized values of a row; missing ones in a tap's last word are 0.
static void widen_row(const product_tile *t, size_t row, const chunk *c, int16_t *out) {
    const size_t words = (t->tap_size + 3) / 4;
    size_t at = c->first, done = 0;
    while (done < c->words) {
        const size_t tap = at / words, word = at % words;
        const size_t left = c->words - done < words - word ? c->words - done : words - word;
        const size_t given = t->tap_size - 4 * word < 4 * left ? t->tap_size - 4 * word : 4 * left;
        const uint8_t *x = tare__product_values_at(t, t->x + row, tap) + 4 * word;
        const uint8_t flip = t->flip;
        for (size_t k = 0; k < given; k++) out[4 * done + k] = (int16_t)(x[k] ^ flip);
        for (size_t k = given; k < 4 * left; k++) out[4 * done + k] = 0;
        done += left;
        at += left;
    }
    for (size_t k = 4 * c->words; k < c->tap_size; k++) out[k] = 0;
}

// The weights of a channel.
static void widen_weights(const product_tile *t, size_t lane, const chunk *c, int16_t *out) {
    const size_t words = (t->tap_size + 3) / 4;
    const size_t lanes = tare__product_vectors(t->channels) * PRODUCT_LANES;
    const uint32_t *w = t->w + c->first * lanes + lane;
    size_t tap = c->first / words, left = words - c->first % words; // words left in the tap
    for (size_t i = 1; i <= tap; i++) w += tare__product_gap(t, i);
    for (size_t d = 0; d < c->words; d++, w += lanes, left--) {
        if (left == 0) {
            w += tare__product_gap(t, ++tap);
            left = words;
        }
        for (size_t b = 0; b < 4; b++)
            out[4 * d + b] = (int16_t)((int32_t)((*w >> 8 * b & 0xFF) ^ 0x80) - 128);
    }
    for (size_t k = 4 * c->words; k < c->tap_size; k++) out[k] = 0;
}

// sums[i * stride] += the product of row i and w, modulo 2^32; that of a chunk is below 2^31.
static void add_dots(const int16_t (*x)[CHUNK_QUANTIZED], const int16_t *w, size_t tap_size,
                     uint32_t *sums, size_t stride) {
    const int16_t *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (size_t k = 0; k < tap_size / 8 * 8; k++) {
        s0 += x0[k] * w[k];
        s1 += x1[k] * w[k];
        s2 += x2[k] * w[k];
        s3 += x3[k] * w[k];
    }
    sums[0] += (uint32_t)s0;
    sums[stride] += (uint32_t)s1;
    sums[2 * stride] += (uint32_t)s2;
    sums[3 * stride] += (uint32_t)s3;
}

// Adds the addend's values before rounding.
static void add_values(const product_tile *t, const uint32_t *sums, size_t row, size_t c,
                       size_t count, uint8_t *quantized) {
    const tile_epilogue *e = &t->epilogue;
    const product_addend *a = t->addend;
    const requant *r = e->requant;
    const float factor = tare__addend_factor(r, a->scale);
    float own[PRODUCT_LANES];
    if (r->rule == REQUANT_O)
        real_sums(sums, e->multiplier + c, e->bias + c, count, own);
    else
        scale_sums(sums, e->multiplier + c, e->bias + c, count, own);
    for (size_t i = 0; i < count; i++) {
        const uint8_t byte = a->quantized[row * a->stride + c + i];
        const float other = (float)((a->is_signed ? (int8_t)byte : byte) - a->zero_point);
        quantized[i] = (uint8_t)tare__requant_sum_finish(r, own[i], other, factor);
    }
}

static void finish(const product_tile *t, size_t row, size_t c, uint32_t sums[PRODUCT_LANES]) {
    const tile_epilogue *e = &t->epilogue;
    const product_addend *a = t->addend;
    const size_t left = t->channels - c, at = row * t->y_stride + c;
    const size_t count = left < PRODUCT_LANES ? left : PRODUCT_LANES;
    uint8_t quantized[PRODUCT_LANES];
    for (size_t i = 0; i < count; i++) sums[i] += (uint32_t)e->start[c + i];
    for (size_t i = 0; t->real != NULL && t->fuses && i < count; i++)
        t->real[at + i] =
            fmaf((float)tare__wrap_int32((int64_t)sums[i]), e->multiplier[c + i], e->bias[c + i]);
    if (t->real != NULL && t->fuses) return;
    if (t->real != NULL) {
        real_sums(sums, e->multiplier + c, e->bias + c, count, t->real + at);
        return;
    }
    if (a != NULL && a->kind == ADDEND_OF_VALUES)
        add_values(t, sums, row, c, count, quantized);
    else
        requantize_sums(e->requant, sums, e->multiplier + c, e->bias + c, count, quantized);
    if (a != NULL && a->kind == ADDEND_OF_QUANTIZED)
        qu8_add__scalar(&a->add, a->is_signed, quantized, a->quantized + row * a->stride + c, count,
                        quantized);
    memcpy(t->y + at, quantized, count);
}

void qu8_product__scalar(const product_tile *t) {
    const size_t lanes = tare__product_vectors(t->channels) * PRODUCT_LANES;
    const size_t depth = t->taps * ((t->tap_size + 3) / 4);
    uint32_t sums[PRODUCT_VECTORS][TILE_ROWS][PRODUCT_LANES] = {0};
    chunk c;
    memset(c.x, 0, sizeof c.x); // missing rows of a tile are zeros
    for (c.first = 0; c.first < depth; c.first += CHUNK_WORDS) {
        c.words = depth - c.first < CHUNK_WORDS ? depth - c.first : CHUNK_WORDS;
        c.tap_size = (c.words + 1) / 2 * 8;
        for (size_t row = 0; row < t->rows; row++) widen_row(t, row, &c, c.x[row]);
        for (size_t lane = 0; lane < t->channels; lane++) {
            int16_t w[CHUNK_QUANTIZED];
            widen_weights(t, lane, &c, w);
            for (size_t row = 0; row < t->rows; row += ROWS)
                add_dots((const int16_t(*)[CHUNK_QUANTIZED])c.x + row, w, c.tap_size,
                         &sums[lane / PRODUCT_LANES][row][lane % PRODUCT_LANES], PRODUCT_LANES);
        }
    }
    for (size_t v = 0; v < lanes / PRODUCT_LANES; v++)
        for (size_t row = 0; row < t->rows; row++) finish(t, row, v * PRODUCT_LANES, sums[v][row]);
}
