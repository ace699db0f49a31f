// SPDX-License-Identifier: Apache-2.0
// A small hash table per storage, behind one lock that is held while an item is created, so that
// two threads that need the same item create it once.
#include "core/tensor/derived.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/memory/alloc.h"

typedef struct offered {
    struct offered *next;
    derived_key key;
    derived_offer offer;
} offered;

typedef struct bucket {
    derived_item *items;
    offered *offers;
} bucket;

// A chunk of memory for several items.
struct derived_memory {
    _Atomic int refcount; // of items, and of the table while it allocates from it
    size_t used, size;
    unsigned char *data;
};

struct derived_table {
    pthread_mutex_t lock;
    derived_memory *memory; // the chunk in use; NULL: none yet
    size_t thing_count;
    size_t bucket_count;
    bucket buckets[];
};

// A storage may be that of one tensor, or a file with thousands of tensors.
enum { BYTES_PER_BUCKET = 1 << 16, MOST_BUCKETS = 1 << 12 };

static derived_table *create_table(size_t storage_size) {
    const size_t wanted = 1 + storage_size / BYTES_PER_BUCKET;
    const size_t count = wanted < MOST_BUCKETS ? wanted : MOST_BUCKETS;
    derived_table *t = tare__alloc_zeroed(1, sizeof *t + count * sizeof *t->buckets);
    if (t == NULL) return NULL;
    if (pthread_mutex_init(&t->lock, NULL) != 0) {
        tare__free(t);
        return NULL;
    }
    t->bucket_count = count;
    return t;
}

// --- memory ---

// Storages of at least this size allocate items in chunks; smaller ones would waste most of a
// chunk.
enum { LEAST_CHUNKED = 8 << 20, CHUNK = 8 << 20, ALIGNMENT = 64 };

void tare__derived_memory_release(derived_memory *owner) {
    if (owner == NULL || atomic_fetch_sub(&owner->refcount, 1) != 1) return;
    tare__free_aligned(owner->data);
    tare__free(owner);
}

static derived_memory *create_memory(size_t size) {
    derived_memory *m = tare__alloc_zeroed(1, sizeof *m);
    if (m == NULL) return NULL;
    atomic_init(&m->refcount, 1);
    m->size = size;
    m->data = tare__alloc_large(size);
    if (m->data != NULL) return m;
    tare__free(m);
    return NULL;
}

static bool has_room(const derived_memory *m, size_t bytes) {
    return m != NULL && m->size - m->used >= bytes;
}

// Called while an item is created: the table is locked.
void *tare__derived_alloc(storage *of, size_t bytes, derived_memory **owner) {
    derived_table *t = tare__storage_derived(of, NULL);
    const bool is_chunked = tare__storage_size(of) >= LEAST_CHUNKED;
    if (bytes > SIZE_MAX - ALIGNMENT) return NULL;
    const size_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    derived_memory *m = t->memory;
    if (!is_chunked || !has_room(m, whole)) {
        m = create_memory(is_chunked ? tare__large_size(whole > CHUNK ? whole : CHUNK) : whole);
        if (m == NULL) return NULL;
        tare__derived_memory_release(t->memory);
        t->memory = m;
    }
    unsigned char *taken = m->data + m->used;
    m->used += whole;
    atomic_fetch_add(&m->refcount, 1);
    *owner = m;
    return taken;
}

// --- items ---

void tare__derived_table_destroy(derived_table *t) {
    if (t == NULL) return;
    for (size_t i = 0; i < t->bucket_count; i++)
        for (offered *at = t->buckets[i].offers, *next; at != NULL; at = next) {
            next = at->next;
            tare__free(at);
        }
    tare__derived_memory_release(t->memory); // of an item whose creation failed
    pthread_mutex_destroy(&t->lock);
    tare__free(t);
}

static bucket *bucket_of(derived_table *t, const derived_key *key) {
    const uintptr_t address = (uintptr_t)key->data / 64;
    return &t->buckets[(address ^ address >> 12) % t->bucket_count];
}

