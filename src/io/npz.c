// SPDX-License-Identifier: Apache-2.0
// Members are checked against three sizes that must agree: what the directory declares, what the
// array's header asks for, and what can come out of so many packed bytes.
#include "io/npz.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/file.h"
#include "io/npy.h"
#include "io/zip_memory.h"

enum { STORED = 0, DEFLATED = 8, ENCRYPTED_FLAG = 1, LONGEST_NAME = 1024 };

// Deflate's best: 258 bytes in 2 bits, and blocks that cost a little. Nothing honest needs more.
static const uint64_t largest_ratio = 1032;

typedef struct reader {
    storage *store;
    const unsigned char *data;
    size_t size;
    zip_memory memory;
    unzFile zip;
    uint64_t packed_bytes; // of all members so far: more than the file means that they overlap
    map *tensors;
    tare_error *err;
} reader;

// The member at hand.
typedef struct member {
    char file_name[LONGEST_NAME + 1], name[LONGEST_NAME + 1]; // name: without ".npy"
    unz_file_info64 info;
} member;

static tare_status broken(const reader *r, const member *m, const char *what) {
    return tare__fail(r->err, TARE_MALFORMED_FILE, "member '%s' %s", m->file_name, what);
}

static tare_status read_member_info(reader *r, member *m) {
    if (unzGetCurrentFileInfo64(r->zip, &m->info, m->file_name, LONGEST_NAME + 1, NULL, 0, NULL,
                                0) != UNZ_OK)
        return tare__fail(r->err, TARE_MALFORMED_FILE, "the archive's directory is broken");
    m->file_name[LONGEST_NAME] = '\0';
    if (m->info.size_filename > LONGEST_NAME || strlen(m->file_name) != m->info.size_filename)
        return broken(r, m, "has too long a name, or one with a NUL in it");
    if (!tare__ends_with(m->file_name, ".npy")) return broken(r, m, "is not an array (.npy)");
    memcpy(m->name, m->file_name, m->info.size_filename - 4);
    m->name[m->info.size_filename - 4] = '\0';
    if ((m->info.flag & ENCRYPTED_FLAG) != 0) return broken(r, m, "is encrypted");
    if (tare__map_has(r->tensors, m->name)) return broken(r, m, "is there twice");
    if (m->info.compressed_size > r->size - r->packed_bytes)
        return broken(r, m, "overlaps others or ends past the file");
    r->packed_bytes += m->info.compressed_size;
    return TARE_OK;
}

static tare_status read_stored(const reader *r, const member *m, tare_tensor **out) {
    const uint64_t offset = unzGetCurrentFileZStreamPos64(r->zip), size = m->info.uncompressed_size;
    if (m->info.compressed_size != size)
        return broken(r, m, "is stored in another size than its own");
    if (offset > r->size || size > r->size - offset) return broken(r, m, "ends past the file");
    const unsigned char *bytes = r->data + offset;
    if (crc32_z(crc32_z(0, NULL, 0), bytes, (size_t)size) != m->info.crc)
        return broken(r, m, "does not match its checksum");
    return tare__npy_parse(r->store, bytes, (size_t)size, out, r->err);
}

static bool inflate_exactly(const reader *r, unsigned char *out, size_t size) {
    while (size > 0) {
        const unsigned chunk = size < INT_MAX ? (unsigned)size : INT_MAX;
        const int count = unzReadCurrentFile(r->zip, out, chunk);
        if (count <= 0) return false;
        out += count;
        size -= (size_t)count;
    }
    return true;
}

