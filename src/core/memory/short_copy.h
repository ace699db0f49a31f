// SPDX-License-Identifier: Apache-2.0
// Copies a few bytes whose number the compiler does not know, without the call that memcpy is then.
#ifndef CORE_MEMORY_SHORT_COPY_H
#define CORE_MEMORY_SHORT_COPY_H

#include <stddef.h>

/// Exactly `bytes` bytes, which do not overlap. The last piece may repeat bytes of the one before.
static inline void tare__short_copy(void *restrict to, const void *restrict from, size_t bytes) {
    unsigned char *y = to;
    const unsigned char *x = from;
    // The builtin: a checked memcpy is a call, where the compiler knows the size of the array.
    enum { LONG = 16, MIDDLE = 8, SHORT = 4 };
    if (bytes >= LONG) {
        for (size_t i = 0; i + LONG < bytes; i += LONG) __builtin_memcpy(y + i, x + i, LONG);
        __builtin_memcpy(y + bytes - LONG, x + bytes - LONG, LONG);
    } else if (bytes >= MIDDLE) {
        __builtin_memcpy(y, x, MIDDLE);
        __builtin_memcpy(y + bytes - MIDDLE, x + bytes - MIDDLE, MIDDLE);
    } else if (bytes >= SHORT) {
        __builtin_memcpy(y, x, SHORT);
        __builtin_memcpy(y + bytes - SHORT, x + bytes - SHORT, SHORT);
    } else {
        for (size_t i = 0; i < bytes; i++) y[i] = x[i];
    }
}

/// Copies `count` pieces of `bytes` bytes, whose beginnings are so far apart on each side.
static inline void tare__short_copies(void *restrict to, size_t to_step, const void *restrict from,
                                      size_t from_step, size_t count, size_t bytes) {
    for (size_t i = 0; i < count; i++)
        tare__short_copy((unsigned char *)to + i * to_step,
                         (const unsigned char *)from + i * from_step, bytes);
}

#endif
