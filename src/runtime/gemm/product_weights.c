// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Packing for the product kernels: each channel is reordered to taps, and 16 channels are
// transposed at a time.
#include "runtime/gemm/product_weights.h"

#include <assert.h>
#include <string.h>

#include "core/hash/hash.h"
#include "core/memory/alloc.h"
#include "runtime/gemm/weight_sum.h"
#include "runtime/kernels/columns.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/scratch.h"

enum { LAYOUT_VERSION = 1, GATHERED_VERSION = 0x101 };

static size_t words_of(size_t tap_size) {
    return tare__ceil_div(tap_size, 4);
}

// How the taps of a layer's windows are stored in the image.
typedef struct tap_layout {
    bool are_columns_beside; // the pixels of a row are contiguous
    bool are_rows_beside;    // windows of one plane and one addend
    size_t stride[SPATIAL];
} tap_layout;

// If it needs no more words.
static bool may_be_rows(const product_form *pixels) {
    product_form rows = *pixels;
    rows.tap = TAP_IS_ROW;
    return pixels->groups == 1 && pixels->width > 1 && pixels->ins % 4 != 0 &&
           tare__product_depth(&rows) <= tare__product_depth(pixels);
}

// True if whole windows as taps pay: they need fewer words, which every channel of an output pixel
// saves, but the columns have to be copied. 16 channels times one word take as long as two copies.
// Each image row is in few rows of windows, so that copies stay few.
static bool may_be_windows(const product_form *rows, const tap_layout *layout) {
    enum { MOST_ROWS = 8, LEAST_SAVING = 16, COPIES = 2 };
    product_form windows = *rows;
    windows.tap = TAP_IS_WINDOW;
    const size_t depth = tare__product_depth(rows), least = tare__product_depth(&windows);
    const size_t copies = tare__columns_copies(rows->ins, rows->height, layout->stride[H]);
    return rows->height > 1 && rows->height <= MOST_ROWS * layout->stride[H] &&
           (depth - least) * LEAST_SAVING >= depth &&
           (depth - least) * tare__product_vectors(rows->outs) * COPIES >
               copies * layout->stride[W];
}

static product_form choose_form(const product_form *pixels, const tap_layout *layout) {
    product_form f = *pixels;
    if (!layout->are_columns_beside || !may_be_rows(&f)) return f;
    f.tap = TAP_IS_ROW;
    if (layout->are_rows_beside && may_be_windows(&f, layout)) f.tap = TAP_IS_WINDOW;
    return f;
}

product_form tare__product_form_of(const quantized_layer *layer) {
    const conv_geometry *g = &layer->conv;
    const tare_tensor *w = layer->weight;
    if (w->ndim == 2)
        return (product_form){1, (size_t)w->shape[0], (size_t)w->shape[1], 1, 1, TAP_IS_PIXEL};
    const product_form pixels = {.groups = (size_t)g->groups,
                                 .outs = (size_t)(g->out_channels / g->groups),
                                 .ins = (size_t)(g->in_channels / g->groups),
                                 .height = (size_t)(g->kernel[D] * g->kernel[H]),
                                 .width = (size_t)g->kernel[W]};
    const tap_layout layout = {
        .are_columns_beside = g->dilation[W] == 1,
        .are_rows_beside = g->dilation[H] == 1 && g->kernel[D] == 1,
        .stride = {(size_t)g->stride[D], (size_t)g->stride[H], (size_t)g->stride[W]}};
    return choose_form(&pixels, &layout);
}

product_form tare__product_form_of_subconvolution(const subconvolution *sub) {
    const weight_taps *t = &sub->taps;
    const conv_windows *w = &sub->windows;
    const product_form pixels = {.groups = t->groups,
                                 .outs = t->outs / t->groups,
                                 .ins = t->ins / t->groups,
                                 .height = t->addends * t->count[D] * t->count[H],
                                 .width = t->count[W]};
    const tap_layout layout = {.are_columns_beside = !t->is_reversed && w->step[W] == 1,
                               .are_rows_beside =
                                   w->step[H] == 1 && t->addends == 1 && t->count[D] == 1,
                               .stride = {w->stride[D], w->stride[H], w->stride[W]}};
    return choose_form(&pixels, &layout);
}

size_t tare__product_taps(const product_form *f) {
    const size_t taps[] = {
        [TAP_IS_PIXEL] = f->height * f->width, [TAP_IS_ROW] = f->height, [TAP_IS_WINDOW] = 1};
    return taps[f->tap];
}

size_t tare__product_tap_size(const product_form *f) {
    return f->ins * f->height * f->width / tare__product_taps(f);
}

size_t tare__product_depth(const product_form *f) {
    return tare__product_taps(f) * words_of(tare__product_tap_size(f));
}

size_t tare__product_block_count(const product_form *f) {
    return tare__ceil_div(f->outs, PRODUCT_BLOCK);
}

