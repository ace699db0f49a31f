// SPDX-License-Identifier: Apache-2.0
// Reads tensors: finds their elements and checks that there are as many as the shape requires.
#include "io/onnx/read/tensors.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/file.h"
#include "core/system/system.h"
#include "core/text/text.h"
#include "io/onnx/pack.h"

typedef struct header {
    const char *name;
    tare_dtype dtype;
    int ndim;
    int64_t shape[TARE_MAX_DIMS];
    int64_t count;
    int type; // ONNX's element type; elements of 4 bits are unpacked into bytes
} header;

static tare_status read_header(const Onnx__TensorProto *t, header *h, tare_error *err) {
    *h = (header){.name = t->name != NULL ? t->name : "",
                  .dtype = tare__onnx_type_to_dtype(t->data_type),
                  .type = t->data_type};
    if (tare__onnx_is_packed(h->type)) h->dtype = h->type == ONNX_INT4 ? TARE_INT8 : TARE_UINT8;
    if (h->dtype == TARE_DTYPE_UNSET) {
        const tare_status status =
            tare__fail(err, TARE_UNSUPPORTED, "elements of type %d (%s) cannot be read",
                       t->data_type, tare__onnx_type_name(t->data_type));
        return tare__hint(err, status,
                          "floats, integers of 8 to 64 bits (unsigned: to 16) and "
                          "bools can");
    }
    if (t->n_dims > TARE_MAX_DIMS)
        return tare__fail(err, TARE_UNSUPPORTED, "%zu dimensions are too many, at most %d fit",
                          t->n_dims, TARE_MAX_DIMS);
    if (t->segment != NULL)
        return tare__fail(err, TARE_UNSUPPORTED, "tensors in segments cannot be read");
    h->ndim = (int)t->n_dims;
    for (int d = 0; d < h->ndim; d++) h->shape[d] = t->dims[d];
    if (!tare__shape_count(h->ndim, h->shape, &h->count) ||
        (uint64_t)h->count > SIZE_MAX / 2 / tare_dtype_size(h->dtype)) {
        char found[200];
        tare__shape_text(h->ndim, h->shape, found, sizeof found);
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "a size of its shape %s is negative, or their product too large", found);
    }
    return TARE_OK;
}

static size_t bytes_of(const header *h) {
    return (size_t)tare__onnx_packed_bytes(h->type, (uint64_t)h->count, tare_dtype_size(h->dtype));
}

static tare_status check_bytes(const header *h, size_t found, tare_error *err) {
    const size_t expected = bytes_of(h);
    if (found == expected) return TARE_OK;
    char shape[200];
    tare__shape_text(h->ndim, h->shape, shape, sizeof shape);
    return tare__fail(err, TARE_MALFORMED_FILE, "expected %zu bytes for shape %s of %s, found %zu",
                      expected, shape, tare_dtype_name(h->dtype), found);
}

// A bool that is neither 0 nor 1 has no defined value.
static tare_status check_bools(const tare_tensor *t, tare_error *err) {
    const unsigned char *bytes = t->data;
    for (int64_t i = 0; t->dtype == TARE_BOOL && i < t->count; i++)
        if (bytes[i] > 1)
            return tare__fail(err, TARE_MALFORMED_FILE,
                              "element %" PRId64 " is %d, expected a bool", i, bytes[i]);
    return TARE_OK;
}

// --- inside of the file ---

static void release_store(void *owner) {
    tare__storage_release(owner);
}

static tare_status unpack(const header *h, const storage *store, size_t offset, tare_tensor **out,
                          tare_error *err) {
    TARE_TRY(tare_tensor_create(h->dtype, h->ndim, h->shape, out, err));
    const unsigned char *bytes = tare__storage_data(store);
    if (h->count > 0) tare__onnx_unpack(h->type, bytes + offset, *out);
    return TARE_OK;
}

static tare_status view(const header *h, storage *store, size_t offset, tare_tensor **out,
                        tare_error *err) {
    tare_tensor *t = NULL;
    if (tare__onnx_is_packed(h->type)) return unpack(h, store, offset, out, err);
    TARE_TRY(tare__tensor_view(store, offset, h->dtype, h->ndim, h->shape, NULL, &t, err));
    const tare_status status = check_bools(t, err);
    if (status == TARE_OK)
        *out = t;
    else
        tare_tensor_release(t);
    return status;
}

static tare_status read_raw(const onnx_file *f, const header *h, const ProtobufCBinaryData *raw,
                            tare_tensor **out, tare_error *err) {
    TARE_TRY(check_bytes(h, raw->len, err));
    storage *store =
        tare__storage_adopt(raw->data, raw->len, tare__storage_retain(f->store), release_store);
    if (store == NULL) {
        tare__storage_release(f->store);
        return tare__out_of_memory(err);
    }
    const tare_status status = view(h, store, 0, out, err);
    tare__storage_release(store);
    return status;
}

// The repeated field that holds the elements of a dtype.
typedef struct typed_field {
    const void *items;
    size_t count, item_size;
} typed_field;