// The header alone first: only when its array is as large as declared is memory taken for the
// array.
static tare_status check_inflated_size(const reader *r, const member *m, text *header) {
    unsigned char prefix[NPY_PREFIX];
    size_t length = 0;
    if (!inflate_exactly(r, prefix, sizeof prefix)) return broken(r, m, "is too short or damaged");
    TARE_TRY(tare__npy_header_size(prefix, sizeof prefix, &length, r->err));
    tare__text_append_n(header, (const char *)prefix, sizeof prefix);
    tare__text_spaces(header, length > sizeof prefix ? length - sizeof prefix : 0);
    TARE_TRY(tare__text_status(header, r->err));
    unsigned char *bytes = (unsigned char *)header->chars;
    if (length > sizeof prefix &&
        !inflate_exactly(r, bytes + sizeof prefix, length - sizeof prefix))
        return broken(r, m, "is too short or damaged");
    npy_header h = {0};
    TARE_TRY(tare__npy_parse_header(bytes, header->length, &h, r->err));
    size_t size = 0;
    if (!tare__add_size(h.header_bytes, h.data_bytes, &size) || size != m->info.uncompressed_size)
        return broken(r, m, "is of another size than its array's header says");
    return TARE_OK;
}

static tare_status inflate_rest(const reader *r, const member *m, const text *header,
                                tare_tensor **out) {
    const size_t size = (size_t)m->info.uncompressed_size;
    storage *store = tare__storage_create(size);
    if (store == NULL) return tare__out_of_memory(r->err);
    // Written through the pointer before anybody else sees the storage.
    unsigned char *bytes = (unsigned char *)tare__storage_data(store);
    const size_t known = header->length < size ? header->length : size;
    memcpy(bytes, header->chars, known);
    tare_status status = TARE_OK;
    if (!inflate_exactly(r, bytes + known, size - known))
        status = broken(r, m, "is too short or damaged");
    if (status == TARE_OK) status = tare__npy_parse(store, bytes, size, out, r->err);
    tare__storage_release(store);
    return status;
}

static tare_status read_deflated(const reader *r, const member *m, tare_tensor **out) {
    if (m->info.uncompressed_size / largest_ratio > m->info.compressed_size)
        return broken(r, m, "claims to hold more than deflate can pack");
    text header = {0};
    tare_status status = check_inflated_size(r, m, &header);
    if (status == TARE_OK) status = inflate_rest(r, m, &header, out);
    tare__text_release(&header);
    return status;
}

static tare_status read_open_member(const reader *r, const member *m, tare_tensor **out) {
    switch (m->info.compression_method) {
    case STORED:
        return read_stored(r, m, out);
    case DEFLATED:
        return read_deflated(r, m, out);
    default:
        return tare__fail(r->err, TARE_UNSUPPORTED,
                          "member '%s' is compressed by method %lu; 0 and 8 are known",
                          m->file_name, m->info.compression_method);
    }
}

static tare_status read_member(reader *r) {
    member m = {0};
    tare_tensor *t = NULL;
    TARE_TRY(read_member_info(r, &m));
    if (unzOpenCurrentFile(r->zip) != UNZ_OK) return broken(r, &m, "cannot be opened");
    tare_status status = read_open_member(r, &m, &t);
    if (status != TARE_OK) tare__at(r->err, status, "%s", m.file_name);
    // Closing checks the checksum of what was inflated.
    if (unzCloseCurrentFile(r->zip) == UNZ_CRCERROR && status == TARE_OK)
        status = broken(r, &m, "does not match its checksum");
    if (status == TARE_OK && tare__map_set(r->tensors, m.name, t)) return TARE_OK;
    tare_tensor_release(t);
    return status != TARE_OK ? status : tare__out_of_memory(r->err);
}

static tare_status read_members(reader *r) {
    int found = unzGoToFirstFile(r->zip);
    while (found == UNZ_OK) {
        TARE_TRY(read_member(r));
        found = unzGoToNextFile(r->zip);
    }
    if (found == UNZ_END_OF_LIST_OF_FILE) return TARE_OK;
    return tare__fail(r->err, TARE_MALFORMED_FILE, "the archive's directory is broken");
}

// The record that ends every archive, and nothing before it.
static bool is_empty_archive(const unsigned char *data, size_t size) {
    static const unsigned char end[22] = {'P', 'K', 5, 6};
    return size == sizeof end && memcmp(data, end, size) == 0;
}