static bool is_key(const derived_key *a, const derived_key *b) {
    return a->data == b->data && memcmp(a->numbers, b->numbers, sizeof a->numbers) == 0;
}

static derived_offer find_offer(const bucket *b, const derived_key *key) {
    const offered *at = b->offers;
    while (at != NULL && !is_key(&at->key, key)) at = at->next;
    return at != NULL ? at->offer : (derived_offer){NULL, 0};
}

static tare_status make_thing(storage *of, const derived_key *key, derived_offer offer,
                              derived_make make, void *user, derived_item **out, tare_error *err) {
    TARE_TRY(make(user, offer, out, err));
    (*out)->of = tare__storage_retain(of);
    (*out)->key = *key;
    return TARE_OK;
}

static tare_status find_or_make(derived_table *t, storage *of, const derived_key *key,
                                derived_make make, void *user, derived_item **out,
                                tare_error *err) {
    bucket *b = bucket_of(t, key);
    derived_item *found = b->items;
    while (found != NULL && !is_key(&found->key, key)) found = found->next;
    if (found == NULL) {
        TARE_TRY(make_thing(of, key, find_offer(b, key), make, user, &found, err));
        found->next = b->items;
        b->items = found;
        t->thing_count++;
    }
    found->refcount++;
    *out = found;
    return TARE_OK;
}

tare_status tare__derive(storage *of, const derived_key *key, derived_make make, void *user,
                         derived_item **out, tare_error *err) {
    derived_table *t = tare__storage_derived(of, create_table);
    if (t == NULL) return tare__out_of_memory(err);
    pthread_mutex_lock(&t->lock);
    const tare_status status = find_or_make(t, of, key, make, user, out, err);
    pthread_mutex_unlock(&t->lock);
    return status;
}

// Removes the item from the table if this was its last user.
static bool let_go(derived_table *t, derived_item *item) {
    if (--item->refcount > 0) return false;
    derived_item **at = &bucket_of(t, &item->key)->items;
    while (*at != item) at = &(*at)->next;
    *at = item->next;
    if (--t->thing_count > 0) return true;
    tare__derived_memory_release(t->memory);
    t->memory = NULL;
    return true;
}

void tare__derived_release(derived_item *item) {
    if (item == NULL) return;
    storage *of = item->of;
    derived_table *t = tare__storage_derived(of, NULL);
    pthread_mutex_lock(&t->lock);
    const bool is_last = let_go(t, item);
    pthread_mutex_unlock(&t->lock);
    if (!is_last) return;
    item->destroy(item);
    tare__storage_release(of);
}

tare_status tare__derive_offer(storage *of, const derived_key *key, derived_offer offer,
                               tare_error *err) {
    derived_table *t = tare__storage_derived(of, create_table);
    offered *made = tare__alloc_zeroed(1, sizeof *made);
    if (t == NULL || made == NULL) {
        tare__free(made);
        return tare__out_of_memory(err);
    }
    *made = (offered){.key = *key, .offer = offer};
    pthread_mutex_lock(&t->lock);
    bucket *b = bucket_of(t, key);
    made->next = b->offers;
    b->offers = made;
    pthread_mutex_unlock(&t->lock);
    return TARE_OK;
}

bool tare__derived_offer_at(storage *of, const void *data, size_t index, derived_key *key,
                            derived_offer *out) {
    derived_table *t = tare__storage_derived(of, NULL);
    if (t == NULL) return false;
    pthread_mutex_lock(&t->lock);
    const offered *at = bucket_of(t, &(derived_key){.data = data})->offers;
    while (at != NULL && (at->key.data != data || index-- > 0)) at = at->next;
    if (at != NULL) {
        *key = at->key;
        *out = at->offer;
    }
    pthread_mutex_unlock(&t->lock);
    return at != NULL;
}
