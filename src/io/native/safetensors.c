// SPDX-License-Identifier: Apache-2.0
// Reads and writes safetensors files. Tensors that are read point into the mapped file.
#include "io/native/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/json/json.h"
#include "core/json/write.h"
#include "core/memory/alloc.h"
#include "core/system/file.h"

static const char metadata_key[] = "__metadata__";

// One tensor's entry of the header, with all checks that need no other entry.
typedef struct entry {
    const char *name; // the header's
    tare_dtype dtype;
    int ndim;
    int64_t shape[TARE_MAX_DIMS];
    size_t begin, end; // in the data section
} entry;

typedef struct reader {
    storage *store;
    const unsigned char *data;
    size_t size, data_begin; // of the file; where its data section begins
    entry *entries;
    size_t count;
    safetensors *out;
    tare_error *err;
} reader;

static uint64_t read_u64(const unsigned char *bytes) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static tare_status read_header(reader *r) {
    if (r->size < 8)
        return tare__fail(r->err, TARE_MALFORMED_FILE,
                          "%zu bytes are too few for a safetensors file, which begins with 8 bytes "
                          "of header length",
                          r->size);
    const uint64_t length = read_u64(r->data);
    if (length > SAFETENSORS_MAX_HEADER_BYTES)
        return tare__fail(r->err, TARE_MALFORMED_FILE,
                          "byte 0: a header of %" PRIu64 " bytes is over the limit of %u", length,
                          SAFETENSORS_MAX_HEADER_BYTES);
    if (length > r->size - 8)
        return tare__fail(r->err, TARE_MALFORMED_FILE,
                          "byte 0: the header of %" PRIu64 " bytes ends past the file's %zu bytes",
                          length, r->size);
    r->data_begin = 8 + (size_t)length;
    TARE_TRY(tare__json_parse((const char *)r->data + 8, (size_t)length, &r->out->header, r->err));
    const json_at root = tare__json_root(r->out->header);
    return tare__json_expect(&root, JSON_OBJECT, r->err);
}

static tare_status check_metadata(const json_at *metadata, tare_error *err) {
    TARE_TRY(tare__json_expect(metadata, JSON_OBJECT, err));
    const char *key = NULL;
    json_t *item = NULL;
    json_object_foreach((json_t *)metadata->value, key, item) {
        const json_at at = tare__json_get(metadata, key);
        TARE_TRY(tare__json_expect(&at, JSON_STRING, err));
    }
    return TARE_OK;
}

static tare_status read_shape(const json_at *at, entry *e, tare_error *err) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, err));
    const size_t ndim = json_array_size(at->value);
    if (ndim > TARE_MAX_DIMS)
        return tare__json_fail(at, err, "tensor '%s' has %zu dimensions, more than %d", e->name,
                               ndim, TARE_MAX_DIMS);
    e->ndim = (int)ndim;
    for (size_t i = 0; i < ndim; i++) {
        const json_at dim = tare__json_item(at, i);
        TARE_TRY(tare__json_int(&dim, &e->shape[i], err));
        if (e->shape[i] < 0)
            return tare__json_fail(&dim, err, "tensor '%s': expected a size from 0 up, found %lld",
                                   e->name, (long long)e->shape[i]);
    }
    return TARE_OK;
}

static tare_status read_offset(const json_at *offsets, size_t index, size_t limit, const char *name,
                               size_t *out, tare_error *err) {
    const json_at at = tare__json_item(offsets, index);
    int64_t offset = 0;
    TARE_TRY(tare__json_int(&at, &offset, err));
    if (offset < 0 || (uint64_t)offset > limit)
        return tare__json_fail(&at, err,
                               "tensor '%s': offset %" PRId64 " is outside the %zu bytes of data",
                               name, offset, limit);
    *out = (size_t)offset;
    return TARE_OK;
}

