// SPDX-License-Identifier: Apache-2.0
// Reads and writes .npz files. A member's size in the zip directory must equal that of the array's
// header and must not exceed what its compressed bytes can expand to.
#include "io/data/npz.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "core/memory/alloc.h"
#include "core/memory/budget.h"
#include "core/system/file.h"
#include "io/data/npy.h"
#include "io/zip/read.h"
#include "io/zip/sink.h"

enum { LONGEST_NAME = 1024 };

// The largest compression ratio of deflate: 258 bytes in 2 bits. A larger one indicates a zip bomb.
static const uint64_t largest_ratio = 1032;

typedef struct reader {
    storage *store;
    const unsigned char *data;
    size_t size;
    zip_directory directory;
    uint64_t packed_bytes; // of all members so far; if they exceed the file, members overlap
    map *tensors;
    tare_error *err;
} reader;

// The current member.
typedef struct member {
    char file_name[LONGEST_NAME + 1], name[LONGEST_NAME + 1]; // name: without ".npy"
    zip_entry info;
    const unsigned char *packed; // info.packed_size bytes
} member;

static tare_status broken(const reader *r, const member *m, const char *what) {
    return tare__fail(r->err, TARE_MALFORMED_FILE, "member '%s' %s", m->file_name, what);
}

static tare_status broken_directory(const reader *r) {
    return tare__fail(r->err, TARE_MALFORMED_FILE, "the archive's directory is broken");
}

static tare_status read_member_info(reader *r, member *m) {
    const size_t length = m->info.name_length < LONGEST_NAME ? m->info.name_length : LONGEST_NAME;
    memcpy(m->file_name, m->info.name, length);
    m->file_name[length] = '\0';
    if (strlen(m->file_name) != m->info.name_length)
        return broken(r, m, "has too long a name, or one with a NUL in it");
    if (!tare__ends_with(m->file_name, ".npy")) return broken(r, m, "is not an array (.npy)");
    memcpy(m->name, m->file_name, length - 4);
    m->name[length - 4] = '\0';
    if ((m->info.flags & ZIP_ENCRYPTED) != 0) return broken(r, m, "is encrypted");
    if (tare__map_has(r->tensors, m->name)) return broken(r, m, "is there twice");
    if (m->info.packed_size > r->size - r->packed_bytes)
        return broken(r, m, "overlaps others or ends past the file");
    r->packed_bytes += m->info.packed_size;
    m->packed = tare__zip_find_data(&r->directory, &m->info);
    return m->packed != NULL ? TARE_OK
                             : broken(r, m,
                                      "does not stand where the directory says, or ends past "
                                      "the file");
}

static tare_status read_stored(const reader *r, const member *m, tare_tensor **out) {
    if (m->info.packed_size != m->info.size)
        return broken(r, m, "is stored in another size than its own");
    const size_t size = (size_t)m->info.size;
    if (crc32_z(crc32_z(0, NULL, 0), m->packed, size) != m->info.checksum)
        return broken(r, m, "does not match its checksum");
    return tare__npy_parse(r->store, m->packed, size, out, r->err);
}

static tare_status inflate_exactly(const reader *r, const member *m, inflater *f,
                                   unsigned char *out, size_t size) {
    const tare_status status = tare__inflate(f, out, size, r->err);
    return status == TARE_MALFORMED_FILE ? broken(r, m, "is too short or damaged") : status;
}

// Inflates only the header and checks the declared size, before memory for the array is allocated.
static tare_status check_inflated_size(const reader *r, const member *m, inflater *f,
                                       text *header) {
    unsigned char prefix[NPY_PREFIX];
    size_t length = 0;
    TARE_TRY(inflate_exactly(r, m, f, prefix, sizeof prefix));
    TARE_TRY(tare__npy_header_size(prefix, sizeof prefix, &length, r->err));
    tare__text_append_n(header, (const char *)prefix, sizeof prefix);
    tare__text_spaces(header, length > sizeof prefix ? length - sizeof prefix : 0);
    TARE_TRY(tare__text_status(header, r->err));
    unsigned char *bytes = (unsigned char *)header->chars;
    if (length > sizeof prefix)
        TARE_TRY(inflate_exactly(r, m, f, bytes + sizeof prefix, length - sizeof prefix));
    npy_header h = {0};
    TARE_TRY(tare__npy_parse_header(bytes, header->length, &h, r->err));
    size_t size = 0;
    if (tare__add_size(h.header_bytes, h.data_bytes, &size) && size == m->info.size) return TARE_OK;
    return tare__fail(
        r->err, TARE_MALFORMED_FILE,
        "member '%s' has %llu bytes, of which %zu are the array's header; its elements "
        "take %zu",
        m->file_name, (unsigned long long)m->info.size, h.header_bytes, h.data_bytes);
}

static tare_status inflate_rest(const reader *r, const member *m, inflater *f, const text *header,
                                tare_tensor **out) {
    const size_t size = (size_t)m->info.size;
    storage *store = tare__storage_create(size);
    if (store == NULL) return tare__out_of_memory(r->err);
    // Written before the storage is shared.
    unsigned char *bytes = (unsigned char *)tare__storage_data(store);
    const size_t known = header->length < size ? header->length : size;
    memcpy(bytes, header->chars, known);
    tare_status status = inflate_exactly(r, m, f, bytes + known, size - known);
    if (status == TARE_OK && f->checksum != m->info.checksum)
        status = broken(r, m, "does not match its checksum");
    if (status == TARE_OK) status = tare__npy_parse(store, bytes, size, out, r->err);
    tare__storage_release(store);
    return status;
}

