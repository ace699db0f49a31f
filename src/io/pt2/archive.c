// SPDX-License-Identifier: Apache-2.0
// Sizes and checksums come from the archive's directory: torch leaves those beside the data empty.
#include "io/pt2/archive.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "core/text.h"

enum { STORED = 0, DEFLATED = 8, ENCRYPTED_FLAG = 1, LONGEST_NAME = 1024, MOST_MEMBERS = 1 << 20 };

// Deflate's best: 258 bytes in 2 bits, and blocks that cost a little. Nothing honest needs more.
static const uint64_t largest_ratio = 1032;

static tare_status distrust(const pt2_archive *a, tare_status status) {
    return tare__hint(a->err, status, "torch writes no such archive: do not trust the file");
}
static tare_status is_damaged(const pt2_archive *a, tare_status status) {
    return tare__hint(a->err, status,
                      "the file is incomplete or damaged: get it again from where it came");
}

// --- the directory ---

// "a/b/c": no empty part, none that leads up or names this very folder, no drive.
static bool stays_inside(const char *name) {
    for (;;) {
        const size_t length = strcspn(name, "/");
        const bool is_dots =
            (length == 1 && name[0] == '.') || (length == 2 && name[0] == '.' && name[1] == '.');
        if (length == 0 || is_dots || memchr(name, '\\', length) != NULL ||
            memchr(name, ':', length) != NULL)
            return false;
        if (name[length] == '\0') return true;
        name += length + 1;
    }
}

static tare_status check_name(const pt2_archive *a, const char *name, const unz_file_info64 *info,
                              const char *root, size_t root_length) {
    if (info->size_filename > LONGEST_NAME || strlen(name) != info->size_filename)
        return tare__fail(
            a->err, TARE_MALFORMED_FILE,
            "a member's name has %lu bytes or a NUL in it; expected at most %d and none",
            info->size_filename, LONGEST_NAME);
    if (!stays_inside(name))
        return tare__fail(a->err, TARE_MALFORMED_FILE,
                          "member '%s': the name leads out of the archive; expected FOLDER/..",
                          name);
    if (strncmp(name, root, root_length) != 0 || name[root_length] != '/')
        return tare__fail(a->err, TARE_MALFORMED_FILE,
                          "member '%s' stands outside of the archive's folder '%.*s'", name,
                          (int)root_length, root);
    if ((info->flag & ENCRYPTED_FLAG) != 0)
        return tare__fail(a->err, TARE_MALFORMED_FILE, "member '%s' is encrypted", name);
    return TARE_OK;
}

static tare_status broken_directory(const pt2_archive *a) {
    return is_damaged(a, tare__fail(a->err, TARE_MALFORMED_FILE,
                                    "the archive's directory ends after %zu members; it says that "
                                    "there are more",
                                    a->members.count));
}

static uint64_t number_at(const unsigned char *at, size_t width) {
    uint64_t number = 0;
    while (width-- > 0) number = number << 8 | at[width];
    return number;
}

// A number that did not fit its 32 bits stands in the extra field, in the order of the header.
static bool widen(uint64_t *number, const unsigned char **at, const unsigned char *end) {
    if (*number != UINT32_MAX) return true;
    if (*at == NULL || end - *at < 8) return false;
    *number = number_at(*at, 8);
    *at += 8;
    return true;
}

// The extra field of 64-bit numbers between `at` and `end`; NULL if there is none.
static const unsigned char *find_big_field(const unsigned char *at, const unsigned char **end) {
    while (*end - at >= 4) {
        const size_t length = (size_t)number_at(at + 2, 2);
        if (length > (size_t)(*end - at) - 4) return NULL;
        if (number_at(at, 2) == 1) {
            *end = at + 4 + length;
            return at + 4;
        }
        at += 4 + length;
    }
    return NULL;
}

// minizip of zlib 1.2 leaves numbers of 64 bits unread, and hides where a member's header stands.
static tare_status read_places(const pt2_archive *a, pt2_member *m) {
    enum { HEADER_SIZE = 46, PACKED_AT = 20, SIZE_AT = 24, NAME_LENGTH_AT = 28, OFFSET_AT = 42 };
    const uint64_t place = m->place.pos_in_zip_directory;
    if (place > a->size || a->size - place < HEADER_SIZE) return broken_directory(a);
    const unsigned char *header = a->data + place;
    const size_t name_length = (size_t)number_at(header + NAME_LENGTH_AT, 2);
    const size_t extra_length = (size_t)number_at(header + NAME_LENGTH_AT + 2, 2);
    if (memcmp(header, "PK\1\2", 4) != 0 ||
        a->size - place - HEADER_SIZE < name_length + extra_length)
        return broken_directory(a);
    const unsigned char *extra = header + HEADER_SIZE + name_length, *end = extra + extra_length;
    const unsigned char *big = find_big_field(extra, &end);
    m->size = number_at(header + SIZE_AT, 4);
    m->packed_size = number_at(header + PACKED_AT, 4);
    m->offset = number_at(header + OFFSET_AT, 4);
    if (widen(&m->size, &big, end) && widen(&m->packed_size, &big, end) &&
        widen(&m->offset, &big, end))
        return TARE_OK;
    return distrust(a, tare__fail(a->err, TARE_MALFORMED_FILE,
                                  "member '%s' has sizes of 64 bits, but no field that holds them",
                                  m->name));
}

