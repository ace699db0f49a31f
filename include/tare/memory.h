// SPDX-License-Identifier: Apache-2.0
/// The library's allocator, for plug-ins that want to use the same one.
#ifndef TARE_MEMORY_H
#define TARE_MEMORY_H

#include <stddef.h>

#include "tare/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Allocates `count` elements of `size` bytes, all zero. The caller frees them with
/// tare_memory_release. NULL if memory is exhausted or count x size overflows a size_t.
TARE_API void *tare_memory_allocate(size_t count, size_t size);
/// Resizes the array `old` (NULL: a new array) to `count` elements of `size` bytes and returns its
/// new address. Contents are kept; new elements are not initialized. NULL as for
/// tare_memory_allocate; `old` then stays valid.
TARE_API void *tare_memory_reallocate(void *old, size_t count, size_t size);
/// Frees memory that the two calls above returned. NULL is allowed.
TARE_API void tare_memory_release(void *memory);

#ifdef __cplusplus
}
#endif
#endif
