// SPDX-License-Identifier: Apache-2.0
// Data that is derived from the bytes of a storage and shared by all its users (weights in a
// kernel's order): created by the first user, released with the last one. Thread-safe.
#ifndef CORE_TENSOR_DERIVED_H
#define CORE_TENSOR_DERIVED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tensor/tensor.h"

enum { DERIVED_NUMBERS = 8 };

/// The bytes that an item is derived from, and its form.
typedef struct derived_key {
    const void *data;                  // within the storage
    uint64_t numbers[DERIVED_NUMBERS]; // the form, defined by the creator
} derived_key;

typedef struct derived_memory derived_memory;

/// The head of a shared item; the rest belongs to the creator. Immutable.
typedef struct derived_item {
    struct derived_item *next;
    storage *of; // reference owned: the bytes outlive the item
    derived_key key;
    int refcount;
    void (*destroy)(struct derived_item *item); // frees the item
} derived_item;

/// Bytes in the storage itself that a file offers as the item's contents. They are untrusted: the
/// creator checks whether it can use them.
typedef struct derived_offer {
    const void *data; // NULL: there is none
    size_t size;
} derived_offer;

/// Creates the item, with `destroy` set and the rest of the head zero. Must not request another
/// item of this storage.
typedef tare_status (*derived_make)(void *user, derived_offer offer, derived_item **out,
                                    tare_error *err);

/// The item with this key, with a reference for the caller; created if it does not exist.
tare_status tare__derive(storage *of, const derived_key *key, derived_make make, void *user,
                         derived_item **out, tare_error *err);
void tare__derived_release(derived_item *thing); // NULL is allowed
/// Memory for an item being created, 64-byte aligned: items of a large storage share large pages.
/// The item releases *owner when it is destroyed. NULL if memory ran out.
void *tare__derived_alloc(storage *of, size_t bytes, derived_memory **owner);
void tare__derived_memory_release(derived_memory *owner); // NULL is allowed
/// Offers bytes of the storage for the item with this key; a later offer replaces an earlier one.
tare_status tare__derive_offer(storage *of, const derived_key *key, derived_offer offer,
                               tare_error *err);

/// Offer `index` for `data`, in any order; false past the last one.
bool tare__derived_offer_at(storage *of, const void *data, size_t index, derived_key *key,
                            derived_offer *out);

/// The items of a storage.
typedef struct derived_table derived_table;
void tare__derived_table_destroy(derived_table *t); // NULL is allowed; no item may be in use
/// The storage's table, created on first use; NULL if memory ran out.
derived_table *tare__storage_derived(storage *s, derived_table *(*create)(size_t storage_size));

#endif
