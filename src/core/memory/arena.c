// SPDX-License-Identifier: Apache-2.0
// Arena: blocks of growing size, newest first; a request that is too large gets a block of its own.
#include "core/memory/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"

enum { FIRST_BLOCK = 1024, LARGEST_BLOCK = 1 << 18 };

struct arena_block {
    arena_block *next;
    size_t used, size; // of bytes
    alignas(max_align_t) unsigned char bytes[];
};

// The new block becomes the first one even if it is for one large request. The rest of the block
// before it is given up, which costs at most one block in two.
static arena_block *add_block(arena *a, size_t size) {
    size_t wanted = a->blocks ? a->blocks->size * 2 : FIRST_BLOCK;
    if (wanted > LARGEST_BLOCK) wanted = LARGEST_BLOCK;
    if (wanted < size) wanted = size;
    size_t total = 0;
    if (!tare__add_size(sizeof(arena_block), wanted, &total)) return NULL;
    arena_block *block = tare__alloc_zeroed(1, total);
    if (!block) return NULL;
    block->size = wanted;
    block->next = a->blocks;
    a->blocks = block;
    return block;
}

void *tare__arena_alloc(arena *a, size_t size) {
    size_t rounded = 0;
    if (!tare__add_size(size ? size : 1, alignof(max_align_t) - 1, &rounded)) return NULL;
    rounded &= ~(alignof(max_align_t) - 1);
    arena_block *block = a->blocks;
    if (!block || block->size - block->used < rounded) block = add_block(a, rounded);
    if (!block) return NULL;
    void *memory = block->bytes + block->used;
    block->used += rounded;
    return memory;
}

void *tare__arena_array(arena *a, size_t count, size_t size) {
    size_t bytes = 0;
    return tare__mul_size(count, size, &bytes) ? tare__arena_alloc(a, bytes) : NULL;
}

char *tare__arena_strndup(arena *a, const char *text, size_t length) {
    size_t size = 0;
    if (!tare__add_size(length, 1, &size)) return NULL;
    char *copy = tare__arena_alloc(a, size);
    if (copy && length)
        memcpy(copy, text, length); // the arena's bytes are zero, so the text is terminated
    return copy;
}

char *tare__arena_strdup(arena *a, const char *text) {
    return tare__arena_strndup(a, text, strlen(text));
}

bool tare__arena_copy_text(arena *a, const char *from, const char **to) {
    *to = from ? tare__arena_strdup(a, from) : NULL;
    return !from || *to;
}

char *tare__arena_printf(arena *a, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    char *out = length < 0 ? NULL : tare__arena_alloc(a, (size_t)length + 1);
    if (out) vsnprintf(out, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return out;
}

void tare__arena_clear(arena *a) {
    size_t total = 0;
    if (!a->blocks) return;
    if (!a->blocks->next) {
        memset(a->blocks->bytes, 0, a->blocks->used);
        a->blocks->used = 0;
        return;
    }
    for (const arena_block *b = a->blocks; b; b = b->next) total += b->size;
    tare__arena_release(a);
    (void)add_block(a, total); // on failure, the next allocation tries again
}

void tare__arena_release(arena *a) {
    arena_block *block = a->blocks;
    while (block) {
        arena_block *next = block->next;
        tare__free(block);
        block = next;
    }
    a->blocks = NULL;
}
