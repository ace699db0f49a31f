// SPDX-License-Identifier: Apache-2.0
// build: -O3 -mprefer-vector-width=512
// Products with AMX: up to 32 pixels by 32 channels, or 16 by 64, whose sums are four tiles. The
// depth, all taps one behind the other, goes by in steps of 64 quantized values. Packed weights are
// what tdpbusd takes: a word of 16 channels is a row of its tile. Pixels at equal distances, whose
// step lies in one tap, are loaded where they are. Others are copied to lie below each other; on
// the way signed ones become unsigned. Copies take as long as the products, because a tile can be
// loaded only when what it loads has been stored in the cache. Where a step has fewer words than a
// tile has rows, its weights are copied, too, above rows of zeros. The epilogue is that of AVX-512,
// from sums in memory.
#include "runtime/kernels/qu8_product/avx512_epilogue.h"
#include "runtime/kernels/scratch.h"
#include "runtime/kernels/x86/tiles.h"

enum { STEP_ROWS = 2 * TILE_ROWS, TILE_WORDS = TILE_ROWS * TILE_LANES };

// Pixels of a step: rows of a tile.
typedef struct step_rows {
    const uint8_t *at;
    size_t stride;
} step_rows;

// What is multiplied in a step.
typedef struct depth_step {
    _Alignas(64) uint8_t copied[STEP_ROWS][TILE_LINE];
    uint32_t last[PRODUCT_VECTORS][TILE_WORDS]; // weights of few words
    step_rows rows[2];
    const uint32_t *w;             // of the first vector
    size_t w_stride, vector_words; // bytes to the next word's; words to the next one's
} depth_step;

// Where the next step begins, for some rows and vectors of channels of a tile.
typedef struct depth_walk {
    const product_tile *t;
    const uint8_t *const *x; // of the first row
    size_t rows, vectors;
    size_t lanes;       // of a word of weights
    size_t tap_size;    // in whole words
    size_t tap, at;     // quantized values of that tap lie before it
    size_t distance[2]; // of the pixels of each tile in that tap; 0: they differ, or are copied
    const uint32_t *w;
} depth_walk;

typedef struct workplace {
    depth_step steps[2]; // one is filled while the other is multiplied
    _Alignas(64) int32_t sums[STEP_ROWS][PRODUCT_BLOCK];
} workplace;

static bool is_at_end(const depth_walk *d) {
    return d->tap == d->t->taps;
}

static inline uint64_t first_bytes(size_t count) {
    return ~UINT64_C(0) >> (TILE_LINE - count);
}

static const uint8_t *const *pixels_of(const depth_walk *d) {
    return d->t->offsets != NULL ? d->x : d->x + d->tap * d->t->rows;
}

static size_t offset_of(const depth_walk *d) {
    return (d->t->offsets != NULL ? d->t->offsets[d->tap] : 0) + d->at;
}

// From each of a tile's pixels to the next; 0 if they differ.
static size_t distance_of(const uint8_t *const *x) {
    const ptrdiff_t distance = x[1] - x[0];
    const __m512i all = _mm512_set1_epi64(distance);
    const __m512i first = _mm512_sub_epi64(_mm512_loadu_si512(x + 1), _mm512_loadu_si512(x)),
                  last = _mm512_sub_epi64(_mm512_loadu_si512(x + 8), _mm512_loadu_si512(x + 7));
    const __mmask8 differ =
        _mm512_cmpneq_epi64_mask(first, all) | _mm512_cmpneq_epi64_mask(last, all);
    return differ == 0 && distance > 0 ? (size_t)distance : 0;
}

// A tile of fewer pixels would be loaded from behind the last one.
static void measure_distances(depth_walk *d) {
    if (d->t->flip != 0) return;
    for (size_t i = 0; (i + 1) * TILE_ROWS <= d->rows; i++)
        d->distance[i] = distance_of(pixels_of(d) + i * TILE_ROWS);
}

static void copy_lines(size_t rows, const uint8_t *const *x, size_t offset, uint8_t flip,
                       uint8_t *to) {
    const __m512i flips = _mm512_set1_epi8((char)flip);
    for (size_t r = 0; r < rows; r++)
        _mm512_store_si512(to + r * TILE_LINE,
                           _mm512_xor_si512(_mm512_loadu_si512(x[r] + offset), flips));
}

