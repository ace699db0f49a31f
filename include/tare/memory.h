// SPDX-License-Identifier: Apache-2.0
/// Memory: the library's own allocator, for programs and plug-ins whose memory shall come from the
/// same place.
#ifndef TARE_MEMORY_H
#define TARE_MEMORY_H

#include <stddef.h>

#include "tare/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// An array of `count` elements of `size` bytes, all zero, for tare_memory_release. NULL: there is
/// no memory left, or the array would be larger than any.
TARE_API void *tare_memory_allocate(size_t count, size_t size);
/// The array `old` (NULL: none) with room for `count` elements; its contents are kept, new ones are
/// unset. NULL: as above, and `old` stays as it is.
TARE_API void *tare_memory_reallocate(void *old, size_t count, size_t size);
TARE_API void tare_memory_release(void *memory); // NULL is fine

#ifdef __cplusplus
}
#endif
#endif
