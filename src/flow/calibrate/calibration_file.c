// SPDX-License-Identifier: Apache-2.0
// State files: safetensors whose tensors are the observers' statistics, PATH.NAME, and whose
// metadata key `tare.calibration` holds the rest as JSON.
#include <inttypes.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "flow/calibrate/calibration.h"

enum { FILE_VERSION = 2 };
static const char metadata_key[] = "tare.calibration";

// --- out ---

static void write_lines(const char *key, const name_list *lines, text *out) {
    tare__text_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < lines->count; i++) {
        if (i > 0) tare__text_char(out, ',');
        tare__text_json_string(out, lines->items[i]);
    }
    tare__text_char(out, ']');
}

static void write_identity(const model_identity *id, text *out) {
    tare__text_printf(out, "\"graph\":{\"hash\":\"%016" PRIx64 "\"", id->graph);
    write_lines("nodes", &id->nodes, out);
    write_lines("modules", &id->modules, out);
    tare__text_printf(out, "},\"weights\":{\"hash\":\"%016" PRIx64 "\"", id->weights);
    write_lines("tensors", &id->tensors, out);
    tare__text_char(out, '}');
}

static void write_cut(const calibration *c, text *out) {
    if (c->has_cut)
        tare__text_printf(out, ",\"cut\":{\"batch\":%" PRId64 ",\"limit\":%" PRId64 "}",
                          c->batch_size, c->sample_limit);
    else
        tare__text_append(out, ",\"cut\":null");
    if (c->data == NULL) {
        tare__text_append(out, ",\"unfinished\":null");
        return;
    }
    tare__text_printf(out, ",\"unfinished\":{\"batches\":%" PRId64 ",\"data\":", c->batch_count);
    tare__text_json_string(out, c->data);
    tare__text_char(out, '}');
}

static void write_header(const calibration *c, text *out) {
    tare__text_printf(out, "{\"version\":%d,", FILE_VERSION);
    write_identity(&c->identity, out);
    tare__text_printf(out, ",\"samples\":%" PRId64 ",\"shard_count\":%" PRId64 ",\"shards\":[",
                      c->sample_count, c->shard_count);
    for (size_t i = 0; i < c->done_count; i++)
        tare__text_printf(out, "%s%" PRId64, i > 0 ? "," : "", c->shards[i]);
    tare__text_char(out, ']');
    write_cut(c, out);
    tare__text_append(out, ",\"inputs\":[");
    for (size_t i = 0; i < c->example_count; i++) {
        if (i > 0) tare__text_char(out, ',');
        tare__text_append(out, c->examples[i] != NULL ? c->examples[i] : "null");
    }
    tare__text_append(out, "],\"macs\":[");
    for (size_t i = 0; i < c->macs_count; i++) {
        tare__text_append(out, i > 0 ? ",{\"name\":" : "{\"name\":");
        tare__text_json_string(out, c->macs[i].name);
        tare__text_printf(out, ",\"macs\":%" PRId64 "}", c->macs[i].macs);
    }
    tare__text_append(out, "],\"observers\":[");
}

static tare_status add_tensor(map *tensors, const char *key, tare_tensor *t, tare_error *err) {
    if (tare__map_has(tensors, key))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "two observers save a tensor '%s'", key);
    if (!tare__map_set(tensors, key, t)) return tare__out_of_memory(err);
    (void)tare_tensor_retain(t);
    return TARE_OK;
}

// "PATH.NAME" of every entry of one observer's state.
static tare_status write_observer(const watched *w, bool is_first, map *tensors, text *out,
                                  tare_error *err) {
    map state = {0};
    tare_status status = tare__observer_state_io.save(w->observer, &state, err);
    tare__text_append(out, is_first ? "{\"path\":" : ",{\"path\":");
    tare__text_json_string(out, w->path);
    tare__text_append(out, ",\"observer\":");
    tare__observer_spec_to_json(w->spec, out);
    tare__text_append(out, ",\"state\":[");
    for (size_t i = 0; i < state.count && status == TARE_OK; i++) {
        text key = {0};
        tare_tensor *t = state.entries[i].value;
        if (i > 0) tare__text_char(out, ',');
        tare__text_json_string(out, state.entries[i].key);
        tare__text_printf(&key, "%s.%s", w->path, state.entries[i].key);
        if (key.failed)
            status = tare__out_of_memory(err);
        else
            status = add_tensor(tensors, tare__text_chars(&key), t, err);
        tare__text_release(&key);
    }
    tare__text_append(out, "]}");
    tare__tensor_map_release(&state);
    return status;
}

