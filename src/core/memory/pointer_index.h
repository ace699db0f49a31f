// SPDX-License-Identifier: Apache-2.0
// An index from addresses to numbers, in an arena: a pass finds its data about an object in
// constant time.
#ifndef CORE_MEMORY_POINTER_INDEX_H
#define CORE_MEMORY_POINTER_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#include "core/memory/arena.h"

typedef struct pointer_entry {
    const void *key; // NULL: free
    size_t value;
} pointer_entry;

typedef struct pointer_index { // zero-initialized is a valid empty index
    pointer_entry *entries;    // open addressing
    size_t count, size;        // size: a power of two
} pointer_index;

/// Sets key (not NULL) to value, replacing an earlier one. False if memory ran out.
bool tare__pointer_index_set(pointer_index *index, arena *memory, const void *key, size_t value);
/// The value of the key; `missing` if there is none.
size_t tare__pointer_index_get(const pointer_index *index, const void *key, size_t missing);

#endif
