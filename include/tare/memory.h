// SPDX-License-Identifier: Apache-2.0
/// Memory: the library's allocator, for programs and plug-ins that want to use the same one.
#ifndef TARE_MEMORY_H
#define TARE_MEMORY_H

#include <stddef.h>

#include "tare/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Allocates `count` elements of `size` bytes, all zero. The caller gives them back with
/// tare_memory_release. NULL: no memory is left, or count x size does not fit a size_t.
TARE_API void *tare_memory_allocate(size_t count, size_t size);
/// Resizes the array `old` (NULL: none) to `count` elements of `size` bytes and returns its new
/// address. Contents are kept; new elements are not initialized. NULL: as for tare_memory_allocate;
/// `old` then stays valid.
TARE_API void *tare_memory_reallocate(void *old, size_t count, size_t size);
/// Gives back memory of the two calls above. NULL is allowed.
TARE_API void tare_memory_release(void *memory);

#ifdef __cplusplus
}
#endif
#endif
