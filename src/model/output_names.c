// SPDX-License-Identifier: Apache-2.0
// The names of a graph's outputs: the file's, the keys of a dict, or numbers.
#include <string.h>

#include "core/json/json.h"
#include "core/text/text.h"
#include "model/shapes.h"

static const value *result_of(const graph *g) {
    const node *n = tare__graph_output(g);
    return n != NULL && n->arg_count > 0 ? &n->args[0] : NULL;
}

static size_t count_leaves(const value *v) {
    if (v->kind == VALUE_NODE) return 1;
    size_t count = 0;
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        count += count_leaves(&v->as.items[i]);
    return count;
}

size_t tare__output_count(const graph *g) {
    const value *result = result_of(g);
    return result != NULL ? count_leaves(result) : 0;
}

// --- keys of a dict ---

typedef struct key_walk {
    arena *memory;
    const char **names;
    size_t count;
    tare_error *err;
} key_walk;

static tare_status name_leaves(key_walk *w, const value *v, const char *path);

static tare_status name_item(key_walk *w, const value *item, const char *path, const char *key) {
    const char *inner = path[0] == '\0' ? key : tare__arena_printf(w->memory, "%s.%s", path, key);
    return inner != NULL ? name_leaves(w, item, inner) : tare__out_of_memory(w->err);
}

static tare_status name_leaves(key_walk *w, const value *v, const char *path) {
    if (v->kind == VALUE_NODE) w->names[w->count++] = path;
    if (!tare__value_has_items(v)) return TARE_OK;
    const bool is_dict = v->kind == VALUE_DICT;
    for (uint32_t i = 0; i + is_dict < v->count; i += is_dict ? 2 : 1) {
        const value *key = &v->as.items[i];
        const char *number = tare__arena_printf(w->memory, "%u", (unsigned)(is_dict ? i / 2 : i));
        if (number == NULL) return tare__out_of_memory(w->err);
        const bool is_named = is_dict && key->kind == VALUE_STRING && key->as.text[0] != '\0';
        TARE_TRY(name_item(w, &v->as.items[i + is_dict], path, is_named ? key->as.text : number));
    }
    return TARE_OK;
}

// --- names of the file: {"names": ["logits", ..]} of the output ---

static tare_status read_names(const json_at *names, arena *memory, const char **out,
                              tare_error *err) {
    for (size_t i = 0; i < json_array_size(names->value); i++) {
        const json_at item = tare__json_item(names, i);
        const char *name = NULL;
        TARE_TRY(tare__json_string(&item, &name, err));
        if (!tare__arena_copy_text(memory, name, &out[i])) return tare__out_of_memory(err);
    }
    return TARE_OK;
}

static tare_status names_of_file(const graph *g, size_t count, arena *memory, const char **out,
                                 bool *found, tare_error *err) {
    const node *n = tare__graph_output(g);
    json_t *meta = NULL;
    *found = false;
    if (n == NULL || n->meta_json == NULL) return TARE_OK;
    TARE_TRY(tare__json_parse(n->meta_json, strlen(n->meta_json), &meta, err));
    const json_at root = tare__json_root(meta), names = tare__json_get(&root, "names");
    tare_status status = TARE_OK;
    *found = json_is_array(names.value) && json_array_size(names.value) == count;
    if (*found) status = read_names(&names, memory, out, err);
    json_decref(meta);
    return status;
}

static tare_status number_outputs(arena *memory, size_t count, const char **out, tare_error *err) {
    for (size_t i = 0; i < count; i++) {
        out[i] = count == 1 ? "output" : tare__arena_printf(memory, "output.%zu", i);
        if (out[i] == NULL) return tare__out_of_memory(err);
    }
    return TARE_OK;
}

tare_status tare__output_names(const graph *g, size_t count, arena *memory, const char ***out,
                               tare_error *err) {
    const value *result = result_of(g);
    const char **names = tare__arena_array(memory, count + 1, sizeof *names);
    bool found = false;
    if (names == NULL) return tare__out_of_memory(err);
    *out = names;
    TARE_TRY(names_of_file(g, count, memory, names, &found, err));
    if (found) return TARE_OK;
    key_walk w = {.memory = memory, .names = names, .err = err};
    if (result != NULL && result->kind == VALUE_DICT && count_leaves(result) == count)
        return name_leaves(&w, result, "");
    return number_outputs(memory, count, names, err);
}
