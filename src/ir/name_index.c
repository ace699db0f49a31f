// SPDX-License-Identifier: Apache-2.0
// Finds names in an array of items: by comparison if there are few, else in a hash table.
#include "ir/name_index.h"

#include <string.h>

#include "core/hash/hash.h"
#include "core/memory/alloc.h"

enum { FEW = 16 }; // up to so many items, a linear search is faster than hashing

static const char *name_at(const named_items *in, size_t i) {
    const char *name = NULL;
    memcpy(&name, (const char *)in->items + i * in->size, sizeof name);
    return name;
}

static bool is_name(const char *candidate, const char *name, size_t length) {
    return strncmp(candidate, name, length) == 0 && candidate[length] == '\0';
}

ptrdiff_t tare__name_index_find(const name_index *x, const named_items *in, const char *name,
                                size_t length) {
    if (x->slot_count == 0) {
        for (size_t i = 0; i < in->count; i++)
            if (is_name(name_at(in, i), name, length)) return (ptrdiff_t)i;
        return NAME_INDEX_NONE;
    }
    const size_t mask = x->slot_count - 1;
    for (size_t at = tare__hash_name(name, length, x->slots) & mask; x->slots[at] != 0;
         at = (at + 1) & mask)
        if (is_name(name_at(in, x->slots[at] - 1), name, length))
            return (ptrdiff_t)x->slots[at] - 1;
    return NAME_INDEX_NONE;
}

static void insert(name_index *x, const named_items *in, size_t i) {
    const char *name = name_at(in, i);
    const size_t mask = x->slot_count - 1;
    size_t at = tare__hash_name(name, strlen(name), x->slots) & mask;
    while (x->slots[at] != 0) at = (at + 1) & mask;
    x->slots[at] = (uint32_t)(i + 1);
}

void tare__name_index_refill(name_index *x, const named_items *in) {
    if (x->slot_count == 0) return;
    memset(x->slots, 0, x->slot_count * sizeof *x->slots);
    for (size_t i = 0; i < in->count; i++) insert(x, in, i);
}

bool tare__name_index_reserve(name_index *x, const named_items *in) {
    if (in->count < FEW || (in->count + 1) * 2 <= x->slot_count) return true;
    if (in->count >= UINT32_MAX / 4) return false;
    const size_t wanted = x->slot_count ? x->slot_count * 2 : (size_t)4 * FEW;
    uint32_t *slots = tare__alloc_zeroed(wanted, sizeof *slots);
    if (!slots) return false;
    tare__free(x->slots);
    *x = (name_index){slots, wanted};
    tare__name_index_refill(x, in);
    return true;
}

void tare__name_index_add(name_index *x, const named_items *in) {
    if (x->slot_count > 0) insert(x, in, in->count - 1);
}

void tare__name_index_release(name_index *x) {
    tare__free(x->slots);
    *x = (name_index){0};
}
