// SPDX-License-Identifier: Apache-2.0
// Where intermediate results lie: greatest first, each at the lowest offset where it meets no other
// one that lives at the same time.
#include <stdlib.h>

#include "runtime/plan_build.h"

static bool live_together(const plan_place *a, const plan_place *b) {
    return a->first <= b->last && b->first <= a->last;
}

static int by_bytes(const void *x, const void *y) {
    const plan_place *a = *(plan_place *const *)x, *b = *(plan_place *const *)y;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return (a->first > b->first) - (a->first < b->first);
}

// placed: by offset. Returns where p belongs among them.
static size_t find_offset(plan_place *const *placed, size_t count, plan_place *p) {
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (!live_together(placed[i], p)) continue;
        if (placed[i]->offset >= at + p->bytes) break;
        const size_t end = placed[i]->offset + placed[i]->bytes;
        if (end > at) at = end;
    }
    p->offset = at;
    size_t i = count;
    while (i > 0 && placed[i - 1]->offset > at) i--;
    return i;
}

static void place_all(plan *p, plan_place **sorted, size_t count, plan_place **placed) {
    qsort(sorted, count, sizeof *sorted, by_bytes);
    for (size_t k = 0; k < count; k++) {
        const size_t at = find_offset(placed, k, sorted[k]);
        for (size_t i = k; i > at; i--) placed[i] = placed[i - 1];
        placed[at] = sorted[k];
        const size_t end = sorted[k]->offset + sorted[k]->bytes;
        if (end > p->block_bytes) p->block_bytes = end;
    }
}

static size_t least_bytes(const plan *p) {
    size_t most = 0;
    for (size_t s = 0; s < p->step_count; s++) {
        size_t live = 0;
        for (size_t i = 0; i < p->place_count; i++) {
            const plan_place *place = &p->places[i];
            if (place->kind == PLACE_ARENA && place->first <= s && s <= place->last)
                live += place->bytes;
        }
        if (live > most) most = live;
    }
    return most;
}

static tare_status place_in(plan *p, arena *memory, tare_error *err) {
    plan_place **sorted = tare__arena_array(memory, p->place_count + 1, sizeof *sorted);
    plan_place **placed = tare__arena_array(memory, p->place_count + 1, sizeof *placed);
    size_t count = 0;
    if (sorted == NULL || placed == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < p->place_count; i++)
        if (p->places[i].kind == PLACE_ARENA) sorted[count++] = &p->places[i];
    place_all(p, sorted, count, placed);
    return TARE_OK;
}

tare_status tare__plan_lay_out(plan *p, tare_error *err) {
    arena memory = {0};
    const tare_status status = place_in(p, &memory, err);
    tare__arena_release(&memory);
    TARE_TRY(status);
    p->least_bytes = least_bytes(p);
    p->block = tare__alloc_aligned(p->block_bytes > 0 ? p->block_bytes : 1, PLACE_ALIGNMENT);
    if (p->block == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < p->place_count; i++)
        if (p->places[i].kind == PLACE_ARENA)
            p->places[i].data = (unsigned char *)p->block + p->places[i].offset;
    return TARE_OK;
}
