// SPDX-License-Identifier: Apache-2.0
// Detects cycles of specs that share with or derive from each other. The error names a shortest
// cycle, which is a smallest conflict: without a cycle, some spec depends on none of the others.
#include <string.h>

#include "core/memory/alloc.h"
#include "flow/export/sharing.h"

/// The keys that each key depends on: of[start[i]] .. of[start[i + 1] - 1].
typedef struct needs {
    size_t *start, *of;
    size_t *speakers; // by group: the key from whose spec the observer is created
    size_t count;
} needs;

static void release(needs *n) {
    tare__free(n->start);
    tare__free(n->of);
    tare__free(n->speakers);
}

// --- who waits for whom ---

static bool is_derived(const qspec_key *key) {
    return key->spec != NULL && key->spec->kind == TARE_QSPEC_DERIVED;
}

static void add(needs *n, size_t what, bool is_counting, size_t *at) {
    if (!is_counting) n->of[*at] = what;
    (*at)++;
}

// Sources without annotations cannot be part of a cycle.
static void add_needs(const qspec_keys *keys, needs *n, size_t i, bool is_counting, size_t *at) {
    const qspec_key *key = &keys->items[i];
    for (size_t t = 0; key->spec != NULL && t < key->spec->target_count; t++) {
        const tare_edge_name *target = &key->spec->targets[t];
        const size_t found = tare__qspec_keys_find(keys, target->from, target->node);
        if (found < keys->count) add(n, found, is_counting, at);
    }
    // A key that joined the group of a derived spec depends on what that spec depends on.
    const size_t speaker = n->speakers != NULL ? n->speakers[key->group] : keys->count;
    if (speaker < keys->count && speaker != i && is_derived(&keys->items[speaker]))
        add(n, speaker, is_counting, at);
}

static tare_status find_speakers(const qspec_keys *keys, needs *n, tare_error *err) {
    n->speakers = tare__alloc_zeroed(keys->group_count + 1, sizeof *n->speakers);
    if (n->speakers == NULL) return tare__out_of_memory(err);
    for (size_t g = 0; g < keys->group_count; g++) n->speakers[g] = keys->count;
    for (size_t i = 0; i < keys->count; i++) {
        const qspec_key *key = &keys->items[i];
        const bool speaks = key->spec != NULL && key->spec->kind != TARE_QSPEC_SHARED;
        if (speaks && n->speakers[key->group] == keys->count) n->speakers[key->group] = i;
    }
    return TARE_OK;
}

static tare_status collect(const qspec_keys *keys, bool has_groups, needs *n, tare_error *err) {
    size_t total = 0, at = 0;
    *n = (needs){.count = keys->count};
    if (has_groups) TARE_TRY(find_speakers(keys, n, err));
    for (size_t i = 0; i < keys->count; i++) add_needs(keys, n, i, true, &total);
    n->start = tare__alloc_zeroed(keys->count + 1, sizeof *n->start);
    n->of = tare__alloc_zeroed(total + 1, sizeof *n->of);
    if (n->start == NULL || n->of == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < keys->count; i++) {
        n->start[i] = at;
        add_needs(keys, n, i, false, &at);
    }
    n->start[keys->count] = at;
    return TARE_OK;
}

// --- the shortest ring ---

typedef struct walk {
    size_t *queue, *before; // before[i]: predecessor of i; the number of keys: not visited
} walk;

// Breadth-first search from `start` for a key that depends on it; *last: that key.
static bool find_way_back(const needs *n, size_t start, walk *w, size_t *last) {
    size_t head = 0, tail = 0;
    for (size_t i = 0; i < n->count; i++) w->before[i] = n->count;
    w->queue[tail++] = start;
    while (head < tail) {
        const size_t i = w->queue[head++];
        for (size_t k = n->start[i]; k < n->start[i + 1]; k++) {
            const size_t next = n->of[k];
            *last = i;
            if (next == start) return true;
            if (w->before[next] < n->count) continue;
            w->before[next] = i;
            w->queue[tail++] = next;
        }
    }
    return false;
}

// The length of the shortest cycle; `ring` gets its keys in order of dependency.
static size_t shortest_ring(const needs *n, walk *w, size_t *ring) {
    size_t least = 0, last = 0;
    for (size_t i = 0; i < n->count; i++) {
        if (!find_way_back(n, i, w, &last)) continue;
        size_t length = 1;
        for (size_t k = last; k != i; k = w->before[k]) length++;
        if (least != 0 && length >= least) continue;
        least = length;
        ring[0] = i;
        for (size_t k = last, at = length; k != i; k = w->before[k]) ring[--at] = k;
    }
    return least;
}

// Most models have no cycle, which one pass shows: keys without unmet dependencies are removed
// until nothing changes.
static bool has_ring(const needs *n, bool *is_met) {
    size_t left = n->count;
    for (bool changes = true; changes && left > 0;) {
        changes = false;
        for (size_t i = 0; i < n->count; i++) {
            bool is_ready = !is_met[i];
            for (size_t k = n->start[i]; k < n->start[i + 1] && is_ready; k++)
                is_ready = is_met[n->of[k]];
            if (!is_ready) continue;
            is_met[i] = changes = true;
            left--;
        }
    }
    return left > 0;
}

static tare_status refuse(const qspec_keys *keys, const size_t *ring, size_t length,
                          tare_error *err) {
    text names = {0};
    for (size_t i = 0; i <= length; i++) {
        if (i > 0) tare__text_append(&names, " -> ");
        tare__qspec_key_text(&keys->items[ring[i < length ? i : 0]], &names);
    }
    tare_status status = tare__text_status(&names, err);
    if (status == TARE_OK)
        status = tare__fail(err, TARE_INVALID_ARGUMENT,
                            "these specs only share with or derive from each other, so none gives "
                            "the parameters: %s",
                            tare__text_chars(&names));
    tare__text_release(&names);
    return tare__hint(err, status, "give one of them a spec of its own");
}

static tare_status check(const qspec_keys *keys, const needs *n, tare_error *err) {
    const size_t count = n->count + 1;
    walk w = {.queue = tare__alloc_zeroed(count, sizeof *w.queue),
              .before = tare__alloc_zeroed(count, sizeof *w.before)};
    bool *is_met = tare__alloc_zeroed(count, sizeof *is_met);
    size_t *ring = tare__alloc_zeroed(count, sizeof *ring);
    tare_status status = TARE_OK;
    if (w.queue == NULL || w.before == NULL || is_met == NULL || ring == NULL)
        status = tare__out_of_memory(err);
    else if (has_ring(n, is_met))
        status = refuse(keys, ring, shortest_ring(n, &w, ring), err);
    tare__free(w.queue);
    tare__free(w.before);
    tare__free(is_met);
    tare__free(ring);
    return status;
}

tare_status tare__qspec_keys_check_rings(const qspec_keys *keys, bool has_groups, tare_error *err) {
    needs n = {0};
    tare_status status = collect(keys, has_groups, &n, err);
    if (status == TARE_OK) status = check(keys, &n, err);
    release(&n);
    return status;
}