// `given` quantized values of each row, and zeros up to `count`. Registers are no wider than what
// is written, which then seldom crosses a line.
static void copy_rows(size_t rows, const uint8_t *const *x, size_t offset, size_t given,
                      size_t count, uint8_t flip, uint8_t *to) {
    const uint64_t reads = first_bytes(given), writes = first_bytes(count);
    const __m512i flips = _mm512_set1_epi8((char)flip);
    for (size_t r = 0; r < rows; r++, to += TILE_LINE) {
        const uint8_t *from = x[r] + offset;
        if (count <= sizeof(__m128i)) {
            const __m128i v = _mm_maskz_loadu_epi8((__mmask16)reads, from);
            _mm_mask_storeu_epi8(to, (__mmask16)writes,
                                 _mm_xor_si128(v, _mm512_castsi512_si128(flips)));
        } else if (count <= sizeof(__m256i)) {
            const __m256i v = _mm256_maskz_loadu_epi8((__mmask32)reads, from);
            _mm256_mask_storeu_epi8(to, (__mmask32)writes,
                                    _mm256_xor_si256(v, _mm512_castsi512_si256(flips)));
        } else {
            const __m512i v = _mm512_maskz_loadu_epi8(reads, from);
            _mm512_mask_storeu_epi8(to, writes, _mm512_xor_si512(v, flips));
        }
    }
}

static void copy_tap(const depth_walk *d, size_t count, uint8_t *to) {
    const product_tile *t = d->t;
    copy_rows(d->rows, pixels_of(d), offset_of(d), tare__least(count, t->tap_size - d->at), count,
              t->flip, to);
}

static void copy_weights(const depth_walk *d, depth_step *s, size_t words) {
    for (size_t v = 0; v < d->vectors; v++) {
        memset(s->last[v], 0, sizeof s->last[v]);
        for (size_t k = 0; k < words; k++)
            memcpy(s->last[v] + k * TILE_LANES, d->w + k * d->lanes + v * TILE_LANES, TILE_LINE);
    }
    s->w = s->last[0];
    s->w_stride = TILE_LINE;
    s->vector_words = TILE_WORDS;
}

static void advance(depth_walk *d, size_t count) {
    d->at += count;
    if (d->at < d->tap_size) return;
    d->at = 0;
    d->tap++;
}

// Of one tap.
static void fill_rows(depth_walk *d, depth_step *s) {
    if (d->t->offsets == NULL) measure_distances(d); // of this tap
    for (size_t i = 0; i * TILE_ROWS < d->rows; i++) {
        const size_t first = i * TILE_ROWS;
        const uint8_t *const *x = pixels_of(d) + first;
        if (d->distance[i] != 0) {
            s->rows[i] = (step_rows){x[0] + offset_of(d), d->distance[i]};
            continue;
        }
        copy_lines(tare__least(d->rows - first, TILE_ROWS), x, offset_of(d), d->t->flip,
                   s->copied[first]);
        s->rows[i] = (step_rows){s->copied[first], TILE_LINE};
    }
    advance(d, TILE_LINE);
}

// Of ends of taps, up to where weights are left out, or to the end. Returns how many quantized
// values of each row.
static size_t join_taps(depth_walk *d, depth_step *s) {
    size_t count = 0;
    do {
        const size_t more = tare__least(d->tap_size - d->at, TILE_LINE - count);
        copy_tap(d, more, s->copied[0] + count);
        count += more;
        advance(d, more);
    } while (d->at == 0 && count < TILE_LINE && !is_at_end(d) &&
             tare__product_gap(d->t, d->tap) == 0);
    for (size_t i = 0; i < 2; i++) s->rows[i] = (step_rows){s->copied[i * TILE_ROWS], TILE_LINE};
    return count;
}

static void fill_step(depth_walk *d, depth_step *s) {
    size_t count = TILE_LINE;
    if (d->at == 0) d->w += tare__product_gap(d->t, d->tap);
    if (d->t->tap_size - d->at >= TILE_LINE)
        fill_rows(d, s);
    else
        count = join_taps(d, s);
    if (count < TILE_LINE) {
        copy_weights(d, s, count / 4);
    } else {
        s->w = d->w;
        s->w_stride = d->lanes * sizeof *d->w;
        s->vector_words = TILE_LANES;
    }
    d->w += count / 4 * d->lanes;
}

// --- products ---

static inline const uint32_t *weights_of(const depth_step *s, size_t vector) {
    return s->w + vector * s->vector_words;
}

// Products take 16 cycles each, and sums wait 52 for the one before: four tiles of sums, 64 cycles.
// Meanwhile 4 tiles are loaded, 64 loads of 2 a cycle, and up to 32 lines copied. Products have a
// unit of their own: the flip takes nothing from them.
static inline void multiply_two(const depth_step *s, size_t vectors) {
    LOAD_TILE(4, s->rows[0].at, s->rows[0].stride);
    LOAD_TILE(6, weights_of(s, 0), s->w_stride);
    MULTIPLY_TILES(0, 4, 6);
    LOAD_TILE(5, s->rows[1].at, s->rows[1].stride);
    MULTIPLY_TILES(2, 5, 6);
    if (vectors == 1) return;
    LOAD_TILE(7, weights_of(s, 1), s->w_stride);
    MULTIPLY_TILES(1, 4, 7);
    MULTIPLY_TILES(3, 5, 7);
}

