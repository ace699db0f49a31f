// SPDX-License-Identifier: Apache-2.0
// Reads the zip archive. Sizes and checksums come from the central directory, because torch leaves
// them empty in local headers.
#include "io/pt2/read/archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "core/text/text.h"
#include "io/zip/deflate.h"

enum { LONGEST_NAME = 1024, MOST_MEMBERS = 1 << 20 };

// The largest compression ratio of deflate: 258 bytes in 2 bits. A larger one indicates a zip bomb.
static const uint64_t largest_ratio = 1032;

static tare_status distrust(const pt2_archive *a, tare_status status) {
    return tare__hint(a->err, status, "torch writes no such archive: do not trust the file");
}
static tare_status is_damaged(const pt2_archive *a, tare_status status) {
    return tare__hint(a->err, status, "the file is incomplete or damaged: copy it again");
}

// --- the directory ---

// True for relative paths like "a/b/c" without empty segments, ".", "..", or a drive.
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

static tare_status check_name(const pt2_archive *a, const char *name, const zip_entry *info,
                              const char *root, size_t root_length) {
    if (strlen(name) != info->name_length)
        return tare__fail(
            a->err, TARE_MALFORMED_FILE,
            "a member's name has %zu bytes or a NUL in it; expected at most %d and none",
            info->name_length, LONGEST_NAME);
    if (!stays_inside(name))
        return tare__fail(a->err, TARE_MALFORMED_FILE,
                          "member '%s': the name leads out of the archive; expected FOLDER/..",
                          name);
    if (strncmp(name, root, root_length) != 0 || name[root_length] != '/')
        return tare__fail(a->err, TARE_MALFORMED_FILE,
                          "member '%s' stands outside of the archive's folder '%.*s'", name,
                          (int)root_length, root);
    if ((info->flags & ZIP_ENCRYPTED) != 0)
        return tare__fail(a->err, TARE_MALFORMED_FILE, "member '%s' is encrypted", name);
    return TARE_OK;
}

static tare_status broken_directory(const pt2_archive *a) {
    return is_damaged(a, tare__fail(a->err, TARE_MALFORMED_FILE,
                                    "the archive's directory ends after %zu members; it says that "
                                    "there are more",
                                    a->members.count));
}

static tare_status lacks_sizes(const pt2_archive *a, const char *name) {
    return distrust(a, tare__fail(a->err, TARE_MALFORMED_FILE,
                                  "member '%s' has sizes of 64 bits, but no field that holds them",
                                  name));
}

static tare_status check_sizes(const pt2_archive *a, const pt2_member *m, uint64_t taken) {
    if (m->info.packed_size > a->size - taken)
        return distrust(a, tare__fail(a->err, TARE_MALFORMED_FILE,
                                      "member '%s' is said to take %" PRIu64
                                      " bytes, and there are %" PRIu64 " left for it",
                                      m->name, m->info.packed_size, (uint64_t)(a->size - taken)));
    if (tare__map_has(&a->members, m->name))
        return distrust(a, tare__fail(a->err, TARE_MALFORMED_FILE,
                                      "member '%s' occurs twice; expected once", m->name));
    if (a->members.count == MOST_MEMBERS)
        return distrust(
            a, tare__fail(a->err, TARE_MALFORMED_FILE, "more than %d members", MOST_MEMBERS));
    return TARE_OK;
}

static tare_status keep_member(pt2_archive *a, const char *full_name, size_t root_length,
                               const zip_entry *info, uint64_t *taken) {
    pt2_member *m = tare__arena_alloc(&a->names, sizeof *m);
    if (m == NULL) return tare__out_of_memory(a->err);
    *m = (pt2_member){.full_name = tare__arena_strdup(&a->names, full_name), .info = *info};
    if (m->full_name == NULL) return tare__out_of_memory(a->err);
    m->name = m->full_name + root_length + 1;
    TARE_TRY(check_sizes(a, m, *taken));
    *taken += info->packed_size;
    return tare__map_set(&a->members, m->name, m) ? TARE_OK : tare__out_of_memory(a->err);
}

static tare_status broken(const pt2_archive *a, const pt2_member *m, const char *what) {
    return is_damaged(a, tare__fail(a->err, TARE_MALFORMED_FILE,
                                    "member '%s' (%" PRIu64 " bytes, %" PRIu64 " packed) %s",
                                    m->name, m->info.size, m->info.packed_size, what));
}

static tare_status take_memory(const pt2_archive *a, const pt2_member *m, memory_budget *b) {
    char what[96];
    (void)snprintf(what, sizeof what, "member '%.64s'", m->name);
    return tare__budget_take(b, m->info.size, what, a->err);
}

// Checks the sizes of all compressed members against the memory budget before inflating any.
static tare_status check_inflated_sizes(const pt2_archive *a) {
    memory_budget rest = a->budget;
    for (size_t i = 0; i < a->members.count; i++) {
        const pt2_member *m = a->members.entries[i].value;
        if (m->info.method != ZIP_DEFLATED) continue;
        if (m->info.size / largest_ratio > m->info.packed_size || m->info.size > SIZE_MAX / 2)
            return broken(a, m, "claims to hold more than deflate can pack");
        TARE_TRY(take_memory(a, m, &rest));
    }
    return TARE_OK;
}

