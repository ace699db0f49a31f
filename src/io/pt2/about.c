// SPDX-License-Identifier: Apache-2.0
// Stores the parts of a program that are not in its graph as JSON, for the writer.
#include "io/pt2/about.h"

#include <string.h>

#include "core/json/write.h"

static tare_status keep_fields(const json_at *from, const char *const *keys, json_t *into,
                               tare_error *err) {
    for (; *keys != NULL; keys++) {
        json_t *field = json_object_get(from->value, *keys);
        if (field != NULL && json_object_set(into, *keys, field) != 0)
            return tare__out_of_memory(err);
    }
    return TARE_OK;
}

// The path under `key` of a spec of this kind; NULL if the spec is of another kind.
static const char *path_of(const json_t *spec, const char *kind, const char *key,
                           const json_t **body) {
    *body = json_object_get(spec, kind);
    return json_string_value(json_object_get(*body, key));
}

static bool has_no_gradient(const json_t *body, const json_t *tensors) {
    const char *name = json_string_value(json_object_get(json_object_get(body, "arg"), "name"));
    const json_t *tensor = name != NULL ? json_object_get(tensors, name) : NULL;
    return json_is_false(json_object_get(tensor, "requires_grad"));
}

// {"buffer": {.., "buffer_name": "mask", "persistent": false}}
static tare_status note_kind(const json_t *spec, const json_t *tensors, json_t *into,
                             tare_error *err) {
    const json_t *body = NULL;
    const char *kind = "tensor_constant";
    const char *path = path_of(spec, kind, "tensor_constant_name", &body);
    if (path == NULL) {
        kind = "buffer";
        path = path_of(spec, kind, "buffer_name", &body);
        if (path != NULL && !json_is_false(json_object_get(body, "persistent"))) return TARE_OK;
    }
    if (path == NULL) {
        kind = "frozen";
        path = path_of(spec, "parameter", "parameter_name", &body);
        if (path == NULL || !has_no_gradient(body, tensors)) return TARE_OK;
    }
    // json_object_set_new releases the value if it fails.
    return json_object_set_new(into, path, json_string(kind)) == 0 ? TARE_OK
                                                                   : tare__out_of_memory(err);
}

static tare_status keep_kinds(const json_at *inside, json_t *about, tare_error *err) {
    const json_t *specs =
        json_object_get(json_object_get(inside->value, "signature"), "input_specs");
    const json_t *tensors =
        json_object_get(json_object_get(inside->value, "graph"), "tensor_values");
    json_t *kinds = json_object();
    if (json_object_set_new(about, "kinds", kinds) != 0) return tare__out_of_memory(err);
    for (size_t i = 0; i < json_array_size(specs); i++)
        TARE_TRY(note_kind(json_array_get(specs, i), tensors, kinds, err));
    return TARE_OK;
}

static tare_status keep(graph *g, const json_at *top, json_t *about, tare_error *err) {
    static const char *const of_top[] = {"range_constraints", "verifiers", "guards_code", NULL};
    static const char *const of_module[] = {"module_call_graph", "treespec_namedtuple_fields",
                                            "metadata", NULL};
    const json_at inside = tare__json_get(top, "graph_module");
    TARE_TRY(keep_fields(top, of_top, about, err));
    TARE_TRY(keep_fields(&inside, of_module, about, err));
    TARE_TRY(keep_kinds(&inside, about, err));
    text json = {0};
    tare__json_write(about, &json);
    tare_status status = tare__text_status(&json, err);
    if (status == TARE_OK) {
        g->export_json = tare__arena_strdup(&g->memory, tare__text_chars(&json));
        if (g->export_json == NULL) status = tare__out_of_memory(err);
    }
    tare__text_release(&json);
    return status;
}

tare_status tare__pt2_keep_about(graph *g, const json_at *top, tare_error *err) {
    json_t *about = json_object();
    if (about == NULL) return tare__out_of_memory(err);
    const tare_status status = keep(g, top, about, err);
    json_decref(about);
    return status;
}
