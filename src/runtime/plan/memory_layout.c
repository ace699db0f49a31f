// SPDX-License-Identifier: Apache-2.0
// First fit: each buffer in turn gets the lowest offset at which it overlaps no buffer that is live
// at the same time. The result depends only on the order, so several orders are tried. If none is
// good enough, a local search varies the best order by moving the buffers that make the block
// large.
#include "runtime/plan/memory_layout.h"

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/arena.h"

enum {
    MOST_LOOKS = 8 << 20, // inspected buffers, after which the best order is taken
    MOST_ORDERS = 4000,
    MOST_PAIRS = 1 << 20, // of buffers that are live together; with more there is no search
    FEW = 24,             // of so few buffers the order is found quickly
};

// A buffer to be sorted.
typedef struct candidate {
    const memory_buffer *buffer;
    size_t index;
    double weight; // in descending order
} candidate;

typedef struct layout {
    memory_buffer *buffers;
    size_t count, least;
    size_t *order, *best;    // indices of buffers
    size_t *offsets;         // with the best order
    size_t *kept;            // with the best order of all searches
    double excess;           // with the best order
    size_t *placed;          // sorted by offset
    size_t *neighbours;      // for each buffer, the others that are live with it
    size_t *neighbours_from; // [count + 1] index of each buffer's first neighbour
    bool *is_placed;         // in the present order
    size_t looks_per_order;
    candidate *candidates;
    uint64_t random;
} layout;

static bool live_together(const memory_buffer *a, const memory_buffer *b) {
    return a->first <= b->last && b->first <= a->last;
}

// --- one order ---

typedef struct gap { // the lowest gap that is large enough
    size_t at;
    bool is_found;
} gap;

// Inspects a buffer; buffers come in ascending order of offset.
static void pass(gap *g, const memory_buffer *other, size_t bytes) {
    if (g->is_found) return;
    g->is_found = other->offset >= g->at + bytes;
    const size_t end = other->offset + other->bytes;
    if (!g->is_found && end > g->at) g->at = end;
}

// The offset of a buffer with few neighbours.
static size_t find_among_neighbours(const layout *l, size_t buffer) {
    const memory_buffer *sorted[FEW];
    size_t count = 0;
    gap g = {0};
    for (size_t i = l->neighbours_from[buffer]; i < l->neighbours_from[buffer + 1]; i++) {
        if (!l->is_placed[l->neighbours[i]]) continue;
        const memory_buffer *neighbour = &l->buffers[l->neighbours[i]];
        size_t k = count++;
        for (; k > 0 && sorted[k - 1]->offset > neighbour->offset; k--) sorted[k] = sorted[k - 1];
        sorted[k] = neighbour;
    }
    for (size_t i = 0; i < count; i++) pass(&g, sorted[i], l->buffers[buffer].bytes);
    return g.at;
}

static size_t find_among_all(const layout *l, size_t placed_count, size_t buffer) {
    const memory_buffer *p = &l->buffers[buffer];
    gap g = {0};
    for (size_t i = 0; i < placed_count && !g.is_found; i++)
        if (live_together(&l->buffers[l->placed[i]], p))
            pass(&g, &l->buffers[l->placed[i]], p->bytes);
    return g.at;
}

// Inserts the buffer into `placed`, which is sorted by offset.
static void put(layout *l, size_t placed_count, size_t buffer) {
    size_t low = 0, high = placed_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (l->buffers[l->placed[middle]].offset <= l->buffers[buffer].offset)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&l->placed[low + 1], &l->placed[low], (placed_count - low) * sizeof *l->placed);
    l->placed[low] = buffer;
    l->is_placed[buffer] = true;
}

static bool has_few_neighbours(const layout *l, size_t buffer) {
    return l->neighbours != NULL &&
           l->neighbours_from[buffer + 1] - l->neighbours_from[buffer] <= FEW;
}

// Returns the excess: the total number of bytes above the least possible block size. It guides the
// search better than the block's size, in which one buffer hides the others.
static double place_all(layout *l) {
    double excess = 0;
    memset(l->is_placed, 0, l->count * sizeof *l->is_placed);
    for (size_t k = 0; k < l->count; k++) {
        const size_t buffer = l->order[k];
        memory_buffer *p = &l->buffers[buffer];
        p->offset = has_few_neighbours(l, buffer) ? find_among_neighbours(l, buffer)
                                                  : find_among_all(l, k, buffer);
        put(l, k, buffer);
        const size_t end = p->offset + p->bytes;
        if (end > l->least) excess += (double)(end - l->least);
    }
    return excess;
}