static tare_status check_sizes(const pt2_archive *a, const pt2_member *m, uint64_t taken) {
    if (m->packed_size > a->size - taken)
        return distrust(a, tare__fail(a->err, TARE_MALFORMED_FILE,
                                      "member '%s' is said to take %" PRIu64
                                      " bytes, and there are %" PRIu64 " left for it",
                                      m->name, m->packed_size, (uint64_t)(a->size - taken)));
    if (tare__map_has(&a->members, m->name))
        return distrust(a, tare__fail(a->err, TARE_MALFORMED_FILE,
                                      "member '%s' is there twice; expected once", m->name));
    if (a->members.count == MOST_MEMBERS)
        return distrust(
            a, tare__fail(a->err, TARE_MALFORMED_FILE, "more than %d members", MOST_MEMBERS));
    return TARE_OK;
}

static tare_status keep_member(pt2_archive *a, const char *full_name, size_t root_length,
                               const unz_file_info64 *info, uint64_t *taken) {
    pt2_member *m = tare__arena_alloc(&a->names, sizeof *m);
    if (m == NULL) return tare__out_of_memory(a->err);
    *m = (pt2_member){.full_name = tare__arena_strdup(&a->names, full_name),
                      .method = info->compression_method,
                      .checksum = info->crc};
    if (m->full_name == NULL) return tare__out_of_memory(a->err);
    m->name = m->full_name + root_length + 1;
    if (unzGetFilePos64(a->zip, &m->place) != UNZ_OK) return broken_directory(a);
    TARE_TRY(read_places(a, m));
    TARE_TRY(check_sizes(a, m, *taken));
    *taken += m->packed_size;
    return tare__map_set(&a->members, m->name, m) ? TARE_OK : tare__out_of_memory(a->err);
}

// The text before the first '/' of the first member is the root folder.
static tare_status read_directory(pt2_archive *a) {
    char root[LONGEST_NAME + 1] = "", name[LONGEST_NAME + 1];
    uint64_t taken = 0;
    int found = unzGoToFirstFile(a->zip);
    while (found == UNZ_OK) {
        unz_file_info64 info;
        if (unzGetCurrentFileInfo64(a->zip, &info, name, sizeof name, NULL, 0, NULL, 0) != UNZ_OK)
            break;
        name[LONGEST_NAME] = '\0';
        if (root[0] == '\0') memcpy(root, name, sizeof root);
        const size_t root_length = strcspn(root, "/");
        const tare_status status = check_name(a, name, &info, root, root_length);
        if (status != TARE_OK) return distrust(a, status);
        TARE_TRY(keep_member(a, name, root_length, &info, &taken));
        found = unzGoToNextFile(a->zip);
    }
    return found == UNZ_END_OF_LIST_OF_FILE ? TARE_OK : broken_directory(a);
}

// minizip takes a record that ends the directory though its last bytes are missing.
static bool ends_completely(const pt2_archive *a) {
    enum { END_SIZE = 22 };
    unz_global_info64 info;
    if (unzGetGlobalInfo64(a->zip, &info) != UNZ_OK) return false;
    const size_t tail = END_SIZE + info.size_comment;
    return tail <= a->size && memcmp(a->data + a->size - tail, "PK\5\6", 4) == 0;
}

tare_status tare__pt2_open(storage *store, const unsigned char *data, size_t size, tare_error *err,
                           pt2_archive *out) {
    *out = (pt2_archive){.store = store,
                         .data = data,
                         .size = size,
                         .memory = {.data = (unsigned char *)data, .size = size}, // only ever read
                         .err = err};
    out->zip = tare__unzip_open(&out->memory);
    const tare_status status =
        out->zip != NULL && ends_completely(out)
            ? read_directory(out)
            : is_damaged(out, tare__fail(err, TARE_MALFORMED_FILE,
                                         "the zip archive has no directory at its end"));
    if (status != TARE_OK) tare__pt2_close(out);
    return status;
}

