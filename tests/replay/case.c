// SPDX-License-Identifier: Apache-2.0
// Reads a case's three files, from a folder or an archive.
#include "replay/case.h"

#include <stdio.h>
#include <string.h>

#include "core/json/json.h"
#include "core/system/file.h"
#include "io/native/model_file.h"
#include "io/pt2/pt2.h"
#include "model/model.h"
#include "replay/zip_memory.h"

typedef case_bytes blob;

static const size_t most_bytes = (size_t)1 << 31;

static tare_status inflate_member(unzFile zip, const char *member, blob *out, tare_error *err) {
    unz_file_info64 info;
    if (unzLocateFile(zip, member, 1) != UNZ_OK ||
        unzGetCurrentFileInfo64(zip, &info, NULL, 0, NULL, 0, NULL, 0) != UNZ_OK)
        return tare__fail(err, TARE_NOT_FOUND, "no member '%s'", member);
    if (info.uncompressed_size > most_bytes)
        return tare__fail(err, TARE_MALFORMED_FILE, "member '%s' is too large", member);
    out->size = (size_t)info.uncompressed_size;
    out->store = tare__storage_create(out->size);
    if (out->store == NULL) return tare__out_of_memory(err);
    unsigned char *bytes = (unsigned char *)tare__storage_data(out->store);
    out->data = bytes;
    if (unzOpenCurrentFile(zip) == UNZ_OK &&
        unzReadCurrentFile(zip, bytes, (unsigned)out->size) == (int)out->size &&
        unzCloseCurrentFile(zip) == UNZ_OK)
        return TARE_OK;
    tare__storage_release(out->store);
    return tare__fail(err, TARE_MALFORMED_FILE, "member '%s' cannot be inflated", member);
}

static tare_status read_member(const case_place *place, const char *file, blob *out,
                               tare_error *err) {
    char member[1024];
    (void)snprintf(member, sizeof member, "%s%s", place->members, file);
    blob archive = {0};
    TARE_TRY(tare__file_map(place->path, &archive.store, &archive.data, &archive.size, err));
    zip_memory memory = {.data = (unsigned char *)archive.data, .size = archive.size};
    unzFile zip = unzip_open(&memory);
    tare_status status = TARE_OK;
    if (zip == NULL) {
        status = tare__fail(err, TARE_MALFORMED_FILE, "is no zip archive");
    } else {
        status = inflate_member(zip, member, out, err);
        (void)unzClose(zip);
    }
    tare__storage_release(archive.store);
    return status == TARE_OK ? status : tare__at(err, status, "%s", place->path);
}

tare_status case_read_file(const case_place *place, const char *file, blob *out, tare_error *err) {
    if (place->members != NULL) return read_member(place, file, out, err);
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", place->path, file);
    return tare__file_map(path, &out->store, &out->data, &out->size, err);
}

static tare_status read_tensors(const case_place *place, const char *file, safetensors *out,
                                tare_error *err) {
    blob bytes = {0};
    TARE_TRY(case_read_file(place, file, &bytes, err));
    const tare_status status =
        tare__safetensors_parse(bytes.store, bytes.data, bytes.size, out, err);
    tare__storage_release(bytes.store);
    return status == TARE_OK ? status : tare__at(err, status, "%s", file);
}

static tare_status read_json(const case_place *place, json_t **out, tare_error *err) {
    blob bytes = {0};
    TARE_TRY(case_read_file(place, "case.json", &bytes, err));
    tare_status status = tare__json_parse((const char *)bytes.data, bytes.size, out, err);
    tare__storage_release(bytes.store);
    if (status == TARE_OK && !json_is_object(*out))
        status = tare__fail(err, TARE_MALFORMED_FILE, "is no JSON object");
    return status == TARE_OK ? status : tare__at(err, status, "case.json");
}

tare_status case_read(const case_place *place, recorded_case *out, tare_error *err) {
    *out = (recorded_case){.name = place->name};
    tare_status status = read_json(place, &out->json, err);
    if (status == TARE_OK) status = read_tensors(place, "data.safetensors", &out->data, err);
    if (status == TARE_OK) status = read_tensors(place, "model.safetensors", &out->model, err);
    if (status == TARE_OK && case_read_file(place, "model.pt2", &out->exported, NULL) != TARE_OK)
        out->exported = (blob){0};
    if (status != TARE_OK) case_release(out);
    return status;
}

void case_release(recorded_case *c) {
    json_decref(c->json);
    tare__safetensors_release(&c->data);
    tare__safetensors_release(&c->model);
    tare__storage_release(c->exported.store);
    *c = (recorded_case){0};
}

const char *case_text(const recorded_case *c, const char *key) {
    return json_string_value(json_object_get(c->json, key));
}

static tare_status float_model(module *root, tare_model **out, tare_error *err) {
    const tare_status status = tare__model_create(NULL, root, TARE_STAGE_FLOAT, NULL, out, err);
    if (status != TARE_OK) tare__module_release(root);
    return status;
}

static tare_status recorded_model(const recorded_case *c, tare_model **out, tare_error *err) {
    module *root = NULL;
    json_t *extra = NULL;
    TARE_TRY(tare__model_from_file(&c->model, &tare__context_or_builtin(NULL)->classes,
                                   &tare__observer_state_io, &root, &extra, err));
    json_decref(extra);
    return float_model(root, out, err);
}

tare_status case_exported_model(const recorded_case *c, tare_model **out, tare_error *err) {
    module *root = NULL;
    if (c->exported.data == NULL)
        return tare__fail(err, TARE_NOT_FOUND, "the case has no model.pt2 to start from");
    TARE_TRY(tare__pt2_read(c->exported.store, c->exported.data, c->exported.size,
                            &tare__context_or_builtin(NULL)->classes, 0, &root, err));
    return float_model(root, out, err);
}

/// The statistics that batch norms track as they train.
static tare_status take_statistics(void *user, const char *path, module *m, tare_error *err) {
    static const char *const names[] = {"running_mean", "running_var", "num_batches_tracked"};
    const module *root = user, *from = tare__module_find(root, path);
    for (size_t i = 0; from != NULL && i < sizeof names / sizeof *names; i++) {
        tare_tensor *t = tare__module_tensor(from, names[i]);
        if (t != NULL && tare__module_tensor(m, names[i]) != NULL)
            TARE_TRY(tare__module_set_tensor(m, names[i], t, false, err));
    }
    return TARE_OK;
}

/// The archive was written after the prepared model, which shares its tensors, had run: what batch
/// norms learned from fake quantized values cannot be taken out again.
static tare_status exported_model(const recorded_case *c, tare_model **out, tare_error *err) {
    tare_model *recorded = NULL, *made = NULL;
    TARE_TRY(case_exported_model(c, &made, err));
    tare_status status = TARE_OK;
    if (json_is_true(json_object_get(c->json, "is_qat"))) {
        status = recorded_model(c, &recorded, err);
        if (status == TARE_OK)
            status = tare__module_walk(made->root, take_statistics, recorded->root, err);
        tare_model_destroy(recorded);
    }
    if (status == TARE_OK)
        *out = made;
    else
        tare_model_destroy(made);
    return status;
}

tare_status case_model(const recorded_case *c, tare_model **out, tare_error *err) {
    return c->starts_exported ? exported_model(c, out, err) : recorded_model(c, out, err);
}
