// SPDX-License-Identifier: Apache-2.0
// Every allocation goes through these functions, which call the system's (core/system/system.h).
// Sizes are checked for overflow; NULL means that memory is exhausted.
#ifndef CORE_MEMORY_ALLOC_H
#define CORE_MEMORY_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

void *tare__alloc(size_t size);
void *tare__alloc_zeroed(size_t count, size_t size);
/// An array of `count` elements; contents kept as with realloc. On failure `old` stays valid.
void *tare__realloc_array(void *old, size_t count, size_t size);
void *tare__alloc_aligned(size_t size, size_t alignment); // free with tare__free_aligned
/// Zeros that begin on a cache line: a whole register that is loaded from within two lines takes
/// twice as long. Free with tare__free_aligned.
void *tare__alloc_lines(size_t count, size_t size);
/// For what is large and read again and again: from some size on the system is asked for large
/// pages, which need fewer faults and translations. 64-byte aligned; free with tare__free_aligned.
void *tare__alloc_large(size_t size);
/// The size in whole such pages; the size itself where they are not asked for.
size_t tare__large_size(size_t size);
/// Whether `size` bytes could be had at this moment; they are given back at once. For calls into
/// libraries that crash where an allocation of theirs fails: who asks first for more than such a
/// call takes is not surprised by it. Another thread may still take what was found, so that such
/// sizes leave room. Costs two system calls.
bool tare__memory_is_at_hand(size_t size);
void tare__free(void *memory);
void tare__free_aligned(void *memory);
char *tare__strdup(const char *text);
char *tare__strndup(const char *text, size_t length);

/// Makes room for one more element in a growing array (doubling). Returns false when memory is
/// gone; the array is then unchanged. Usage: if (!tare__grow((void **)&list, &capacity, count,
/// sizeof *list)) ..
bool tare__grow(void **array, size_t *capacity, size_t count, size_t element_size);

/// False on overflow.
bool tare__mul_size(size_t a, size_t b, size_t *out);
bool tare__add_size(size_t a, size_t b, size_t *out);

#endif