void tare__pt2_close(pt2_archive *a) {
    if (a->zip != NULL) unzClose(a->zip);
    a->zip = NULL;
    tare__map_release(&a->members);
    tare__arena_release(&a->names);
}

bool tare__pt2_has(const pt2_archive *a, const char *name) {
    return tare__map_has(&a->members, name);
}

// --- members ---

static tare_status broken(const pt2_archive *a, const pt2_member *m, const char *what) {
    return is_damaged(a, tare__fail(a->err, TARE_MALFORMED_FILE,
                                    "member '%s' (%" PRIu64 " bytes, %" PRIu64 " packed) %s",
                                    m->name, m->size, m->packed_size, what));
}

// The header beside the data has sizes and checksum only sometimes, but always the name.
static bool find_data(const pt2_archive *a, const pt2_member *m, uint64_t *out) {
    enum { HEADER_SIZE = 30, NAME_LENGTH_AT = 26 };
    if (m->offset > a->size || a->size - m->offset < HEADER_SIZE) return false;
    const unsigned char *header = a->data + m->offset;
    const uint64_t name_length = number_at(header + NAME_LENGTH_AT, 2);
    const uint64_t length = HEADER_SIZE + name_length + number_at(header + NAME_LENGTH_AT + 2, 2);
    *out = m->offset + length;
    return memcmp(header, "PK\3\4", 4) == 0 && length <= a->size - m->offset &&
           name_length == strlen(m->full_name) &&
           memcmp(header + HEADER_SIZE, m->full_name, name_length) == 0;
}

static tare_status read_stored(pt2_archive *a, const pt2_member *m, pt2_bytes *out) {
    uint64_t offset;
    if (m->packed_size != m->size) return broken(a, m, "is stored in another size than its own");
    if (!find_data(a, m, &offset)) return broken(a, m, "does not stand where the directory says");
    if (m->size > a->size - offset) return broken(a, m, "ends past the file");
    const unsigned char *bytes = a->data + offset;
    // torch can be told to leave checksums out, which are 0 then.
    if (m->checksum != 0 && crc32_z(crc32_z(0, NULL, 0), bytes, (size_t)m->size) != m->checksum)
        return broken(a, m, "does not match its checksum");
    *out = (pt2_bytes){tare__storage_retain(a->store), bytes, (size_t)m->size};
    return TARE_OK;
}

static tare_status inflate_member(pt2_archive *a, const pt2_member *m, pt2_bytes *out) {
    storage *store = tare__storage_create((size_t)m->size);
    if (store == NULL) return tare__out_of_memory(a->err);
    // Written through the pointer before anybody else sees the storage.
    unsigned char *bytes = (unsigned char *)tare__storage_data(store);
    for (size_t at = 0; at < m->size;) {
        const size_t rest = (size_t)m->size - at;
        const int count = unzReadCurrentFile(a->zip, bytes + at,
                                             rest < INT_MAX ? (unsigned)rest : (unsigned)INT_MAX);
        if (count <= 0) {
            tare__storage_release(store);
            return broken(a, m, "is too short or damaged");
        }
        at += (size_t)count;
    }
    *out = (pt2_bytes){store, bytes, (size_t)m->size};
    return TARE_OK;
}

static tare_status read_deflated(pt2_archive *a, pt2_member *m, pt2_bytes *out) {
    if (m->size / largest_ratio > m->packed_size || m->size > SIZE_MAX / 2)
        return broken(a, m, "claims to hold more than deflate can pack");
    if (unzGoToFilePos64(a->zip, &m->place) != UNZ_OK || unzOpenCurrentFile(a->zip) != UNZ_OK)
        return broken(a, m, "cannot be opened");
    tare_status status = inflate_member(a, m, out);
    // Closing checks the checksum.
    if (unzCloseCurrentFile(a->zip) == UNZ_CRCERROR && status == TARE_OK) {
        tare__storage_release(out->store);
        status = broken(a, m, "does not match its checksum");
    }
    return status;
}

tare_status tare__pt2_read_member(pt2_archive *a, const char *name, pt2_bytes *out) {
    pt2_member *m = tare__map_get(&a->members, name);
    if (m == NULL)
        return is_damaged(
            a, tare__fail(a->err, TARE_MALFORMED_FILE, "the archive has no member '%s'", name));
    if (m->method == STORED) return read_stored(a, m, out);
    if (m->method == DEFLATED) return read_deflated(a, m, out);
    tare__fail(a->err, TARE_UNSUPPORTED,
               "member '%s' is compressed by method %lu; 0 and 8 are known", m->name, m->method);
    return tare__hint(a->err, TARE_UNSUPPORTED, "pack it again without compression");
}
