// SPDX-License-Identifier: Apache-2.0
// Structs of the public API that begin with their size, so that they can grow (see tare/status.h).
#ifndef CORE_STRUCT_SIZE_H
#define CORE_STRUCT_SIZE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/// Copies what the caller's struct has of the `size` bytes of `to`, which is zero before. A size of
/// 0 counts as complete; a smaller one comes from a caller built against an older header.
static inline void tare__struct_copy(void *to, size_t size, const void *from) {
    uint32_t given = 0;
    memcpy(&given, from, sizeof given);
    memcpy(to, from, given != 0 && given < size ? given : size);
}

#endif
