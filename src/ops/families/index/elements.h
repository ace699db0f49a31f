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
static inline tare_status index_at(op_call *call, const tare_tensor *indices, int64_t i, int64_t size,
                            int64_t *out) {
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

#endif
