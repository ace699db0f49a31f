// SPDX-License-Identifier: Apache-2.0
// Allocation with checked sizes, of the system's memory (core/system/system.h).
#define _DEFAULT_SOURCE // madvise
#include "core/memory/alloc.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "core/system/system.h"
#include "tare/memory.h"

bool tare__mul_size(size_t a, size_t b, size_t *out) {
    if (b != 0 && a > SIZE_MAX / b) return false;
    *out = a * b;
    return true;
}

bool tare__add_size(size_t a, size_t b, size_t *out) {
    if (a > SIZE_MAX - b) return false;
    *out = a + b;
    return true;
}

// malloc(0) may return NULL, which callers would treat as a failure.
static size_t at_least_one(size_t size) {
    return size ? size : 1;
}

void *tare__alloc(size_t size) {
    return tare__system()->malloc(at_least_one(size));
}

void *tare__alloc_zeroed(size_t count, size_t size) {
    return tare__system()->calloc(at_least_one(count),
                                  at_least_one(size)); // checks the product itself
}

void *tare__realloc_array(void *old, size_t count, size_t size) {
    size_t bytes = 0;
    if (!tare__mul_size(count, size, &bytes)) return NULL;
    return tare__system()->realloc(old, at_least_one(bytes));
}

void *tare__alloc_aligned(size_t size, size_t alignment) {
    assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
    // aligned_alloc wants a multiple of the alignment, and an alignment of at least a pointer's.
    const size_t step = alignment < sizeof(void *) ? sizeof(void *) : alignment;
    size_t padded = 0;
    if (!tare__add_size(at_least_one(size), step - 1, &padded)) return NULL;
    return tare__system()->aligned_alloc(step, padded & ~(step - 1));
}

enum { LARGE_PAGE = 2 << 20, LEAST_LARGE = 4 << 20, LINE = 64 };

void *tare__alloc_lines(size_t count, size_t size) {
    size_t bytes = 0;
    if (!tare__mul_size(count, size, &bytes)) return NULL;
    void *memory = tare__alloc_aligned(bytes, LINE);
    if (memory != NULL) memset(memory, 0, bytes);
    return memory;
}

size_t tare__large_size(size_t size) {
    if (size < LEAST_LARGE || size > SIZE_MAX - LARGE_PAGE) return size;
    return (size + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
}

void *tare__alloc_large(size_t size) {
    if (size < LEAST_LARGE) return tare__alloc_aligned(size, LINE);
    const size_t whole = tare__large_size(size);
    void *memory = tare__alloc_aligned(whole, LARGE_PAGE);
#ifdef MADV_HUGEPAGE
    // Without large pages the system continues with small ones.
    if (memory != NULL) (void)madvise(memory, whole, MADV_HUGEPAGE);
#endif
    return memory;
}

bool tare__memory_is_at_hand(size_t size) {
    return tare__system()->has_memory(at_least_one(size));
}

void tare__free(void *memory) {
    tare__system()->free(memory);
}

void tare__free_aligned(void *memory) {
    tare__system()->free(memory);
}

char *tare__strndup(const char *text, size_t length) {
    size_t size = 0;
    if (!tare__add_size(length, 1, &size)) return NULL;
    char *copy = tare__alloc(size);
    if (!copy) return NULL;
    if (length) memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *tare__strdup(const char *text) {
    return tare__strndup(text, strlen(text));
}

bool tare__grow(void **array, size_t *capacity, size_t count, size_t element_size) {
    if (count < *capacity) return true;
    size_t wanted = 8;
    if (*capacity >= 8 && !tare__mul_size(*capacity, 2, &wanted)) return false;
    if (wanted <= count && !tare__add_size(count, 1, &wanted)) return false;
    void *grown = tare__realloc_array(*array, wanted, element_size);
    if (!grown) return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

// --- for programs ---

void *tare_memory_allocate(size_t count, size_t size) {
    return tare__alloc_zeroed(count, size);
}

void *tare_memory_reallocate(void *old, size_t count, size_t size) {
    return tare__realloc_array(old, count, size);
}

void tare_memory_release(void *memory) {
    tare__free(memory);
}