tare_status tare__npz_parse(storage *store, const unsigned char *data, size_t size, map *tensors,
                            tare_error *err) {
    map made = {0};
    reader r = {.store = store,
                .data = data,
                .size = size,
                .memory = {.data = (unsigned char *)data, .size = size}, // only ever read
                .tensors = &made,
                .err = err};
    if (is_empty_archive(data, size)) { // an archive of nothing, which minizip refuses
        *tensors = made;
        return TARE_OK;
    }
    r.zip = tare__unzip_open(&r.memory);
    if (r.zip == NULL)
        return tare__fail(err, TARE_MALFORMED_FILE, "%zu bytes that are not a zip archive", size);
    const tare_status status = read_members(&r);
    unzClose(r.zip);
    if (status == TARE_OK)
        *tensors = made;
    else
        tare__tensor_map_release(&made);
    return status;
}

tare_status tare__npz_read(const char *path, map *tensors, tare_error *err) {
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    TARE_TRY(tare__file_map(path, &store, &data, &size, err));
    const tare_status status = tare__npz_parse(store, data, size, tensors, err);
    tare__storage_release(store);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", path);
}

// --- writing ---

static bool write_bytes(zipFile zip, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    while (size > 0) {
        const unsigned chunk = size < INT_MAX ? (unsigned)size : INT_MAX;
        if (zipWriteInFileInZip(zip, at, chunk) != ZIP_OK) return false;
        at += chunk;
        size -= chunk;
    }
    return true;
}

static bool write_member(zipFile zip, const char *file_name, const text *header,
                         const tare_tensor *t) {
    // 1 January 1980, zip's first day, so that the time of writing does not show.
    const zip_fileinfo info = {.dosDate = 0x210000};
    const size_t size = tare__tensor_bytes(t);
    const int is_large = size >= UINT32_MAX - header->length;
    if (zipOpenNewFileInZip64(zip, file_name, &info, NULL, 0, NULL, 0, NULL, Z_DEFLATED,
                              Z_DEFAULT_COMPRESSION, is_large) != ZIP_OK)
        return false;
    bool ok = write_bytes(zip, header->chars, header->length);
    if (ok) ok = write_bytes(zip, t->data, size);
    return zipCloseFileInZip(zip) == ZIP_OK && ok;
}

static tare_status write_array(zipFile zip, const char *name, const tare_tensor *t,
                               tare_error *err) {
    text header = {0}, file_name = {0};
    tare_status status = tare__npy_make_header(t, &header, err);
    if (status != TARE_OK) tare__at(err, status, "array '%s'", name);
    tare__text_printf(&file_name, "%s.npy", name);
    if (status == TARE_OK) status = tare__text_status(&file_name, err);
    // Writing goes to memory: nothing else can fail.
    if (status == TARE_OK && !write_member(zip, file_name.chars, &header, t))
        status = tare__out_of_memory(err);
    tare__text_release(&header);
    tare__text_release(&file_name);
    return status;
}

static tare_status write_archive(zip_memory *memory, const map *tensors, tare_error *err) {
    zipFile zip = tare__zip_open(memory);
    if (zip == NULL) return tare__out_of_memory(err);
    tare_status status = TARE_OK;
    for (size_t i = 0; i < tensors->count && status == TARE_OK; i++)
        status = write_array(zip, tensors->entries[i].key, tensors->entries[i].value, err);
    if ((zipClose(zip, NULL) != ZIP_OK || memory->failed) && status == TARE_OK)
        status = tare__out_of_memory(err);
    return status;
}

static tare_status write_file(const char *path, const zip_memory *memory, tare_error *err) {
    file_writer w = {0};
    TARE_TRY(tare__file_begin(&w, path, err));
    tare_status status = tare__file_write(&w, memory->data, memory->size, err);
    if (status == TARE_OK) status = tare__file_commit(&w, err);
    tare__file_abort(&w);
    return status;
}

tare_status tare__npz_write(const char *path, const map *tensors, tare_error *err) {
    zip_memory memory = {0};
    tare_status status = write_archive(&memory, tensors, err);
    if (status == TARE_OK) status = write_file(path, &memory, err);
    tare__free(memory.data);
    return status;
}
