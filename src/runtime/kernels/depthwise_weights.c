// SPDX-License-Identifier: Apache-2.0
// Packing for the depthwise kernels.
#include "runtime/kernels/depthwise_weights.h"

#include <string.h>

#include "core/alloc.h"
#include "runtime/kernels/scratch.h"
#include "runtime/kernels/weight_sum.h"

enum {
    LAYOUT_VERSION = 1 << 8, // apart from those of products
    ALIGNMENT = 64,
    MOST_TAPS = 1 << 12,
};

// --- forms ---

static size_t column_taps(const conv_windows *w) {
    return w->pieces * w->planes * w->rows;
}

bool tare__depthwise_fits(const weight_taps *t, const conv_windows *w) {
    return t->groups == t->ins && t->groups > 1 && t->outs == t->groups &&
           w->columns <= MOST_TAPS && w->planes <= MOST_TAPS && w->rows <= MOST_TAPS &&
           column_taps(w) <= MOST_TAPS && column_taps(w) * w->columns <= MOST_TAPS;
}

// Two rows of output share words where their windows are a row apart and need no more words.
static size_t rows_together(const conv_windows *w) {
    const size_t words = tare__ceil_div(w->rows, DEPTHWISE_WORD);
    const bool is_shared = w->stride[H] == 1 && w->step[H] == 1 && w->pieces * w->planes == 1 &&
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
                            .columns = w->columns,
                            .taps = column_taps(w),
                            .words = tare__ceil_div(column_taps(w), DEPTHWISE_WORD),
                            .rows = rows_together(w)};
}

size_t tare__depthwise_block_words(const depthwise_form *f) {
    return f->rows * f->columns * f->words * f->block;
}

size_t tare__depthwise_block_channels(const depthwise_form *f, size_t block) {
    return tare__part_of(f->channels, block * f->block, f->block);
}

size_t tare__depthwise_block_quads(const depthwise_form *f, size_t block) {
    return tare__depthwise_quads(f->kernel, tare__depthwise_block_channels(f, block));
}

// --- packing ---

// Weights lie as [C][taps][columns]. In the words of output row r they stand r rows lower.
static void pack_channel(const depthwise_form *f, const int8_t *w, size_t channel,
                         uint32_t *words) {
    const size_t block = channel / f->block;
    const size_t quads = tare__depthwise_block_quads(f, block);
    const size_t place = tare__depthwise_place(quads, channel % f->block);
    uint32_t *to = words + block * tare__depthwise_block_words(f) + place;
    for (size_t r = 0; r < f->rows; r++)
        for (size_t j = 0; j < f->columns; j++)
            for (size_t i = 0; i < f->taps; i++) {
                const size_t word = (r * f->columns + j) * f->words + (r + i) / DEPTHWISE_WORD;
                to[word * quads * DEPTHWISE_QUAD] |= (uint32_t)(uint8_t)w[i * f->columns + j]
                                                     << (r + i) % DEPTHWISE_WORD * 8;
            }
}

static bool count_bytes(const depthwise_form *f, size_t *word_bytes, size_t *bytes) {
    return tare__mul_size(f->blocks, tare__depthwise_block_words(f) * sizeof(uint32_t),
                          word_bytes) &&
           tare__add_size(*word_bytes, f->channels * sizeof(int32_t) + ALIGNMENT - 1, bytes) &&
           (*bytes = *bytes / ALIGNMENT * ALIGNMENT) > 0;
}

typedef struct owned_weights {
    depthwise_weights shared;
    derived_memory *memory; // of shared ones; NULL: `own` is theirs
    void *own;
} owned_weights;

static void destroy_weights(derived_thing *thing) {
    owned_weights *w = (owned_weights *)(void *)thing;
    tare__derived_memory_release(w->memory);
    tare__free_aligned(w->own);
    tare__free(w);
}

// Words and sums, at `bytes`.
static void pack_codes(owned_weights *w, const depthwise_form *f, const int8_t *codes,
                       unsigned char *bytes, size_t word_bytes) {
    uint32_t *words = (uint32_t *)(void *)bytes;
    int32_t *sums = (int32_t *)(void *)(bytes + word_bytes);
    const size_t taps = f->taps * f->columns;
    memset(bytes, 0, word_bytes);
    for (size_t c = 0; c < f->channels; c++) {
        pack_channel(f, codes + c * taps, c, words);
        sums[c] = tare__weight_sum(codes + c * taps, taps);
    }
    w->shared.words = words;
    w->shared.sums = sums;
}

// --- what is shared ---

typedef struct weights_request {
    const tare_tensor *weight;
    const depthwise_form *f;
} weights_request;