// Keeps the order if no other was better.
static void try_order(layout *l) {
    const double excess = place_all(l);
    if (excess > l->excess) return;
    l->excess = excess;
    memcpy(l->best, l->order, l->count * sizeof *l->best);
    for (size_t i = 0; i < l->count; i++) l->offsets[i] = l->buffers[i].offset;
}

// --- orders ---

static double by_bytes(const layout *l, const memory_buffer *p) {
    (void)l;
    return (double)p->bytes;
}

static double by_time(const layout *l, const memory_buffer *p) {
    (void)l;
    return (double)(p->last - p->first);
}

static double by_bytes_and_time(const layout *l, const memory_buffer *p) {
    return (double)p->bytes * (by_time(l, p) + 1);
}

static double by_start(const layout *l, const memory_buffer *p) {
    (void)l;
    return -(double)p->first;
}

// The total bytes of buffers that are live with it.
static double by_conflict(const layout *l, const memory_buffer *p) {
    double bytes = 0;
    for (size_t i = 0; i < l->count; i++)
        if (live_together(&l->buffers[i], p)) bytes += (double)l->buffers[i].bytes;
    return bytes;
}

static int compare(const void *x, const void *y) {
    const candidate *a = x, *b = y;
    if (a->weight != b->weight) return a->weight < b->weight ? 1 : -1;
    if (a->buffer->bytes != b->buffer->bytes) return a->buffer->bytes < b->buffer->bytes ? 1 : -1;
    return (a->index > b->index) - (a->index < b->index);
}

static void try_sorted(layout *l, double (*weigh)(const layout *, const memory_buffer *)) {
    for (size_t i = 0; i < l->count; i++)
        l->candidates[i] = (candidate){&l->buffers[i], i, weigh(l, &l->buffers[i])};
    qsort(l->candidates, l->count, sizeof *l->candidates, compare);
    for (size_t i = 0; i < l->count; i++) l->order[i] = l->candidates[i].index;
    try_order(l);
}

// --- the search ---

static size_t random_below(layout *l,
                           size_t bound) { // a linear congruential generator; takes the upper bits
    l->random = l->random * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(l->random >> 33) % bound;
}

// A random buffer that ends above the least possible block size.
static size_t find_high(layout *l) {
    size_t found = 0, seen = 0;
    for (size_t i = 0; i < l->count; i++)
        if (l->offsets[i] + l->buffers[i].bytes > l->least && random_below(l, ++seen) == 0)
            found = i;
    return found;
}

// A random buffer that is live with the given one.
static size_t find_companion(layout *l, size_t buffer) {
    const size_t from = l->neighbours_from[buffer], count = l->neighbours_from[buffer + 1] - from;
    return count > 0 ? l->neighbours[from + random_below(l, count)] : buffer;
}

static size_t position_of(const layout *l, size_t buffer) {
    size_t at = 0;
    while (l->order[at] != buffer) at++;
    return at;
}

// Moves a buffer that ends too high, or one below it, past another buffer that is live at the same
// time, because only the order of such buffers matters; or moves it to the front.
static void vary(layout *l) {
    memcpy(l->order, l->best, l->count * sizeof *l->order);
    const size_t high = find_high(l);
    const size_t buffer = random_below(l, 2) == 0 ? high : find_companion(l, high);
    const size_t from = position_of(l, buffer);
    const size_t to = random_below(l, 4) == 0 ? 0 : position_of(l, find_companion(l, buffer));
    if (to <= from)
        memmove(&l->order[to + 1], &l->order[to], (from - to) * sizeof *l->order);
    else
        memmove(&l->order[from], &l->order[from + 1], (to - from) * sizeof *l->order);
    l->order[to] = buffer;
}

// Varies the order while the result improves or stays equal, for a given number of inspections.
static void search(layout *l, size_t looks) {
    size_t orders = l->neighbours != NULL ? looks / l->looks_per_order : 0;
    for (; orders > 0 && l->excess > 0; orders--) {
        vary(l);
        try_order(l);
    }
}

static void keep_least(layout *l, double *least_excess) {
    if (l->excess >= *least_excess) return;
    *least_excess = l->excess;
    for (size_t i = 0; i < l->count; i++) l->kept[i] = l->offsets[i];
}