static tare_status read_deflated(const reader *r, const member *m, tare_tensor **out) {
    if (m->info.size / largest_ratio > m->info.packed_size)
        return broken(r, m, "claims to hold more than deflate can pack");
    text header = {0};
    inflater f;
    TARE_TRY(tare__inflate_begin(&f, m->packed, m->info.packed_size, r->err));
    tare_status status = check_inflated_size(r, m, &f, &header);
    if (status == TARE_OK) status = inflate_rest(r, m, &f, &header, out);
    tare__inflate_end(&f);
    tare__text_release(&header);
    return status;
}

static tare_status read_packed_member(const reader *r, const member *m, tare_tensor **out) {
    switch (m->info.method) {
    case ZIP_STORED:
        return read_stored(r, m, out);
    case ZIP_DEFLATED:
        return read_deflated(r, m, out);
    default:
        return tare__fail(r->err, TARE_UNSUPPORTED,
                          "member '%s' is compressed by method %u; 0 and 8 are known", m->file_name,
                          m->info.method);
    }
}

static tare_status read_member(reader *r, const zip_entry *entry) {
    member m = {.info = *entry};
    tare_tensor *t = NULL;
    TARE_TRY(read_member_info(r, &m));
    const tare_status status = read_packed_member(r, &m, &t);
    if (status != TARE_OK) return tare__at(r->err, status, "%s", m.file_name);
    if (tare__map_set(r->tensors, m.name, t)) return TARE_OK;
    tare_tensor_release(t);
    return tare__out_of_memory(r->err);
}

// Takes the declared size from the budget. A member is never inflated beyond its declared size.
static tare_status count_member(const reader *r, const zip_entry *entry, memory_budget *budget) {
    char what[96];
    if (entry->method != ZIP_DEFLATED) return TARE_OK;
    const int length = entry->name_length < 79 ? (int)entry->name_length : 79;
    (void)snprintf(what, sizeof what, "member '%.*s'", length, entry->name);
    return tare__budget_take(budget, entry->size, what, r->err);
}

static tare_status count_members(const reader *r, memory_budget *budget) {
    zip_directory directory = r->directory;
    zip_entry entry;
    zip_step step;
    while ((step = tare__zip_next(&directory, &entry)) == ZIP_ENTRY)
        TARE_TRY(count_member(r, &entry, budget));
    return step == ZIP_END ? TARE_OK : broken_directory(r);
}

static tare_status read_members(reader *r, memory_budget *budget) {
    zip_entry entry;
    TARE_TRY(count_members(r, budget));
    while (tare__zip_next(&r->directory, &entry) == ZIP_ENTRY) TARE_TRY(read_member(r, &entry));
    return TARE_OK;
}

tare_status tare__npz_parse(storage *store, const unsigned char *data, size_t size,
                            uint64_t memory_limit, map *tensors, tare_error *err) {
    map made = {0};
    memory_budget budget = tare__file_budget(memory_limit, size);
    reader r = {.store = store, .data = data, .size = size, .tensors = &made, .err = err};
    if (!tare__zip_open(data, size, &r.directory))
        return tare__fail(err, TARE_MALFORMED_FILE, "%zu bytes that are not a zip archive", size);
    const tare_status status = read_members(&r, &budget);
    if (status == TARE_OK)
        *tensors = made;
    else
        tare__tensor_map_release(&made);
    return status;
}

tare_status tare__npz_read(const char *path, uint64_t memory_limit, map *tensors, tare_error *err) {
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    TARE_TRY(tare__file_map(path, &store, &data, &size, err));
    const tare_status status = tare__npz_parse(store, data, size, memory_limit, tensors, err);
    tare__storage_release(store);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", path);
}

// --- writing ---

static tare_status put_array(zip_sink *zip, const char *file_name, const text *header,
                             const tare_tensor *t) {
    deflater d;
    TARE_TRY(tare__deflate_begin(&d, zip->err));
    tare_status status = tare__deflate(&d, header->chars, header->length, zip->err);
    if (status == TARE_OK) status = tare__deflate(&d, t->data, tare__tensor_bytes(t), zip->err);
    if (status == TARE_OK) status = tare__deflate_finish(&d, zip->err);
    if (status == TARE_OK) status = tare__zip_sink_put_packed(zip, file_name, &d);
    tare__deflate_end(&d);
    return status;
}

static tare_status write_array(zip_sink *zip, const char *name, const tare_tensor *t) {
    text header = {0}, file_name = {0};
    tare_status status = tare__npy_make_header(t, &header, zip->err);
    if (status != TARE_OK) tare__at(zip->err, status, "array '%s'", name);
    tare__text_printf(&file_name, "%s.npy", name);
    if (status == TARE_OK) status = tare__text_status(&file_name, zip->err);
    if (status == TARE_OK) status = put_array(zip, file_name.chars, &header, t);
    tare__text_release(&header);
    tare__text_release(&file_name);
    return status;
}

tare_status tare__npz_write(const char *path, const map *tensors, tare_error *err) {
    zip_sink zip;
    tare_status status = tare__zip_sink_open(&zip, path, NULL, 1, err);
    for (size_t i = 0; i < tensors->count && status == TARE_OK; i++)
        status = write_array(&zip, tensors->entries[i].key, tensors->entries[i].value);
    if (status == TARE_OK) status = tare__zip_sink_commit(&zip);
    tare__zip_sink_close(&zip);
    return status;
}
