// SPDX-License-Identifier: Apache-2.0
// Writes the bytes of an ONNX file. Tensor elements are written directly from their memory. Field
// numbers: onnx.proto of ONNX 1.17.
#include "io/onnx/write/file.h"

#include <stdio.h>
#include <string.h>

#include "core/hash/digest.h"
#include "core/memory/alloc.h"
#include "io/onnx/pack.h"
#include "io/onnx/write/wire.h"

enum {
    MODEL_GRAPH = 7,
    GRAPH_INITIALIZER = 5,
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14,
    LEAST_EXTERNAL = 1024, // smaller tensors stay in the model file
    DATA_ALIGNMENT = 4096  // for mapping
};
static const char data_ending[] = ".data";
// The limit of protobuf's readers.
static const uint64_t most_bytes = (UINT64_C(1) << 31) - (1 << 20);

void tare__onnx_image_release(onnx_image *im) {
    text *const texts[] = {&im->head, &im->nodes, &im->tail, &im->foot, &im->report};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) tare__text_release(texts[i]);
    for (size_t i = 0; i < im->tensor_count; i++)
        tare_tensor_release((tare_tensor *)im->tensors[i].t);
    tare__free(im->tensors);
    tare__arena_release(&im->memory);
    *im = (onnx_image){0};
}

static uint64_t bytes_of(const out_tensor *t) {
    return tare__onnx_packed_bytes(t->type, (uint64_t)t->t->count, tare_dtype_size(t->t->dtype));
}

// --- one tensor ---

// The message without the elements, which come last.
static void tensor_head(const out_tensor *t, const char *location, text *out) {
    char number[32];
    for (int d = 0; d < t->t->ndim; d++) tare__pb_int(out, TENSOR_DIMS, t->t->shape[d]);
    tare__pb_int(out, TENSOR_TYPE, t->type);
    tare__pb_string(out, TENSOR_NAME, t->name);
    if (!t->is_external) {
        tare__pb_head(out, TENSOR_RAW, bytes_of(t));
        return;
    }
    tare__pb_entry(out, TENSOR_EXTERNAL, "location", location);
    snprintf(number, sizeof number, "%llu", (unsigned long long)t->offset);
    tare__pb_entry(out, TENSOR_EXTERNAL, "offset", number);
    snprintf(number, sizeof number, "%llu", (unsigned long long)bytes_of(t));
    tare__pb_entry(out, TENSOR_EXTERNAL, "length", number);
    tare__pb_int(out, TENSOR_LOCATION, 1);
}

// --- where the bytes go ---

typedef struct sink {
    file_writer *file; // used if file is NULL
    text *memory;
    uint64_t *digest; // digest of the bytes written; NULL: not computed
    tare_error *err;
} sink;

static tare_status put(const sink *s, const void *bytes, size_t size) {
    if (s->digest != NULL) *s->digest = tare__digest(*s->digest, bytes, size);
    if (s->file != NULL) return tare__file_write(s->file, bytes, size, s->err);
    tare__text_append_n(s->memory, bytes, size);
    return TARE_OK;
}

static tare_status put_text(const sink *s, const text *t) {
    TARE_TRY(tare__text_status(t, s->err));
    return put(s, tare__text_chars(t), t->length);
}

static tare_status put_elements(const sink *s, const out_tensor *t) {
    if (!tare__onnx_is_packed(t->type))
        return t->t->count > 0 ? put(s, t->t->data, tare__tensor_bytes(t->t)) : TARE_OK;
    unsigned char bytes[4096];
    for (int64_t at = 0; at < t->t->count; at += 2 * (int64_t)sizeof bytes) {
        const size_t size = tare__onnx_pack(t->t, at, bytes, sizeof bytes);
        TARE_TRY(put(s, bytes, size));
    }
    return TARE_OK;
}

// --- sizes ---

static uint64_t varint_size(uint64_t number) {
    uint64_t size = 1;
    for (; number >= 0x80; number >>= 7) size++;
    return size;
}

static uint64_t message_size(const out_tensor *t, const text *head) {
    return head->length + (t->is_external ? 0 : bytes_of(t));
}

static tare_status graph_size(const onnx_image *im, const char *location, uint64_t *out,
                              tare_error *err) {
    text head = {0};
    *out = im->nodes.length + im->tail.length;
    for (size_t i = 0; i < im->tensor_count; i++) {
        tare__text_clear(&head);
        tensor_head(&im->tensors[i], location, &head);
        const uint64_t size = message_size(&im->tensors[i], &head);
        *out += 1 + varint_size(size) + size;
    }
    const tare_status status = tare__text_status(&head, err);
    tare__text_release(&head);
    return status;
}

// --- the whole ---

static tare_status put_tensor(const sink *s, const out_tensor *t, const char *location) {
    text head = {0}, tag = {0};
    tensor_head(t, location, &head);
    tare__pb_head(&tag, GRAPH_INITIALIZER, message_size(t, &head));
    tare_status status = put_text(s, &tag);
    if (status == TARE_OK) status = put_text(s, &head);
    if (status == TARE_OK && !t->is_external) status = put_elements(s, t);
    tare__text_release(&tag);
    tare__text_release(&head);
    return status;
}

