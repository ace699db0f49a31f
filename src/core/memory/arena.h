// SPDX-License-Identifier: Apache-2.0
// An arena: many small allocations, one release. A graph owns one, a pass owns a scratch one.
#ifndef CORE_MEMORY_ARENA_H
#define CORE_MEMORY_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct arena_block arena_block;
typedef struct arena {
    arena_block *blocks; // newest first; zero-initialized is a valid empty arena
} arena;

/// Zeroed memory aligned for any type; NULL if memory ran out.
void *tare__arena_alloc(arena *a, size_t size);
void *tare__arena_array(arena *a, size_t count, size_t size);
char *tare__arena_strdup(arena *a, const char *text);
char *tare__arena_strndup(arena *a, const char *text, size_t length);
/// Sets *to to a copy of `from`, or to NULL if that is NULL. False if memory ran out.
bool tare__arena_copy_text(arena *a, const char *from, const char **to);
char *tare__arena_printf(arena *a, const char *format, ...)
#if defined(__GNUC__) || defined(__clang__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/// Empties the arena but keeps its memory: filling it again to the same size allocates nothing.
void tare__arena_clear(arena *a);
void tare__arena_release(arena *a);

#endif
