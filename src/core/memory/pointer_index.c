// SPDX-License-Identifier: Apache-2.0
// Open addressing over addresses.
#include "core/memory/pointer_index.h"

#include <stdint.h>
#include <string.h>

enum { LEAST_SIZE = 64 };

// Addresses differ in their middle bits, which Fibonacci hashing (Knuth, TAOCP 3, 6.4) spreads.
static size_t slot_of(const pointer_index *index, const void *key) {
    const uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) & (index->size - 1);
    while (index->entries[at].key != NULL && index->entries[at].key != key)
        at = (at + 1) & (index->size - 1);
    return at;
}

static bool grow(pointer_index *index, arena *memory) {
    pointer_index larger = {.size = index->size > 0 ? 2 * index->size : LEAST_SIZE,
                            .count = index->count};
    larger.entries = tare__arena_array(memory, larger.size, sizeof *larger.entries);
    if (larger.entries == NULL) return false;
    memset(larger.entries, 0, larger.size * sizeof *larger.entries);
    for (size_t i = 0; i < index->size; i++)
        if (index->entries[i].key != NULL)
            larger.entries[slot_of(&larger, index->entries[i].key)] = index->entries[i];
    *index = larger;
    return true;
}

bool tare__pointer_index_set(pointer_index *index, arena *memory, const void *key, size_t value) {
    if (2 * (index->count + 1) > index->size && !grow(index, memory)) return false;
    pointer_entry *entry = &index->entries[slot_of(index, key)];
    index->count += entry->key == NULL;
    *entry = (pointer_entry){key, value};
    return true;
}

size_t tare__pointer_index_get(const pointer_index *index, const void *key, size_t missing) {
    if (index->size == 0) return missing;
    const pointer_entry *entry = &index->entries[slot_of(index, key)];
    return entry->key != NULL ? entry->value : missing;
}