static tare_status write_file(const char *path, const map *tensors, const text *json,
                              tare_error *err) {
    json_t *metadata = json_pack("{s:s%}", metadata_key, tare__text_chars(json), json->length);
    if (metadata == NULL) return tare__out_of_memory(err);
    const tare_status status = tare__safetensors_write(path, tensors, metadata, err);
    json_decref(metadata);
    return status;
}

tare_status tare__calibration_save(const calibration *c, const char *path, tare_error *err) {
    map tensors = {0};
    text json = {0};
    tare_status status = TARE_OK;
    write_header(c, &json);
    for (size_t i = 0; i < c->count && status == TARE_OK; i++)
        status = write_observer(&c->items[i], i == 0, &tensors, &json, err);
    tare__text_append(&json, "]}");
    if (status == TARE_OK) status = tare__text_status(&json, err);
    if (status == TARE_OK) status = write_file(path, &tensors, &json, err);
    tare__text_release(&json);
    tare__tensor_map_release(&tensors);
    return status;
}

// --- in ---

typedef struct reader {
    const safetensors *file;
    const observer_classes *classes;
    calibration *c;
    map paths; // of the observers so far
    map used;  // tensors that one of them has
    tare_error *err;
} reader;

static tare_status read_hash(const json_at *at, uint64_t *out, tare_error *err) {
    const json_at hash = tare__json_get(at, "hash");
    const char *digits = NULL;
    TARE_TRY(tare__json_string(&hash, &digits, err));
    if (strlen(digits) != 16 || strspn(digits, "0123456789abcdef") != 16)
        return tare__json_fail(&hash, err, "expected 16 hexadecimal digits");
    *out = 0;
    for (int i = 0; i < 16; i++)
        *out = *out << 4 | (uint64_t)(digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10);
    return TARE_OK;
}

static tare_status read_lines(const json_at *at, const char *key, name_list *out, tare_error *err) {
    const json_at lines = tare__json_get(at, key);
    TARE_TRY(tare__json_expect(&lines, JSON_ARRAY, err));
    for (size_t i = 0; i < json_array_size(lines.value); i++) {
        const json_at line = tare__json_item(&lines, i);
        const char *chars = NULL;
        TARE_TRY(tare__json_string(&line, &chars, err));
        TARE_TRY(tare__identity_add(out, chars, strlen(chars), err));
    }
    return TARE_OK;
}

