// SPDX-License-Identifier: Apache-2.0
// build: -O3 -fno-tree-slp-vectorize -mprefer-vector-width=512
// Products with AMX: up to 32 pixels by 32 channels, or 16 by 64, whose sums are four tiles. Packed
// weights are what tdpbusd takes: a word of 16 channels is a row of its tile. Pixels are loaded
// where they are, if they are at equal distances: a tile may also have rows between them, whose
// sums nobody reads. Other pixels are copied to lie below each other. The epilogue is that of
// AVX-512, from sums in memory.
//
// Numbers that were just written are read one by one, hence the flag above: a load of several that
// were stored one by one waits until all stores before have reached the cache, those of tiles that
// are not multiplied yet among them. Tried and slower: the epilogue of some pixels between the
// products of the next ones, tiles loaded a step ahead, and weights fetched for the next block.
#include "runtime/kernels/qu8_product/avx512_epilogue.h"
#include "runtime/kernels/scratch.h"
#include "runtime/kernels/x86/tiles.h"

enum {
    CHUNK_ROWS = 2 * TILE_ROWS, // of two tiles
    TILE_WORDS = TILE_ROWS * TILE_LANES,
    WORD = 4, // quantized values
};

// Rows of a tile: some pixels of the product.
typedef struct row_tile {
    const uint8_t *at;       // of the tile's first row, without the offset of a tap
    size_t distance;         // from each row to the next; 0: pixels are copied
    const uint8_t *const *x; // of the first pixel
    size_t first, count;     // pixels
    uint32_t places;         // bit i: row i is the next one of them
} row_tile;

// Pixels whose sums are computed together.
typedef struct chunk {
    row_tile tiles[2];
    size_t tile_count, rows; // rows: pixels
} chunk;

// What is multiplied in a step.
typedef struct depth_step {
    _Alignas(64) uint8_t copied[CHUNK_ROWS][TILE_LINE];
    uint32_t last[PRODUCT_VECTORS][TILE_WORDS]; // weights of few words, above rows of zeros
    const uint8_t *x[2];
    size_t x_stride[2];
    const uint32_t *w;             // of the first vector
    size_t w_stride, vector_words; // bytes to the next word's; words to the next one's
} depth_step;

typedef struct workplace {
    depth_step steps[2]; // one is filled while the other is multiplied
    _Alignas(64) int32_t sums[CHUNK_ROWS][PRODUCT_BLOCK];
    _Alignas(64) uint32_t last[PRODUCT_VECTORS][TILE_WORDS]; // of the only tap
} workplace;

typedef struct amx_product {
    const product_tile *t;
    const block_epilogue *e;
    workplace *own;
    size_t vectors, lanes; // of a word of weights
    size_t tile_rows;
    size_t tap_size, step_size; // quantized values, in whole words
    size_t tail;                // of a tap: what is left of whole steps
    size_t behind;              // bytes that the last step of a tap reads behind it
} amx_product;

// --- rows ---

static inline uint32_t first_places(size_t count) {
    return (1U << count) - 1;
}

// From each of TILE_ROWS pixels to the next; 0 if they differ.
static size_t distance_of(const uint8_t *const *x) {
    const ptrdiff_t distance = x[1] - x[0];
    const __m512i all = _mm512_set1_epi64(distance);
    const __m512i first = _mm512_sub_epi64(_mm512_loadu_si512(x + 1), _mm512_loadu_si512(x)),
                  last = _mm512_sub_epi64(_mm512_loadu_si512(x + 8), _mm512_loadu_si512(x + 7));
    const __mmask8 differ =
        _mm512_cmpneq_epi64_mask(first, all) | _mm512_cmpneq_epi64_mask(last, all);
    return differ == 0 && distance > 0 ? (size_t)distance : 0;
}

// Pixels from `first` on whose distances are multiples of that of the first two, as far as they fit
// a tile: count, places and distance; 0 if there are none.
static void find_places(const amx_product *p, row_tile *r) {
    const size_t left = p->t->rows - r->first;
    const ptrdiff_t distance = left > 1 ? r->x[1] - r->x[0] : 0;
    size_t place = 0;
    if (distance <= 0) return;
    r->count = 1;
    r->places = 1;
    r->distance = (size_t)distance;
    for (; r->count < left; r->count++) {
        const ptrdiff_t step = r->x[r->count] - r->x[r->count - 1];
        if (step != distance && (step <= 0 || step % distance != 0)) break;
        place += step == distance ? 1 : (size_t)(step / distance);
        if (place >= p->tile_rows) break;
        r->places |= 1U << place;
    }
}