static tare_status check_length(const json_at *at, const entry *e, tare_error *err) {
    int64_t count = 0;
    size_t bytes = 0;
    if (!tare__shape_count(e->ndim, e->shape, &count) || (uint64_t)count > SIZE_MAX ||
        !tare__mul_size((size_t)count, tare_dtype_size(e->dtype), &bytes))
        return tare__json_fail(at, err, "tensor '%s': the product of its sizes overflows", e->name);
    if (e->begin > e->end || bytes != e->end - e->begin)
        return tare__json_fail(
            at, err, "tensor '%s': its shape needs %zu bytes, its offsets are %zu and %zu", e->name,
            bytes, e->begin, e->end);
    return TARE_OK;
}

static tare_status read_entry(const reader *r, const json_at *at, entry *e) {
    static const char *const keys[] = {"dtype", "shape", "data_offsets", NULL};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    const json_at dtype = tare__json_get(at, "dtype"), shape = tare__json_get(at, "shape");
    const json_at offsets = tare__json_get(at, "data_offsets");
    const char *name = NULL;
    TARE_TRY(tare__json_string(&dtype, &name, r->err));
    e->dtype = tare__dtype_from_file_name(name);
    if (e->dtype == TARE_DTYPE_UNSET)
        return tare__json_fail(&dtype, r->err, "tensor '%s' has the unknown dtype '%s'", e->name,
                               name);
    TARE_TRY(read_shape(&shape, e, r->err));
    TARE_TRY(tare__json_expect(&offsets, JSON_ARRAY, r->err));
    if (json_array_size(offsets.value) != 2)
        return tare__json_fail(&offsets, r->err, "tensor '%s': expected 2 offsets, found %zu",
                               e->name, json_array_size(offsets.value));
    const size_t limit = r->size - r->data_begin;
    TARE_TRY(read_offset(&offsets, 0, limit, e->name, &e->begin, r->err));
    TARE_TRY(read_offset(&offsets, 1, limit, e->name, &e->end, r->err));
    return check_length(&offsets, e, r->err);
}

static tare_status read_entries(reader *r) {
    const json_at root = tare__json_root(r->out->header);
    r->entries = tare__alloc_zeroed(json_object_size(root.value) + 1, sizeof *r->entries);
    if (r->entries == NULL) return tare__out_of_memory(r->err);
    const char *key = NULL;
    json_t *item = NULL;
    json_object_foreach(r->out->header, key, item) {
        const json_at at = tare__json_get(&root, key);
        if (strcmp(key, metadata_key) == 0) {
            TARE_TRY(check_metadata(&at, r->err));
            continue;
        }
        entry *e = &r->entries[r->count];
        e->name = key;
        TARE_TRY(read_entry(r, &at, e));
        r->count++;
    }
    return TARE_OK;
}