// The stored hashes must be those of the lists, or the file is damaged.
static tare_status read_identity(reader *r, const json_at *root) {
    static const char *const graph_keys[] = {"hash", "nodes", "modules", NULL};
    static const char *const weight_keys[] = {"hash", "tensors", NULL};
    const json_at structure = tare__json_get(root, "graph"),
                  weights = tare__json_get(root, "weights");
    model_identity *id = &r->c->identity;
    uint64_t graph_hash = 0, weight_hash = 0;
    TARE_TRY(tare__json_expect(&structure, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(&structure, graph_keys, r->err));
    TARE_TRY(tare__json_expect(&weights, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(&weights, weight_keys, r->err));
    TARE_TRY(read_hash(&structure, &id->graph, r->err));
    TARE_TRY(read_hash(&weights, &id->weights, r->err));
    TARE_TRY(read_lines(&structure, "nodes", &id->nodes, r->err));
    TARE_TRY(read_lines(&structure, "modules", &id->modules, r->err));
    TARE_TRY(read_lines(&weights, "tensors", &id->tensors, r->err));
    tare__identity_hash(id, &graph_hash, &weight_hash);
    if (graph_hash != id->graph)
        return tare__json_fail(&structure, r->err, "the hash is not that of the nodes and modules");
    if (weight_hash != id->weights)
        return tare__json_fail(&weights, r->err, "the hash is not that of the tensors");
    return TARE_OK;
}

static tare_status read_count(const json_at *root, const char *key, int64_t least, int64_t most,
                              int64_t *out, tare_error *err) {
    const json_at at = tare__json_get(root, key);
    TARE_TRY(tare__json_int(&at, out, err));
    if (*out >= least && *out <= most) return TARE_OK;
    return tare__json_fail(&at, err,
                           "expected a number from %" PRId64 " to %" PRId64 ", found %" PRId64,
                           least, most, *out);
}

static tare_status read_shards(reader *r, const json_at *root) {
    const json_at at = tare__json_get(root, "shards");
    TARE_TRY(read_count(root, "shard_count", 1, MOST_SHARDS, &r->c->shard_count, r->err));
    TARE_TRY(tare__json_expect(&at, JSON_ARRAY, r->err));
    if (json_array_size(at.value) == 0)
        return tare__json_fail(&at, r->err, "expected the numbers of shards");
    for (size_t i = 0; i < json_array_size(at.value); i++) {
        const json_at item = tare__json_item(&at, i);
        int64_t shard = 0;
        TARE_TRY(tare__json_int(&item, &shard, r->err));
        const int64_t last = i > 0 ? r->c->shards[i - 1] : -1;
        if (shard <= last || shard >= r->c->shard_count)
            return tare__json_fail(&item, r->err, "expected ascending numbers of shards");
        TARE_TRY(tare__calibration_add_shard(r->c, shard, r->err));
    }
    return TARE_OK;
}

static tare_status read_unfinished(reader *r, const json_at *at) {
    static const char *const keys[] = {"batches", "data", NULL};
    const char *spec = NULL;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    const json_at data = tare__json_get(at, "data");
    TARE_TRY(read_count(at, "batches", 1, INT64_MAX, &r->c->batch_count, r->err));
    TARE_TRY(tare__json_string(&data, &spec, r->err));
    r->c->data = tare__strdup(spec);
    return r->c->data != NULL ? TARE_OK : tare__out_of_memory(r->err);
}

static tare_status read_cut(reader *r, const json_at *root) {
    static const char *const keys[] = {"batch", "limit", NULL};
    const json_at cut = tare__json_get(root, "cut"), rest = tare__json_get(root, "unfinished");
    r->c->has_cut = !json_is_null(cut.value);
    if (r->c->has_cut != (r->c->shard_count > 1 || !json_is_null(rest.value)))
        return tare__json_fail(
            &cut, r->err, "expected this key if, and only if, the data is divided or not finished");
    if (!r->c->has_cut) return TARE_OK;
    TARE_TRY(tare__json_expect(&cut, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(&cut, keys, r->err));
    TARE_TRY(read_count(&cut, "batch", 0, INT64_MAX, &r->c->batch_size, r->err));
    TARE_TRY(read_count(&cut, "limit", 0, INT64_MAX, &r->c->sample_limit, r->err));
    return json_is_null(rest.value) ? TARE_OK : read_unfinished(r, &rest);
}

// {"example": {"shape": [null, 3], "dtype": "torch.float32"}}, stored as canonical text.
static tare_status read_example(const json_at *at, char **out, tare_error *err) {
    static const char *const keys[] = {"example", NULL};
    static const char *const fields[] = {"shape", "dtype", NULL};
    text kept = {0};
    if (json_is_null(at->value)) return TARE_OK;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    const json_at example = tare__json_get(at, "example");
    TARE_TRY(tare__json_expect(&example, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(&example, fields, err));
    const json_at shape = tare__json_get(&example, "shape");
    const json_at dtype = tare__json_get(&example, "dtype");
    const char *dtype_name = NULL;
    TARE_TRY(tare__json_expect(&shape, JSON_ARRAY, err));
    TARE_TRY(tare__json_string(&dtype, &dtype_name, err));
    if (json_array_size(shape.value) < 1 || json_array_size(shape.value) > TARE_MAX_DIMS)
        return tare__json_fail(&shape, err, "expected 1 to %d dimensions", TARE_MAX_DIMS);
    if (tare_dtype_from_name(dtype_name) == TARE_DTYPE_UNSET)
        return tare__json_fail(&dtype, err, "no dtype '%s'", dtype_name);
    tare__text_append(&kept, "{\"example\": {\"shape\": [null");
    for (size_t d = 1; d < json_array_size(shape.value); d++) {
        const json_at size = tare__json_item(&shape, d);
        int64_t extent = 0;
        tare_status status = tare__json_int(&size, &extent, err);
        if (status == TARE_OK && extent < 0)
            status = tare__json_fail(&size, err, "expected a size");
        if (status != TARE_OK) {
            tare__text_release(&kept);
            return status;
        }
        tare__text_printf(&kept, ", %" PRId64, extent);
    }
    tare__text_printf(&kept, "], \"dtype\": \"%s\"}}", dtype_name);
    *out = tare__text_take(&kept);
    return *out != NULL ? TARE_OK : tare__out_of_memory(err);
}

static tare_status read_examples(reader *r, const json_at *root) {
    const json_at at = tare__json_get(root, "inputs");
    TARE_TRY(tare__json_expect(&at, JSON_ARRAY, r->err));
    const size_t count = json_array_size(at.value);
    r->c->examples = tare__alloc_zeroed(count + 1, sizeof *r->c->examples);
    if (r->c->examples == NULL) return tare__out_of_memory(r->err);
    r->c->example_count = count;
    for (size_t i = 0; i < count; i++) {
        const json_at item = tare__json_item(&at, i);
        TARE_TRY(read_example(&item, &r->c->examples[i], r->err));
    }
    return TARE_OK;
}

static tare_status read_macs(reader *r, const json_at *root) {
    static const char *const keys[] = {"name", "macs", NULL};
    const json_at at = tare__json_get(root, "macs");
    TARE_TRY(tare__json_expect(&at, JSON_ARRAY, r->err));
    for (size_t i = 0; i < json_array_size(at.value); i++) {
        const json_at item = tare__json_item(&at, i), name = tare__json_get(&item, "name");
        const char *chars = NULL;
        int64_t macs = 0;
        TARE_TRY(tare__json_expect(&item, JSON_OBJECT, r->err));
        TARE_TRY(tare__json_only_keys(&item, keys, r->err));
        TARE_TRY(tare__json_string(&name, &chars, r->err));
        TARE_TRY(read_count(&item, "macs", 0, INT64_MAX, &macs, r->err));
        TARE_TRY(tare__calibration_add_macs(r->c, chars, macs, r->err));
    }
    return TARE_OK;
}

static tare_status take_tensor(reader *r, const json_at *at, const char *key, const char *name,
                               map *out) {
    tare_tensor *t = tare__safetensors_get(r->file, key);
    if (t == NULL || tare__map_has(&r->used, key))
        return tare__json_fail(at, r->err, "there is no tensor of its own for '%s'", name);
    if (tare__map_set(&r->used, key, t) && tare__map_set(out, name, t)) return TARE_OK;
    return tare__out_of_memory(r->err);
}

static tare_status collect_state(reader *r, const json_at *at, const char *path, map *out) {
    const json_at names = tare__json_get(at, "state");
    TARE_TRY(tare__json_expect(&names, JSON_ARRAY, r->err));
    for (size_t i = 0; i < json_array_size(names.value); i++) {
        const json_at item = tare__json_item(&names, i);
        const char *name = NULL;
        text key = {0};
        TARE_TRY(tare__json_string(&item, &name, r->err));
        tare__text_printf(&key, "%s.%s", path, name);
        tare_status status = tare__text_status(&key, r->err);
        if (status == TARE_OK) status = take_tensor(r, &item, tare__text_chars(&key), name, out);
        tare__text_release(&key);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static tare_status add_observer(reader *r, const json_at *at, const char *path,
                                tare_observer_spec *spec) {
    module *observer = NULL;
    map state = {0};
    TARE_TRY(tare__observer_spec_instantiate(r->classes, spec, &observer, r->err));
    tare_status status = collect_state(r, at, path, &state);
    if (status == TARE_OK) status = tare__observer_load(observer, &state, r->err);
    tare__map_release(&state);
    if (status == TARE_OK) status = tare__calibration_add(r->c, path, spec, observer, r->err);
    if (status != TARE_OK) tare__module_release(observer);
    return status;
}

static tare_status read_observer(reader *r, const json_at *at) {
    static const char *const keys[] = {"path", "observer", "state", NULL};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    const json_at path = tare__json_get(at, "path"), observer = tare__json_get(at, "observer");
    const char *chars = NULL;
    tare_observer_spec *spec = NULL;
    TARE_TRY(tare__json_string(&path, &chars, r->err));
    if (tare__map_has(&r->paths, chars))
        return tare__json_fail(&path, r->err, "there are two observers '%s'", chars);
    if (!tare__map_set(&r->paths, chars, NULL)) return tare__out_of_memory(r->err);
    TARE_TRY(tare__observer_spec_from_json(&observer, &spec, r->err));
    const tare_status status = tare__json_place(at, add_observer(r, at, chars, spec), r->err);
    tare_observer_spec_release(spec);
    return status;
}

static tare_status read_root(reader *r, const json_at *root) {
    static const char *const keys[] = {"version",     "graph",  "weights",   "samples",
                                       "shard_count", "shards", "cut",       "unfinished",
                                       "inputs",      "macs",   "observers", NULL};
    int64_t version = 0;
    TARE_TRY(tare__json_expect(root, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(root, keys, r->err));
    TARE_TRY(read_count(root, "version", FILE_VERSION, FILE_VERSION, &version, r->err));
    TARE_TRY(read_identity(r, root));
    TARE_TRY(read_count(root, "samples", 0, INT64_MAX / 4, &r->c->sample_count, r->err));
    TARE_TRY(read_shards(r, root));
    TARE_TRY(read_cut(r, root));
    TARE_TRY(read_examples(r, root));
    TARE_TRY(read_macs(r, root));
    const json_at observers = tare__json_get(root, "observers");
    TARE_TRY(tare__json_expect(&observers, JSON_ARRAY, r->err));
    for (size_t i = 0; i < json_array_size(observers.value); i++) {
        const json_at item = tare__json_item(&observers, i);
        TARE_TRY(read_observer(r, &item));
    }
    if (r->used.count == r->file->tensors.count) return TARE_OK;
    return tare__fail(r->err, TARE_MALFORMED_FILE, "%zu tensors belong to no observer",
                      r->file->tensors.count - r->used.count);
}

tare_status tare__calibration_from_file(const safetensors *file, const observer_classes *classes,
                                        calibration *out, tare_error *err) {
    const char *chars = tare__safetensors_metadata(file, metadata_key);
    calibration read = {0};
    json_t *json = NULL;
    if (chars == NULL) {
        tare__fail(err, TARE_MALFORMED_FILE, "the file is not a calibration state");
        return tare__hint(err, TARE_MALFORMED_FILE, "tare calibrate writes them");
    }
    TARE_TRY(tare__json_parse(chars, strlen(chars), &json, err));
    reader r = {.file = file, .classes = classes, .c = &read, .err = err};
    const json_at root = tare__json_root(json);
    const tare_status status = read_root(&r, &root);
    json_decref(json);
    tare__map_release(&r.paths);
    tare__map_release(&r.used);
    if (status == TARE_OK)
        *out = read;
    else
        tare__calibration_release(&read);
    return status;
}

tare_status tare__calibration_load(const char *path, const observer_classes *classes,
                                   calibration *out, tare_error *err) {
    safetensors file = {0};
    TARE_TRY(tare__safetensors_read(path, &file, err));
    const tare_status status = tare__calibration_from_file(&file, classes, out, err);
    tare__safetensors_release(&file);
    return tare__at(err, status, "%s", path);
}
