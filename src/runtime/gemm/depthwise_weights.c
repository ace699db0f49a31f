// SPDX-License-Identifier: Apache-2.0
// Packing for the depthwise kernels.
#include "runtime/gemm/depthwise_weights.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "runtime/gemm/weight_sum.h"
#include "runtime/kernels/scratch.h"

enum {
    LAYOUT_VERSION = 1 << 8, // distinguishes the keys from those of products
    MOST_TAPS = 1 << 12,
};

// --- forms ---

static size_t column_taps(const conv_windows *w) {
    return w->addends * w->planes * w->rows;
}

bool tare__depthwise_fits(const weight_taps *t, const conv_windows *w) {
    return t->groups == t->ins && t->groups > 1 && t->outs % t->groups == 0 &&
           w->columns <= MOST_TAPS && w->planes <= MOST_TAPS && w->rows <= MOST_TAPS &&
           column_taps(w) <= MOST_TAPS && column_taps(w) * w->columns <= MOST_TAPS;
}

// Two output rows are computed together if their windows are a row apart and need no more words
// that way.
static size_t rows_together(const conv_windows *w) {
    const size_t words = tare__ceil_div(w->rows, DEPTHWISE_WORD);
    const bool is_shared = w->stride[H] == 1 && w->step[H] == 1 && w->addends * w->planes == 1 &&
                           tare__ceil_div(w->rows + 1, DEPTHWISE_WORD) == words;
    return is_shared ? 2 : 1;
}

depthwise_form tare__depthwise_form_of(const depthwise_kernel *kernel, const conv_windows *w,
                                       size_t channels) {
    const size_t block = kernel->quads * DEPTHWISE_QUAD;
    return (depthwise_form){.kernel = kernel,
                            .channels = channels,
                            .block = block,
                            .blocks = tare__ceil_div(channels, block),
                            .pixels = 1,
                            .columns = w->columns,
                            .taps = column_taps(w),
                            .words = tare__ceil_div(column_taps(w), DEPTHWISE_WORD),
                            .rows = rows_together(w)};
}

depthwise_form tare__depthwise_form_repeat(const depthwise_form *f, size_t pixels) {
    depthwise_form out = *f;
    out.pixels = pixels;
    out.channels = f->channels * pixels;
    out.blocks = tare__ceil_div(out.channels, out.block);
    return out;
}

size_t tare__depthwise_block_words(const depthwise_form *f) {
    return f->rows * f->columns * f->words * f->block;
}

size_t tare__depthwise_block_channels(const depthwise_form *f, size_t block) {
    return tare__remaining(f->channels, block * f->block, f->block);
}

size_t tare__depthwise_block_quads(const depthwise_form *f, size_t block) {
    return tare__depthwise_quads(f->kernel, tare__depthwise_block_channels(f, block));
}

// --- packing ---

// The weights are [C][taps][columns]. In the words of output row r they are shifted by r rows.
static void pack_channel(const depthwise_form *f, const int8_t *w, size_t channel,
                         uint32_t *words) {
    const size_t block = channel / f->block;
    const size_t quads = tare__depthwise_block_quads(f, block);
    const size_t index = tare__depthwise_index(quads, channel % f->block);
    uint32_t *to = words + block * tare__depthwise_block_words(f) + index;
    for (size_t r = 0; r < f->rows; r++)
        for (size_t j = 0; j < f->columns; j++)
            for (size_t i = 0; i < f->taps; i++) {
                const size_t word = (r * f->columns + j) * f->words + (r + i) / DEPTHWISE_WORD;
                to[word * quads * DEPTHWISE_QUAD] |= (uint32_t)(uint8_t)w[i * f->columns + j]
                                                     << (r + i) % DEPTHWISE_WORD * 8;
            }
}

static tare_status size_of(const depthwise_form *f, packed_size *out, tare_error *err) {
    return tare__packed_size_of(f->blocks, tare__depthwise_block_words(f), f->channels, out)
               ? TARE_OK
               : tare__out_of_memory(err);
}

typedef struct weights_request {
    const tare_tensor *weight;
    const depthwise_form *f;
    const weight_taps *taps; // of weights that are not plain
} weights_request;

