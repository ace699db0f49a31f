// SPDX-License-Identifier: Apache-2.0
// Writes a model: one walk over the tree lists modules and collects tensors, then the JSON is
// assembled.
#include <inttypes.h>
#include <string.h>

#include "core/json/write.h"
#include "core/memory/alloc.h"
#include "io/native/graph_json.h"
#include "io/native/model_digests.h"
#include "io/native/model_file.h"
#include "io/native/quantized_json.h"
#include "io/native/value_json.h"
#include "tare/version.h"

// A module or tensor that has been written, and its path.
typedef struct seen {
    const void *what;
    const char *path;
} seen;

typedef struct seen_list {
    seen *items;
    size_t count, capacity;
} seen_list;

typedef struct writer {
    const module *root;
    const model_state_io *state;
    map file;    // contents of the file: name -> tare_tensor *, references owned
    arena paths; // of modules and tensors
    seen_list modules, tensors;
    text module_json, parameters, buffers, aliases,
        top;                        // the sections of the JSON; `top`: the root's own keys
    const model_packings *packings; // NULL: none
    map first;                      // names of their tensors
    packed_origin *origins;         // as many as packings
    tare_error *err;
} writer;

static const char *find_seen(const seen_list *list, const void *what) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].what == what) return list->items[i].path;
    return NULL;
}

