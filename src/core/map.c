// SPDX-License-Identifier: Apache-2.0
// String map: entries in order of insertion, found through a table of open addresses.
#include "core/map.h"

#include <string.h>

#include "core/alloc.h"
#include "core/hash.h"

// The slot that holds key, or the free one where it belongs. The table is never full.
static size_t find_slot(const map *m, const char *key) {
    size_t at = tare__hash_name(key, strlen(key)) & (m->slot_count - 1);
    while (m->slots[at] && strcmp(m->entries[m->slots[at] - 1].key, key) != 0)
        at = (at + 1) & (m->slot_count - 1);
    return at;
}

static const map_entry *find(const map *m, const char *key) {
    if (m->count == 0) return NULL;
    const size_t index = m->slots[find_slot(m, key)];
    return index ? &m->entries[index - 1] : NULL;
}

static void fill_slots(map *m) {
    memset(m->slots, 0, m->slot_count * sizeof *m->slots);
    for (size_t i = 0; i < m->count; i++) m->slots[find_slot(m, m->entries[i].key)] = i + 1;
}

// Keeps the table at most half full, so that probes stay short.
static bool make_room(map *m) {
    if (!tare__grow((void **)&m->entries, &m->capacity, m->count, sizeof *m->entries)) return false;
    if ((m->count + 1) * 2 <= m->slot_count) return true;
    const size_t wanted = m->slot_count ? m->slot_count * 2 : 16;
    size_t *slots = tare__alloc_zeroed(wanted, sizeof *slots);
    if (!slots) return false;
    tare__free(m->slots);
    m->slots = slots;
    m->slot_count = wanted;
    fill_slots(m);
    return true;
}

bool tare__map_set(map *m, const char *key, void *value) {
    const map_entry *old = find(m, key);
    if (old) {
        m->entries[old - m->entries].value = value;
        return true;
    }
    if (!make_room(m)) return false;
    char *copy = tare__strdup(key);
    if (!copy) return false;
    m->entries[m->count] = (map_entry){copy, value};
    m->slots[find_slot(m, copy)] = ++m->count;
    return true;
}

void *tare__map_get(const map *m, const char *key) {
    const map_entry *entry = find(m, key);
    return entry ? entry->value : NULL;
}

bool tare__map_has(const map *m, const char *key) {
    return find(m, key) != NULL;
}

void tare__map_remove(map *m, const char *key) {
    const map_entry *entry = find(m, key);
    if (!entry) return;
    const size_t index = (size_t)(entry - m->entries);
    tare__free(entry->key);
    memmove(&m->entries[index], &m->entries[index + 1],
            (m->count - index - 1) * sizeof *m->entries);
    m->count--;
    fill_slots(m); // every later index moved, and open addressing has no cheap removal anyway
}

void tare__map_release(map *m) {
    for (size_t i = 0; i < m->count; i++) tare__free(m->entries[i].key);
    tare__free(m->entries);
    tare__free(m->slots);
    *m = (map){0};
}