static void pack_quantized(const depthwise_form *f, const int8_t *quantized, uint32_t *words,
                           int32_t *sums) {
    const size_t taps = f->taps * f->columns, channels = f->channels / f->pixels;
    memset(words, 0, f->blocks * tare__depthwise_block_words(f) * sizeof *words);
    for (size_t c = 0; c < f->channels; c++) {
        const int8_t *own = quantized + c % channels * taps;
        pack_channel(f, own, c, words);
        sums[c] = tare__weight_sum(own, taps);
    }
}

static tare_status pack_plain(void *user, uint32_t *words, int32_t *sums, tare_error *err) {
    const weights_request *r = user;
    (void)err;
    pack_quantized(r->f, r->weight->data, words, sums);
    return TARE_OK;
}

static tare_status pack_subconvolution(void *user, uint32_t *words, int32_t *sums,
                                       tare_error *err) {
    const weights_request *r = user;
    int8_t *quantized = tare__alloc_zeroed(r->taps->outs, tare__weight_taps_count(r->taps));
    if (quantized == NULL) return tare__out_of_memory(err);
    tare__weight_taps_gather(r->taps, r->weight, quantized);
    pack_quantized(r->f, quantized, words, sums);
    tare__free(quantized);
    return TARE_OK;
}

// --- what is shared ---

derived_key tare__depthwise_key(const tare_tensor *weight, const depthwise_form *f) {
    return (derived_key){.data = weight->data,
                         .numbers = {LAYOUT_VERSION, f->channels, f->block, f->columns, f->taps,
                                     f->rows, f->pixels - 1}};
}

// Packing only depends on the kernel's width, which this machine need not support. NULL: no kernel
// has such blocks.
static const depthwise_kernel *kernel_of_block(uint64_t block) {
    static const depthwise_kernel widths[] = {{.quads = 1}, {.quads = 2}, {.quads = 4}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (widths[i].quads * DEPTHWISE_QUAD == block) return &widths[i];
    return NULL;
}

bool tare__depthwise_form_of_key(const derived_key *key, const tare_tensor *weight,
                                 depthwise_form *out) {
    const uint64_t *n = key->numbers;
    const depthwise_kernel *kernel = kernel_of_block(n[2]);
    size_t count = 0;
    const bool is_form = n[0] == LAYOUT_VERSION && kernel != NULL && n[1] <= INT64_MAX &&
                         n[3] >= 1 && n[3] <= MOST_TAPS && n[4] >= 1 && n[4] <= MOST_TAPS &&
                         (n[5] == 1 || n[5] == 2) && n[6] == 0 && n[7] == 0 &&
                         tare__mul_size((size_t)n[1], (size_t)(n[3] * n[4]), &count) &&
                         count == (size_t)weight->count;
    if (!is_form) return false;
    const conv_windows windows = {.addends = 1,
                                  .planes = 1,
                                  .rows = (size_t)n[4],
                                  .columns = (size_t)n[3],
                                  .stride[H] = 1,
                                  .step[H] = 1};
    *out = tare__depthwise_form_of(kernel, &windows, (size_t)n[1]);
    if (n[5] == 1) out->rows = 1;
    return out->rows == n[5];
}

tare_status tare__depthwise_weights_get(const tare_tensor *weight, const depthwise_form *f,
                                        const weight_taps *taps, packed_weights **out,
                                        tare_error *err) {
    const derived_key key = tare__depthwise_key(weight, f);
    weights_request request = {weight, f, taps};
    packed_size size;
    TARE_TRY(size_of(f, &size, err));
    return taps->are_plain
               ? tare__packed_weights_get(weight, &key, &size, pack_plain, &request, out, err)
               : tare__packed_weights_make(&size, pack_subconvolution, &request, out, err);
}

tare_status tare__depthwise_weights_bytes(const packed_weights *w, const depthwise_form *f,
                                          tare_tensor **out, tare_error *err) {
    packed_size size;
    TARE_TRY(size_of(f, &size, err));
    return tare__packed_weights_bytes(w, &size, out, err);
}