static tare_status remember(seen_list *list, const void *what, const char *path, tare_error *err) {
    if (!tare__grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return tare__out_of_memory(err);
    list->items[list->count++] = (seen){what, path};
    return TARE_OK;
}

static tare_status join_path(writer *w, const char *path, const char *name, const char **out) {
    *out = tare__arena_printf(&w->paths, "%s%s%s", path, *path != '\0' ? "." : "", name);
    return *out != NULL ? TARE_OK : tare__out_of_memory(w->err);
}

static void separate(text *list) {
    if (list->length > 0) tare__text_append(list, ", ");
}

// Takes over the reference.
static tare_status add_tensor(writer *w, const char *name, tare_tensor *t) {
    tare_status status = TARE_OK;
    if (tare__map_has(&w->file, name))
        status = tare__fail(w->err, TARE_INVALID_ARGUMENT,
                            "two tensors of the model would be called '%s' in the file", name);
    else if (!tare__map_set(&w->file, name, t))
        status = tare__out_of_memory(w->err);
    if (status != TARE_OK) tare_tensor_release(t);
    return status;
}

static tare_status add_suffixed(writer *w, const char *name, const char *suffix, tare_tensor *t) {
    const char *full = tare__arena_printf(&w->paths, "%s%s", name, suffix);
    if (full != NULL) return add_tensor(w, full, t);
    tare_tensor_release(t);
    return tare__out_of_memory(w->err);
}

static tare_status add_quantized(writer *w, const char *name, const tare_tensor *t) {
    tare_tensor *integers = NULL, *scale = NULL, *zero_point = NULL;
    TARE_TRY(tare__quantized_split(t, &integers, &scale, &zero_point, w->err));
    tare_status status = add_suffixed(w, name, QUANTIZED_INTEGERS, integers);
    if (status == TARE_OK)
        status = add_suffixed(w, name, QUANTIZED_SCALE, scale);
    else
        tare_tensor_release(scale);
    if (status == TARE_OK)
        status = add_suffixed(w, name, QUANTIZED_ZERO_POINT, zero_point);
    else
        tare_tensor_release(zero_point);
    return status;
}

// `quantized` collects the descriptions of the module's quantized tensors.
static tare_status write_tensor(writer *w, const named_tensor *named, const char *path,
                                text *quantized) {
    const char *name = NULL;
    if (named->tensor == NULL) return TARE_OK; // registered as None: nothing in a file
    TARE_TRY(join_path(w, path, named->name, &name));
    text *list = named->is_parameter ? &w->parameters : &w->buffers;
    separate(list);
    tare__text_json_string(list, name);
    const char *first = find_seen(&w->tensors, named->tensor);
    if (first != NULL) {
        separate(&w->aliases);
        tare__text_json_string(&w->aliases, name);
        tare__text_append(&w->aliases, ": ");
        tare__text_json_string(&w->aliases, first);
        return TARE_OK;
    }
    TARE_TRY(remember(&w->tensors, named->tensor, name, w->err));
    if (!tare__tensor_is_quantized(named->tensor))
        return add_tensor(w, name, tare_tensor_retain(named->tensor));
    separate(quantized);
    tare__text_json_string(quantized, named->name);
    tare__text_append(quantized, ": ");
    tare__quantized_to_json(named->tensor, quantized);
    return add_quantized(w, name, named->tensor);
}

static tare_status write_tensors(writer *w, const module *m, const char *path, bool are_parameters,
                                 text *quantized) {
    for (size_t i = 0; i < m->tensor_count; i++)
        if (m->tensors[i].is_parameter == are_parameters)
            TARE_TRY(write_tensor(w, &m->tensors[i], path, quantized));
    return TARE_OK;
}

static tare_status write_state_tensors(writer *w, map *tensors, const char *path, text *names) {
    for (size_t i = 0; i < tensors->count; i++) {
        const char *full = NULL;
        separate(names);
        tare__text_json_string(names, tensors->entries[i].key);
        TARE_TRY(join_path(w, path, tensors->entries[i].key, &full));
        tare_tensor *t = tensors->entries[i].value;
        tensors->entries[i].value = NULL;
        TARE_TRY(add_tensor(w, full, t));
    }
    return TARE_OK;
}

static tare_status write_state(writer *w, const module *m, const char *path, text *names) {
    if (m->state == NULL) return TARE_OK;
    if (w->state == NULL)
        return tare__fail(w->err, TARE_INVALID_ARGUMENT,
                          "module '%s' of class '%s' has a state that this writer cannot save",
                          path, m->class->name);
    map tensors = {0};
    tare_status status = w->state->save(m, &tensors, w->err);
    if (status == TARE_OK) status = write_state_tensors(w, &tensors, path, names);
    tare__tensor_map_release(&tensors); // tensors that were not passed on
    return status;
}

// The keys that the root and other modules have in common, with a comma in front of each.
static tare_status write_own(writer *w, const module *m, const char *path, text *out) {
    text quantized = {0}, state = {0};
    // Parameters first, as they are registered when the file is read.
    tare_status status = write_tensors(w, m, path, true, &quantized);
    if (status == TARE_OK) status = write_tensors(w, m, path, false, &quantized);
    if (status == TARE_OK) status = write_state(w, m, path, &state);
    if (quantized.length > 0)
        tare__text_printf(out, ", \"quantized\": {%s}", tare__text_chars(&quantized));
    if (state.length > 0) tare__text_printf(out, ", \"state\": [%s]", tare__text_chars(&state));
    if (status == TARE_OK) status = tare__text_status(&quantized, w->err);
    if (status == TARE_OK) status = tare__text_status(&state, w->err);
    tare__text_release(&quantized);
    tare__text_release(&state);
    return status;
}

static tare_status write_config(const module *m, text *out, tare_error *err) {
    tare__text_append(out, ", \"config\": {");
    for (size_t i = 0; i < m->config_count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        tare__text_json_string(out, m->config[i].name);
        tare__text_append(out, ": ");
        TARE_TRY(tare__value_to_json(&m->config[i].value, out, err));
    }
    tare__text_char(out, '}');
    return TARE_OK;
}

static tare_status write_fields(writer *w, const module *m, const char *path) {
    text *out = &w->module_json;
    tare__text_append(out, ", \"type\": ");
    tare__text_json_string(out, m->class->name);
    tare__text_printf(out, ", \"training\": %s", m->training ? "true" : "false");
    TARE_TRY(write_config(m, out, w->err));
    TARE_TRY(write_own(w, m, path, out));
    if (m->graph != NULL) {
        tare__text_append(out, ", \"graph\": {");
        TARE_TRY(tare__graph_to_json(m->graph, out, w->err));
        tare__text_char(out, '}');
    }
    return TARE_OK;
}

static tare_status write_children(writer *w, const module *parent, const char *parent_path);

static tare_status write_module(writer *w, const module *m, const char *path) {
    text *out = &w->module_json;
    separate(out);
    tare__text_append(out, "{\"path\": ");
    tare__text_json_string(out, path);
    const char *first = find_seen(&w->modules, m);
    if (first != NULL) {
        tare__text_append(out, ", \"same_as\": ");
        tare__text_json_string(out, first);
        tare__text_char(out, '}');
        return TARE_OK;
    }
    TARE_TRY(remember(&w->modules, m, path, w->err));
    TARE_TRY(write_fields(w, m, path));
    tare__text_char(out, '}');
    return write_children(w, m, path);
}

static tare_status write_children(writer *w, const module *parent, const char *parent_path) {
    for (size_t i = 0; i < parent->child_count; i++) {
        const char *path = NULL;
        TARE_TRY(join_path(w, parent_path, parent->children[i].name, &path));
        TARE_TRY(write_module(w, parent->children[i].module, path));
    }
    return TARE_OK;
}

// --- the whole ---

static void write_head(const writer *w, text *out) {
    const value *name = tare__module_config(w->root, "class_name");
    tare__text_printf(
        out, "{\"format\": \"tare-graph\", \"version\": %d, \"class_name\": ", MODEL_FILE_VERSION);
    tare__text_json_string(out, name != NULL && name->kind == VALUE_STRING
                                    ? name->as.text
                                    : w->root->class->print_name);
    tare__text_printf(out, ", \"training\": %s", w->root->training ? "true" : "false");
    tare__text_printf(out, ", \"modules\": [%s]", tare__text_chars(&w->module_json));
    tare__text_printf(out, ", \"parameters\": [%s]", tare__text_chars(&w->parameters));
    tare__text_printf(out, ", \"buffers\": [%s]", tare__text_chars(&w->buffers));
    if (w->aliases.length > 0)
        tare__text_printf(out, ", \"aliases\": {%s}", tare__text_chars(&w->aliases));
    tare__text_append(out, tare__text_chars(&w->top));
}

static tare_status check_texts(const writer *w) {
    const text *const texts[] = {&w->module_json, &w->parameters, &w->buffers, &w->aliases,
                                 &w->top};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        TARE_TRY(tare__text_status(texts[i], w->err));
    return TARE_OK;
}

// The names of the tensors in the file that the weight consists of.
static tare_status find_origin(writer *w, const model_packing *p, const char *name,
                               packed_origin *out) {
    static const char *const suffixes[MOST_ORIGINS] = {QUANTIZED_INTEGERS, QUANTIZED_SCALE,
                                                       QUANTIZED_ZERO_POINT};
    out->of[0] = name;
    if (!tare__tensor_is_quantized(p->weight)) return TARE_OK;
    for (size_t i = 0; i < MOST_ORIGINS; i++) {
        out->of[i] = tare__arena_printf(&w->paths, "%s%s", name, suffixes[i]);
        if (out->of[i] == NULL) return tare__out_of_memory(w->err);
    }
    return TARE_OK;
}

static tare_status write_packing(writer *w, const model_packing *p, packed_origin *origin,
                                 text *out) {
    const char *name = find_seen(&w->tensors, p->weight);
    if (name == NULL)
        return tare__fail(w->err, TARE_INVALID_ARGUMENT,
                          "packed weights belong to none of the model's tensors");
    const char *bytes = tare__arena_printf(&w->paths, "%s.packed", name);
    if (bytes == NULL) return tare__out_of_memory(w->err);
    origin->packed = bytes;
    TARE_TRY(find_origin(w, p, name, origin));
    tare__text_append(out, "{\"weight\": ");
    tare__text_json_string(out, name);
    tare__text_append(out, ", \"form\": [");
    for (size_t i = 0; i < DERIVED_NUMBERS; i++)
        tare__text_printf(out, "%s%" PRIu64, i > 0 ? ", " : "", p->numbers[i]);
    tare__text_append(out, "], \"bytes\": ");
    tare__text_json_string(out, bytes);
    tare__text_char(out, '}');
    TARE_TRY(add_tensor(w, bytes, tare_tensor_retain(p->bytes)));
    return tare__map_set(&w->first, bytes, p->bytes) ? TARE_OK : tare__out_of_memory(w->err);
}

static tare_status write_packings(writer *w, text *out) {
    if (w->packings == NULL || w->packings->count == 0) return TARE_OK;
    w->origins = tare__alloc_zeroed(w->packings->count, sizeof *w->origins);
    if (w->origins == NULL) return tare__out_of_memory(w->err);
    tare__text_append(out, ", \"packed\": [");
    for (size_t i = 0; i < w->packings->count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        TARE_TRY(write_packing(w, &w->packings->items[i], &w->origins[i], out));
    }
    tare__text_char(out, ']');
    return TARE_OK;
}

static tare_status write_json(writer *w, const json_t *extra, text *out) {
    if (w->root->graph == NULL)
        return tare__fail(w->err, TARE_INVALID_ARGUMENT,
                          "a model without a graph cannot be written");
    TARE_TRY(write_own(w, w->root, "", &w->top));
    TARE_TRY(write_children(w, w->root, ""));
    TARE_TRY(check_texts(w));
    write_head(w, out);
    tare__text_append(out, ", ");
    TARE_TRY(tare__graph_to_json(w->root->graph, out, w->err));
    if (extra != NULL) {
        tare__text_append(out, ", \"record\": ");
        tare__json_write(extra, out);
    }
    TARE_TRY(write_packings(w, out));
    tare__text_printf(out, ", \"tare\": {\"version\": \"%s\"}}", tare_version());
    return tare__text_status(out, w->err);
}

static void release(writer *w) {
    tare__tensor_map_release(&w->file);
    tare__map_release(&w->first);
    tare__arena_release(&w->paths);
    tare__free(w->origins);
    tare__free(w->modules.items);
    tare__free(w->tensors.items);
    text *const texts[] = {&w->module_json, &w->parameters, &w->buffers, &w->aliases, &w->top};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) tare__text_release(texts[i]);
}

