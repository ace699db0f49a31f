// SPDX-License-Identifier: Apache-2.0
// minizip goes back to a member's header once its data is written, which a pipe does not allow, and
// does not align. Sizes and checksums are known beforehand here.
#include "io/pt2/sink.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/text.h"

enum {
    ALIGNMENT = 64,
    LOCAL_SIZE = 30,
    CENTRAL_SIZE = 46,
    EXTRA_HEAD = 4,
    BIG_EXTRA = 28,   // three 64-bit numbers and their head
    VERSION = 20,     // of the format: folders
    BIG_VERSION = 45, // 64-bit sizes
    UTF8_FLAG = 1 << 11,
    FIRST_DAY = 0x21, // 1 January 1980, so that the time of writing does not show
    ZIP64_ID = 1,
    MOST_NAME = 1024,
};

// --- numbers, least byte first ---

typedef struct record {
    unsigned char bytes[LOCAL_SIZE + MOST_NAME + BIG_EXTRA + EXTRA_HEAD + ALIGNMENT + CENTRAL_SIZE];
    size_t size;
} record;

static void put_number(record *r, uint64_t number, size_t width) {
    for (size_t i = 0; i < width; i++, number >>= 8) r->bytes[r->size++] = number & 0xFF;
}

static void put_bytes(record *r, const void *bytes, size_t size) {
    if (size > 0) memcpy(r->bytes + r->size, bytes, size);
    r->size += size;
}

// What does not fit stands in the zip64 extra field, and all bits are set in its place.
static uint64_t small(uint64_t number, uint64_t limit) {
    return number < limit ? number : limit;
}

static tare_status write_record(pt2_sink *s, const record *r) {
    s->position += r->size;
    return tare__file_write(&s->file, r->bytes, r->size, s->err);
}

// --- members ---

static size_t full_length(const pt2_sink *s, const char *name) {
    return strlen(s->root) + 1 + strlen(name);
}

static void put_name(record *r, const pt2_sink *s, const char *name) {
    put_bytes(r, s->root, strlen(s->root));
    put_bytes(r, "/", 1);
    put_bytes(r, name, strlen(name));
}

// The fields that local header and directory share: flags to the length of the name.
static void put_common(record *r, const pt2_sink *s, const sink_member *m) {
    put_number(r, UTF8_FLAG, 2);
    put_number(r, 0, 2); // stored
    put_number(r, 0, 2);
    put_number(r, FIRST_DAY, 2);
    put_number(r, m->checksum, 4);
    put_number(r, small(m->size, UINT32_MAX), 4);
    put_number(r, small(m->size, UINT32_MAX), 4);
    put_number(r, full_length(s, m->name), 2);
}

// Filler up to the next multiple of 64, as torch writes it.
static void put_header(record *r, const pt2_sink *s, const sink_member *m) {
    const bool is_big = m->size >= UINT32_MAX;
    const size_t big = is_big ? BIG_EXTRA - 8 : 0;
    const size_t head = LOCAL_SIZE + full_length(s, m->name) + big + EXTRA_HEAD;
    const size_t filler = (size_t)(ALIGNMENT - (s->position + head) % ALIGNMENT) % ALIGNMENT;
    put_bytes(r, "PK\3\4", 4);
    put_number(r, is_big ? BIG_VERSION : VERSION, 2);
    put_common(r, s, m);
    put_number(r, big + EXTRA_HEAD + filler, 2);
    put_name(r, s, m->name);
    if (is_big) {
        put_number(r, ZIP64_ID, 2);
        put_number(r, 16, 2);
        put_number(r, m->size, 8);
        put_number(r, m->size, 8);
    }
    put_bytes(r, "FB", 2);
    put_number(r, filler, 2);
    memset(r->bytes + r->size, 'Z', filler);
    r->size += filler;
}

tare_status tare__pt2_sink_put(pt2_sink *s, const char *name, const void *data, size_t size) {
    record header = {0};
    if (full_length(s, name) > MOST_NAME)
        return tare__fail(s->err, TARE_INVALID_ARGUMENT, "a name of more than %d bytes: '%s'",
                          MOST_NAME, name);
    if (!tare__grow((void **)&s->members, &s->capacity, s->count, sizeof *s->members))
        return tare__out_of_memory(s->err);
    sink_member *m = &s->members[s->count];
    *m = (sink_member){.name = tare__arena_strdup(&s->names, name),
                       .size = size,
                       .offset = s->position,
                       .checksum = (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, size)};
    if (m->name == NULL) return tare__out_of_memory(s->err);
    s->count++;
    put_header(&header, s, m);
    TARE_TRY(write_record(s, &header));
    s->position += size;
    return tare__file_write(&s->file, data, size, s->err);
}