static size_t last_place(const row_tile *r) {
    return 31 - (size_t)__builtin_clz(r->places);
}

// The rows of a tile lie between the first and the last pixel, all of which are in one image, or in
// images of which one follows the other: a tile that would go on behind the last begins earlier.
static bool reach_last(const amx_product *p, row_tile *r) {
    const size_t left = p->t->rows - r->first, missing = p->tile_rows - 1 - last_place(r);
    const uint8_t *const last = r->x[left - 1];
    if (missing == 0) return true;
    if (last > r->at && (size_t)(last - r->at) >= (p->tile_rows - 1) * r->distance) return true;
    if (r->at < p->t->x[0] || (size_t)(r->at - p->t->x[0]) < missing * r->distance) return false;
    r->at -= missing * r->distance;
    r->places <<= missing;
    return true;
}

// What a tile reads behind the taps of its last row meets weights of 0, but must lie before the end
// of the last pixel.
static bool may_read_behind(const amx_product *p, const row_tile *r) {
    const uint8_t *const last = p->t->x[p->t->rows - 1];
    const size_t end = (p->tile_rows - 1) * r->distance + p->behind;
    return p->behind == 0 || (last >= r->at && (size_t)(last - r->at) >= end);
}

// Where less than half of a tile would be pixels, copies take less time.
static bool is_dense(const amx_product *p, const row_tile *r) {
    return 2 * r->count >= tare__least(p->tile_rows, p->t->rows - r->first);
}

static void place_rows(const amx_product *p, row_tile *r, size_t first) {
    const product_tile *t = p->t;
    const size_t left = t->rows - first;
    r->at = t->x[first];
    r->distance = 0;
    r->x = t->x + first;
    r->first = first;
    if (t->offsets != NULL && left >= TILE_ROWS) r->distance = distance_of(r->x);
    if (r->distance != 0) {
        r->count = TILE_ROWS;
        r->places = first_places(TILE_ROWS);
        return;
    }
    if (t->offsets != NULL) find_places(p, r);
    if (r->distance != 0 && is_dense(p, r) && reach_last(p, r)) return;
    r->distance = 0;
    r->count = tare__least(left, p->tile_rows);
    r->places = first_places(r->count);
}

static void begin_chunk(const amx_product *p, size_t first, chunk *c) {
    c->tile_count = c->rows = 0;
    while (c->tile_count < 2 && first < p->t->rows) {
        row_tile *r = &c->tiles[c->tile_count++];
        place_rows(p, r, first);
        first += r->count;
        c->rows += r->count;
    }
}

// --- epilogue ---

static void finish_chunk(const amx_product *p, const chunk *c) {
    for (size_t i = 0; i < c->tile_count; i++) {
        uint32_t places = c->tiles[i].places;
        for (size_t first = c->tiles[i].first; places != 0;) {
            const size_t place = (size_t)__builtin_ctz(places);
            const size_t count = (size_t)__builtin_ctz(~(places >> place));
            const kept_sums kept = {.at = p->own->sums[i * TILE_ROWS + place],
                                    .stride = PRODUCT_BLOCK,
                                    .first = first,
                                    .rows = count,
                                    .starts = true};
            qu8_product_kept__avx512vnni(p->t, p->e, &kept);
            places &= ~(first_places(count) << place);
            first += count;
        }
    }
}

// --- steps of the depth ---

// Where the next step begins, for a chunk and some vectors of channels.
typedef struct depth_walk {
    const amx_product *p;
    const chunk *c;
    size_t vectors;
    size_t tap, at; // quantized values of that tap lie before it
    const uint32_t *w;
} depth_walk;

static inline bool is_at_end(const depth_walk *d) {
    return d->tap == d->p->t->taps;
}

// `count` quantized values of each pixel, to its row.
static void copy_pixels(const depth_walk *d, const row_tile *r, size_t count, uint8_t *to) {
    const product_tile *t = d->p->t;
    const __mmask64 mask = ~UINT64_C(0) >> (TILE_LINE - tare__least(count, t->tap_size - d->at));
    const __mmask64 whole = ~UINT64_C(0) >> (TILE_LINE - count);
    uint32_t places = r->places;
    for (size_t i = 0; i < r->count; i++, places &= places - 1) {
        const uint8_t *x = tare__product_values_at(t, r->x + i, d->tap) + d->at;
        _mm512_mask_storeu_epi8(to + (size_t)__builtin_ctz(places) * TILE_LINE, whole,
                                _mm512_maskz_loadu_epi8(mask, x));
    }
}

