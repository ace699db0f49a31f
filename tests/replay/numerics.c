// SPDX-License-Identifier: Apache-2.0
// Reads recorded vectors, compressed or not.
#include "replay/numerics.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "core/json/json.h"
#include "core/memory/alloc.h"

typedef struct bytes {
    unsigned char *data;
    size_t size, capacity;
} bytes;

static tare_status read_all(gzFile file, bytes *out, tare_error *err) {
    for (;;) {
        if (out->size == out->capacity) {
            const size_t capacity = out->capacity * 2 + 65536;
            unsigned char *data = tare__realloc_array(out->data, capacity, 1);
            if (data == NULL) return tare__out_of_memory(err);
            out->data = data;
            out->capacity = capacity;
        }
        const size_t room = out->capacity - out->size;
        const int count =
            gzread(file, out->data + out->size, (unsigned)(room < 1U << 30 ? room : 1U << 30));
        if (count < 0) return tare__fail(err, TARE_IO, "cannot be decompressed");
        if (count == 0) return TARE_OK;
        out->size += (size_t)count;
    }
}

// gzopen reads plain files as they are.
static tare_status read_file(const char *dir, const char *name, const char *suffix, bytes *out,
                             tare_error *err) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s%s", dir, name, suffix);
    gzFile file = gzopen(path, "rb");
    if (file == NULL) {
        snprintf(path, sizeof path, "%s/%s%s.gz", dir, name, suffix);
        file = gzopen(path, "rb");
    }
    if (file == NULL)
        return tare__fail(err, TARE_IO, "%s/%s%s: cannot be opened", dir, name, suffix);
    const tare_status status = read_all(file, out, err);
    gzclose(file);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", path);
}

static tare_status read_list(const char *dir, const char *name, json_t **out, tare_error *err) {
    bytes raw = {0};
    tare_status status = read_file(dir, name, ".json", &raw, err);
    if (status == TARE_OK) status = tare__json_parse((const char *)raw.data, raw.size, out, err);
    tare__free(raw.data);
    if (status != TARE_OK || json_is_array(*out)) return status;
    json_decref(*out);
    return tare__fail(err, TARE_MALFORMED_FILE, "%s/%s.json: expected a list", dir, name);
}

static tare_status read_tensors(const char *dir, const char *name, safetensors *out,
                                tare_error *err) {
    bytes raw = {0};
    tare_status status = read_file(dir, name, ".safetensors", &raw, err);
    storage *store =
        status == TARE_OK ? tare__storage_adopt(raw.data, raw.size, raw.data, tare__free) : NULL;
    if (store == NULL) {
        tare__free(raw.data);
        return status != TARE_OK ? status : tare__out_of_memory(err);
    }
    status = tare__safetensors_parse(store, raw.data, raw.size, out, err);
    tare__storage_release(store);
    return status;
}

tare_status numerics_read(const char *dir, const char *name, numerics_cases *out, tare_error *err) {
    numerics_cases cases = {0};
    TARE_TRY(read_list(dir, name, &cases.list, err));
    const tare_status status = read_tensors(dir, name, &cases.tensors, err);
    if (status != TARE_OK) {
        json_decref(cases.list);
        return status;
    }
    *out = cases;
    return TARE_OK;
}

void numerics_release(numerics_cases *cases) {
    json_decref(cases->list);
    tare__safetensors_release(&cases->tensors);
}

const tare_tensor *numerics_tensor(const numerics_cases *cases, const json_t *one,
                                   const char *name) {
    char full[128];
    snprintf(full, sizeof full, "%lld.%s",
             (long long)json_integer_value(json_object_get(one, "id")), name);
    return tare__safetensors_get(&cases->tensors, full);
}

static tare_status run_one(const numerics_kind *kind, const numerics_cases *cases,
                           const json_t *one, numerics_report report, void *user, tare_error *err) {
    char name[192];
    text label = {0}, difference = {0};
    tare_error *failure = tare_error_create();
    if (failure == NULL) return tare__out_of_memory(err);
    kind->run(cases, one, &label, &difference, failure);
    (void)snprintf(name, sizeof name, "%s/%" JSON_INTEGER_FORMAT " %s", kind->name,
                   json_integer_value(json_object_get(one, "id")), tare__text_chars(&label));
    report(user, name, difference.length > 0 ? tare__text_chars(&difference) : NULL);
    tare_status status = tare__text_status(&label, err);
    if (status == TARE_OK) status = tare__text_status(&difference, err);
    tare__text_release(&label);
    tare__text_release(&difference);
    tare_error_destroy(failure);
    return status;
}

tare_status numerics_run(const numerics_kind *kind, const char *dir, numerics_report report,
                         void *user, tare_error *err) {
    numerics_cases cases = {0};
    size_t i = 0;
    json_t *one = NULL;
    TARE_TRY(numerics_read(dir, kind->name, &cases, err));
    tare_status status = TARE_OK;
    json_array_foreach(cases.list, i, one) {
        if (status == TARE_OK) status = run_one(kind, &cases, one, report, user, err);
    }
    numerics_release(&cases);
    return status;
}
