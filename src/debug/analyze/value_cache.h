// SPDX-License-Identifier: Apache-2.0
// Values of a run by node, kept in memory, then in files, then not at all, each within a budget.
// Private to debug/analyze.
#ifndef DEBUG_ANALYZE_VALUE_CACHE_H
#define DEBUG_ANALYZE_VALUE_CACHE_H

#include "core/tensor/tensor.h"

/// The rest of both budgets; several caches may share one.
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
/// Keeps a reference to the tensor, or a copy in an unlinked file. If neither budget suffices or
/// the disk is full, it is kept in memory if is_required, and otherwise not kept, which is no
/// error.
tare_status tare__value_cache_put(value_cache *c, size_t id, const tare_tensor *t, bool is_required,
                                  tare_error *err);
/// Lent; NULL: not kept.
tare_tensor *tare__value_cache_get(const value_cache *c, size_t id);
/// Releases the values and returns their bytes to the budget.
void tare__value_cache_clear(value_cache *c);
void tare__value_cache_release(value_cache *c);

#endif
