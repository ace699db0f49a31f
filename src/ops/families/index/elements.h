// SPDX-License-Identifier: Apache-2.0
// Indices in tensors, and the elements at them.
// Private to ops/families/index.
#ifndef OPS_FAMILIES_INDEX_ELEMENTS_H
#define OPS_FAMILIES_INDEX_ELEMENTS_H

#include <string.h>

#include "ops/call.h"

enum { INDEX_WORK = 8 }; // finding an element takes as long as copying so many

static inline tare_status need_indices(op_call *call, const tare_tensor *t) {
    if (t->dtype == TARE_INT64 || t->dtype == TARE_INT32) return TARE_OK;
    return tare__call_fail(call, "indices must be torch.int64 or torch.int32, found %s",
                           tare_dtype_name(t->dtype));
}

// Reads index i for a dimension of `size` elements; negative indices count from its end.
static inline tare_status index_at(op_call *call, const tare_tensor *indices, int64_t i,
                                   int64_t size, int64_t *out) {
    const int64_t index = indices->dtype == TARE_INT64 ? ((const int64_t *)indices->data)[i]
                                                       : tare__tensor_get_int(indices, i);
    *out = index < 0 ? index + size : index;
    if (*out >= 0 && *out < size) return TARE_OK;
    return tare__call_fail(call, "index %lld is outside of a dimension of %lld", (long long)index,
                           (long long)size);
}

static inline void copy_elements(const tare_tensor *from, int64_t i, tare_tensor *to, int64_t k,
                                 int64_t count) {
    const size_t size = tare_dtype_size(to->dtype);
    if (count == 1 && size == sizeof(uint32_t)) { // a fixed size becomes one move
        memcpy((uint32_t *)to->data + k, (const uint32_t *)from->data + i, sizeof(uint32_t));
        return;
    }
    memcpy((char *)to->data + (size_t)k * size, (const char *)from->data + (size_t)i * size,
           (size_t)count * size);
}

// Adds to each offset that of an index in a dimension whose elements are `step` apart. False if one
// is outside of the dimension, and then also to others.
static inline bool add_offsets(const int64_t *indices, int64_t count, int64_t size, int64_t step,
                               int64_t *offsets) {
    bool is_inside = true;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = indices[i] + (indices[i] < 0 ? size : 0);
        is_inside &= (uint64_t)at < (uint64_t)size;
        offsets[i] += (int64_t)((uint64_t)at * (uint64_t)step);
    }
    return is_inside;
}

// Copies the elements at these offsets behind element `from` of x, to y from element `to` on.
static inline void pick_elements(const tare_tensor *x, int64_t from, const int64_t *offsets,
                                 int64_t count, tare_tensor *y, int64_t to) {
    if (tare_dtype_size(y->dtype) == sizeof(uint32_t)) {
        const uint32_t *words = (const uint32_t *)x->data + from;
        uint32_t *out = (uint32_t *)y->data + to;
        for (int64_t i = 0; i < count; i++) out[i] = words[offsets[i]];
    } else {
        for (int64_t i = 0; i < count; i++) copy_elements(x, from + offsets[i], y, to + i, 1);
    }
}

// Copies elements of x from element `from` on to these offsets in y.
static inline void put_elements(const tare_tensor *x, int64_t from, const int64_t *offsets,
                                int64_t count, tare_tensor *y) {
    if (tare_dtype_size(y->dtype) == sizeof(uint32_t)) {
        const uint32_t *words = (const uint32_t *)x->data + from;
        uint32_t *out = y->data;
        for (int64_t i = 0; i < count; i++) out[offsets[i]] = words[i];
    } else {
        for (int64_t i = 0; i < count; i++) copy_elements(x, from + i, y, offsets[i], 1);
    }
}

#endif