static void copy_weights(const amx_product *p, const uint32_t *w, size_t vectors, size_t words,
                         uint32_t to[][TILE_WORDS]) {
    for (size_t v = 0; v < vectors; v++) {
        memset(to[v], 0, sizeof to[v]);
        for (size_t k = 0; k < words; k++)
            memcpy(to[v] + k * TILE_LANES, w + k * p->lanes + v * TILE_LANES, TILE_LINE);
    }
}

static void fill_step(depth_walk *d, depth_step *s) {
    const amx_product *p = d->p;
    const size_t count = tare__least(p->step_size, p->tap_size - d->at);
    const size_t offset = (p->t->offsets != NULL ? p->t->offsets[d->tap] : 0) + d->at;
    if (d->at == 0) d->w += tare__product_gap(p->t, d->tap);
    for (size_t i = 0; i < d->c->tile_count; i++) {
        const row_tile *r = &d->c->tiles[i];
        uint8_t *copied = s->copied[i * TILE_ROWS];
        const bool is_inside = d->at + count < p->tap_size || may_read_behind(p, r);
        if (r->distance != 0 && count == p->step_size && is_inside) {
            s->x[i] = r->at + offset;
            s->x_stride[i] = r->distance;
            continue;
        }
        copy_pixels(d, r, count, copied);
        s->x[i] = copied;
        s->x_stride[i] = TILE_LINE;
    }
    if (count < p->step_size) {
        copy_weights(p, d->w, d->vectors, count / WORD, s->last);
        s->w = s->last[0];
        s->w_stride = TILE_LINE;
        s->vector_words = TILE_WORDS;
    } else {
        s->w = d->w;
        s->w_stride = p->lanes * sizeof *d->w;
        s->vector_words = TILE_LANES;
    }
    d->w += count / WORD * p->lanes;
    d->at += count;
    if (d->at < p->tap_size) return;
    d->at = 0;
    d->tap++;
}

// --- products ---

static inline const uint32_t *weights_of(const depth_step *s, size_t vector) {
    return s->w + vector * s->vector_words;
}

// Products take 16 cycles each, and sums wait 52 for the one before: four tiles of sums, 64 cycles.
// Meanwhile 4 tiles are loaded, 64 loads of 2 a cycle.
#define MULTIPLY_TWO_BY_TWO(multiply, x0, stride0, x1, stride1, w0, w1, w_stride)                  \
    do {                                                                                           \
        LOAD_TILE(4, x0, stride0);                                                                 \
        LOAD_TILE(6, w0, w_stride);                                                                \
        multiply(0, 4, 6);                                                                         \
        LOAD_TILE(5, x1, stride1);                                                                 \
        multiply(2, 5, 6);                                                                         \
        LOAD_TILE(7, w1, w_stride);                                                                \
        multiply(1, 4, 7);                                                                         \
        multiply(3, 5, 7);                                                                         \
    } while (0)

#define MULTIPLY_TWO_BY_ONE(multiply, s)                                                           \
    do {                                                                                           \
        LOAD_TILE(4, (s)->x[0], (s)->x_stride[0]);                                                 \
        LOAD_TILE(6, (s)->w, (s)->w_stride);                                                       \
        multiply(0, 4, 6);                                                                         \
        LOAD_TILE(5, (s)->x[1], (s)->x_stride[1]);                                                 \
        multiply(2, 5, 6);                                                                         \
    } while (0)

// Rows of one tile: 5 tiles are loaded in the same time. A few rows take as long as 16, but no
// longer than their weights take from the second-level cache.
#define MULTIPLY_ONE(multiply, s, vectors)                                                         \
    do {                                                                                           \
        LOAD_TILE(4, (s)->x[0], (s)->x_stride[0]);                                                 \
        LOAD_TILE(6, weights_of(s, 0), (s)->w_stride);                                             \
        multiply(0, 4, 6);                                                                         \
        if ((vectors) == 1) break;                                                                 \
        LOAD_TILE(7, weights_of(s, 1), (s)->w_stride);                                             \
        multiply(1, 4, 7);                                                                         \
        if ((vectors) == 2) break;                                                                 \
        LOAD_TILE(6, weights_of(s, 2), (s)->w_stride);                                             \
        multiply(2, 4, 6);                                                                         \
        if ((vectors) == 3) break;                                                                 \
        LOAD_TILE(7, weights_of(s, 3), (s)->w_stride);                                             \
        multiply(3, 4, 7);                                                                         \
    } while (0)

