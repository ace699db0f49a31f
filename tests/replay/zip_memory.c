// SPDX-License-Identifier: Apache-2.0
// The callbacks that minizip reads and writes through.
#include "replay/zip_memory.h"

#include <stdint.h>
#include <string.h>

#include "core/memory/alloc.h"

static void *open_memory(void *user, const void *name, int mode) {
    (void)name;
    (void)mode;
    return user;
}

static uLong read_memory(void *user, void *stream, void *out, uLong size) {
    zip_memory *m = stream;
    (void)user;
    const size_t left = m->position < m->size ? m->size - m->position : 0;
    const size_t count = size < left ? size : left;
    if (count > 0) memcpy(out, m->data + m->position, count);
    m->position += count;
    return count;
}

static bool reserve(zip_memory *m, size_t size) {
    if (size <= m->capacity) return true;
    const size_t doubled = m->capacity > SIZE_MAX / 2 ? size : 2 * m->capacity;
    const size_t capacity = size > doubled ? size : doubled;
    unsigned char *grown = tare__realloc_array(m->data, capacity, 1);
    if (grown == NULL) return false;
    m->data = grown;
    m->capacity = capacity;
    return true;
}

// minizip leaks what it has allocated when a write fails. Lost memory is therefore only noted, and
// the writes go on into nothing.
static uLong write_memory(void *user, void *stream, const void *bytes, uLong size) {
    zip_memory *m = stream;
    (void)user;
    size_t end = 0;
    m->failed = m->failed || !tare__add_size(m->position, size, &end) || !reserve(m, end);
    end = m->position + size;
    if (!m->failed && size > 0) memcpy(m->data + m->position, bytes, size);
    m->position = end;
    if (end > m->size) m->size = end;
    return size;
}

static ZPOS64_T tell_memory(void *user, void *stream) {
    (void)user;
    return ((const zip_memory *)stream)->position;
}

static long seek_memory(void *user, void *stream, ZPOS64_T offset, int origin) {
    zip_memory *m = stream;
    (void)user;
    size_t base = 0, position = 0;
    if (origin == ZLIB_FILEFUNC_SEEK_CUR) base = m->position;
    if (origin == ZLIB_FILEFUNC_SEEK_END) base = m->size;
    if (!tare__add_size(base, offset, &position) || position > m->size) return -1;
    m->position = position;
    return 0;
}

static int close_memory(void *user, void *stream) {
    (void)user;
    (void)stream;
    return 0;
}

static int error_of_memory(void *user, void *stream) {
    (void)user;
    (void)stream;
    return 0;
}

static zlib_filefunc64_def functions(zip_memory *memory) {
    return (zlib_filefunc64_def){.zopen64_file = open_memory,
                                 .zread_file = read_memory,
                                 .zwrite_file = write_memory,
                                 .ztell64_file = tell_memory,
                                 .zseek64_file = seek_memory,
                                 .zclose_file = close_memory,
                                 .zerror_file = error_of_memory,
                                 .opaque = memory};
}

unzFile unzip_open(zip_memory *memory) {
    zlib_filefunc64_def f = functions(memory);
    return unzOpen2_64("", &f);
}

zipFile zip_open(zip_memory *memory) {
    zlib_filefunc64_def f = functions(memory);
    return zipOpen2_64("", APPEND_STATUS_CREATE, NULL, &f);
}
