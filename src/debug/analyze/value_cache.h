// SPDX-License-Identifier: Apache-2.0
// Values of a run by node, kept in memory, then in files, then not at all: each under a budget.
// Private to debug/analyze.
#ifndef DEBUG_ANALYZE_VALUE_CACHE_H
#define DEBUG_ANALYZE_VALUE_CACHE_H

#include "core/tensor/tensor.h"

/// What is left of both budgets; caches may share one.
typedef struct cache_budget {
    uint64_t memory_bytes, disk_bytes;
} cache_budget;

typedef struct value_cache {
    cache_budget *budget; // lent
    struct cached_value *items;
    size_t count; // node ids
} value_cache;

tare_status tare__value_cache_begin(value_cache *c, size_t id_count, cache_budget *budget,
                                    tare_error *err);
/// Keeps a reference to the tensor, or a copy in a file that has no name any more. Where neither
/// budget has room, or the disk has none, it is kept in memory all the same if it is_required;
/// otherwise nothing is kept, and that is no error.
tare_status tare__value_cache_put(value_cache *c, size_t id, const tare_tensor *t, bool is_required,
                                  tare_error *err);
/// Lent; NULL: not kept.
tare_tensor *tare__value_cache_get(const value_cache *c, size_t id);
/// Gives the values back, and their share of the budget.
void tare__value_cache_clear(value_cache *c);
void tare__value_cache_release(value_cache *c);

#endif