// Tries all orders, then searches from each of them, because the result of a search depends on its
// start.
static void choose(layout *l) {
    static double (*const orders[])(const layout *, const memory_buffer *) = {
        by_bytes, by_bytes_and_time, by_conflict, by_time, by_start};
    enum { ORDERS = sizeof orders / sizeof *orders };
    const size_t looks = MOST_LOOKS / ORDERS;
    const size_t tries = l->looks_per_order < looks ? 2 * ORDERS : 1;
    double least_excess = DBL_MAX;
    for (size_t i = 0; i < tries && least_excess > 0; i++) {
        l->excess = DBL_MAX;
        try_sorted(l, orders[i % ORDERS]);
        if (i >= ORDERS) search(l, looks);
        keep_least(l, &least_excess);
    }
    for (size_t i = 0; i < l->count; i++) l->buffers[i].offset = l->kept[i];
}

// --- the whole ---

static bool live_beside(const layout *l, size_t a, size_t b) {
    return a != b && live_together(&l->buffers[a], &l->buffers[b]);
}

static size_t count_pairs(const layout *l) {
    size_t pairs = 0;
    for (size_t i = 0; i < l->count; i++)
        for (size_t k = 0; k < l->count; k++) pairs += live_beside(l, i, k);
    return pairs;
}

// The largest sum of bytes that are live at one step.
static size_t find_least(const layout *l) {
    size_t most = 0;
    for (size_t i = 0; i < l->count; i++) {
        size_t live = 0;
        for (size_t k = 0; k < l->count; k++)
            if (l->buffers[k].first <= l->buffers[i].first &&
                l->buffers[i].first <= l->buffers[k].last)
                live += l->buffers[k].bytes;
        if (live > most) most = live;
    }
    return most;
}

static tare_status list_neighbours(layout *l, arena *memory, tare_error *err) {
    const size_t pairs = count_pairs(l);
    l->looks_per_order = l->count * l->count / 4 + MOST_LOOKS / MOST_ORDERS;
    if (pairs > MOST_PAIRS) return TARE_OK;
    size_t *neighbours = tare__arena_array(memory, pairs + 1, sizeof *neighbours);
    l->neighbours_from = tare__arena_array(memory, l->count + 1, sizeof *l->neighbours_from);
    if (neighbours == NULL || l->neighbours_from == NULL) return tare__out_of_memory(err);
    l->looks_per_order = MOST_LOOKS / MOST_ORDERS + l->count;
    for (size_t i = 0, at = 0; i < l->count; i++) {
        for (size_t k = 0; k < l->count; k++)
            if (live_beside(l, i, k)) neighbours[at++] = k;
        l->neighbours_from[i + 1] = at;
        const size_t own = at - l->neighbours_from[i];
        l->looks_per_order += own <= FEW ? 2 * own : l->count / 2;
    }
    l->neighbours = neighbours;
    return TARE_OK;
}

static tare_status lay_out(layout *l, arena *memory, tare_error *err) {
    const size_t count = l->count;
    l->order = tare__arena_array(memory, count, sizeof *l->order);
    l->best = tare__arena_array(memory, count, sizeof *l->best);
    l->offsets = tare__arena_array(memory, count, sizeof *l->offsets);
    l->kept = tare__arena_array(memory, count, sizeof *l->kept);
    l->placed = tare__arena_array(memory, count, sizeof *l->placed);
    l->is_placed = tare__arena_array(memory, count, sizeof *l->is_placed);
    l->candidates = tare__arena_array(memory, count, sizeof *l->candidates);
    if (l->order == NULL || l->best == NULL || l->offsets == NULL || l->kept == NULL ||
        l->placed == NULL || l->is_placed == NULL || l->candidates == NULL)
        return tare__out_of_memory(err);
    TARE_TRY(list_neighbours(l, memory, err));
    choose(l);
    return TARE_OK;
}

tare_status tare__memory_lay_out(memory_buffer *buffers, size_t count, size_t *block, size_t *least,
                                 tare_error *err) {
    *block = *least = 0;
    if (count == 0) return TARE_OK;
    arena memory = {0};
    layout l = {.buffers = buffers, .count = count, .random = 1};
    l.least = find_least(&l);
    const tare_status status = lay_out(&l, &memory, err);
    tare__arena_release(&memory);
    if (status != TARE_OK) return status;
    for (size_t i = 0; i < count; i++)
        if (buffers[i].offset + buffers[i].bytes > *block)
            *block = buffers[i].offset + buffers[i].bytes;
    *least = l.least;
    return TARE_OK;
}
