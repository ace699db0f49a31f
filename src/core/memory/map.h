// SPDX-License-Identifier: Apache-2.0
// A map from strings to pointers that keeps insertion order. Keys are copied.
#ifndef CORE_MEMORY_MAP_H
#define CORE_MEMORY_MAP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct map_entry {
    char *key;
    void *value;
} map_entry;

typedef struct map {    // zero-initialized is a valid empty map
    map_entry *entries; // in order of insertion
    size_t count, capacity;
    size_t *slots; // open addressing; index + 1 into entries, 0 is free
    size_t slot_count;
} map;

/// Sets key to value; an existing key keeps its position. False if memory ran out.
bool tare__map_set(map *m, const char *key, void *value);
/// NULL if absent (or if NULL is stored: see tare__map_has).
void *tare__map_get(const map *m, const char *key);
bool tare__map_has(const map *m, const char *key);
/// Keeps the order of the other entries; takes time linear in the number of entries behind it.
void tare__map_remove(map *m, const char *key);
/// Removes all entries for which `keeps` returns false.
void tare__map_keep(map *m, bool (*keeps)(void *user, const map_entry *entry), void *user);
void tare__map_release(map *m);

/// Small integers as values.
static inline void *tare__map_int(size_t n) {
    return (void *)n; // NOLINT(performance-no-int-to-ptr): an integer stored as a pointer
}

#endif
