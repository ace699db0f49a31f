// SPDX-License-Identifier: Apache-2.0
// A string map: entries in order of insertion, found through a hash table with open addressing.
#include "core/memory/map.h"

#include <string.h>

#include "core/hash/hash.h"
#include "core/memory/alloc.h"

static size_t first_slot(const map *m, const char *key) {
    return tare__hash_name(key, strlen(key), m->slots) & (m->slot_count - 1);
}

// The slot with the key, or the free slot for it. The table is never full.
static size_t find_slot(const map *m, const char *key) {
    size_t at = first_slot(m, key);
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

// The slot of an existing entry.
static size_t slot_of(const map *m, size_t index) {
    size_t at = first_slot(m, m->entries[index].key);
    while (m->slots[at] != index + 1) at = (at + 1) & (m->slot_count - 1);
    return at;
}

// Entries that were displaced by the freed slot move up, so that probes find them.
static void free_slot(map *m, size_t hole) {
    const size_t mask = m->slot_count - 1;
    for (size_t at = (hole + 1) & mask; m->slots[at] != 0; at = (at + 1) & mask) {
        const size_t first = first_slot(m, m->entries[m->slots[at] - 1].key);
        if (((at - first) & mask) < ((at - hole) & mask))
            continue; // its home slot is behind the hole
        m->slots[hole] = m->slots[at];
        hole = at;
    }
    m->slots[hole] = 0;
}

void tare__map_remove(map *m, const char *key) {
    const map_entry *entry = find(m, key);
    if (!entry) return;
    const size_t index = (size_t)(entry - m->entries);
    free_slot(m, find_slot(m, key));
    for (size_t i = index + 1; i < m->count; i++) m->slots[slot_of(m, i)]--;
    tare__free(entry->key);
    memmove(&m->entries[index], &m->entries[index + 1],
            (m->count - index - 1) * sizeof *m->entries);
    m->count--;
}

void tare__map_keep(map *m, bool (*keeps)(void *user, const map_entry *entry), void *user) {
    size_t kept = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (keeps(user, &m->entries[i]))
            m->entries[kept++] = m->entries[i];
        else
            tare__free(m->entries[i].key);
    }
    m->count = kept;
    if (m->slot_count > 0) fill_slots(m);
}

void tare__map_release(map *m) {
    for (size_t i = 0; i < m->count; i++) tare__free(m->entries[i].key);
    tare__free(m->entries);
    tare__free(m->slots);
    *m = (map){0};
}