static typed_field field_of(const Onnx__TensorProto *t, tare_dtype dtype) {
    switch (dtype) {
    case TARE_FLOAT32:
        return (typed_field){t->float_data, t->n_float_data, sizeof *t->float_data};
    case TARE_FLOAT64:
        return (typed_field){t->double_data, t->n_double_data, sizeof *t->double_data};
    case TARE_INT64:
        return (typed_field){t->int64_data, t->n_int64_data, sizeof *t->int64_data};
    default:
        return (typed_field){t->int32_data, t->n_int32_data, sizeof *t->int32_data};
    }
}

// int32_data holds the bits of narrow floats, and the values of narrow integers.
static tare_status narrow(const Onnx__TensorProto *t, tare_tensor *to, tare_error *err) {
    const dtype_info *info = tare__dtype(to->dtype);
    const int64_t least = info->is_float ? 0 : info->min;
    const int64_t most = info->is_float ? (INT64_C(1) << (8 * info->size)) - 1 : info->max;
    unsigned char *out = to->data;
    for (int64_t i = 0; i < to->count; i++, out += info->size) {
        const int32_t item = t->int32_data[i];
        if (item < least || item > most)
            return tare__fail(err, TARE_MALFORMED_FILE,
                              "element %" PRId64 " is %" PRId32 ", which does not fit %s", i, item,
                              info->name);
        const uint32_t bits = (uint32_t)item;
        const uint16_t low = (uint16_t)bits;
        if (info->size == 1) *out = (unsigned char)bits;
        if (info->size == 2) memcpy(out, &low, 2);
        if (info->size == 4) memcpy(out, &bits, 4);
    }
    return TARE_OK;
}

static tare_status read_typed(const Onnx__TensorProto *t, const header *h, tare_tensor **out,
                              tare_error *err) {
    const typed_field field = field_of(t, h->dtype);
    if (tare__onnx_is_packed(h->type) && h->count > 0)
        return tare__fail(err, TARE_UNSUPPORTED, "elements of 4 bits are read as raw bytes only");
    if (field.count != (size_t)h->count)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "expected %" PRId64 " elements, found %zu in the field of %s", h->count,
                          field.count, tare_dtype_name(h->dtype));
    tare_tensor *made = NULL;
    TARE_TRY(tare_tensor_create(h->dtype, h->ndim, h->shape, &made, err));
    tare_status status = TARE_OK;
    if (field.items != t->int32_data && field.count > 0)
        memcpy(made->data, field.items, field.count * field.item_size);
    else if (field.count > 0)
        status = narrow(t, made, err);
    if (status == TARE_OK)
        *out = made;
    else
        tare_tensor_release(made);
    return status;
}

// --- beside the file ---

void tare__onnx_data_files_release(onnx_data_files *d) {
    for (size_t i = 0; i < d->mapped.count; i++) tare__storage_release(d->mapped.entries[i].value);
    tare__map_release(&d->mapped);
}

static tare_status outside(const char *location, tare_error *err) {
    const tare_status status = tare__fail(
        err, TARE_MALFORMED_FILE, "its data is in '%s', outside of the model's folder", location);
    return tare__hint(err, status, "data files must be in the model's folder or below");
}

static bool has_parent_step(const char *location) {
    for (const char *at = location; *at != '\0'; at += *at == '/') {
        const size_t length = strcspn(at, "/");
        if (length == 2 && at[0] == '.' && at[1] == '.') return true;
        at += length;
    }
    return false;
}

static tare_status fail_to_resolve(const char *location, tare_error *err) {
    const int reason = errno;
    if (reason == ENOMEM) return tare__out_of_memory(err);
    const bool is_gone = reason == ENOENT || reason == ENOTDIR;
    const tare_status status = tare__fail(err, TARE_IO, "its data is in '%s', which %s", location,
                                          is_gone ? "is missing" : "cannot be opened");
    return tare__hint(err, status,
                      "copy it to the model's folder, or export the model without external data");
}

// Symbolic links are resolved to check that the data lies in the model's folder.
static tare_status resolve(const char *model_path, const char *location, char **out,
                           tare_error *err) {
    const char *slash = strrchr(model_path, '/');
    const int folder_length = slash == NULL ? 0 : (int)(slash - model_path + 1);
    const char *here = slash == NULL ? "./" : "";
    char folder[PATH_MAX] = "", file[PATH_MAX] = "";
    text joined = {0};
    tare__text_printf(&joined, "%.*s%s", folder_length, model_path, here);
    tare_status status = tare__text_status(&joined, err);
    bool is_resolved =
        status == TARE_OK && tare__system()->realpath(tare__text_chars(&joined), folder) != NULL;
    tare__text_append(&joined, location);
    if (status == TARE_OK) status = tare__text_status(&joined, err);
    is_resolved = is_resolved && tare__system()->realpath(tare__text_chars(&joined), file) != NULL;
    if (status == TARE_OK && !is_resolved) status = fail_to_resolve(location, err);
    tare__text_release(&joined);
    TARE_TRY(status);
    const size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    if (strncmp(folder, file, length) != 0 || file[length] != '/') return outside(location, err);
    *out = tare__strdup(file);
    return *out != NULL ? TARE_OK : tare__out_of_memory(err);
}

