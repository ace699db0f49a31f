// SPDX-License-Identifier: Apache-2.0
// Public structs that begin with their size, so that they can grow (see tare/status.h).
#ifndef CORE_STRUCT_SIZE_H
#define CORE_STRUCT_SIZE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/// Copies the members that the caller's struct has to `to`, which has `size` bytes and is zeroed
/// before. A size of 0 means the whole struct; a smaller one comes from a caller built with an
/// older header.
static inline void tare__struct_copy(void *to, size_t size, const void *from) {
    uint32_t given = 0;
    memcpy(&given, from, sizeof given);
    memcpy(to, from, given != 0 && given < size ? given : size);
}

#endif