tare_status tare__model_to_json_and_tensors(const module *root, const model_state_io *state,
                                            const json_t *extra, text *json, map *tensors,
                                            tare_error *err) {
    writer w = {.root = root, .state = state, .err = err};
    const tare_status status = write_json(&w, extra, json);
    *tensors = w.file;
    w.file = (map){0};
    release(&w);
    if (status != TARE_OK) tare__tensor_map_release(tensors);
    return status;
}

tare_status tare__model_to_json(const module *root, const model_state_io *state,
                                const json_t *extra, text *out, tare_error *err) {
    writer w = {.root = root, .state = state, .err = err};
    const tare_status status = write_json(&w, extra, out);
    release(&w);
    return status;
}

static tare_status digest(const writer *w, const text *json, text *out) {
    const size_t origin_count = w->origins != NULL ? w->packings->count : 0;
    return tare__model_digests_to_json(json, &w->file, w->origins, origin_count, out, w->err);
}

static tare_status write_file(const char *path, const writer *w, const text *json,
                              const text *digests) {
    json_t *metadata = json_pack("{s:s%, s:s%}", MODEL_GRAPH, tare__text_chars(json), json->length,
                                 MODEL_DIGESTS, tare__text_chars(digests), digests->length);
    if (metadata == NULL) return tare__out_of_memory(w->err);
    const tare_status status =
        tare__safetensors_write_first(path, &w->file, &w->first, metadata, w->err);
    json_decref(metadata);
    return status;
}

tare_status tare__model_file_write_packed(const char *path, const module *root,
                                          const model_state_io *state, const json_t *extra,
                                          const model_packings *packings, tare_error *err) {
    writer w = {.root = root, .state = state, .packings = packings, .err = err};
    text json = {0}, digests = {0};
    tare_status status = write_json(&w, extra, &json);
    if (status == TARE_OK) status = digest(&w, &json, &digests);
    if (status == TARE_OK) status = write_file(path, &w, &json, &digests);
    tare__text_release(&digests);
    tare__text_release(&json);
    release(&w);
    return status;
}

tare_status tare__model_file_write(const char *path, const module *root,
                                   const model_state_io *state, const json_t *extra,
                                   tare_error *err) {
    return tare__model_file_write_packed(path, root, state, extra, NULL, err);
}