// Rows of one tile: 5 tiles are loaded and 16 lines copied in the same time. A few rows take as
// long as 16, but no longer than their weights take from the second-level cache.
static inline void multiply_one(const depth_step *s, size_t vectors) {
    LOAD_TILE(4, s->rows[0].at, s->rows[0].stride);
    LOAD_TILE(6, weights_of(s, 0), s->w_stride);
    MULTIPLY_TILES(0, 4, 6);
    if (vectors == 1) return;
    LOAD_TILE(7, weights_of(s, 1), s->w_stride);
    MULTIPLY_TILES(1, 4, 7);
    if (vectors == 2) return;
    LOAD_TILE(6, weights_of(s, 2), s->w_stride);
    MULTIPLY_TILES(2, 4, 6);
    if (vectors == 3) return;
    LOAD_TILE(7, weights_of(s, 3), s->w_stride);
    MULTIPLY_TILES(3, 4, 7);
}

static void add_taps(depth_walk *d, depth_step steps[2]) {
    ZERO_TILE(0);
    ZERO_TILE(1);
    ZERO_TILE(2);
    ZERO_TILE(3);
    if (is_at_end(d)) return;
    if (d->t->offsets != NULL) measure_distances(d); // the same in each tap
    fill_step(d, &steps[0]);
    for (size_t i = 0;; i ^= 1) {
        const bool is_last = is_at_end(d);
        // Early enough that stores have reached the cache when a tile loads what they wrote.
        if (!is_last) fill_step(d, &steps[i ^ 1]);
        if (d->rows > TILE_ROWS)
            multiply_two(&steps[i], d->vectors);
        else
            multiply_one(&steps[i], d->vectors);
        if (is_last) return;
    }
}

static void keep_sums(const depth_walk *d, int32_t *to) {
    enum { ROW_BYTES = PRODUCT_BLOCK * sizeof(int32_t) };
    const bool is_two = d->rows > TILE_ROWS;
    STORE_TILE(0, to, ROW_BYTES);
    if (d->vectors > 1) STORE_TILE(1, to + TILE_LANES, ROW_BYTES);
    if (is_two) to += (size_t)TILE_ROWS * PRODUCT_BLOCK;
    if (is_two) STORE_TILE(2, to, ROW_BYTES);
    if (is_two && d->vectors > 1) STORE_TILE(3, to + TILE_LANES, ROW_BYTES);
    if (!is_two && d->vectors > 2) STORE_TILE(2, to + (size_t)2 * TILE_LANES, ROW_BYTES);
    if (!is_two && d->vectors > 3) STORE_TILE(3, to + (size_t)3 * TILE_LANES, ROW_BYTES);
}

static void run_rows(const product_tile *t, const block_epilogue *e, size_t first, size_t rows,
                     workplace *own) {
    const size_t vectors = tare__product_vectors(t->channels);
    const size_t most = rows > TILE_ROWS ? 2 : PRODUCT_VECTORS;
    for (size_t v = 0; v < vectors; v += most) {
        depth_walk d = {.t = t,
                        .x = t->x + first,
                        .rows = rows,
                        .vectors = tare__least(vectors - v, most),
                        .lanes = vectors * PRODUCT_LANES,
                        .tap_size = tare__round_up(t->tap_size, 4),
                        .w = t->w + v * PRODUCT_LANES};
        add_taps(&d, own->steps);
        keep_sums(&d, own->sums[0] + v * PRODUCT_LANES);
    }
    const kept_sums kept = {
        .at = own->sums[0], .stride = PRODUCT_BLOCK, .first = first, .rows = rows, .starts = true};
    qu8_product_kept__avx512vnni(t, e, &kept);
}

void qu8_product__amxint8(const product_tile *t) {
    // So few rows wait for weights, which the other kernel fetches ahead; of so little depth the
    // copies take longer than its products.
    if ((t->rows <= 2 || t->taps * t->tap_size < TILE_LINE) && t->flip == 0) {
        qu8_product__avx512vnni(t);
        return;
    }
    block_epilogue e;
    workplace own;
    qu8_product_epilogue__avx512vnni(&e, t);
    // Tiles have rows that t may lack, and rows have places behind the last word of a step: sums of
    // the former are not read, and the latter meet weights of 0.
    memset(own.steps[0].copied, 0, sizeof own.steps[0].copied);
    memset(own.steps[1].copied, 0, sizeof own.steps[1].copied);
    TILES_BEGIN();
    for (size_t row = 0; row < t->rows; row += STEP_ROWS)
        run_rows(t, &e, row, tare__least(t->rows - row, STEP_ROWS), &own);
    TILES_END();
}