// The text before the first '/' of the first member is the root folder.
static tare_status read_directory(pt2_archive *a) {
    char root[LONGEST_NAME + 1] = "", name[LONGEST_NAME + 1];
    uint64_t taken = 0;
    zip_entry info;
    zip_step step;
    while ((step = tare__zip_next(&a->directory, &info)) == ZIP_ENTRY || step == ZIP_LACKS_SIZES) {
        const size_t length = info.name_length < LONGEST_NAME ? info.name_length : LONGEST_NAME;
        memcpy(name, info.name, length);
        name[length] = '\0';
        if (root[0] == '\0') memcpy(root, name, sizeof root);
        const size_t root_length = strcspn(root, "/");
        const tare_status status = check_name(a, name, &info, root, root_length);
        if (status != TARE_OK) return distrust(a, status);
        if (step == ZIP_LACKS_SIZES) return lacks_sizes(a, name);
        TARE_TRY(keep_member(a, name, root_length, &info, &taken));
    }
    return step == ZIP_END ? check_inflated_sizes(a) : broken_directory(a);
}

tare_status tare__pt2_open(storage *store, const unsigned char *data, size_t size,
                           uint64_t memory_limit, tare_error *err, pt2_archive *out) {
    *out = (pt2_archive){.store = store,
                         .data = data,
                         .size = size,
                         .budget = tare__file_budget(memory_limit, size),
                         .err = err};
    const tare_status status =
        tare__zip_open(data, size, &out->directory) && out->directory.ends_with_its_record
            ? read_directory(out)
            : is_damaged(out, tare__fail(err, TARE_MALFORMED_FILE,
                                         "the zip archive has no directory at its end"));
    if (status != TARE_OK) tare__pt2_close(out);
    return status;
}

void tare__pt2_close(pt2_archive *a) {
    tare__map_release(&a->members);
    tare__arena_release(&a->names);
}

bool tare__pt2_has(const pt2_archive *a, const char *name) {
    return tare__map_has(&a->members, name);
}

// --- members ---

static tare_status read_stored(pt2_archive *a, const pt2_member *m, const unsigned char *bytes,
                               pt2_bytes *out) {
    const zip_entry *info = &m->info;
    if (info->packed_size != info->size)
        return broken(a, m, "is stored in another size than its own");
    // torch can omit checksums, which are then 0.
    if (info->checksum != 0 &&
        crc32_z(crc32_z(0, NULL, 0), bytes, (size_t)info->size) != info->checksum)
        return broken(a, m, "does not match its checksum");
    *out = (pt2_bytes){tare__storage_retain(a->store), bytes, (size_t)info->size};
    return TARE_OK;
}

static tare_status inflate_member(const pt2_archive *a, const pt2_member *m,
                                  const unsigned char *packed, unsigned char *out) {
    inflater f;
    TARE_TRY(tare__inflate_begin(&f, packed, m->info.packed_size, a->err));
    tare_status status = tare__inflate(&f, out, (size_t)m->info.size, a->err);
    if (status == TARE_MALFORMED_FILE) status = broken(a, m, "is too short or damaged");
    if (status == TARE_OK && f.checksum != m->info.checksum)
        status = broken(a, m, "does not match its checksum");
    tare__inflate_end(&f);
    return status;
}

static tare_status read_deflated(pt2_archive *a, const pt2_member *m, const unsigned char *packed,
                                 pt2_bytes *out) {
    const zip_entry *info = &m->info;
    // Members are not cached: one that is read twice is inflated and counted twice.
    TARE_TRY(take_memory(a, m, &a->budget));
    storage *store = tare__storage_create((size_t)info->size);
    if (store == NULL) return tare__out_of_memory(a->err);
    // Written before the storage is shared.
    unsigned char *bytes = (unsigned char *)tare__storage_data(store);
    const tare_status status = inflate_member(a, m, packed, bytes);
    if (status != TARE_OK) {
        tare__storage_release(store);
        return status;
    }
    *out = (pt2_bytes){store, bytes, (size_t)info->size};
    return TARE_OK;
}

tare_status tare__pt2_read_member(pt2_archive *a, const char *name, pt2_bytes *out) {
    pt2_member *m = tare__map_get(&a->members, name);
    if (m == NULL)
        return is_damaged(
            a, tare__fail(a->err, TARE_MALFORMED_FILE, "the archive has no member '%s'", name));
    const unsigned char *data = tare__zip_find_data(&a->directory, &m->info);
    if (data == NULL) return broken(a, m, "does not stand where the directory says");
    if (m->info.method == ZIP_STORED) return read_stored(a, m, data, out);
    if (m->info.method == ZIP_DEFLATED) return read_deflated(a, m, data, out);
    tare__fail(a->err, TARE_UNSUPPORTED,
               "member '%s' is compressed by method %u; 0 and 8 are known", m->name,
               m->info.method);
    return tare__hint(a->err, TARE_UNSUPPORTED, "pack it again without compression");
}