static int by_offset(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

// Checks that every byte of the data belongs to exactly one tensor.
static tare_status check_cover(const reader *r) {
    size_t end = 0;
    for (size_t i = 0; i < r->count; i++) {
        const entry *e = &r->entries[i];
        if (e->begin != end)
            return tare__fail(r->err, TARE_MALFORMED_FILE,
                              "byte %zu: tensor '%s' begins at byte %zu of the data, but the one "
                              "before it ends at %zu",
                              r->data_begin + e->begin, e->name, e->begin, end);
        end = e->end;
    }
    if (end != r->size - r->data_begin)
        return tare__fail(r->err, TARE_MALFORMED_FILE,
                          "byte %zu: %zu bytes of data belong to no tensor", r->data_begin + end,
                          r->size - r->data_begin - end);
    return TARE_OK;
}

static tare_status check_bools(const entry *e, const unsigned char *bytes, size_t file_offset,
                               tare_error *err) {
    if (e->dtype != TARE_BOOL) return TARE_OK;
    for (size_t i = 0; i < e->end - e->begin; i++)
        if (bytes[i] > 1)
            return tare__fail(err, TARE_MALFORMED_FILE,
                              "byte %zu: tensor '%s' has the boolean value %u", file_offset + i,
                              e->name, bytes[i]);
    return TARE_OK;
}

static tare_status add_tensor(reader *r, const entry *e) {
    const size_t offset = r->data_begin + e->begin;
    const unsigned char *bytes = r->data + offset;
    TARE_TRY(check_bools(e, bytes, offset, r->err));
    const unsigned char *begin = tare__storage_data(r->store);
    tare_tensor *t = NULL;
    TARE_TRY(tare__tensor_view(r->store, (size_t)(bytes - begin), e->dtype, e->ndim, e->shape, NULL,
                               &t, r->err));
    if (!tare__map_set(&r->out->tensors, e->name, t)) {
        tare_tensor_release(t);
        return tare__out_of_memory(r->err);
    }
    return TARE_OK;
}

static tare_status parse(reader *r) {
    TARE_TRY(read_header(r));
    TARE_TRY(read_entries(r));
    qsort(r->entries, r->count, sizeof *r->entries, by_offset);
    TARE_TRY(check_cover(r));
    for (size_t i = 0; i < r->count; i++) TARE_TRY(add_tensor(r, &r->entries[i]));
    return TARE_OK;
}

tare_status tare__safetensors_parse(storage *store, const unsigned char *data, size_t size,
                                    safetensors *out, tare_error *err) {
    safetensors made = {0};
    reader r = {.store = store, .data = data, .size = size, .out = &made, .err = err};
    const tare_status status = parse(&r);
    tare__free(r.entries);
    if (status == TARE_OK)
        *out = made;
    else
        tare__safetensors_release(&made);
    return status;
}

tare_status tare__safetensors_read(const char *path, safetensors *out, tare_error *err) {
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    TARE_TRY(tare__file_map(path, &store, &data, &size, err));
    const tare_status status = tare__safetensors_parse(store, data, size, out, err);
    tare__storage_release(store);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", path);
}

void tare__safetensors_release(safetensors *s) {
    tare__tensor_map_release(&s->tensors);
    json_decref(s->header);
    *s = (safetensors){0};
}

tare_tensor *tare__safetensors_get(const safetensors *s, const char *name) {
    return tare__map_get(&s->tensors, name);
}

const char *tare__safetensors_metadata(const safetensors *s, const char *key) {
    return json_string_value(json_object_get(json_object_get(s->header, metadata_key), key));
}

// Larger elements first, then by name: with the header padded to 8 bytes every tensor is aligned.
static int by_alignment(const void *a, const void *b) {
    const map_entry *x = a, *y = b;
    const size_t x_size = tare_dtype_size(tare_tensor_dtype(x->value));
    const size_t y_size = tare_dtype_size(tare_tensor_dtype(y->value));
    if (x_size != y_size) return x_size > y_size ? -1 : 1;
    return strcmp(x->key, y->key);
}

static tare_status check_writable(const map_entry *e, tare_error *err) {
    const tare_tensor *t = e->value;
    const dtype_info *info = tare__dtype(t->dtype);
    if (info->is_quantized || info->file_name == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "tensor '%s' of dtype %s has no form in a safetensors file", e->key,
                          info->name);
    if (t->data == NULL && t->count > 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "tensor '%s' has no data to write", e->key);
    if (strcmp(e->key, metadata_key) == 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a tensor cannot be called '%s'", e->key);
    return TARE_OK;
}

static void describe_tensor(const map_entry *e, size_t offset, text *out) {
    const tare_tensor *t = e->value;
    tare__text_json_string(out, e->key);
    tare__text_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", tare__dtype(t->dtype)->file_name);
    for (int i = 0; i < t->ndim; i++)
        tare__text_printf(out, "%s%" PRId64, i > 0 ? "," : "", t->shape[i]);
    tare__text_printf(out, "],\"data_offsets\":[%zu,%zu]}", offset, offset + tare__tensor_bytes(t));
}

// The header is padded so that the data begin at a multiple of `alignment`.
static tare_status make_header(const map_entry *sorted, size_t count, const json_t *metadata,
                               size_t alignment, text *out, tare_error *err) {
    tare__text_char(out, '{');
    if (metadata != NULL) {
        tare__text_printf(out, "\"%s\":", metadata_key);
        tare__json_write(metadata, out);
    }
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        TARE_TRY(check_writable(&sorted[i], err));
        if (i > 0 || metadata != NULL) tare__text_char(out, ',');
        describe_tensor(&sorted[i], offset, out);
        offset += tare__tensor_bytes(sorted[i].value);
    }
    tare__text_char(out, '}');
    tare__text_spaces(out, alignment - 1 - (8 + out->length + alignment - 1) % alignment);
    TARE_TRY(tare__text_status(out, err));
    if (out->length > SAFETENSORS_MAX_HEADER_BYTES)
        return tare__fail(err, TARE_UNSUPPORTED, "a header of %zu bytes is over the limit of %u",
                          out->length, SAFETENSORS_MAX_HEADER_BYTES);
    return TARE_OK;
}

static tare_status write_contents(file_writer *w, const text *header, const map_entry *sorted,
                                  size_t count, tare_error *err) {
    unsigned char length[8];
    for (size_t i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)header->length >> 8 * i);
    TARE_TRY(tare__file_write(w, length, sizeof length, err));
    TARE_TRY(tare__file_write(w, tare__text_chars(header), header->length, err));
    for (size_t i = 0; i < count; i++) {
        const tare_tensor *t = sorted[i].value;
        if (t->count > 0) TARE_TRY(tare__file_write(w, t->data, tare__tensor_bytes(t), err));
    }
    return TARE_OK;
}

