// SPDX-License-Identifier: Apache-2.0
// Lists the storages of all results, sorts them by address, and counts each once, because tensors
// share storages.
#include "ops/live_bytes.h"

#include <stdlib.h>

#include "core/memory/alloc.h"
#include "core/tensor/tensor.h"

typedef struct storage_list {
    storage **items;
    size_t count, capacity;
} storage_list;

static tare_status add(const value *v, storage_list *list, tare_error *err) {
    if (tare__value_has_items(v)) {
        for (uint32_t i = 0; i < v->count; i++) TARE_TRY(add(&v->as.items[i], list, err));
        return TARE_OK;
    }
    if (v->kind != VALUE_TENSOR || v->as.tensor->store == NULL) return TARE_OK;
    if (!tare__grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return tare__out_of_memory(err);
    list->items[list->count++] = v->as.tensor->store;
    return TARE_OK;
}

static int by_address(const void *a, const void *b) {
    const uintptr_t x = (uintptr_t) * (storage *const *)a, y = (uintptr_t) * (storage *const *)b;
    return x < y ? -1 : x > y;
}

static tare_status list_storages(const graph *g, const value *results, const value *inputs,
                                 size_t input_count, storage_list *lent, storage_list *made,
                                 tare_error *err) {
    for (size_t i = 0; i < input_count; i++) TARE_TRY(add(&inputs[i], lent, err));
    for (const node *n = g->first; n != NULL; n = n->next) {
        const bool is_lent = n->op == NODE_GET_ATTR || n->op == NODE_PLACEHOLDER;
        TARE_TRY(add(&results[n->id], is_lent ? lent : made, err));
    }
    return TARE_OK;
}

static void sort(storage_list *list) {
    if (list->count > 0) qsort(list->items, list->count, sizeof *list->items, by_address);
}

static bool holds(const storage_list *list, storage *s) {
    return list->count > 0 &&
           bsearch(&s, list->items, list->count, sizeof *list->items, by_address) != NULL;
}

static uint64_t count_bytes(const storage_list *lent, const storage_list *made) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < made->count; i++) {
        storage *s = made->items[i];
        const bool is_new = i == 0 || s != made->items[i - 1];
        if (is_new && !tare__storage_can_forget(s) && !holds(lent, s))
            bytes += tare__storage_size(s); // cannot overflow, because it is allocated
    }
    return bytes;
}

tare_status tare__live_bytes(const graph *g, const value *results, const value *inputs,
                             size_t input_count, uint64_t *out, tare_error *err) {
    storage_list lent = {0}, made = {0};
    const tare_status status = list_storages(g, results, inputs, input_count, &lent, &made, err);
    if (status == TARE_OK) {
        sort(&lent);
        sort(&made);
        *out = count_bytes(&lent, &made);
    }
    tare__free(lent.items);
    tare__free(made.items);
    return status;
}