#define MULTIPLY_STEP(multiply, s, tiles, vectors)                                                 \
    do {                                                                                           \
        if ((tiles) == 1)                                                                          \
            MULTIPLY_ONE(multiply, s, vectors);                                                    \
        else if ((vectors) == 1)                                                                   \
            MULTIPLY_TWO_BY_ONE(multiply, s);                                                      \
        else                                                                                       \
            MULTIPLY_TWO_BY_TWO(multiply, (s)->x[0], (s)->x_stride[0], (s)->x[1],                  \
                                (s)->x_stride[1], weights_of(s, 0), weights_of(s, 1),              \
                                (s)->w_stride);                                                    \
    } while (0)

// Any pixels and weights.
static void add_steps(depth_walk *d) {
    depth_step *steps = d->p->own->steps;
    const bool is_signed = d->p->t->flip != 0;
    const size_t tiles = d->c->tile_count, vectors = d->vectors;
    if (is_at_end(d)) return;
    fill_step(d, &steps[0]);
    for (size_t i = 0;; i ^= 1) {
        const bool is_last = is_at_end(d);
        // Early enough that stores have reached the cache when a tile loads what they wrote.
        if (!is_last) fill_step(d, &steps[i ^ 1]);
        if (is_signed)
            MULTIPLY_STEP(MULTIPLY_SIGNED_TILES, &steps[i], tiles, vectors);
        else
            MULTIPLY_STEP(MULTIPLY_TILES, &steps[i], tiles, vectors);
        if (is_last) return;
    }
}

// Pixels that are loaded where they are, with two vectors of channels.
static bool is_direct(const amx_product *p, const chunk *c, size_t vectors) {
    if (c->tile_count < 2 || vectors != 2 || c->tiles[0].distance == 0 || c->tiles[1].distance == 0)
        return false;
    return (p->tail == 0 || p->t->taps == 1) && may_read_behind(p, &c->tiles[0]) &&
           may_read_behind(p, &c->tiles[1]);
}

#define ADD_DIRECTLY(multiply)                                                                     \
    for (size_t tap = 0; tap < t->taps; tap++) {                                                   \
        const size_t offset = t->offsets[tap];                                                     \
        w += tare__product_gap(t, tap);                                                            \
        for (size_t at = offset; at < offset + whole; at += step, w += step_words)                 \
            MULTIPLY_TWO_BY_TWO(multiply, x0 + at, stride0, x1 + at, stride1, w, w + TILE_LANES,   \
                                w_stride);                                                         \
        if (p->tail > 0)                                                                           \
            MULTIPLY_TWO_BY_TWO(multiply, x0 + offset + whole, stride0, x1 + offset + whole,       \
                                stride1, p->own->last[vector], p->own->last[vector + 1],           \
                                TILE_LINE);                                                        \
    }

static void add_directly(const amx_product *p, const chunk *c, size_t vector) {
    const product_tile *t = p->t;
    const uint8_t *x0 = c->tiles[0].at, *x1 = c->tiles[1].at;
    const size_t stride0 = c->tiles[0].distance, stride1 = c->tiles[1].distance;
    const size_t step = p->step_size, step_words = step / WORD * p->lanes;
    const size_t whole = p->tap_size - p->tail, w_stride = p->lanes * sizeof *t->w;
    const uint32_t *w = t->w + vector * PRODUCT_LANES;
    if (t->flip != 0)
        ADD_DIRECTLY(MULTIPLY_SIGNED_TILES)
    else
        ADD_DIRECTLY(MULTIPLY_TILES)
}

static void keep_sums(size_t tiles, size_t vectors, int32_t *to) {
    enum { ROW_BYTES = PRODUCT_BLOCK * sizeof(int32_t) };
    STORE_TILE(0, to, ROW_BYTES);
    if (vectors > 1) STORE_TILE(1, to + TILE_LANES, ROW_BYTES);
    if (tiles == 2) {
        int32_t *second = to + (size_t)TILE_ROWS * PRODUCT_BLOCK;
        STORE_TILE(2, second, ROW_BYTES);
        if (vectors > 1) STORE_TILE(3, second + TILE_LANES, ROW_BYTES);
    } else {
        if (vectors > 2) STORE_TILE(2, to + (size_t)2 * TILE_LANES, ROW_BYTES);
        if (vectors > 3) STORE_TILE(3, to + (size_t)3 * TILE_LANES, ROW_BYTES);
    }
}

