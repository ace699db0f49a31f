// SPDX-License-Identifier: Apache-2.0
// Working memory that only grows.
#include "runtime/kernels/scratch.h"

#include <string.h>

#include "core/memory/alloc.h"

void *tare__scratch_reserve(scratch *s, size_t size) {
    if (s->data != NULL && size <= s->size) return s->data;
    unsigned char *data = tare__alloc_aligned(size > 0 ? size : 1, 64);
    if (data == NULL) return NULL;
    // Kernels read whole tiles, and so may read bytes that were not written.
    memset(data, 0, size);
    tare__free_aligned(s->data);
    *s = (scratch){.data = data, .size = size};
    return data;
}

void tare__scratch_release(scratch *s) {
    tare__free_aligned(s->data);
    *s = (scratch){0};
}
