// SPDX-License-Identifier: Apache-2.0
// Reads a program: checks format and version, then reads its tensors, its graph and the rest.
#include <inttypes.h>
#include <string.h>

#include "io/pt2/about.h"
#include "io/pt2/payload.h"
#include "io/pt2/pt2.h"
#include "io/pt2/read/graph.h"
#include "io/pt2/signature.h"
#include "ir/call_names.h"

enum { SCHEMA_MAJOR = 8 };

static tare_status check_schema(const json_at *top, tare_error *err) {
    const json_at version = tare__json_get(top, "schema_version");
    const json_at major_at = tare__json_get(&version, "major");
    int64_t major;
    TARE_TRY(tare__json_expect(top, JSON_OBJECT, err));
    TARE_TRY(tare__json_expect(&version, JSON_OBJECT, err));
    TARE_TRY(tare__json_int(&major_at, &major, err));
    if (major == SCHEMA_MAJOR) return TARE_OK;
    tare__json_fail(&major_at, err,
                    "the program is of schema version %" PRId64 ", this reader knows version %d",
                    major, SCHEMA_MAJOR);
    return tare__hint(err, TARE_MALFORMED_FILE, "export the model again with torch 2.9 or newer");
}

static tare_status read_program(pt2_reader *r, const json_at *top) {
    const json_at inside = tare__json_get(top, "graph_module");
    const json_at calls = tare__json_get(&inside, "module_call_graph");
    TARE_TRY(check_schema(top, r->err));
    TARE_TRY(tare__json_expect(&inside, JSON_OBJECT, r->err));
    r->graph = tare__json_get(&inside, "graph");
    r->signature = tare__json_get(&inside, "signature");
    TARE_TRY(tare__json_expect(&r->graph, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_expect(&r->signature, JSON_OBJECT, r->err));
    r->tensors = tare__json_get(&r->graph, "tensor_values");
    TARE_TRY(tare__pt2_read_signed_graph(r));
    TARE_TRY(tare__pt2_keep_about(r->g, top, r->err));
    TARE_TRY(tare__pt2_set_signature(r->g, &calls, r->err));
    return tare__call_names_read(r->g, &inside, r->err);
}

static tare_status read_json(pt2_reader *r) {
    json_t *json = NULL;
    const char *member = tare__arena_printf(&r->archive->names, "models/%s.json", r->model);
    if (member == NULL) return tare__out_of_memory(r->err);
    TARE_TRY(tare__pt2_read_json(r->archive, member, &json));
    const json_at top = tare__json_root(json);
    const tare_status status = read_program(r, &top);
    json_decref(json);
    return status == TARE_OK ? TARE_OK : tare__at(r->err, status, "%s", member);
}

// A small text member; absent: "".
static tare_status read_text(pt2_archive *a, const char *name, char out[16]) {
    pt2_bytes bytes;
    out[0] = '\0';
    if (!tare__pt2_has(a, name)) return TARE_OK;
    TARE_TRY(tare__pt2_read_member(a, name, &bytes));
    const size_t length = bytes.size < 15 ? bytes.size : 15;
    memcpy(out, bytes.data, length);
    out[length] = '\0';
    tare__storage_release(bytes.store);
    return TARE_OK;
}

static tare_status check_archive(pt2_archive *a) {
    char format[16], version[16], order[16];
    TARE_TRY(read_text(a, "archive_format", format));
    TARE_TRY(read_text(a, "archive_version", version));
    TARE_TRY(read_text(a, "byteorder", order));
    if (format[0] != '\0' && strcmp(format, "pt2") != 0)
        return tare__fail(a->err, TARE_MALFORMED_FILE,
                          "the archive's format is '%s', expected 'pt2'", format);
    if (version[0] != '\0' && strcmp(version, "0") != 0)
        return tare__fail(a->err, TARE_UNSUPPORTED,
                          "the archive is of version %s, this reader knows version 0", version);
    if (order[0] != '\0' && strcmp(order, "little") != 0)
        return tare__fail(a->err, TARE_UNSUPPORTED,
                          "the archive's data are of byte order '%s', expected 'little'", order);
    return TARE_OK;
}

// "models/NAME.json": the one called model, or the only one.
static tare_status find_model(pt2_reader *r) {
    static const char prefix[] = "models/", suffix[] = ".json";
    size_t count = 0;
    for (size_t i = 0; i < r->archive->members.count; i++) {
        const char *key = r->archive->members.entries[i].key;
        if (!tare__starts_with(key, prefix) || !tare__ends_with(key, suffix) ||
            strlen(key) < sizeof prefix + sizeof suffix - 1)
            continue;
        const char *name = tare__arena_strndup(&r->archive->names, key + sizeof prefix - 1,
                                               strlen(key) - sizeof prefix - sizeof suffix + 2);
        if (name == NULL) return tare__out_of_memory(r->err);
        if (r->model == NULL || strcmp(name, "model") == 0) r->model = name;
        count++;
    }
    if (count == 0)
        return tare__fail(r->err, TARE_MALFORMED_FILE, "the archive has no member 'models/*.json'");
    if (count > 1 && strcmp(r->model, "model") != 0)
        return tare__fail(r->err, TARE_UNSUPPORTED,
                          "the archive holds %zu programs, and none is called 'model'", count);
    return TARE_OK;
}

static tare_status read_archive(pt2_reader *r) {
    TARE_TRY(check_archive(r->archive));
    TARE_TRY(find_model(r));
    TARE_TRY(tare__pt2_read_payloads(r->archive, "data/weights/", r->model, &r->weights));
    TARE_TRY(tare__pt2_read_payloads(r->archive, "data/constants/", r->model, &r->constants));
    TARE_TRY(tare__pt2_make_root(r));
    return read_json(r);
}

// Files that contradict themselves get this hint.
static tare_status advise(tare_status status, tare_error *err) {
    const bool is_known = err == NULL || tare_error_hint(err)[0] != '\0';
    if (status == TARE_MALFORMED_FILE && !is_known)
        return tare__hint(err, status,
                          "the file is damaged, or something else than torch.export.save wrote it");
    if (status == TARE_UNSUPPORTED && !is_known)
        return tare__hint(err, status,
                          "export the model again with torch 2.15, without what is not supported");
    return status;
}

tare_status tare__pt2_read(storage *store, const unsigned char *data, size_t size,
                           const registry *classes, uint64_t memory_limit, module **root,
                           tare_error *err) {
    pt2_archive archive;
    TARE_TRY(tare__pt2_open(store, data, size, memory_limit, err, &archive));
    pt2_reader r = {.archive = &archive, .classes = classes, .err = err};
    const tare_status status = read_archive(&r);
    tare__tensor_map_release(&r.weights);
    tare__tensor_map_release(&r.constants);
    tare__pt2_release_graph(&r);
    tare__pt2_close(&archive);
    if (status == TARE_OK)
        *root = r.root;
    else
        tare__module_release(r.root);
    return advise(status, err);
}

static bool is_of_program(const char *name) {
    return strstr(name, "/models/") != NULL || strstr(name, "/data/weights/") != NULL ||
           tare__ends_with(name, "/archive_format");
}

static bool is_name_of_program(const char *chars, size_t length) {
    char name[1024] = "";
    if (length >= sizeof name) return false;
    memcpy(name, chars, length);
    return is_of_program(name);
}

// The first member identifies most such files, even if the end with the directory is missing.
static bool begins_like_program(const unsigned char *data, size_t size) {
    enum { HEADER_SIZE = 30, LENGTH_AT = 26 };
    if (size < HEADER_SIZE) return false;
    const size_t length = data[LENGTH_AT] | (size_t)data[LENGTH_AT + 1] << 8;
    if (length > size - HEADER_SIZE) return false;
    return is_name_of_program((const char *)data + HEADER_SIZE, length);
}

bool tare__pt2_is_archive(const unsigned char *data, size_t size) {
    if (size < 4 || memcmp(data, "PK\3\4", 4) != 0) return false;
    if (begins_like_program(data, size)) return true;
    // Names are sufficient; other errors are reported when the file is read.
    zip_directory directory;
    zip_entry entry;
    bool found = false;
    if (!tare__zip_open(data, size, &directory)) return false;
    while (!found && tare__zip_next(&directory, &entry) == ZIP_ENTRY)
        found = is_name_of_program(entry.name, entry.name_length);
    return found;
}