size_t tare__product_block_channels(const product_form *f, size_t block) {
    return tare__remaining(f->outs, block * PRODUCT_BLOCK, PRODUCT_BLOCK);
}

// --- packing ---

typedef struct packing {
    const product_form *f;
    const int8_t *weights;
    size_t per_channel, depth; // quantized values of a channel; words of a packed channel
    int8_t *rows;              // [PRODUCT_LANES][depth * 4]
} packing;

// Reorders [quantized values][window] to [window][step], four quantized values at a time.
static void order_pixels(const int8_t *w, size_t window, size_t tap_size, size_t step,
                         int8_t *out) {
    size_t k = 0;
    for (; k + 4 <= tap_size; k += 4)
        for (size_t tap = 0; tap < window; tap++) {
            const int8_t *from = w + k * window + tap;
            int8_t *to = out + tap * step + k;
            const int8_t a = from[0], b = from[window], c = from[2 * window], d = from[3 * window];
            to[0] = a;
            to[1] = b;
            to[2] = c;
            to[3] = d;
        }
    for (; k < tap_size; k++)
        for (size_t tap = 0; tap < window; tap++) out[tap * step + k] = w[k * window + tap];
}

// Reorders a channel [ins][height][width] to taps: [taps][quantized values, rounded up to words].
// The padding stays zero.
static void order_channel(const packing *p, const int8_t *w, int8_t *out) {
    const product_form *f = p->f;
    const size_t tap_size = tare__product_tap_size(f);
    const size_t window = f->height * f->width, step = words_of(tap_size) * 4;
    if (window == 1) {
        memcpy(out, w, tap_size);
    } else if (f->tap == TAP_IS_PIXEL) {
        order_pixels(w, window, tap_size, step, out);
    } else {
        const bool is_row = f->tap == TAP_IS_ROW;
        const size_t row = is_row ? step : f->ins, column = is_row ? f->ins : f->height * f->ins;
        for (size_t i = 0; i < f->ins; i++)
            for (size_t h = 0; h < f->height; h++)
                for (size_t x = 0; x < f->width; x++)
                    out[h * row + x * column + i] = w[i * window + h * f->width + x];
    }
}

// The first quantized value is the lowest byte.
static uint32_t word_at(const int8_t *quantized) {
    const uint8_t *c = (const uint8_t *)quantized;
    return c[0] | (uint32_t)c[1] << 8 | (uint32_t)c[2] << 16 | (uint32_t)c[3] << 24;
}

// Transposes 16 rows of quantized values to words of 16 lanes.
static void transpose_rows(const int8_t *rows, size_t depth, size_t lanes, uint32_t *to) {
    for (size_t d = 0; d < depth; d++)
        for (size_t lane = 0; lane < PRODUCT_LANES; lane++)
            to[d * lanes + lane] = word_at(rows + (lane * depth + d) * 4);
}

// Packs the channels of a block, which begins at channel `first`.
static void pack_block(const packing *p, size_t first, size_t channels, uint32_t *to) {
    const size_t lanes = tare__product_vectors(channels) * PRODUCT_LANES;
    for (size_t at = 0; at < lanes; at += PRODUCT_LANES) {
        for (size_t lane = 0; lane < PRODUCT_LANES; lane++) {
            int8_t *out = p->rows + lane * p->depth * 4;
            if (at + lane < channels)
                order_channel(p, p->weights + (first + at + lane) * p->per_channel, out);
            else
                memset(out, 0, p->depth * 4);
        }
        transpose_rows(p->rows, p->depth, lanes, to + at);
    }
}

static void pack_all(const packing *p, uint32_t *words, size_t group_words) {
    const product_form *f = p->f;
    for (size_t g = 0; g < f->groups; g++)
        for (size_t c = 0; c < f->outs; c += PRODUCT_BLOCK)
            pack_block(p, g * f->outs + c, tare__product_block_channels(f, c / PRODUCT_BLOCK),
                       words + g * group_words + c * p->depth);
}

// --- what is shared ---

size_t tare__product_group_words(const product_form *f) {
    return tare__round_up(f->outs, PRODUCT_LANES) * tare__product_depth(f);
}

static tare_status size_of(const product_form *f, packed_size *out, tare_error *err) {
    size_t words; // before rounding to what kernels read
    const bool fits =
        tare__mul_size(tare__round_up(f->outs, PRODUCT_LANES), tare__product_depth(f), &words) &&
        tare__packed_size_of(f->groups, words, f->groups * f->outs, out);
    return fits ? TARE_OK : tare__out_of_memory(err);
}

typedef struct weights_request {
    const tare_tensor *weight;
    const product_form *f;
    const weight_taps *taps; // NULL: the weights in their own order
} weights_request;