static tare_status put_image(const onnx_image *im, const char *location, const sink *s) {
    uint64_t size = 0;
    text tag = {0};
    TARE_TRY(graph_size(im, location, &size, s->err));
    tare__pb_head(&tag, MODEL_GRAPH, size);
    tare_status status = put_text(s, &im->head);
    if (status == TARE_OK) status = put_text(s, &tag);
    if (status == TARE_OK) status = put_text(s, &im->nodes);
    for (size_t i = 0; i < im->tensor_count && status == TARE_OK; i++)
        status = put_tensor(s, &im->tensors[i], location);
    if (status == TARE_OK) status = put_text(s, &im->tail);
    if (status == TARE_OK) status = put_text(s, &im->foot);
    tare__text_release(&tag);
    return status;
}

tare_status tare__onnx_image_outline(const onnx_image *im, text *out, tare_error *err) {
    const onnx_image outline = {
        .head = im->head, .nodes = im->nodes, .tail = im->tail, .foot = im->foot};
    const sink s = {.memory = out, .err = err};
    TARE_TRY(put_image(&outline, "", &s));
    return tare__text_status(out, err);
}

// --- data beside the model ---

static uint64_t assign_offsets(onnx_image *im) {
    uint64_t at = 0;
    for (size_t i = 0; i < im->tensor_count; i++) {
        out_tensor *t = &im->tensors[i];
        t->is_external = bytes_of(t) >= LEAST_EXTERNAL;
        if (!t->is_external) continue;
        t->offset = at = (at + DATA_ALIGNMENT - 1) / DATA_ALIGNMENT * DATA_ALIGNMENT;
        at += bytes_of(t);
    }
    return at;
}

static tare_status put_data(const onnx_image *im, const sink *s) {
    static const unsigned char zeros[DATA_ALIGNMENT] = {0};
    uint64_t at = 0;
    for (size_t i = 0; i < im->tensor_count; i++) {
        const out_tensor *t = &im->tensors[i];
        if (!t->is_external) continue;
        TARE_TRY(put(s, zeros, (size_t)(t->offset - at)));
        TARE_TRY(put_elements(s, t));
        at = t->offset + bytes_of(t);
    }
    return TARE_OK;
}

// The data file's name contains a digest of its bytes, so an existing model keeps its data until
// the new model has replaced it.
static tare_status data_path(const char *path, uint64_t digest, char **out, tare_error *err) {
    text name = {0};
    tare__text_printf(&name, "%s.%016llx%s", path, (unsigned long long)digest, data_ending);
    TARE_TRY(tare__text_status(&name, err));
    *out = tare__text_take(&name);
    return TARE_OK;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

typedef struct export_files {
    file_writer model, data; // both stay locked, so that no other export removes them
    char *data_path;         // NULL: no external data
    bool data_is_new;
} export_files;

static tare_status write_data(const onnx_image *im, export_files *f, tare_error *err) {
    uint64_t digest = 0;
    char *begun = NULL;
    const sink s = {.file = &f->data, .digest = &digest, .err = err};
    text name = {0};
    tare__text_printf(&name, "%s%s", f->model.path, data_ending);
    TARE_TRY(tare__text_status(&name, err));
    begun = tare__text_take(&name);
    tare_status status = tare__file_begin(&f->data, begun, err);
    tare__free(begun);
    if (status == TARE_OK) status = put_data(im, &s);
    if (status == TARE_OK) status = data_path(f->model.path, digest, &f->data_path, err);
    if (status == TARE_OK) status = tare__file_flush(&f->data, err);
    if (status != TARE_OK) return status;
    f->data_is_new = !tare__file_exists(f->data_path);
    return tare__file_place(&f->data, f->data_path, err);
}

static tare_status write_external(onnx_image *im, export_files *f, tare_error *err) {
    if (f->model.temporary == NULL)
        return tare__fail(err, TARE_UNSUPPORTED,
                          "the model needs a separate data file, which %s cannot have",
                          f->model.path);
    return assign_offsets(im) > 0 ? write_data(im, f, err) : TARE_OK;
}

// Puts the new model in place and removes the data of older ones. Another export to the same path
// either waits, or its data is locked and stays.
static tare_status place_model(export_files *f, tare_error *err) {
    TARE_TRY(tare__file_flush(&f->model, err));
    if (f->model.temporary == NULL) return tare__file_commit(&f->model, err);
    const int folder = tare__file_lock_folder(f->model.path);
    const tare_status status = tare__file_place(&f->model, NULL, err);
    // The new model stays even if syncing the folder failed.
    if (f->model.temporary == NULL) {
        tare__file_remove_stale(f->model.path, ".", data_ending, f->data_path);
        f->data_is_new = false;
    }
    tare__file_unlock_folder(folder);
    return status;
}

static tare_status write_files(onnx_image *im, export_files *f, bool is_external, tare_error *err) {
    if (is_external) TARE_TRY(write_external(im, f, err));
    const char *location = f->data_path != NULL ? base_name(f->data_path) : "";
    const sink s = {.file = &f->model, .err = err};
    TARE_TRY(put_image(im, location, &s));
    return place_model(f, err);
}

tare_status tare__onnx_image_write(onnx_image *im, const char *path, bool external_data,
                                   tare_error *err) {
    uint64_t size = 0;
    export_files f = {.model = {.file = -1}, .data = {.file = -1}};
    TARE_TRY(graph_size(im, "", &size, err));
    const bool is_external = external_data || size + im->head.length + im->foot.length > most_bytes;
    TARE_TRY(tare__file_begin(&f.model, path, err));
    const tare_status status = write_files(im, &f, is_external, err);
    if (status != TARE_OK && f.data_is_new) tare__file_remove(f.data_path);
    tare__file_abort(&f.model);
    tare__file_abort(&f.data);
    tare__free(f.data_path);
    return status;
}
