// SPDX-License-Identifier: Apache-2.0
// Sizes and checksums come from the archive's directory: torch leaves those beside the data empty.
#include "io/pt2/archive.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "core/text.h"

enum { STORED = 0, DEFLATED = 8, ENCRYPTED_FLAG = 1, LONGEST_NAME = 1024, MOST_MEMBERS = 1 << 20 };

// Deflate's best: 258 bytes in 2 bits, and blocks that cost a little. Nothing honest needs more.
static const uint64_t largest_ratio = 1032;

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

static tare_status check_name(pt2_archive *a, const char *name, const unz_file_info64 *info,
                              const char *root, size_t root_length) {
    if (info->size_filename > LONGEST_NAME || strlen(name) != info->size_filename)
        return tare__fail(a->err, TARE_MALFORMED_FILE,
                          "a member has too long a name, or one with a NUL in it");
    if (!stays_inside(name))
        return tare__fail(a->err, TARE_MALFORMED_FILE,
                          "member '%s': the name leads out of the archive", name);
    if (strncmp(name, root, root_length) != 0 || name[root_length] != '/')
        return tare__fail(a->err, TARE_MALFORMED_FILE,
                          "member '%s' stands outside of the archive's folder '%.*s'", name,
                          (int)root_length, root);
    if ((info->flag & ENCRYPTED_FLAG) != 0)
        return tare__fail(a->err, TARE_MALFORMED_FILE, "member '%s' is encrypted", name);
    return TARE_OK;
}

static tare_status keep_member(pt2_archive *a, const char *name, const unz_file_info64 *info) {
    pt2_member *m = tare__arena_alloc(&a->names, sizeof *m);
    if (m == NULL) return tare__out_of_memory(a->err);
    *m = (pt2_member){.name = tare__arena_strdup(&a->names, name),
                      .packed_size = info->compressed_size,
                      .size = info->uncompressed_size,
                      .method = info->compression_method,
                      .checksum = info->crc};
    if (m->name == NULL) return tare__out_of_memory(a->err);
    if (unzGetFilePos64(a->zip, &m->place) != UNZ_OK)
        return tare__fail(a->err, TARE_MALFORMED_FILE, "the archive's directory is broken");
    if (tare__map_has(&a->members, m->name))
        return tare__fail(a->err, TARE_MALFORMED_FILE, "member '%s' is there twice", m->name);
    return tare__map_set(&a->members, m->name, m) ? TARE_OK : tare__out_of_memory(a->err);
}

// The text before the first '/' of the first member is the root folder.
static tare_status read_directory(pt2_archive *a) {
    char root[LONGEST_NAME + 1] = "", name[LONGEST_NAME + 1];
    uint64_t packed = 0;
    int found = unzGoToFirstFile(a->zip);
    while (found == UNZ_OK) {
        unz_file_info64 info;
        if (unzGetCurrentFileInfo64(a->zip, &info, name, sizeof name, NULL, 0, NULL, 0) != UNZ_OK)
            break;
        name[LONGEST_NAME] = '\0';
        if (root[0] == '\0') memcpy(root, name, sizeof root);
        const size_t root_length = strcspn(root, "/");
        TARE_TRY(check_name(a, name, &info, root, root_length));
        if (info.compressed_size > a->size - packed || a->members.count == MOST_MEMBERS)
            return tare__fail(a->err, TARE_MALFORMED_FILE,
                              "member '%s' overlaps others or ends past the file", name);
        packed += info.compressed_size;
        TARE_TRY(keep_member(a, name + root_length + 1, &info));
        found = unzGoToNextFile(a->zip);
    }
    if (found == UNZ_END_OF_LIST_OF_FILE) return TARE_OK;
    return tare__fail(a->err, TARE_MALFORMED_FILE, "the archive's directory is broken");
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
            : tare__fail(err, TARE_MALFORMED_FILE,
                         "the zip archive has no directory at its end: the file is cut");
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
    return tare__fail(a->err, TARE_MALFORMED_FILE, "member '%s' %s", m->name, what);
}

static tare_status read_stored(pt2_archive *a, const pt2_member *m, pt2_bytes *out) {
    const uint64_t offset = unzGetCurrentFileZStreamPos64(a->zip);
    if (m->packed_size != m->size) return broken(a, m, "is stored in another size than its own");
    if (offset > a->size || m->size > a->size - offset) return broken(a, m, "ends past the file");
    const unsigned char *bytes = a->data + offset;
    // torch can be told to leave checksums out, which are 0 then.
    if (m->checksum != 0 && crc32_z(crc32_z(0, NULL, 0), bytes, (size_t)m->size) != m->checksum)
        return broken(a, m, "does not match its checksum");
    *out = (pt2_bytes){tare__storage_retain(a->store), bytes, (size_t)m->size};
    return TARE_OK;
}

static tare_status read_deflated(pt2_archive *a, const pt2_member *m, pt2_bytes *out) {
    if (m->size / largest_ratio > m->packed_size || m->size > SIZE_MAX / 2)
        return broken(a, m, "claims to hold more than deflate can pack");
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

tare_status tare__pt2_read_member(pt2_archive *a, const char *name, pt2_bytes *out) {
    pt2_member *m = tare__map_get(&a->members, name);
    if (m == NULL)
        return tare__fail(a->err, TARE_MALFORMED_FILE, "the archive has no member '%s'", name);
    if (unzGoToFilePos64(a->zip, &m->place) != UNZ_OK || unzOpenCurrentFile(a->zip) != UNZ_OK)
        return broken(a, m, "cannot be opened");
    tare_status status = TARE_OK;
    if (m->method == STORED)
        status = read_stored(a, m, out);
    else if (m->method == DEFLATED)
        status = read_deflated(a, m, out);
    else
        status = tare__fail(a->err, TARE_UNSUPPORTED,
                            "member '%s' is compressed by method %lu; 0 and 8 are known", m->name,
                            m->method);
    // Closing checks the checksum of what was inflated.
    if (unzCloseCurrentFile(a->zip) == UNZ_CRCERROR && status == TARE_OK && m->method == DEFLATED) {
        tare__storage_release(out->store);
        status = broken(a, m, "does not match its checksum");
    }
    return status;
}
