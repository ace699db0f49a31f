// SPDX-License-Identifier: Apache-2.0
// The ranges of a compared model's quantized values.
#include "debug/compare_ranges.h"

#include "core/memory/alloc.h"

// The scale is read from the kernels' results, because a lowered model stores it in modules,
// arguments or packed parameters.
static void read_qparams(const qparams *q, range_entry *e) {
    const tare_node_qparams shown = {.scale = q->scale[0],
                                     .zero_point = (int64_t)q->zero_point[0],
                                     .quant_min = q->quant_min,
                                     .quant_max = q->quant_max};
    tare__range_set_qparams(e, &shown);
}

static tare_status entry_of(compared_ranges *r, const node *n, const char *source, const qparams *q,
                            range_entry **out, tare_error *err) {
    const size_t index = (size_t)tare__map_get(&r->names, n->name);
    if (index != 0) {
        *out = &r->items[index - 1];
        return TARE_OK;
    }
    if (!tare__grow((void **)&r->items, &r->capacity, r->count, sizeof *r->items) ||
        !tare__map_set(&r->names, n->name, tare__map_int(r->count + 1)))
        return tare__out_of_memory(err);
    *out = &r->items[r->count++];
    tare__range_begin(*out, n, "");
    (*out)->shown.value = source;
    read_qparams(q, *out);
    return TARE_OK;
}

tare_status tare__compared_ranges_add(compared_ranges *r, const node *n, const char *source,
                                      const tare_tensor *floats, const tare_tensor *result,
                                      tare_error *err) {
    const qparams *q = result->q;
    range_entry *e = NULL;
    if (q == NULL || !tare__qscheme_is_per_tensor(q->scheme)) return TARE_OK;
    TARE_TRY(entry_of(r, n, source, q, &e, err));
    return tare__range_add(e, floats, 0, false, err);
}

void tare__compared_ranges_end(compared_ranges *r) {
    for (size_t i = 0; i < r->count; i++) tare__range_end(&r->items[i]);
    tare__free(r->items);
    tare__map_release(&r->names);
    *r = (compared_ranges){0};
}
