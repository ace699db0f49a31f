// SPDX-License-Identifier: Apache-2.0
// Sizes and checksums are known before a member is written, so that no seeking is needed.
#include "io/zip/sink.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "io/zip/read.h"

enum {
    MOST_ALIGNMENT = 64,
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
    unsigned char
        bytes[LOCAL_SIZE + MOST_NAME + BIG_EXTRA + EXTRA_HEAD + MOST_ALIGNMENT + CENTRAL_SIZE];
    size_t size;
} record;

static void put_number(record *r, uint64_t number, size_t width) {
    for (size_t i = 0; i < width; i++, number >>= 8) r->bytes[r->size++] = number & 0xFF;
}

static void put_bytes(record *r, const void *bytes, size_t size) {
    if (size > 0) memcpy(r->bytes + r->size, bytes, size);
    r->size += size;
}

// A number that does not fit is in the zip64 extra field; here all bits are set instead.
static uint64_t small(uint64_t number, uint64_t limit) {
    return number < limit ? number : limit;
}

static tare_status write_record(zip_sink *s, const record *r) {
    s->position += r->size;
    return tare__file_write(&s->file, r->bytes, r->size, s->err);
}

// --- members ---

static size_t full_length(const zip_sink *s, const char *name) {
    return (s->root != NULL ? strlen(s->root) + 1 : 0) + strlen(name);
}

static void put_name(record *r, const zip_sink *s, const char *name) {
    if (s->root != NULL) {
        put_bytes(r, s->root, strlen(s->root));
        put_bytes(r, "/", 1);
    }
    put_bytes(r, name, strlen(name));
}

// The fields that local header and directory share: flags to the length of the name.
static void put_common(record *r, const zip_sink *s, const sink_member *m) {
    put_number(r, UTF8_FLAG, 2);
    put_number(r, m->method, 2);
    put_number(r, 0, 2);
    put_number(r, FIRST_DAY, 2);
    put_number(r, m->checksum, 4);
    put_number(r, small(m->packed_size, UINT32_MAX), 4);
    put_number(r, small(m->size, UINT32_MAX), 4);
    put_number(r, full_length(s, m->name), 2);
}

static bool has_big_sizes(const sink_member *m) {
    return m->size >= UINT32_MAX || m->packed_size >= UINT32_MAX;
}

// Filler up to the next multiple, as torch writes it.
static void put_filler(record *r, const zip_sink *s) {
    const size_t head = r->size + EXTRA_HEAD;
    const size_t filler =
        (size_t)(s->alignment - (s->position + head) % s->alignment) % s->alignment;
    put_bytes(r, "FB", 2);
    put_number(r, filler, 2);
    memset(r->bytes + r->size, 'Z', filler);
    r->size += filler;
}

static void put_header(record *r, const zip_sink *s, const sink_member *m) {
    put_bytes(r, "PK\3\4", 4);
    put_number(r, has_big_sizes(m) ? BIG_VERSION : VERSION, 2);
    put_common(r, s, m);
    put_number(r, 0, 2); // of the extra field, once it is known
    put_name(r, s, m->name);
    const size_t begin = r->size;
    if (has_big_sizes(m)) {
        put_number(r, ZIP64_ID, 2);
        put_number(r, 16, 2);
        put_number(r, m->size, 8);
        put_number(r, m->packed_size, 8);
    }
    if (s->alignment > 1) put_filler(r, s);
    record length = {0};
    put_number(&length, r->size - begin, 2);
    memcpy(r->bytes + LOCAL_SIZE - 2, length.bytes, 2);
}

static tare_status put_member(zip_sink *s, const sink_member *member, const void *data) {
    record header = {0};
    if (full_length(s, member->name) > MOST_NAME)
        return tare__fail(s->err, TARE_INVALID_ARGUMENT, "a name of more than %d bytes: '%s'",
                          MOST_NAME, member->name);
    if (!tare__grow((void **)&s->members, &s->capacity, s->count, sizeof *s->members))
        return tare__out_of_memory(s->err);
    sink_member *m = &s->members[s->count];
    *m = *member;
    m->name = tare__arena_strdup(&s->names, member->name);
    m->offset = s->position;
    if (m->name == NULL) return tare__out_of_memory(s->err);
    s->count++;
    put_header(&header, s, m);
    TARE_TRY(write_record(s, &header));
    s->position += m->packed_size;
    return tare__file_write(&s->file, data, (size_t)m->packed_size, s->err);
}

tare_status tare__zip_sink_put(zip_sink *s, const char *name, const void *data, size_t size) {
    const sink_member m = {.name = name,
                           .method = ZIP_STORED,
                           .size = size,
                           .packed_size = size,
                           .checksum = (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, size)};
    return put_member(s, &m, data);
}

tare_status tare__zip_sink_put_packed(zip_sink *s, const char *name, const deflater *d) {
    const sink_member m = {.name = name,
                           .method = ZIP_DEFLATED,
                           .size = d->size,
                           .packed_size = d->packed.length,
                           .checksum = d->checksum};
    return put_member(s, &m, tare__text_chars(&d->packed));
}

// --- the directory ---

static tare_status write_entry(zip_sink *s, const sink_member *m) {
    record r = {0};
    const bool is_big = has_big_sizes(m) || m->offset >= UINT32_MAX;
    put_bytes(&r, "PK\1\2", 4);
    put_number(&r, is_big ? BIG_VERSION : VERSION, 2); // made by
    put_number(&r, is_big ? BIG_VERSION : VERSION, 2); // needed
    put_common(&r, s, m);
    put_number(&r, is_big ? BIG_EXTRA : 0, 2);
    put_number(&r, 0, 2 + 2 + 2); // comment, disk, internal attributes
    put_number(&r, 0, 4);         // external attributes
    // With the extra field, all three numbers are there.
    put_number(&r, is_big ? UINT32_MAX : m->offset, 4);
    put_name(&r, s, m->name);
    if (is_big) {
        memset(r.bytes + 20, 0xFF, 8); // the two sizes of put_common
        put_number(&r, ZIP64_ID, 2);
        put_number(&r, BIG_EXTRA - EXTRA_HEAD, 2);
        put_number(&r, m->size, 8);
        put_number(&r, m->packed_size, 8);
        put_number(&r, m->offset, 8);
    }
    return write_record(s, &r);
}

static void put_big_end(record *r, const zip_sink *s, uint64_t begin) {
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

static tare_status write_directory(zip_sink *s) {
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

tare_status tare__zip_sink_open(zip_sink *s, const char *path, const char *root, size_t alignment,
                                tare_error *err) {
    assert(alignment >= 1 && alignment <= MOST_ALIGNMENT);
    *s = (zip_sink){.err = err, .alignment = alignment};
    if (root != NULL && (s->root = tare__arena_strdup(&s->names, root)) == NULL)
        return tare__out_of_memory(err);
    return tare__file_begin(&s->file, path, err);
}

tare_status tare__zip_sink_commit(zip_sink *s) {
    TARE_TRY(write_directory(s));
    return tare__file_commit(&s->file, s->err);
}

void tare__zip_sink_close(zip_sink *s) {
    tare__file_abort(&s->file);
    tare__free(s->members);
    tare__arena_release(&s->names);
}
