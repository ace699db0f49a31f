// SPDX-License-Identifier: Apache-2.0
// A small hash table per storage, behind one lock that is held while a thing is made: two threads
// that want the same thing shall not both make it.
#include "core/derived.h"

#include <pthread.h>
#include <string.h>

#include "core/alloc.h"

struct derived_table {
    pthread_mutex_t lock;
    size_t bucket_count;
    derived *buckets[];
};

// A storage may be a tensor's own, or a file with thousands of them.
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

void tare__derived_table_destroy(derived_table *t) {
    if (t == NULL) return;
    pthread_mutex_destroy(&t->lock);
    tare__free(t);
}

static derived **bucket_of(derived_table *t, const derived_key *key) {
    const uintptr_t address = (uintptr_t)key->data / 64;
    return &t->buckets[(address ^ address >> 12) % t->bucket_count];
}

static bool is_key(const derived_key *a, const derived_key *b) {
    return a->data == b->data && memcmp(a->numbers, b->numbers, sizeof a->numbers) == 0;
}

static tare_status make_thing(storage *of, const derived_key *key, derived_make make, void *user,
                              derived **out, tare_error *err) {
    TARE_TRY(make(user, out, err));
    (*out)->of = tare__storage_retain(of);
    (*out)->key = *key;
    return TARE_OK;
}

static tare_status find_or_make(derived_table *t, storage *of, const derived_key *key,
                                derived_make make, void *user, derived **out, tare_error *err) {
    derived **first = bucket_of(t, key);
    derived *found = *first;
    while (found != NULL && !is_key(&found->key, key)) found = found->next;
    if (found == NULL) {
        TARE_TRY(make_thing(of, key, make, user, &found, err));
        found->next = *first;
        *first = found;
    }
    found->refcount++;
    *out = found;
    return TARE_OK;
}

tare_status tare__derive(storage *of, const derived_key *key, derived_make make, void *user,
                         derived **out, tare_error *err) {
    derived_table *t = tare__storage_derived(of, create_table);
    if (t == NULL) return tare__out_of_memory(err);
    pthread_mutex_lock(&t->lock);
    const tare_status status = find_or_make(t, of, key, make, user, out, err);
    pthread_mutex_unlock(&t->lock);
    return status;
}

// Takes it out of the table if this was its last user.
static bool let_go(derived_table *t, derived *thing) {
    if (--thing->refcount > 0) return false;
    derived **at = bucket_of(t, &thing->key);
    while (*at != thing) at = &(*at)->next;
    *at = thing->next;
    return true;
}

void tare__derived_release(derived *thing) {
    if (thing == NULL) return;
    storage *of = thing->of;
    derived_table *t = tare__storage_derived(of, NULL);
    pthread_mutex_lock(&t->lock);
    const bool is_last = let_go(t, thing);
    pthread_mutex_unlock(&t->lock);
    if (!is_last) return;
    thing->destroy(thing);
    tare__storage_release(of);
}