// Bytes of the right size may hold any weights, and kernels read nothing else.
static bool take_offer(depthwise_weights *w, const depthwise_form *f, derived_offer offer) {
    size_t word_bytes, bytes;
    if (offer.data == NULL || (uintptr_t)offer.data % ALIGNMENT != 0 ||
        !count_bytes(f, &word_bytes, &bytes) || bytes != offer.size)
        return false;
    w->words = offer.data;
    w->sums = (const int32_t *)(const void *)((const unsigned char *)offer.data + word_bytes);
    w->is_mapped = true;
    return true;
}

static tare_status pack_shared(owned_weights *w, const weights_request *r, tare_error *err) {
    size_t word_bytes, bytes;
    if (!count_bytes(r->f, &word_bytes, &bytes)) return tare__out_of_memory(err);
    unsigned char *data = tare__derived_alloc(r->weight->store, bytes, &w->memory);
    if (data == NULL) return tare__out_of_memory(err);
    pack_codes(w, r->f, r->weight->data, data, word_bytes);
    tare__tensor_forget(r->weight);
    return TARE_OK;
}

static owned_weights *create_weights(void) {
    owned_weights *w = tare__alloc_zeroed(1, sizeof *w);
    if (w != NULL) w->shared.base.destroy = destroy_weights;
    return w;
}

static tare_status make_weights(void *user, derived_offer offer, derived_thing **out,
                                tare_error *err) {
    const weights_request *r = user;
    owned_weights *w = create_weights();
    if (w == NULL) return tare__out_of_memory(err);
    const tare_status status =
        take_offer(&w->shared, r->f, offer) ? TARE_OK : pack_shared(w, r, err);
    if (status == TARE_OK)
        *out = &w->shared.base;
    else
        destroy_weights(&w->shared.base);
    return status;
}

derived_key tare__depthwise_key(const tare_tensor *weight, const depthwise_form *f) {
    return (derived_key){
        .data = weight->data,
        .numbers = {LAYOUT_VERSION, f->channels, f->block, f->columns, f->taps, f->rows}};
}

// --- those of a part ---

static tare_status gather(const tare_tensor *weight, const depthwise_form *f,
                          const weight_taps *taps, owned_weights *w, tare_error *err) {
    size_t word_bytes, bytes;
    if (!count_bytes(f, &word_bytes, &bytes)) return tare__out_of_memory(err);
    int8_t *codes = tare__alloc_zeroed(taps->outs, tare__weight_taps_count(taps));
    w->own = tare__alloc_aligned(bytes, ALIGNMENT);
    if (codes != NULL && w->own != NULL) {
        tare__weight_taps_gather(taps, weight, codes);
        pack_codes(w, f, codes, w->own, word_bytes);
    }
    const bool is_done = codes != NULL && w->own != NULL;
    tare__free(codes);
    return is_done ? TARE_OK : tare__out_of_memory(err);
}

static tare_status get_part(const tare_tensor *weight, const depthwise_form *f,
                            const weight_taps *taps, depthwise_weights **out, tare_error *err) {
    owned_weights *w = create_weights();
    if (w == NULL) return tare__out_of_memory(err);
    const tare_status status = gather(weight, f, taps, w, err);
    if (status == TARE_OK)
        *out = &w->shared;
    else
        destroy_weights(&w->shared.base);
    return status;
}

tare_status tare__depthwise_weights_get(const tare_tensor *weight, const depthwise_form *f,
                                        const weight_taps *taps, depthwise_weights **out,
                                        tare_error *err) {
    if (!taps->are_plain) return get_part(weight, f, taps, out, err);
    const derived_key key = tare__depthwise_key(weight, f);
    weights_request request = {weight, f};
    derived_thing *thing = NULL;
    TARE_TRY(tare__derive(weight->store, &key, make_weights, &request, &thing, err));
    *out = (depthwise_weights *)(void *)thing;
    return TARE_OK;
}

tare_status tare__depthwise_weights_bytes(const depthwise_weights *w, const depthwise_form *f,
                                          tare_tensor **out, tare_error *err) {
    size_t word_bytes, bytes;
    if (!count_bytes(f, &word_bytes, &bytes) || bytes > INT64_MAX) return tare__out_of_memory(err);
    const int64_t shape[] = {(int64_t)bytes};
    TARE_TRY(tare_tensor_create(TARE_UINT8, 1, shape, out, err));
    memcpy((*out)->data, w->words, word_bytes);
    memcpy((unsigned char *)(*out)->data + word_bytes, w->sums, f->channels * sizeof *w->sums);
    return TARE_OK;
}

void tare__depthwise_weights_release(depthwise_weights *w) {
    if (w == NULL) return;
    if (w->base.of != NULL)
        tare__derived_release(&w->base);
    else
        w->base.destroy(&w->base);
}