// --- the directory ---

static tare_status write_entry(pt2_sink *s, const sink_member *m) {
    record r = {0};
    const bool is_big = m->size >= UINT32_MAX || m->offset >= UINT32_MAX;
    put_bytes(&r, "PK\1\2", 4);
    put_number(&r, is_big ? BIG_VERSION : VERSION, 2); // made by
    put_number(&r, is_big ? BIG_VERSION : VERSION, 2); // needed
    put_common(&r, s, m);
    put_number(&r, is_big ? BIG_EXTRA : 0, 2);
    put_number(&r, 0, 2 + 2 + 2); // comment, disk, internal attributes
    put_number(&r, 0, 4);         // external attributes
    // With the extra field all three numbers stand there, whether they fit or not.
    put_number(&r, is_big ? UINT32_MAX : m->offset, 4);
    put_name(&r, s, m->name);
    if (is_big) {
        memset(r.bytes + 20, 0xFF, 8); // the two sizes of put_common
        put_number(&r, ZIP64_ID, 2);
        put_number(&r, BIG_EXTRA - EXTRA_HEAD, 2);
        put_number(&r, m->size, 8);
        put_number(&r, m->size, 8);
        put_number(&r, m->offset, 8);
    }
    return write_record(s, &r);
}

static void put_big_end(record *r, const pt2_sink *s, uint64_t begin) {
    const uint64_t end = s->position;
    put_bytes(r, "PK\6\6", 4);
    put_number(r, 44, 8); // bytes that follow
    put_number(r, BIG_VERSION, 2);
    put_number(r, BIG_VERSION, 2);
    put_number(r, 0, 8); // disks
    put_number(r, s->count, 8);
    put_number(r, s->count, 8);
    put_number(r, end - begin, 8);
    put_number(r, begin, 8);
    put_bytes(r, "PK\6\7", 4);
    put_number(r, 0, 4);
    put_number(r, end, 8);
    put_number(r, 1, 4);
}

static tare_status write_directory(pt2_sink *s) {
    const uint64_t begin = s->position;
    record r = {0};
    for (size_t i = 0; i < s->count; i++) TARE_TRY(write_entry(s, &s->members[i]));
    const uint64_t size = s->position - begin;
    if (s->count >= UINT16_MAX || begin >= UINT32_MAX || size >= UINT32_MAX)
        put_big_end(&r, s, begin);
    put_bytes(&r, "PK\5\6", 4);
    put_number(&r, 0, 4); // disks
    put_number(&r, small(s->count, UINT16_MAX), 2);
    put_number(&r, small(s->count, UINT16_MAX), 2);
    put_number(&r, small(size, UINT32_MAX), 4);
    put_number(&r, small(begin, UINT32_MAX), 4);
    put_number(&r, 0, 2); // comment
    return write_record(s, &r);
}

// --- the whole ---

static const char *root_of(arena *names, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    const size_t length = dot != NULL && dot > name ? (size_t)(dot - name) : strlen(name);
    // What the reader takes for a way out of the archive is no name of a folder.
    if (strcmp(name, "-") == 0 || strcmp(name, "..") == 0 || strpbrk(name, "\\:") != NULL ||
        length == 0 || length > MOST_NAME / 2)
        return tare__arena_strdup(names, "archive");
    return tare__arena_strndup(names, name, length);
}

tare_status tare__pt2_sink_open(pt2_sink *s, const char *path, tare_error *err) {
    *s = (pt2_sink){.err = err};
    s->root = root_of(&s->names, path);
    if (s->root == NULL) return tare__out_of_memory(err);
    return tare__file_begin(&s->file, path, err);
}

tare_status tare__pt2_sink_commit(pt2_sink *s) {
    TARE_TRY(write_directory(s));
    return tare__file_commit(&s->file, s->err);
}

void tare__pt2_sink_close(pt2_sink *s) {
    tare__file_abort(&s->file);
    tare__free(s->members);
    tare__arena_release(&s->names);
}