static tare_status pack_quantized(const product_form *f, const int8_t *weights, uint32_t *words,
                                  int32_t *sums, tare_error *err) {
    packing p = {.f = f, .weights = weights, .depth = tare__product_depth(f)};
    p.per_channel = f->ins * f->height * f->width;
    p.rows = tare__alloc_zeroed((size_t)4 * PRODUCT_LANES, p.depth);
    if (p.rows == NULL) return tare__out_of_memory(err);
    pack_all(&p, words, tare__product_group_words(f));
    for (size_t c = 0; c < f->groups * f->outs; c++)
        sums[c] = tare__weight_sum(weights + c * p.per_channel, p.per_channel);
    tare__free(p.rows);
    return TARE_OK;
}

static tare_status pack(void *user, uint32_t *words, int32_t *sums, tare_error *err) {
    const weights_request *r = user;
    if (r->taps == NULL) return pack_quantized(r->f, r->weight->data, words, sums, err);
    int8_t *quantized = tare__alloc_zeroed(r->taps->outs, tare__weight_taps_count(r->taps));
    if (quantized == NULL) return tare__out_of_memory(err);
    tare__weight_taps_gather(r->taps, r->weight, quantized);
    const tare_status status = pack_quantized(r->f, quantized, words, sums, err);
    tare__free(quantized);
    return status;
}

derived_key tare__product_key(const tare_tensor *weight, const product_form *f) {
    return (derived_key){
        .data = weight->data,
        .numbers = {LAYOUT_VERSION, f->groups, f->outs, f->ins, f->height, f->width, f->tap}};
}

bool tare__product_form_of_key(const derived_key *key, const tare_tensor *weight,
                               product_form *out) {
    const uint64_t *n = key->numbers;
    size_t count = 1;
    if (n[0] != LAYOUT_VERSION || n[6] > TAP_IS_WINDOW || n[7] != 0) return false;
    for (size_t i = 1; i <= 5; i++)
        if (n[i] == 0 || n[i] > SIZE_MAX || !tare__mul_size(count, (size_t)n[i], &count))
            return false;
    *out = (product_form){.groups = (size_t)n[1],
                          .outs = (size_t)n[2],
                          .ins = (size_t)n[3],
                          .height = (size_t)n[4],
                          .width = (size_t)n[5],
                          .tap = (product_tap)n[6]};
    return count == (size_t)weight->count;
}

static tare_status get_weights(weights_request *request, const derived_key *key,
                               packed_weights **out, tare_error *err) {
    packed_size size;
    TARE_TRY(size_of(request->f, &size, err));
    return tare__packed_weights_get(request->weight, key, &size, pack, request, out, err);
}

tare_status tare__product_weights_get(const tare_tensor *weight, const product_form *f,
                                      packed_weights **out, tare_error *err) {
    assert((size_t)weight->count == f->groups * f->outs * f->ins * f->height * f->width);
    const derived_key key = tare__product_key(weight, f);
    weights_request request = {.weight = weight, .f = f};
    return get_weights(&request, &key, out, err);
}

// Two tensors may have the same quantized values but different zero points.
static uint64_t hash_zero_points(const qparams *q) {
    uint64_t hash = tare__hash_of_nothing;
    for (int64_t c = 0; c < q->count; c++)
        hash = tare__hash_more(hash, (uint64_t)(int64_t)q->zero_point[c]);
    return hash;
}

// Packs three numbers of at most 2^20 (subconvolution.c) into one.
static uint64_t join(const size_t n[SPATIAL]) {
    return (uint64_t)n[D] << 42 | (uint64_t)n[H] << 21 | (uint64_t)n[W];
}

// Identifies the weight's shape, and which of its elements are taken.
static derived_key gathered_key(const weights_request *r) {
    const weight_taps *t = r->taps;
    const uint64_t flags = (uint64_t)t->is_reversed << 2 | (uint64_t)r->f->tap;
    return (derived_key){.data = r->weight->data,
                         .numbers = {GATHERED_VERSION | flags << 16 | (uint64_t)t->addends << 24,
                                     t->groups, t->outs, t->ins, join(t->kernel), join(t->first),
                                     join(t->step), hash_zero_points(r->weight->q)}};
}

tare_status tare__product_weights_of_subconvolution(const tare_tensor *weight,
                                                    const product_form *f, const weight_taps *taps,
                                                    packed_weights **out, tare_error *err) {
    if (taps->are_plain) return tare__product_weights_get(weight, f, out, err);
    weights_request request = {weight, f, taps};
    const derived_key key = gathered_key(&request);
    return get_weights(&request, &key, out, err);
}

tare_status tare__product_weights_bytes(const packed_weights *w, const product_form *f,
                                        tare_tensor **out, tare_error *err) {
    packed_size size;
    TARE_TRY(size_of(f, &size, err));
    return tare__packed_weights_bytes(w, &size, out, err);
}