static tare_status write_file(const char *path, const text *header, const map_entry *sorted,
                              size_t count, tare_error *err) {
    file_writer w = {0};
    TARE_TRY(tare__file_begin(&w, path, err));
    tare_status status = write_contents(&w, header, sorted, count, err);
    if (status == TARE_OK) status = tare__file_commit(&w, err);
    tare__file_abort(&w);
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const map_entry *)a)->key, ((const map_entry *)b)->key);
}

// Those in `first` (NULL: none) come first.
static size_t sort_tensors(const map *tensors, const map *first, map_entry *sorted) {
    size_t first_count = 0, count = 0;
    for (size_t i = 0; i < tensors->count; i++)
        if (first != NULL && tare__map_has(first, tensors->entries[i].key))
            sorted[first_count++] = tensors->entries[i];
    count = first_count;
    for (size_t i = 0; i < tensors->count; i++)
        if (first == NULL || !tare__map_has(first, tensors->entries[i].key))
            sorted[count++] = tensors->entries[i];
    qsort(sorted, first_count, sizeof *sorted, by_name);
    qsort(sorted + first_count, count - first_count, sizeof *sorted, by_alignment);
    return first_count;
}

tare_status tare__safetensors_write_first(const char *path, const map *tensors, const map *first,
                                          const json_t *metadata, tare_error *err) {
    map_entry *sorted = tare__alloc_zeroed(tensors->count + 1, sizeof *sorted);
    if (sorted == NULL) return tare__out_of_memory(err);
    const size_t alignment = sort_tensors(tensors, first, sorted) > 0 ? 64 : 8;
    text header = {0};
    tare_status status = make_header(sorted, tensors->count, metadata, alignment, &header, err);
    if (status == TARE_OK) status = write_file(path, &header, sorted, tensors->count, err);
    tare__text_release(&header);
    tare__free(sorted);
    return status;
}

tare_status tare__safetensors_write(const char *path, const map *tensors, const json_t *metadata,
                                    tare_error *err) {
    return tare__safetensors_write_first(path, tensors, NULL, metadata, err);
}
