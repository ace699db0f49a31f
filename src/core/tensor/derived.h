// SPDX-License-Identifier: Apache-2.0
// Data that is derived from the bytes of a storage and shared by all its users (weights in a
// kernel's order): created by the first user, released with the last one. Thread-safe.
#ifndef CORE_TENSOR_DERIVED_H
#define CORE_TENSOR_DERIVED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tensor/tensor.h"

enum { DERIVED_NUMBERS = 8 };

/// Which bytes, and what was made of them.
typedef struct derived_key {
    const void *data;                  // within the storage
    uint64_t numbers[DERIVED_NUMBERS]; // the form, as its maker counts
} derived_key;

typedef struct derived_memory derived_memory;

/// The head of a shared thing; the rest is its maker's. Immutable once made.
typedef struct derived_thing {
    struct derived_thing *next;
    storage *of; // reference owned: the bytes outlive what was made of them
    derived_key key;
    int refcount;
    void (*destroy)(struct derived_thing *thing); // frees it
} derived_thing;

/// Bytes of the storage itself that a file offers as what the maker would make. They may hold
/// anything: the maker looks whether it can take them.
typedef struct derived_offer {
    const void *data; // NULL: there is none
    size_t size;
} derived_offer;

/// Makes the thing, with `destroy` set and all else of the head zero. It may not ask for another
/// thing of this storage.
typedef tare_status (*derived_make)(void *user, derived_offer offer, derived_thing **out,
                                    tare_error *err);

/// The thing of this key, with a reference for the caller, made now if nobody has it.
tare_status tare__derive(storage *of, const derived_key *key, derived_make make, void *user,
                         derived_thing **out, tare_error *err);
void tare__derived_release(derived_thing *thing); // NULL is fine
/// Memory for a thing in the making, 64-byte aligned: things of a large storage lie together in
/// large pages. The thing gives *owner back when it is destroyed. NULL when memory is gone.
void *tare__derived_alloc(storage *of, size_t bytes, derived_memory **owner);
void tare__derived_memory_release(derived_memory *owner); // NULL is fine
/// Offers bytes of the storage to whoever will make the thing of this key; the latest offer counts.
tare_status tare__derive_offer(storage *of, const derived_key *key, derived_offer offer,
                               tare_error *err);

/// The index-th of the offers for `data`, in any order; false past the last.
bool tare__derived_offer_at(storage *of, const void *data, size_t index, derived_key *key,
                            derived_offer *out);

/// Where storages keep theirs.
typedef struct derived_table derived_table;
void tare__derived_table_destroy(derived_table *t); // NULL is fine; nothing in it is in use
/// The storage's own, made when first asked for; NULL when memory is gone.
derived_table *tare__storage_derived(storage *s, derived_table *(*create)(size_t storage_size));

#endif
