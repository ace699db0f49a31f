// SPDX-License-Identifier: Apache-2.0
// All allocations go through these functions, which call the system's (core/system/system.h). Sizes
// are checked for overflow; NULL means that memory ran out.
#ifndef CORE_MEMORY_ALLOC_H
#define CORE_MEMORY_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

void *tare__alloc(size_t size);
void *tare__alloc_zeroed(size_t count, size_t size);
/// An array of `count` elements; contents kept as with realloc. On failure `old` stays valid.
void *tare__realloc_array(void *old, size_t count, size_t size);
void *tare__alloc_aligned(size_t size, size_t alignment); // free with tare__free_aligned
/// Zeroed memory that begins on a cache line: loading a register across two lines takes twice as
/// long. Free with tare__free_aligned.
void *tare__alloc_lines(size_t count, size_t size);
/// For large data that is read repeatedly: above some size the system is asked for large pages,
/// which cause fewer page faults and TLB misses. 64-byte aligned; free with tare__free_aligned.
void *tare__alloc_large(size_t size);
/// The size rounded up to whole large pages; the size itself if they are not used.
size_t tare__large_size(size_t size);
/// True if `size` bytes could be allocated now; they are released immediately. For calls of
/// libraries that crash if an allocation fails: checking for more than the call needs prevents
/// that. Another thread may still take the memory, so sizes include a reserve. Costs two system
/// calls.
bool tare__memory_is_at_hand(size_t size);
void tare__free(void *memory);
void tare__free_aligned(void *memory);
char *tare__strdup(const char *text);
char *tare__strndup(const char *text, size_t length);

/// Makes room for one more element in a growing array (doubling). Returns false if memory ran out;
/// the array is then unchanged. Usage: if (!tare__grow((void **)&list, &capacity, count, sizeof
/// *list)) ..
bool tare__grow(void **array, size_t *capacity, size_t count, size_t element_size);

/// False on overflow.
bool tare__mul_size(size_t a, size_t b, size_t *out);
bool tare__add_size(size_t a, size_t b, size_t *out);

#endif