static void multiply_chunk(const amx_product *p, const chunk *c) {
    const size_t most = c->tile_count == 2 ? 2 : PRODUCT_VECTORS;
    for (size_t v = 0; v < p->vectors; v += most) {
        const size_t vectors = tare__least(p->vectors - v, most);
        ZERO_TILE(0);
        ZERO_TILE(1);
        ZERO_TILE(2);
        ZERO_TILE(3);
        if (is_direct(p, c, vectors)) {
            add_directly(p, c, v);
        } else {
            depth_walk d = {.p = p, .c = c, .vectors = vectors, .w = p->t->w + v * PRODUCT_LANES};
            add_steps(&d);
        }
        keep_sums(c->tile_count, vectors, p->own->sums[0] + v * PRODUCT_LANES);
    }
    finish_chunk(p, c);
}

// --- the product ---

static void sum_weights(const product_tile *t, size_t c, int32_t sums[PRODUCT_LANES]) {
    const size_t words = tare__ceil_div(t->tap_size, WORD);
    const size_t lanes = tare__product_vectors(t->channels) * PRODUCT_LANES;
    const __m512i ones = _mm512_set1_epi8(1);
    const uint32_t *w = t->w + c;
    __m512i acc = _mm512_setzero_si512();
    for (size_t tap = 0; tap < t->taps; tap++) {
        w += tare__product_gap(t, tap);
        for (size_t k = 0; k < words; k++, w += lanes)
            acc = _mm512_dpbusd_epi32(acc, ones, _mm512_loadu_si512(w));
    }
    _mm512_storeu_si512(sums, acc);
}

// The words of a step: all of a tap in as few steps as possible, if they can be equal ones.
static size_t step_words(size_t words) {
    const size_t least = tare__ceil_div(words, TILE_ROWS);
    for (size_t steps = least; steps <= least + least / 2; steps++)
        if (words % steps == 0) return words / steps;
    return TILE_ROWS;
}

static void begin_tiles(const amx_product *p) {
    tile_shapes shapes = whole_tiles;
    for (size_t i = 0; i < 6; i++) shapes.rows[i] = (uint8_t)p->tile_rows;
    for (size_t i = 4; i < 6; i++) shapes.line_bytes[i] = (uint16_t)p->step_size;
    for (size_t i = 6; i < 8; i++) shapes.rows[i] = (uint8_t)(p->step_size / WORD);
    CONFIGURE_TILES(&shapes);
}

void qu8_product__amxint8(const product_tile *given) {
    if (tare__product_is_for_vectors(given->rows, given->taps, given->tap_size, given->flip)) {
        qu8_product__avx512vnni(given);
        return;
    }
    block_epilogue e;
    workplace own;
    product_tile t = *given;
    int32_t start[PRODUCT_BLOCK] = {0};
    amx_product p = {.t = &t,
                     .e = &e,
                     .own = &own,
                     .vectors = tare__product_vectors(t.channels),
                     .tile_rows = tare__least(t.rows, TILE_ROWS),
                     .tap_size = tare__round_up(t.tap_size, WORD)};
    p.lanes = p.vectors * PRODUCT_LANES;
    p.step_size = step_words(p.tap_size / WORD) * WORD;
    p.tail = p.tap_size % p.step_size;
    p.behind = p.tap_size - t.tap_size + (p.tail > 0 ? p.step_size - p.tail : 0);
    if (t.flip != 0) {
        tare__product_move_starts(&t, sum_weights, start);
        t.epilogue.start = start;
    }
    qu8_product_epilogue__avx512vnni(&e, &t);
    // Tiles have rows that a product may lack, and rows have places behind the last word of a step:
    // sums of the former are not read, and the latter meet weights of 0.
    memset(own.steps[0].copied, 0, sizeof own.steps[0].copied);
    memset(own.steps[1].copied, 0, sizeof own.steps[1].copied);
    if (p.tail > 0 && t.taps == 1)
        copy_weights(&p, t.w + (p.tap_size - p.tail) / WORD * p.lanes, p.vectors, p.tail / WORD,
                     own.last);
    begin_tiles(&p);
    for (size_t row = 0; row < t.rows;) {
        chunk c;
        begin_chunk(&p, row, &c);
        multiply_chunk(&p, &c);
        row += c.rows;
    }
    TILES_END();
}
