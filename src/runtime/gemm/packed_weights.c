// SPDX-License-Identifier: Apache-2.0
// Packs the weights of a tensor once for all layers that read it, or takes them from a mapped file.
#include "runtime/gemm/packed_weights.h"

#include <string.h>

#include "core/memory/alloc.h"

enum { ALIGNMENT = 64 };

bool tare__packed_size_of(size_t blocks, size_t block_words, size_t channels, packed_size *out) {
    size_t words, sum_bytes;
    out->channels = channels;
    return tare__mul_size(blocks, block_words, &words) &&
           tare__mul_size(words, sizeof(uint32_t), &out->word_bytes) &&
           tare__mul_size(channels, sizeof(int32_t), &sum_bytes) &&
           tare__add_size(out->word_bytes, sum_bytes, &out->bytes) &&
           tare__add_size(out->bytes, ALIGNMENT - 1, &out->bytes) &&
           (out->bytes = out->bytes / ALIGNMENT * ALIGNMENT) > 0;
}

static void destroy(derived_item *item) {
    packed_weights *w = (packed_weights *)(void *)item;
    tare__derived_memory_release(w->memory);
    tare__free_aligned(w->own);
    tare__free(w);
}

static packed_weights *create(void) {
    packed_weights *w = tare__alloc_zeroed(1, sizeof *w);
    if (w != NULL) w->base.destroy = destroy;
    return w;
}

static void set_addresses(packed_weights *w, const packed_size *size, const void *bytes) {
    w->words = bytes;
    w->sums = (const int32_t *)(const void *)((const unsigned char *)bytes + size->word_bytes);
}

static tare_status fill(packed_weights *w, const packed_size *size, void *bytes,
                        weights_packer pack, void *user, tare_error *err) {
    if (bytes == NULL) return tare__out_of_memory(err);
    set_addresses(w, size, bytes);
    return pack(user, bytes, (int32_t *)(void *)((unsigned char *)bytes + size->word_bytes), err);
}

// --- shared ones ---

typedef struct request {
    const tare_tensor *weight;
    const packed_size *size;
    weights_packer pack;
    void *user;
} request;

// The size of the offered bytes is checked. Their values need not be: kernels do not use them as
// indices.
static bool take_offer(packed_weights *w, const packed_size *size, derived_offer offer) {
    if (offer.data == NULL || (uintptr_t)offer.data % ALIGNMENT != 0 || size->bytes != offer.size)
        return false;
    set_addresses(w, size, offer.data);
    w->is_mapped = true;
    return true;
}

static tare_status pack_shared(packed_weights *w, const request *r, tare_error *err) {
    void *bytes = tare__derived_alloc(r->weight->store, r->size->bytes, &w->memory);
    TARE_TRY(fill(w, r->size, bytes, r->pack, r->user, err));
    tare__tensor_forget(r->weight);
    return TARE_OK;
}

static tare_status make(void *user, derived_offer offer, derived_item **out, tare_error *err) {
    const request *r = user;
    packed_weights *w = create();
    if (w == NULL) return tare__out_of_memory(err);
    const tare_status status = take_offer(w, r->size, offer) ? TARE_OK : pack_shared(w, r, err);
    if (status == TARE_OK)
        *out = &w->base;
    else
        destroy(&w->base);
    return status;
}

tare_status tare__packed_weights_get(const tare_tensor *weight, const derived_key *key,
                                     const packed_size *size, weights_packer pack, void *user,
                                     packed_weights **out, tare_error *err) {
    request r = {weight, size, pack, user};
    derived_item *item = NULL;
    TARE_TRY(tare__derive(weight->store, key, make, &r, &item, err));
    *out = (packed_weights *)(void *)item;
    return TARE_OK;
}

// --- others ---

tare_status tare__packed_weights_make(const packed_size *size, weights_packer pack, void *user,
                                      packed_weights **out, tare_error *err) {
    packed_weights *w = create();
    if (w == NULL) return tare__out_of_memory(err);
    w->own = tare__alloc_aligned(size->bytes, ALIGNMENT);
    const tare_status status = fill(w, size, w->own, pack, user, err);
    if (status == TARE_OK)
        *out = w;
    else
        destroy(&w->base);
    return status;
}

tare_status tare__packed_weights_bytes(const packed_weights *w, const packed_size *size,
                                       tare_tensor **out, tare_error *err) {
    if (size->bytes > INT64_MAX) return tare__out_of_memory(err);
    const int64_t shape[] = {(int64_t)size->bytes};
    TARE_TRY(tare_tensor_create(TARE_UINT8, 1, shape, out, err));
    memcpy((*out)->data, w->words, size->word_bytes);
    memcpy((unsigned char *)(*out)->data + size->word_bytes, w->sums,
           size->channels * sizeof *w->sums);
    return TARE_OK;
}

void tare__packed_weights_release(packed_weights *w) {
    if (w == NULL) return;
    if (w->base.of != NULL)
        tare__derived_release(&w->base);
    else
        destroy(&w->base);
}