static tare_status map_location(const onnx_file *f, onnx_data_files *d, const char *location,
                                storage **out, tare_error *err) {
    *out = tare__map_get(&d->mapped, location);
    if (*out != NULL) return TARE_OK;
    if (*location == '\0')
        return tare__fail(err, TARE_MALFORMED_FILE, "its data is in another file without a name");
    if (*location == '/' || has_parent_step(location)) return outside(location, err);
    if (f->path == NULL || strcmp(f->path, "-") == 0)
        return tare__fail(err, TARE_UNSUPPORTED, "its data is in '%s', but the model comes from %s",
                          location, f->path == NULL ? "memory" : "standard input");
    char *path = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    storage *store = NULL;
    TARE_TRY(resolve(f->path, location, &path, err));
    tare_status status = f->copies_data ? tare__file_read(path, &store, &data, &size, err)
                                        : tare__file_map(path, &store, &data, &size, err);
    tare__free(path);
    if (status != TARE_OK) return status;
    if (!tare__map_set(&d->mapped, location, store)) {
        tare__storage_release(store);
        return tare__out_of_memory(err);
    }
    *out = store;
    return TARE_OK;
}

typedef struct external {
    const char *location;
    uint64_t offset, length;
    bool has_length;
} external;

static tare_status read_number(const char *key, const char *chars, uint64_t *out, tare_error *err) {
    uint64_t n = 0;
    const char *at = chars;
    for (; *at >= '0' && *at <= '9' && n < UINT64_MAX / 10 - 1; at++)
        n = 10 * n + (uint64_t)(*at - '0');
    if (at == chars || *at != '\0')
        return tare__fail(err, TARE_MALFORMED_FILE, "its data has the %s '%s', expected a number",
                          key, chars);
    *out = n;
    return TARE_OK;
}

static tare_status read_entries(const Onnx__TensorProto *t, external *e, tare_error *err) {
    *e = (external){.location = ""};
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key = t->external_data[i]->key, *text_of = t->external_data[i]->value;
        if (key == NULL || text_of == NULL) continue;
        if (strcmp(key, "location") == 0) e->location = text_of;
        if (strcmp(key, "offset") == 0) TARE_TRY(read_number(key, text_of, &e->offset, err));
        if (strcmp(key, "length") != 0) continue;
        TARE_TRY(read_number(key, text_of, &e->length, err));
        e->has_length = true;
    }
    return TARE_OK;
}

static tare_status read_external(const onnx_file *f, onnx_data_files *d, const Onnx__TensorProto *t,
                                 const header *h, tare_tensor **out, tare_error *err) {
    external e;
    storage *store = NULL;
    TARE_TRY(read_entries(t, &e, err));
    if (e.has_length) {
        if (e.length > SIZE_MAX)
            return tare__fail(err, TARE_MALFORMED_FILE,
                              "its data has %" PRIu64 " bytes, more than fit into memory",
                              e.length);
        TARE_TRY(check_bytes(h, (size_t)e.length, err));
    }
    TARE_TRY(map_location(f, d, e.location, &store, err));
    const size_t needed = bytes_of(h);
    const size_t size = tare__storage_size(store);
    if (e.offset > size || needed > size - (size_t)e.offset) {
        tare__fail(err, TARE_MALFORMED_FILE,
                   "its data is %zu bytes at offset %" PRIu64 " of '%s', which has %zu", needed,
                   e.offset, e.location, size);
        return tare__hint(err, TARE_MALFORMED_FILE,
                          "the data file is cut off or another model's: copy both files again");
    }
    // Many tensors may share these bytes, so copies count towards the memory limit.
    const bool is_copied =
        tare__onnx_is_packed(h->type) || e.offset % tare_dtype_size(h->dtype) != 0;
    if (is_copied) TARE_TRY(tare__budget_take(&d->budget, needed, "its data", err));
    return view(h, store, (size_t)e.offset, out, err);
}

// --- the whole ---

static tare_status read_tensor(const onnx_file *f, onnx_data_files *d, const Onnx__TensorProto *t,
                               const header *h, tare_tensor **out, tare_error *err) {
    const size_t typed = t->n_float_data + t->n_int32_data + t->n_int64_data + t->n_double_data +
                         t->n_uint64_data + t->n_string_data;
    const bool is_external = t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    if (is_external + (t->has_raw_data && t->raw_data.len > 0) + (typed > 0) > 1)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "its elements are stored in more than one field");
    if (is_external) return read_external(f, d, t, h, out, err);
    return t->has_raw_data && typed == 0 ? read_raw(f, h, &t->raw_data, out, err)
                                         : read_typed(t, h, out, err);
}

tare_status tare__onnx_read_tensor(const onnx_file *f, onnx_data_files *d,
                                   const Onnx__TensorProto *t, tare_tensor **out, tare_error *err) {
    header h;
    tare_status status = read_header(t, &h, err);
    if (status == TARE_OK) status = read_tensor(f, d, t, &h, out, err);
    if (status == TARE_OK) return TARE_OK;
    return tare__at(err, status, "tensor '%s'", t->name != NULL ? t->name : "");
}
